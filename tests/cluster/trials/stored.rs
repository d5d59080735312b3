//! What stands in Redis, read past everything that is tested.

use crate::redis_server::RedisServer;
use crate::wait;

/// The one key of a job's slot that ends so, in the namespace `default`; the job has one slot.
fn key(server: &RedisServer, job: &str, end: &str) -> Option<String> {
    let pattern = format!("cronward:default:{{{job}@*}}{end}");
    let keys: Vec<String> = redis::from_redis_value(server.command(&["KEYS", &pattern])).unwrap();
    assert!(keys.len() < 2, "the job has one slot: {keys:?}");
    keys.into_iter().next()
}

/// The attempt counter of a job's only slot, once it is there.
pub(super) fn counter(server: &RedisServer, job: &str) -> String {
    let key = wait::until("the counter", || key(server, job, ":attempts"));
    server.text(&["GET", &key]).unwrap()
}

/// Whether a job's only slot has a mark.
pub(super) fn is_marked(server: &RedisServer, job: &str) -> bool {
    key(server, job, "").is_some()
}

/// The mark of a job's only slot: the lease, or the done marker.
pub(super) fn mark(server: &RedisServer, job: &str) -> String {
    let key = wait::until("the mark", || key(server, job, ""));
    server.text(&["GET", &key]).unwrap()
}

/// Whether a job's only slot is done.
pub(super) fn is_done(server: &RedisServer, job: &str) -> bool {
    let key = key(server, job, "");
    key.and_then(|key| server.text(&["GET", &key])).is_some_and(|mark| mark.starts_with("done "))
}

/// Whether this slot is done.
pub(super) fn is_slot_done(server: &RedisServer, job: &str, slot: &str) -> bool {
    let mark = server.text(&["GET", &format!("cronward:default:{{{job}@{slot}}}")]);
    mark.is_some_and(|mark| mark.starts_with("done "))
}

/// The counter of one slot.
pub(super) fn counter_of(server: &RedisServer, job: &str, slot: &str) -> Option<String> {
    server.text(&["GET", &format!("cronward:default:{{{job}@{slot}}}:attempts")])
}
