//! The disk has no room, or takes no writes.

use std::path::Path;

use cronward::slot::Mark;
use cronward::store::Store;

use crate::sqlite::bench::{fetch, grant, open, place, raw, slot};
use crate::sqlite::child::{Running, command};

/// The role in a mount namespace of its own, after a shell has prepared `$1`, the file's directory. Works for root and,
/// by a user namespace, for others.
fn in_own_mounts(role: &str, path: &Path, prepare: &str) -> Vec<String> {
    let script = format!("{prepare} && shift && exec \"$@\"");
    let directory = path.parent().unwrap().to_str().unwrap();
    let child = command(role, path, &["unshare", "--map-root-user", "--mount", "sh", "-c", &script, "sh", directory]);
    Running::start(child).rest()
}

#[test]
fn a_full_disk_is_told_as_such() {
    let place = place();
    let said = in_own_mounts("work", &place.path, "mount -t tmpfs -o size=1m none \"$1\"");
    let (error, done) = said.split_last().unwrap();
    assert!(!done.is_empty());
    assert!(error.starts_with("error overloaded "), "{error}");
    assert!(error.contains("the disk is full") && error.contains(place.path.to_str().unwrap()), "{error}");
}

#[test]
fn when_a_full_disk_has_room_again_the_same_store_goes_on() {
    let place = place();
    let said = in_own_mounts("refill", &place.path, "mount -t tmpfs -o size=1m none \"$1\"");
    assert_eq!(said, ["overloaded", "granted as attempt 1"]);
}

#[tokio::test]
async fn a_file_system_that_takes_no_writes_is_called_read_only() {
    let place = place();
    drop(open(&place.path).await);
    let said = in_own_mounts("open", &place.path, "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\"");
    assert!(said[0].starts_with("read_only ") && said[0].contains(place.path.to_str().unwrap()), "{said:?}");
}

#[tokio::test]
async fn a_write_that_fails_half_way_leaves_what_was_answered_and_a_whole_file() {
    let place = place();
    // 400 blocks of 512 bytes. Without the trap the limit would end the process instead of the write.
    let script = "trap '' XFSZ && ulimit -f 400 && exec \"$@\"";
    let said = Running::start(command("work", &place.path, &["sh", "-c", script, "sh"])).rest();
    let (error, done) = said.split_last().unwrap();
    assert!(error.starts_with("error unavailable ") && error.contains("limits"), "{error}");
    let store = open(&place.path).await;
    let slots: Vec<_> = done.iter().map(|job| slot(job)).collect();
    let (_, records) = store.inspect(&slots).await.unwrap();
    assert!(records.iter().all(|record| matches!(record.mark, Mark::Done(_))));
    let whole: String = fetch(&mut raw(&place.path).await, "PRAGMA integrity_check").await;
    assert_eq!(whole, "ok");
    grant(&store, &slot("after")).await;
}
