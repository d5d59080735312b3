//! Who is told of what: from what is heard and seen to messages for sinks.

use super::*;
use crate::clock::{Clock, ManualClock};
use crate::config::{Environment, parse};
use crate::notify::lookout::SlotNews;
use crate::slot::{Audit, SlotKey};

const JOBS: &str = r#"
[notify.ops]
type = "slack"
url = "http://127.0.0.1:1/ops"
[notify.all]
type = "slack"
url = "http://127.0.0.1:1/all"
events = ["started", "succeeded", "attempt_failed", "paused", "resumed", "node_silent", "config_rejected"]
[notify.check]
type = "healthchecks"
url = "http://127.0.0.1:1/ping/{job}"
[jobs.a]
schedule = "0 * * * *"
command = ["true"]
notify = ["ops", "all", "check"]
[jobs.b]
schedule = "0 * * * *"
command = ["true"]
"#;

struct Bench {
    desk: Dispatch,
    clock: ManualClock,
}

fn slot() -> SlotKey {
    "2026-11-21T14Z".parse().unwrap()
}

fn name(text: &str) -> JobName {
    JobName::new(text).unwrap()
}

impl Bench {
    fn new() -> Self {
        let clock = ManualClock::at("2026-11-21T14:05:00Z".parse().unwrap());
        let (config, _) = parse("jobs.toml", JOBS.to_owned(), &Environment::new(clock.now().wall)).unwrap();
        let mut desk = Dispatch::new(NodeName::new("n1").unwrap(), true, Token::from_bits(1));
        let sinks =
            config.notify.iter().map(|(name, config)| (name.clone(), (config.clone(), name != "check"))).collect();
        desk.set_sinks(&sinks, clock.now());
        let jobs: Vec<Arc<JobSpec>> = config.jobs.into_values().map(Arc::new).collect();
        desk.set_jobs(&jobs, clock.now());
        Self { desk, clock }
    }

    fn hear(&mut self, job: &str, heard: SlotNews) {
        self.desk.hear(self.clock.now(), Word::Slot(name(job), slot(), heard));
    }

    /// Who waits for how many messages.
    fn pending(&self) -> Vec<(String, usize)> {
        self.desk.courier.pending().into_iter().map(|(sink, (count, _))| (sink, count)).collect()
    }

    fn see(&mut self, found: Sighting) {
        self.desk.see(self.clock.now(), found);
    }
}

fn of(pairs: &[(&str, usize)]) -> Vec<(String, usize)> {
    pairs.iter().map(|(sink, count)| ((*sink).to_owned(), *count)).collect()
}

#[test]
fn a_failure_is_told_to_the_sinks_of_its_job_that_ask_for_it() {
    let mut bench = Bench::new();
    bench.hear("b", SlotNews::UsedUp);
    assert_eq!(bench.pending(), of(&[]), "nobody is named there");
    bench.hear("a", SlotNews::UsedUp);
    assert_eq!(bench.pending(), of(&[("check", 1), ("ops", 1)]));
}

#[test]
fn a_check_sees_the_first_start_of_a_slot_and_other_sinks_each() {
    let mut bench = Bench::new();
    bench.hear("a", SlotNews::Started(1));
    bench.hear("a", SlotNews::Started(2));
    assert_eq!(bench.pending(), of(&[("all", 2), ("check", 1)]));
}

#[test]
fn a_refused_file_is_told_to_who_asks_for_it_whichever_jobs_there_are() {
    let mut bench = Bench::new();
    bench.desk.hear(bench.clock.now(), Word::Refused("jobs.toml:1:1: …".to_owned()));
    assert_eq!(bench.pending(), of(&[("all", 1)]));
}

#[test]
fn a_pause_is_told_when_it_begins_and_when_it_ends_and_not_at_the_first_look() {
    let mut bench = Bench::new();
    let at = bench.clock.now().wall;
    let audit = |verb: &str| Audit {
        verb: verb.to_owned(),
        who: "ana".to_owned(),
        host: "h".to_owned(),
        why: "db".to_owned(),
        at,
    };
    let pause = Pause::begun(None, &audit("pause"), at);
    let found = |pauses: Vec<(JobName, Pause)>| Sighting { pauses: Some((at, pauses)), ..Sighting::default() };
    bench.see(found(vec![(name("b"), pause.clone())]));
    assert_eq!(bench.pending(), of(&[]));
    bench.see(found(vec![(name("a"), pause.clone())]));
    assert_eq!(bench.pending(), of(&[("all", 1)]), "that of b ended, and b names no sink");
    let ended = pause.end(&audit("resume"), at).unwrap();
    bench.see(found(vec![(name("a"), ended)]));
    assert_eq!(bench.pending(), of(&[("all", 2)]));
}

#[test]
fn a_node_that_is_lost_is_told_once_and_one_that_stopped_never() {
    let mut bench = Bench::new();
    let now = bench.clock.now().wall;
    let node = |state, ago: i64| NodeView {
        node: NodeName::new("n2").unwrap(),
        instance: "i".to_owned(),
        state,
        version: String::new(),
        started: now,
        seen: now - chrono::TimeDelta::seconds(ago),
        overdue: false,
        clock_offset_s: 0.0,
        config_hash: String::new(),
        differs: Vec::new(),
        zones: None,
        zones_from: None,
        zones_old: false,
        labels: BTreeMap::new(),
        running: Vec::new(),
        behind: Vec::new(),
    };
    let found = |nodes| Sighting { nodes: Some(nodes), ..Sighting::default() };
    bench.see(found(vec![node(NodeState::Lost, 3_600)]));
    assert_eq!(bench.pending(), of(&[]), "long ago");
    bench.see(found(vec![node(NodeState::Stopped, 30)]));
    bench.see(found(vec![node(NodeState::Alive, 1)]));
    assert_eq!(bench.pending(), of(&[]));
    // The node itself is not heard either: nobody could be.
    let own = |state| NodeView { node: NodeName::new("n1").unwrap(), ..node(state, 30) };
    bench.see(found(vec![own(NodeState::Lost), node(NodeState::Lost, 30)]));
    assert_eq!(bench.pending(), of(&[]));
    // After an outage of the store it is heard again, and then lost indeed.
    bench.see(found(vec![own(NodeState::Alive), node(NodeState::Lost, 40)]));
    assert!(bench.desk.is_in_doubt());
    bench.see(found(vec![own(NodeState::Alive), node(NodeState::Alive, 1)]));
    assert!(!bench.desk.is_in_doubt());
    // Not before it has had the time to be heard, nor where the store was away in between.
    for (seconds, pending, doubted) in [(0, 0, true), (14, 0, true), (15, 1, false), (60, 1, false)] {
        if seconds == 14 {
            bench.clock.advance(Duration::from_secs(20));
            bench.see(Sighting::default());
            bench.see(found(vec![own(NodeState::Alive), node(NodeState::Lost, 30)]));
        }
        bench.clock.advance(Duration::from_secs(seconds));
        bench.see(found(vec![own(NodeState::Alive), node(NodeState::Lost, 30)]));
        let told = if pending == 0 { of(&[]) } else { of(&[("all", pending)]) };
        assert_eq!((bench.pending(), bench.desk.is_in_doubt()), (told, doubted));
    }
}

#[test]
fn what_another_node_began_and_did_not_tell_is_taken_over() {
    let mut bench = Bench::new();
    let key = crate::message::MessageKey::new(name("a"), "2026-11-21T13Z failed", "ops").unwrap();
    let at = bench.clock.now().wall;
    let message = |stage| UntoldMessage { key: key.clone(), stage, tries: 1, first: at, changed: at, error: None };
    bench.see(Sighting { untold: vec![message(UntoldStage::GivenUp)], ..Sighting::default() });
    assert_eq!(bench.pending(), of(&[]));
    bench.see(Sighting {
        untold: vec![message(UntoldStage::Waiting { remaining: Duration::ZERO })],
        ..Sighting::default()
    });
    assert_eq!(bench.pending(), of(&[("ops", 1)]));
}

#[test]
fn the_store_is_asked_for_what_somebody_is_to_be_told_of_and_for_no_more() {
    let mut bench = Bench::new();
    let wanted = bench.desk.wanted(bench.clock.now()).unwrap();
    assert_eq!(wanted, LookRequest { jobs: vec![name("a")], pauses: true, nodes: true });
    bench.desk.set_sinks(&BTreeMap::new(), bench.clock.now());
    assert_eq!(bench.desk.wanted(bench.clock.now()), None);
}
