//! A hundred failures at once, and real daemons that are killed while they tell of them. Each event is judged by itself: it is told, and
//! once more only where a node was killed that was telling it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cronward::job::JobName;
use cronward::message::Topic;
use cronward::store::{Store, StoreOptions};
use serde_json::Value;

use crate::daemons::{Cluster, job};
use crate::random::Random;
use crate::receiver::{Arrival, Receiver, events_of};
use crate::until;

/// Who is killed at which message. Another number is another course.
const SEED: u64 = 20_261_121;
const FAILURES: usize = 100;
/// Nodes that are killed at a message that is drawn; one more is killed that sends several events at once.
const DRAWN: usize = 6;
/// Among so many messages, which come before the first that one has to wait for until its sender's claim lapses.
const FIRST: usize = 75;
/// One sink takes a flood as one message, the other takes each event by itself. Both are told of each failure.
const SINKS: [&str; 2] = ["hook", "check"];

/// The addresses say which node sends.
fn sinks(url: &str, node: &str) -> String {
    format!(
        "[notify.hook]\ntype = \"webhook\"\nurl = \"{url}/{node}\"\nspread = \"8s\"\n\
         [notify.check]\ntype = \"healthchecks\"\nurl = \"{url}/{node}/{{job}}\"\nevents = [\"failed\"]\n"
    )
}

/// A message that came.
#[derive(Debug)]
struct Message {
    node: String,
    sink: &'static str,
    /// The job of each event in it, and the event's identity.
    events: Vec<(String, String)>,
    /// Its sender was alive when it was answered.
    answered: bool,
}

impl Message {
    fn of(arrival: &Arrival) -> Self {
        let (path, run) = arrival.to.split_once('?').unwrap_or((&arrival.to, ""));
        let parts: Vec<&str> = path.split('/').skip(2).collect();
        let (node, sink, events) = match parts[..] {
            [node, job, "fail"] => (node, "check", vec![(job.to_owned(), run.to_owned())]),
            [node] => (node, "hook", events_of(&arrival.body).iter().map(failure).collect()),
            _ => panic!("{arrival:?}"),
        };
        Self { node: node.to_owned(), sink, events, answered: false }
    }

    fn tells(&self, job: &str) -> bool {
        self.events.iter().any(|(told, _)| told == job)
    }
}

fn failure(event: &Value) -> (String, String) {
    let text = |name: &str| event[name].as_str().unwrap().to_owned();
    assert_eq!(text("type"), "failed", "{event}");
    (text("job"), text("id"))
}

/// What the store knows of messages that were begun and not told, as sink and job.
struct Untold {
    runtime: tokio::runtime::Runtime,
    store: Arc<dyn Store>,
    topics: Vec<Topic>,
}

impl Untold {
    fn of(url: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        // Of a hundred topics, beside a hundred runs.
        let patient = StoreOptions::default().with_op_timeout(Duration::from_secs(30));
        let store = runtime.block_on(cronward::store::open(url, patient)).unwrap();
        let topics = names().map(|name| Topic::Job(JobName::new(&name).unwrap())).collect();
        Self { runtime, store, topics }
    }

    fn read(&self) -> BTreeSet<(String, String)> {
        let (_, untold) = self.runtime.block_on(self.store.untold(&self.topics)).unwrap();
        untold.iter().map(|message| (message.key.sink().to_owned(), message.key.topic().to_string())).collect()
    }
}

fn names() -> impl Iterator<Item = String> {
    (0..FAILURES).map(|number| format!("j{number}"))
}

/// The daemons, what they have told, and who was killed.
struct Storm {
    cluster: Cluster,
    receiver: Receiver,
    untold: Untold,
    jobs: String,
    messages: Vec<Message>,
    /// How many nodes there were.
    nodes: usize,
    killed: Vec<String>,
}

impl Storm {
    fn begin() -> Self {
        let (cluster, receiver) = (Cluster::empty(), Receiver::start());
        // Nothing is answered before it was looked at.
        receiver.answer(0);
        let untold = Untold::of(&cluster.redis.url());
        // Who was killed while it ran something is soon given up.
        let jobs = "[defaults]\nlease_ttl = \"10s\"\n".to_owned()
            + &names().map(|name| job(&name, &SINKS)).collect::<String>();
        let mut storm = Self { cluster, receiver, untold, jobs, messages: Vec::new(), nodes: 0, killed: Vec::new() };
        storm.cluster.make_known(&(sinks(&storm.receiver.url, "n1") + &storm.jobs));
        (0..3).for_each(|_| storm.join());
        storm
    }

    fn join(&mut self) {
        self.nodes += 1;
        let name = format!("n{}", self.nodes);
        self.cluster.join(&name, &(sinks(&self.receiver.url, &name) + &self.jobs));
    }

    /// The next message; none once each event is told and nobody has anything left to tell.
    fn next(&self) -> Option<Message> {
        until("another message, or that there is none to come", || {
            let arrivals = self.receiver.arrivals();
            match arrivals.get(self.messages.len()) {
                Some(arrival) => Some(Some(Message::of(arrival))),
                None => self.is_over().then_some(None),
            }
        })
    }

    fn is_over(&self) -> bool {
        let told = |sink: &&str| names().all(|job| self.of(sink).any(|message| message.tells(&job)));
        SINKS.iter().all(told) && self.untold.read().is_empty() && self.cluster.has_told_all(&SINKS).is_some()
    }

    fn of(&self, sink: &str) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(move |message| message.sink == sink)
    }

    /// Kills a node once everything is recorded that it was told was taken: what it is sending at that moment is cut off.
    fn kill(&mut self, node: &str) {
        until("what the node has told is recorded", || {
            let untold = self.untold.read();
            let told = self.messages.iter().filter(|message| message.node == node && message.answered);
            let is_recorded = |message: &Message| {
                let key = |(job, _): &(String, String)| (message.sink.to_owned(), job.clone());
                message.events.iter().map(key).all(|key| !untold.contains(&key))
            };
            (told.clone().all(is_recorded) || self.tried_again(node, None) > 0).then_some(())
        });
        self.cluster.kill(node);
        self.killed.push(node.to_owned());
        self.join();
    }

    /// How often a node took a message for not delivered, by its own log. On a machine that stands still for ten seconds that
    /// is no one's fault.
    fn tried_again(&self, node: &str, sink: Option<&str>) -> usize {
        let log = self.cluster.log(node);
        let lines = log.lines().filter(|line| line.contains("notification not sent"));
        lines.filter(|line| sink.is_none_or(|sink| line.contains(&format!("\"{sink}\"")))).count()
    }

    fn judge(&self, sink: &str) {
        let tried_again: usize = (1..=self.nodes).map(|node| self.tried_again(&format!("n{node}"), Some(sink))).sum();
        let cut: Vec<&Message> = self.of(sink).filter(|message| !message.answered).collect();
        for node in &self.killed {
            let of_node = cut.iter().filter(|message| message.node == *node).count();
            assert!(
                of_node <= 1 + self.tried_again(node, Some(sink)),
                "{sink}: {node} had {of_node} messages on their way at once"
            );
        }
        for name in names() {
            let tellings: Vec<&Message> = self.of(sink).filter(|message| message.tells(&name)).collect();
            let ids: BTreeSet<&String> = tellings
                .iter()
                .flat_map(|message| &message.events)
                .filter(|(job, _)| *job == name)
                .map(|(_, id)| id)
                .collect();
            assert_eq!(ids.len(), 1, "{sink}: {name} is told as one event: {tellings:?}");
            let most = 1 + tellings.iter().filter(|message| !message.answered).count() + tried_again;
            assert!(tellings.len() <= most, "{sink}: {name} is told {} times: {tellings:?}", tellings.len());
        }
        let (messages, most) = (self.of(sink).count(), FAILURES + self.killed.len() + tried_again);
        assert!(messages <= most, "{sink}: {messages} messages of {most}");
    }
}

#[test]
fn a_hundred_failures_are_each_told_whoever_is_killed_and_again_only_where_that_one_was_telling_them() {
    let mut random = Random::new(SEED);
    let mut drawn = BTreeSet::new();
    while drawn.len() < DRAWN {
        drawn.insert(random.below(FIRST));
    }
    let mut storm = Storm::begin();
    let mut cut_a_digest = false;
    while let Some(mut message) = storm.next() {
        let (place, alive) = (storm.messages.len(), storm.cluster.names());
        let is_digest = message.events.len() > 1 && alive.contains(&message.node);
        let picked = drawn.contains(&place).then(|| alive[random.below(alive.len())].clone());
        if let Some(victim) = (is_digest && !cut_a_digest).then(|| message.node.clone()).or(picked) {
            cut_a_digest |= is_digest;
            storm.kill(&victim);
        }
        message.answered = storm.cluster.names().contains(&message.node);
        storm.messages.push(message);
        storm.receiver.answer(place + 1);
    }
    assert!(cut_a_digest && storm.killed.len() >= DRAWN, "{:?}", storm.killed);
    SINKS.iter().for_each(|sink| storm.judge(sink));
}
