//! Any bytes through `cronward::fuzzing::slot_key`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = cronward::fuzzing::slot_key(bytes);
});
