//! Any bytes through `cronward::fuzzing::cron`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = cronward::fuzzing::cron(bytes);
});
