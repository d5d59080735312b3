//! Any bytes through `cronward::fuzzing::document`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = cronward::fuzzing::document(bytes);
});
