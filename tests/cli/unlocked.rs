//! `cronward unlock` while the holder is alive: it loses, and the next one gets in; on the embedded store and on Redis.

use std::io::Read;

use crate::guarding::{exec_at, running_at, zone};
use crate::program::{Ended, Place};
use crate::redis_server::RedisServer;

/// The file by which `unlock` knows the job.
const JOBS: &str = r#"
[jobs.push]
schedule = "0 0 * * *"
slot = "day"
timezone = "ZONE"
command = "true"
"#;

fn on_each_store(check: fn(&str, &Place)) {
    let place = || Place::with_jobs(&JOBS.replace("ZONE", &zone()));
    check("sqlite:store.db", &place());
    let server = RedisServer::start();
    check(&server.url(), &place());
}

fn unlock(place: &Place, url: &str) -> Ended {
    place.run(&["unlock", "push", "--config", "jobs.toml", "--store", url, "--yes", "--reason", "it hangs"])
}

#[test]
fn a_holder_that_is_to_be_killed_ends_with_76_and_another_takes_the_next_attempt() {
    on_each_store(|url, place| {
        let (holder, mut out) = running_at(
            url,
            place,
            &["--on-lost", "kill", "--lease-ttl", "9s", "--report", "report.json"],
            "exec sleep 60",
        );
        let unlocked = unlock(place, url);
        assert_eq!(unlocked.code, 0, "{unlocked:?}");
        assert!(unlocked.stdout.contains("attempt 1 on node "), "{unlocked:?}");
        let ended = holder.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(76), "{told}");
        assert!(told.contains("the lease of attempt 1 was lost or its renewal was overdue"), "{told}");
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "the command is dead");
        let next = exec_at(url, place, &["--node", "other"], &["/bin/sh", "-c", "echo $CRONWARD_ATTEMPT"]);
        assert_eq!((next.code, &*next.stdout, &*next.stderr), (0, "2\n", ""));
        let shown = place.run(&["show", "push", "--config", "jobs.toml", "--store", url]).stdout;
        assert!(shown.contains("\nattempt 1  lost lease\n") && shown.contains("unlock by "), "{shown}");
        assert!(shown.contains("\nattempt 2  success\n") && shown.contains(": it hangs\n"), "{shown}");
    });
}

#[test]
fn a_holder_that_may_go_on_ends_as_it_would_and_says_that_another_may_have_run() {
    on_each_store(|url, place| {
        let script = "while ! test -e end; do sleep 0.05; done; exit 5";
        let (holder, _out) = running_at(url, place, &["--lease-ttl", "9s"], script);
        assert_eq!(unlock(place, url).code, 0);
        let next = exec_at(url, place, &["--node", "other"], &["/bin/sh", "-c", "echo $CRONWARD_ATTEMPT; touch end"]);
        assert_eq!((next.code, &*next.stdout), (0, "2\n"), "{next:?}");
        let ended = holder.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(5), "{told}");
        assert!(told.contains("another run may have overlapped"), "{told}");
    });
}
