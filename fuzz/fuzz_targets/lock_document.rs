//! Any bytes through `cronward::fuzzing::lock_document`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = cronward::fuzzing::lock_document(bytes);
});
