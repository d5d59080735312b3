//! Any bytes through `cronward::fuzzing::http_words`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = cronward::fuzzing::http_words(bytes);
});
