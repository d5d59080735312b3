//! What the fuzz targets in `fuzz/` and their twins in `tests/parsers` share: one function per parser. Each takes any
//! bytes, checks what is claimed of the parser, panics when that is not so, and answers whether the bytes were accepted.
//!
//! - No panic, and an end: a search is bounded, and so is what comes out, by what went in. So is the memory, which
//!   `tests/parsers` counts.
//! - What is accepted reads back from its own display as the same value.
//! - An error is one line, of a length that can be read, and nothing in it moves a cursor.
//!
//! Behind the feature `fuzzing`, because a fuzz target is another package and some of these parsers are nobody's
//! business: a feature that no release is built with opens a door that a public module would leave open for good.

mod stored;
mod written;

pub use stored::{journal, slot_key, stored_record};
pub use written::{config, cron, env_file, placeholders};

pub use crate::cli::import::fuzzing::crontab;
pub use crate::store::document_texts as document;
pub use crate::store::etcd::fuzzing::etcd_reply;
pub use crate::store::redis::fuzzing::redis_reply;
pub use crate::store::sql::fuzzing::sql_row;
pub use crate::store::zookeeper::fuzzing::zookeeper_node;

use chrono::{DateTime, Utc};

/// 2026-11-21T12:00:00Z, a Saturday.
const NOON: DateTime<Utc> = match DateTime::from_timestamp(1_795_262_400, 0) {
    Some(instant) => instant,
    None => DateTime::UNIX_EPOCH,
};

/// Characters of an error that a person may be asked to read.
const READABLE: usize = 2_000;

/// Checks that a message is one line that can be read and that nothing in it moves a cursor.
fn is_one_line(message: &str) {
    assert!(!message.chars().any(crate::text::is_harmful), "not one harmless line: {message:?}");
    assert!(message.chars().count() <= READABLE, "too long to be read: {} bytes", message.len());
}
