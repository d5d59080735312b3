//! `cronward exec --key KEY` beside an old script that locks by hand with `SET KEY value NX EX`.

use std::cell::Cell;
use std::process::{Child, Command, Stdio};

use redis::Value;

use crate::guarding::zone;
use crate::program::{Ended, Place};
use crate::redis_server::{RedisServer, documented_permissions};
use crate::wait;

/// What people write: whoever sets the key runs, and leaves it to lapse.
const OLD_SCRIPT: &str = r#"
test "$(redis-cli -p "$1" SET billing-lock web-1 NX EX 300)" = OK || exit 0
echo the old script ran
"#;

fn old_script(server: &RedisServer) -> String {
    let mut command = Command::new("/bin/sh");
    let output = command.args(["-c", OLD_SCRIPT, "sh", &server.port().to_string()]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn command(place: &Place, url: &str, flags: &[&str], script: &str) -> Command {
    let zone = zone();
    let base = ["exec", "--store", url, "--job", "billing", "--slot", "day", "--timezone", &zone];
    let ttl: &[&str] = if flags.contains(&"--lease-ttl") { &[] } else { &["--lease-ttl", "2s"] };
    let key = ["--key", "billing-lock"];
    place.command(&[&base[..], &key, ttl, flags, &["--", "/bin/sh", "-c", script]].concat())
}

fn exec(place: &Place, url: &str, flags: &[&str], script: &str) -> Ended {
    command(place, url, flags, script).output().unwrap().into()
}

/// A guarded command that has begun, and goes on until there is a file `end`.
fn running(place: &Place, server: &RedisServer, flags: &[&str]) -> Child {
    let script = "echo > up; while ! test -e end; do sleep 0.05; done";
    let child =
        command(place, &server.url(), flags, script).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait::until_true("the command", || place.path().join("up").exists());
    child
}

fn value(server: &RedisServer) -> Option<String> {
    match server.command(&["GET", "billing-lock"]) {
        Value::BulkString(bytes) => Some(String::from_utf8(bytes).unwrap()),
        _ => None,
    }
}

fn left_ms(server: &RedisServer) -> i64 {
    match server.command(&["PTTL", "billing-lock"]) {
        Value::Int(left) => left,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_old_scripts_lock_keeps_exec_out_and_burns_no_attempt() {
    let (place, server) = (Place::new(), RedisServer::start());
    assert_eq!(old_script(&server), "the old script ran\n");
    let held = exec(&place, &server.url(), &["--report", "report.json"], "echo never");
    assert_eq!((held.code, &*held.stdout, &*held.stderr), (0, "", ""));
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.path().join("report.json")).unwrap()).unwrap();
    assert_eq!((&report["result"], &report["by"]), (&"held".into(), &"web-1".into()), "{report}");
    assert_eq!(value(&server).as_deref(), Some("web-1"), "it is left as it is");
    server.command(&["DEL", "billing-lock"]);
    let ran = exec(&place, &server.url(), &[], "echo $CRONWARD_ATTEMPT");
    assert_eq!((ran.code, &*ran.stdout), (0, "1\n"), "{ran:?}");
}

#[test]
fn execs_lease_keeps_the_old_script_out_and_so_does_the_slot_that_is_done() {
    let (place, server) = (Place::new(), RedisServer::start());
    // The key lapses with the lease, which outlasts what a busy machine makes a renewal wait.
    let child = running(&place, &server, &["--node", "web-2", "--lease-ttl", "6s"]);
    assert!(value(&server).is_some_and(|value| value.starts_with("cronward ") && value.ends_with(" web-2")));
    // Three leases long: each is renewed at every third of it.
    let (renewals, last) = (Cell::new(0), Cell::new(left_ms(&server)));
    wait::until_true("several renewals", || {
        assert_eq!(old_script(&server), "");
        let left = left_ms(&server);
        assert!((1..=6_000).contains(&left), "{left} ms");
        renewals.set(renewals.get() + u32::from(left > last.replace(left)));
        renewals.get() == 9
    });
    std::fs::write(place.path().join("end"), "").unwrap();
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
    assert_eq!(old_script(&server), "");
    assert!(left_ms(&server) > 3_600_000, "until the day's end: {} ms", left_ms(&server));
}

#[test]
fn a_failure_lets_the_key_go() {
    let (place, server) = (Place::new(), RedisServer::start());
    assert_eq!(exec(&place, &server.url(), &[], "exit 3").code, 3);
    assert_eq!(value(&server), None);
    assert_eq!(old_script(&server), "the old script ran\n");
}

#[test]
fn a_lock_without_an_end_is_told_loudly_and_nothing_starts() {
    let (place, server) = (Place::new(), RedisServer::start());
    server.command(&["SET", "billing-lock", "somebody else's, for ever"]);
    let refused = exec(&place, &server.url(), &[], "echo never");
    assert_eq!((refused.code, &*refused.stdout), (69, ""));
    for words in ["billing-lock", "without an end", "the command was not started"] {
        assert!(refused.stderr.contains(words), "{words}: {}", refused.stderr);
    }
}

#[test]
fn a_key_that_is_no_lock_is_named_and_left_alone() {
    let (place, server) = (Place::new(), RedisServer::start());
    server.command(&["RPUSH", "billing-lock", "an item of a list"]);
    let refused = exec(&place, &server.url(), &[], "echo never");
    assert_eq!((refused.code, &*refused.stdout), (69, ""));
    for words in
        ["claim: billing-lock holds", "something else there than a lock", "locks with; the command was not started"]
    {
        assert!(refused.stderr.contains(words), "{words}: {}", refused.stderr);
    }
    assert!(!refused.stderr.contains("cronward:default"), "{}", refused.stderr);
    assert_eq!(server.number(&["LLEN", "billing-lock"]), 1);
}

fn verb(place: &Place, server: &RedisServer, verb: &str) -> Ended {
    // The registry hears of a job that no file knows as soon as its command runs.
    wait::until_true("the job", || server.number(&["HEXISTS", "cronward:default:jobs", "billing"]) == 1);
    place.run(&[verb, "billing", "--store", &server.url(), "--yes"])
}

#[test]
fn unlock_lets_the_holders_key_go_too_and_the_old_holder_takes_nothing_back() {
    let (place, server) = (Place::new(), RedisServer::start());
    let child = running(&place, &server, &["--node", "web-2", "--lease-ttl", "600s"]);
    let unlocked = verb(&place, &server, "unlock");
    assert_eq!(unlocked.code, 0, "{unlocked:?}");
    assert_eq!(value(&server), None, "the key went with the lease");
    let next = exec(&place, &server.url(), &["--node", "web-3"], "echo $CRONWARD_ATTEMPT");
    assert_eq!((next.code, &*next.stdout, &*next.stderr), (0, "2\n", ""));
    let kept = value(&server);
    std::fs::write(place.path().join("end"), "").unwrap();
    let ended = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&ended.stderr).contains("another run may have overlapped"), "{ended:?}");
    assert_eq!(value(&server), kept, "it is the next one's, until the day's end");
    assert!(kept.is_some_and(|kept| kept.ends_with(" web-3")));
}

#[test]
fn unlock_leaves_a_key_that_somebody_else_has_by_now() {
    let (place, server) = (Place::new(), RedisServer::start());
    let child = running(&place, &server, &["--lease-ttl", "600s"]);
    server.command(&["SET", "billing-lock", "thief 7", "EX", "300"]);
    let unlocked = verb(&place, &server, "unlock");
    assert!(unlocked.code == 0 && unlocked.stdout.contains("attempt 1 on node "), "{unlocked:?}");
    assert_eq!(value(&server).as_deref(), Some("thief 7"));
    // Whatever it is by now.
    for words in [&["DEL", "billing-lock"][..], &["RPUSH", "billing-lock", "a list"]] {
        server.command(words);
    }
    assert_eq!(verb(&place, &server, "reset").code, 0);
    assert_eq!(server.text(&["LINDEX", "billing-lock", "0"]).as_deref(), Some("a list"));
    server.command(&["DEL", "billing-lock"]);
    std::fs::write(place.path().join("end"), "").unwrap();
    child.wait_with_output().unwrap();
}

#[test]
fn a_user_who_may_not_use_the_holders_key_is_told_its_name_and_unlocks_nothing() {
    let (place, server) = (Place::new(), RedisServer::start());
    let child = running(&place, &server, &["--lease-ttl", "600s"]);
    let before = value(&server);
    server.allow(&documented_permissions());
    wait::until_true("the job", || server.number(&["HEXISTS", "cronward:default:jobs", "billing"]) == 1);
    let url = format!("redis://cronward:secret@127.0.0.1:{}", server.port());
    let refused = place.run(&["unlock", "billing", "--store", &url, "--yes"]);
    assert_eq!(refused.code, 69, "{refused:?}");
    assert!(refused.stderr.contains("held together with the external lock \"billing-lock\""), "{refused:?}");
    assert_eq!(value(&server), before);
    std::fs::write(place.path().join("end"), "").unwrap();
    assert!(child.wait_with_output().unwrap().status.success(), "it held the slot all the while");
}

#[test]
fn reset_lets_the_key_of_a_success_go_so_that_the_slot_can_run_again() {
    let (place, server) = (Place::new(), RedisServer::start());
    assert_eq!(exec(&place, &server.url(), &[], "echo $CRONWARD_ATTEMPT").stdout, "1\n");
    assert!(value(&server).is_some());
    assert_eq!(verb(&place, &server, "reset").code, 0);
    assert_eq!(value(&server), None);
    assert_eq!(exec(&place, &server.url(), &[], "echo $CRONWARD_ATTEMPT").stdout, "2\n");
}

#[test]
fn a_script_that_takes_the_key_by_force_has_it_and_the_run_is_told() {
    let (place, server) = (Place::new(), RedisServer::start());
    let child = running(&place, &server, &["--on-lost", "kill"]);
    server.command(&["SET", "billing-lock", "thief 7", "EX", "300"]);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(76), "{ended:?}");
    assert_eq!(value(&server).as_deref(), Some("thief 7"), "it is left as it is");
}

#[test]
fn a_store_that_cannot_hold_a_foreign_key_refuses() {
    for url in ["sqlite:store.db", "redis+cluster://127.0.0.1:1", "etcd://127.0.0.1:1"] {
        let refused = exec(&Place::new(), url, &[], "echo never");
        assert_eq!((refused.code, &*refused.stdout), (64, ""), "{refused:?}");
        #[cfg(all(feature = "redis-cluster", feature = "etcd"))]
        assert!(refused.stderr.contains("--key: an external lock can be held in one Redis only"), "{}", refused.stderr);
    }
    for key in ["", "cronward:default:{billing}"] {
        let refused = Place::new().run(&["exec", "--store", "memory", "--job", "a", "--key", key, "--", "/bin/true"]);
        assert_eq!(refused.code, 64, "{refused:?}");
    }
}
