//! Any bytes through `cronward::fuzzing::config`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = cronward::fuzzing::config(bytes);
});
