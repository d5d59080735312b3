//! A node that loses its store in the middle of a run, and nothing else.

use std::time::{Duration, Instant};

use crate::daemon::Daemon;
use crate::inconclusive::inconclusive;
use crate::link::Link;
use crate::place::Place;
use crate::proxy::Mode;
use crate::redis_server::RedisServer;
use crate::trials::stored;
use crate::{jobs, wait};

/// Two nodes, each with a link of its own; the first run of the job is on the first of them.
fn running(place: &Place, server: &RedisServer, job: &str) -> [(Daemon, Link); 2] {
    place.jobs(&jobs::file(job));
    let [a, b] = ["a", "b"].map(|name| {
        let link = Link::to(server.port());
        let node = place.node(name, &link.url()).start();
        node.is_in_touch();
        (node, link)
    });
    if place.run_number(1).node == "a" { [a, b] } else { [b, a] }
}

pub(super) fn with_kill_a_cut_off_nodes_job_is_dead_before_another_starts(place: &Place) {
    let server = RedisServer::start();
    let job = jobs::long_then_short("work", &jobs::one_slot(wait::SOON), 60.0, 0.2);
    let [(cut_off, link), (other, _its_link)] = running(place, &server, &format!("{job}on_lost = \"kill\"\n"));
    link.set(Mode::BlackHole);
    let second = place.end_of_run(2);
    assert_eq!((second.node.as_str(), second.attempt), (other.name.as_str(), 2));
    assert!(!second.overlap, "the first run was alive when the second began");
    assert_eq!(cut_off.says("run ended")["outcome"], "lost_lease");
    link.set(Mode::Pass);
    wait::until_true("the slot is done", || stored::is_done(&server, "work"));
    cut_off.says("recorded");
    let told = place.json(&["attempts", "--all", "--job", "work"], &server.url());
    assert_eq!((&told[0]["state"], &told[0]["runs"][0]["outcome"]), (&"done".into(), &"lost_lease".into()), "{told:#}");
    assert_eq!(place.runs().len(), 2);
}

pub(super) fn with_continue_a_cut_off_nodes_overlap_is_told_by_both_nodes(place: &Place) {
    let server = RedisServer::start();
    // The first run ends while the second still goes on.
    let job = jobs::long_then_short("work", &jobs::one_slot(wait::SOON), 8.0, 10.0);
    let [(cut_off, link), (other, _its_link)] = running(place, &server, &job);
    let begun = Instant::now();
    link.set(Mode::BlackHole);
    let second = place.run_number(2);
    assert_eq!((second.node.as_str(), second.attempt, second.overlap), (other.name.as_str(), 2, true));
    if begun.elapsed() >= Duration::from_secs(7) {
        inconclusive("the second run began when the first was nearly over");
    }
    cut_off.says("lease renewal overdue");
    link.set(Mode::Pass);
    cut_off.says_with("lease lost", "to", &other.name);
    // The other run goes on: its record does not say yet that its command was started.
    cut_off.says("may have run concurrently");
    other.says_with("lease lost", "to", &cut_off.name);
    other.says("ran concurrently");
    assert!(place.runs().iter().all(|run| run.end_ms.is_some()), "both were let finish");
    assert_eq!((place.runs().len(), stored::counter(&server, "work").as_str()), (2, "2"));
}
