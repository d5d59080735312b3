//! Any bytes through `cronward::fuzzing::zookeeper_node`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = cronward::fuzzing::zookeeper_node(bytes);
});
