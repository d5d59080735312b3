//! Any bytes through `cronward::fuzzing::crontab`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = cronward::fuzzing::crontab(bytes);
});
