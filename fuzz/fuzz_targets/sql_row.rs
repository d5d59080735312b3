//! Any bytes through `cronward::fuzzing::sql_row`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = cronward::fuzzing::sql_row(bytes);
});
