//! Any bytes through `cronward::fuzzing::journal`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = cronward::fuzzing::journal(bytes);
});
