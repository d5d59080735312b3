//! Nodes that die, or stand still for longer than their lease.

use std::time::{Duration, Instant};

use crate::daemon::{Daemon, dies_within};
use crate::place::Place;
use crate::redis_server::RedisServer;
use crate::trials::stored;
use crate::{jobs, stall, wait};

/// The protocol allows one second on top of the lease; this much more is for starting a shell that writes a line.
const MARGIN: Duration = Duration::from_millis(500);

/// The node of this name.
fn named<'a>(nodes: &'a mut [Daemon], name: &str) -> &'a mut Daemon {
    nodes.iter_mut().find(|node| node.name == name).expect("the run was made by one of these nodes")
}

pub(super) fn a_node_killed_mid_run_takes_its_job_along_and_another_takes_over(place: &Place) {
    let server = RedisServer::start();
    place.jobs(&jobs::file(&jobs::long_then_short("work", &jobs::one_slot(wait::SOON), 60.0, 0.2)));
    let mut nodes = place.nodes(["a", "b", "c"], &server.url());
    let first = place.run_number(1);
    let begun = Instant::now();
    let killed_ms = wait::now_ms();
    named(&mut nodes, &first.node).kill();
    dies_within(Duration::from_secs(2) + stall::allowance(begun), first.pid);

    let second = place.end_of_run(2);
    let after = Duration::from_millis(u64::try_from(second.start_ms - killed_ms).unwrap());
    let limit = jobs::LEASE_TTL + Duration::from_secs(1) + MARGIN + stall::allowance(begun);
    println!("taken over {after:?} after the kill, allowed {limit:?}");
    assert!(after <= limit, "taken over {after:?} after the kill, allowed {limit:?}");
    assert_eq!((second.attempt, second.trigger.as_str(), second.overlap), (2, "retry", false));
    assert!(second.node != first.node && second.fence > first.fence);
    let told = wait::until("the slot is done", || {
        let told = place.json(&["attempts", "--all", "--job", "work"], &server.url());
        (told[0]["state"] == "done").then_some(told)
    });
    let outcomes: Vec<_> = told[0]["runs"].as_array().unwrap().iter().map(|run| run["outcome"].as_str()).collect();
    assert_eq!(outcomes, [Some("crashed"), Some("success")], "{told:#}");
    assert_eq!(place.runs().len(), 2);
}

pub(super) fn a_node_stopped_beyond_its_lease_changes_nothing_that_is_anothers(place: &Place) {
    let server = RedisServer::start();
    place.jobs(&jobs::file(&jobs::long_then_short("work", &jobs::one_slot(wait::SOON), 9.0, 0.2)));
    let mut nodes = place.nodes(["a", "b"], &server.url());
    let first = place.run_number(1);
    let stopped = named(&mut nodes, &first.node);
    stopped.freeze();
    let frozen = Instant::now();
    let second = place.end_of_run(2);
    assert_eq!(second.attempt, 2);
    assert!(second.overlap, "nothing stops the job of a node that stands still");
    wait::until_true("the slot is done", || stored::is_done(&server, "work"));
    wait::let_pass((jobs::LEASE_TTL * 3).saturating_sub(frozen.elapsed()));
    let (mark, counter) = (stored::mark(&server, "work"), stored::counter(&server, "work"));

    let stopped = named(&mut nodes, &first.node);
    stopped.thaw();
    stopped.says("lease lost");
    // Its own run ends well in spite of all; that is recorded beside the other, and changes nothing of it.
    stopped.says("ran concurrently");
    assert!(place.end_of_run(1).end_ms.is_some());
    assert_eq!((stored::mark(&server, "work"), stored::counter(&server, "work")), (mark, counter));
    assert_eq!(place.runs().len(), 2);
}

pub(super) fn with_kill_the_job_of_a_stopped_node_is_dead_before_another_starts(place: &Place) {
    let server = RedisServer::start();
    // TERM comes 2.4 s before the lease lapses: enough for any machine.
    let limits = "on_lost = \"kill\"\nlease_ttl = \"8s\"\nkill_after = \"2s\"\n";
    let job = jobs::long_then_short("work", &jobs::one_slot(wait::SOON), 60.0, 0.2);
    place.jobs(&jobs::file(&format!("{job}{limits}")));
    let mut nodes = place.nodes(["a", "b"], &server.url());
    let first = place.run_number(1);
    named(&mut nodes, &first.node).freeze();
    let second = place.end_of_run(2);
    assert_eq!((second.attempt, second.overlap), (2, false), "the first run was alive when the second began");
    let stopped = named(&mut nodes, &first.node);
    stopped.thaw();
    assert_eq!(stopped.says("run ended")["outcome"], "lost_lease");
    stopped.says("recorded");
    let told = place.json(&["attempts", "--all", "--job", "work"], &server.url());
    assert_eq!((&told[0]["state"], &told[0]["runs"][0]["outcome"]), (&"done".into(), &"lost_lease".into()), "{told:#}");
    assert_eq!(place.runs().len(), 2);
}
