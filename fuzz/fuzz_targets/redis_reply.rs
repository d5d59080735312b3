//! Any bytes through `cronward::fuzzing::redis_reply`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = cronward::fuzzing::redis_reply(bytes);
});
