//! Any bytes through `cronward::fuzzing::placeholders`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = cronward::fuzzing::placeholders(bytes);
});
