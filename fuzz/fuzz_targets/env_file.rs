//! Any bytes through `cronward::fuzzing::env_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = cronward::fuzzing::env_file(bytes);
});
