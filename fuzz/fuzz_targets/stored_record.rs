//! Any bytes through `cronward::fuzzing::stored_record`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = cronward::fuzzing::stored_record(bytes);
});
