//! Any bytes through `cronward::fuzzing::etcd_reply`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = cronward::fuzzing::etcd_reply(bytes);
});
