//! Answers that get lost, and a server that forgets.

use std::time::Duration;

use crate::inconclusive::inconclusive;
use crate::link::Link;
use crate::place::Place;
use crate::proxy::Mode;
use crate::redis_server::RedisServer;
use crate::trials::stored;
use crate::{jobs, wait};

pub(super) fn a_lost_reply_to_a_claim_burns_no_attempt(place: &Place) {
    let server = RedisServer::start();
    let link = Link::to(server.port());
    // The server learns its scripts from an earlier job: the reply that gets lost is the grant, not "unknown script".
    let earlier = jobs::recorded("earlier", &jobs::one_slot(wait::SOON), 0.1, 0);
    let work = jobs::recorded("work", &jobs::one_slot(wait::SOON * 2), 0.2, 0);
    place.jobs(&jobs::file(&format!("{earlier}{work}")));
    let [node] = place.nodes(["a"], &link.url());
    // Heard by the node, too: a connection that it makes anew while replies are lost comes to no claim.
    node.says_with("recorded", "job", "earlier");
    if stored::is_marked(&server, "work") {
        inconclusive("the job was claimed before its link could be spoilt");
    }
    link.set(Mode::LoseReplies);
    wait::until_true("the claim is granted", || stored::is_marked(&server, "work"));
    node.says("store failed");
    assert_eq!(place.runs_of("work").len(), 0, "a grant that nobody heard of starts nothing");
    link.set(Mode::Pass);
    wait::until_true("the slot is done", || stored::is_done(&server, "work"));
    assert_eq!(stored::counter(&server, "work"), "1");
    assert_eq!(place.runs_of("work").len(), 1);
}

pub(super) fn a_lost_reply_to_a_completion_repeats_nothing(place: &Place) {
    let server = RedisServer::start();
    let (its, others) = (Link::to(server.port()), Link::to(server.port()));
    // As above, the server learns its scripts first.
    let earlier = jobs::recorded("earlier", &jobs::one_slot(wait::SOON), 0.1, 0);
    let work = jobs::recorded("work", &jobs::one_slot(wait::SOON * 2), 1.0, 0);
    place.jobs(&jobs::file(&format!("{earlier}{work}")));
    let nodes = [("a", &its), ("b", &others)].map(|(name, link)| place.node(name, &link.url()).start());
    nodes.iter().for_each(crate::daemon::Daemon::is_in_touch);
    wait::until_true("the earlier job is done", || stored::is_done(&server, "earlier"));
    let run = wait::until("the run", || place.runs_of("work").into_iter().next());
    let (node, link) = if run.node == "a" { (&nodes[0], &its) } else { (&nodes[1], &others) };
    link.set(Mode::LoseReplies);
    wait::until_true("the success is recorded", || stored::is_done(&server, "work"));
    let mark = stored::mark(&server, "work");
    assert!(node.said("recorded").iter().all(|line| line["job"] != "work"), "it cannot know yet");
    link.set(Mode::Pass);
    node.says_with("recorded", "job", "work");
    assert!(node.said("ran concurrently").is_empty() && node.said("lease lost").is_empty());
    assert_eq!((stored::mark(&server, "work"), stored::counter(&server, "work")), (mark, "1".to_owned()));
    assert_eq!(place.runs_of("work").len(), 1);
}

pub(super) fn a_success_that_the_server_cannot_take_is_recorded_when_it_answers_again(place: &Place) {
    let server = RedisServer::start();
    place.jobs(&jobs::file(&jobs::recorded("work", &jobs::one_slot(wait::SOON), 1.0, 0)));
    let nodes = place.nodes(["a", "b"], &server.url());
    let run = place.run_number(1);
    wait::until_true("most of the run is over", || wait::now_ms() > run.start_ms + 700);
    // It stands still for less than the lease lasts.
    server.pause();
    place.end_of_run(1);
    wait::let_pass(Duration::from_millis(500));
    server.unpause();
    let node = nodes.iter().find(|node| node.name == run.node).unwrap();
    node.says("recorded");
    assert!(stored::is_done(&server, "work"));
    assert_eq!((place.runs().len(), stored::counter(&server, "work").as_str()), (1, "1"));
}

pub(super) fn a_lease_that_the_server_forgot_mid_run_is_restored_and_nothing_runs_twice(place: &Place) {
    let mut server = RedisServer::start();
    place.jobs(&jobs::file(&jobs::recorded("work", &jobs::one_slot(wait::SOON), 5.0, 0)));
    let nodes = place.nodes(["a", "b"], &server.url());
    let run = place.run_number(1);
    let token = |server: &RedisServer| {
        let told = place.json(&["show", "work"], &server.url());
        told["lease"]["token"].as_str().expect("a lease").to_owned()
    };
    let before = token(&server);
    server.restart_empty();
    let holder = nodes.iter().find(|node| node.name == run.node).unwrap();
    holder.says("lease restored");
    assert_eq!(token(&server), before);
    place.end_of_run(1);
    wait::until_true("the slot is done", || stored::is_done(&server, "work"));
    assert_eq!((place.runs().len(), stored::counter(&server, "work").as_str()), (1, "1"));
    // The registry was forgotten too; listings live on it where there is no file.
    wait::until_true("the job is known again", || {
        place.cronward(&["jobs", "--json", "--store", &server.url()]).stdout.contains("\"work\"")
    });
}
