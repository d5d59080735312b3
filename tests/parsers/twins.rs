//! One twin of each fuzz target.

use cronward::fuzzing;
use proptest::prelude::*;

use crate::material::{Material, bytes};
use crate::memory::bounded;

/// A target, and whether it accepts the bytes.
type Body = fn(&[u8]) -> bool;

const TARGETS: [(&str, Body); 15] = [
    ("config", fuzzing::config),
    ("cron", fuzzing::cron),
    ("slot_key", fuzzing::slot_key),
    ("placeholders", fuzzing::placeholders),
    ("redis_reply", fuzzing::redis_reply),
    ("stored_record", fuzzing::stored_record),
    ("journal", fuzzing::journal),
    ("document", fuzzing::document),
    ("lock_document", fuzzing::lock_document),
    ("etcd_reply", fuzzing::etcd_reply),
    ("sql_row", fuzzing::sql_row),
    ("zookeeper_node", fuzzing::zookeeper_node),
    ("crontab", fuzzing::crontab),
    ("env_file", fuzzing::env_file),
    ("http_words", fuzzing::http_words),
];

#[test]
fn each_seed_is_accepted_unless_its_name_says_refused() {
    for (target, body) in TARGETS {
        let seeds = Material::of(target).seeds;
        assert!(seeds.len() > 2, "{target}");
        for (name, bytes) in seeds {
            assert_eq!(body(&bytes), !name.starts_with("refused"), "{target}/{name}");
        }
    }
}

#[test]
fn each_target_is_in_the_fuzz_package() {
    let manifest = include_str!("../../fuzz/Cargo.toml");
    for (target, _) in TARGETS {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{target}.rs\"")), "{target}");
    }
    assert_eq!(manifest.matches("[[bin]]").count(), TARGETS.len());
}

macro_rules! twins {
    ($($target:ident $cases:literal;)*) => {
        $(proptest! {
            #![proptest_config(ProptestConfig { cases: $cases, failure_persistence: None, ..ProptestConfig::default() })]

            #[test]
            fn $target(input in bytes(stringify!($target))) {
                bounded(stringify!($target), fuzzing::$target, &input.0);
            }
        })*
    };
}

twins! {
    config 300;
    cron 1_000;
    slot_key 2_000;
    placeholders 2_000;
    redis_reply 2_000;
    stored_record 1_000;
    journal 500;
    document 1_000;
    lock_document 1_000;
    etcd_reply 2_000;
    sql_row 1_000;
    zookeeper_node 1_000;
    crontab 300;
    env_file 2_000;
    http_words 2_000;
}
