//! The courier with a clock of its own and the rules that every store runs: several nodes, deaths, stores that are away, floods.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::clock::{Clock, ManualClock};
use crate::event::NoticeKind;
use crate::job::{JobName, NodeName};
use crate::store::memory::MemoryStore;
use crate::store::{Store, StoreOptions};

const SINK: &str = "ops";

/// Several couriers over one store; the world does what they ask at once.
#[derive(Debug)]
struct World {
    clock: ManualClock,
    store: Arc<MemoryStore>,
    nodes: Vec<Option<Courier>>,
    /// What reached the receiver: which messages, and whether as a digest.
    sent: Vec<(Vec<String>, bool)>,
    /// What the receiver answers next; taken when there is none.
    answers: VecDeque<Receipt>,
    store_is_away: bool,
    /// The next record of this node is lost, and the node with it.
    dies_before_recording: Option<usize>,
}

fn rule(spread: u64) -> BTreeMap<String, SinkRule> {
    [(SINK.to_owned(), SinkRule { digests: true, spread: Duration::from_secs(spread) })].into()
}

fn failed(job: &str) -> Notice {
    let job = JobName::new(job).unwrap();
    Notice::of_slot(NoticeKind::Failed, &job, "2026-11-21T14Z".parse().unwrap())
}

fn again(after: Option<u64>) -> Receipt {
    Receipt::Again { after: after.map(Duration::from_secs), error: "answered 500".to_owned() }
}

impl World {
    fn new(nodes: usize) -> Self {
        let clock = ManualClock::at("2026-11-21T14:05:00Z".parse().unwrap());
        let store = Arc::new(MemoryStore::new(StoreOptions::default(), Arc::new(clock.clone())));
        let mut world = Self {
            clock,
            store,
            nodes: Vec::new(),
            sent: Vec::new(),
            answers: VecDeque::new(),
            store_is_away: false,
            dies_before_recording: None,
        };
        for _ in 0..nodes {
            world.join();
        }
        world
    }

    fn join(&mut self) {
        let mut courier = Courier::new(true, Token::from_bits((self.nodes.len() as u128 + 1) << 64));
        courier.set_sinks(&rule(20), self.clock.now());
        self.nodes.push(Some(courier));
    }

    fn learn(&mut self, node: usize, notice: &Notice) {
        let now = self.clock.now();
        self.nodes[node].as_mut().unwrap().learn(now, notice, SINK);
    }

    fn all_learn(&mut self, notice: &Notice) {
        (0..self.nodes.len())
            .filter(|node| self.nodes[*node].is_some())
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|node| self.learn(node, notice));
    }

    /// What a node asks for, done at once.
    fn act(&mut self, node: usize) {
        let now = self.clock.now();
        let name = NodeName::new(&format!("n{node}")).unwrap();
        loop {
            let Some(courier) = self.nodes[node].as_mut() else { return };
            let Some(step) = courier.poll_step() else { return };
            match step {
                CourierStep::Tell(key, token) => {
                    let told =
                        (!self.store_is_away).then(|| ready(self.store.tell(&key, &name, token, LEASE)).unwrap());
                    self.nodes[node].as_mut().unwrap().handle_telling(now, &key, told);
                }
                CourierStep::Send { sink, notices, digest } => {
                    let names = notices.iter().map(|(key, _)| key.topic().to_string()).collect();
                    self.sent.push((names, digest));
                    let answer = self.answers.pop_front().unwrap_or(Receipt::Taken("200".to_owned()));
                    courier.handle_answer(now, &sink, &answer);
                }
                CourierStep::Record(..) if self.dies_before_recording == Some(node) => {
                    self.nodes[node] = None;
                    self.dies_before_recording = None;
                }
                CourierStep::Record(key, token, delivery) => {
                    let recorded = !self.store_is_away && ready(self.store.told(&key, token, &delivery)).is_ok();
                    self.nodes[node].as_mut().unwrap().handle_recorded(now, &key, recorded);
                }
            }
        }
    }

    fn run(&mut self, seconds: u64) {
        for _ in 0..seconds {
            for node in 0..self.nodes.len() {
                let now = self.clock.now();
                if let Some(courier) = self.nodes[node].as_mut() {
                    courier.handle_timeout(now);
                    self.act(node);
                }
            }
            self.clock.advance(Duration::from_secs(1));
        }
    }

    /// Until one more message is sent.
    fn seconds_until_sent(&mut self) -> u64 {
        let before = self.count();
        (1..100_000)
            .find(|_| {
                self.run(1);
                self.count() > before
            })
            .expect("nothing more is sent")
    }

    fn count(&self) -> usize {
        self.sent.len()
    }

    fn is_all_told(&self) -> bool {
        self.nodes.iter().flatten().all(|courier| courier.pending().is_empty())
    }
}

/// The memory store answers at once.
fn ready<T>(asked: impl Future<Output = T>) -> T {
    use std::task::{Context, Poll, Waker};
    match std::pin::pin!(asked).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the store in memory waits for nothing"),
    }
}

#[test]
fn of_three_nodes_that_learn_of_a_failure_one_tells_it_within_the_spread() {
    let mut world = World::new(3);
    world.all_learn(&failed("billing"));
    world.run(4);
    assert_eq!(world.count(), 0, "a flood would be seen by now");
    world.run(17);
    assert_eq!(world.sent, [(vec!["billing".to_owned()], false)]);
    world.all_learn(&failed("billing"));
    world.run(120);
    assert_eq!((world.count(), world.is_all_told()), (1, true));
}

#[test]
fn who_dies_between_the_send_and_its_record_is_followed_by_another_within_a_minute() {
    let mut world = World::new(3);
    world.all_learn(&failed("billing"));
    world.dies_before_recording = Some(0);
    world.run(21);
    assert_eq!(world.count(), 1);
    world.run(60);
    assert_eq!((world.count(), world.is_all_told()), (2, true), "told again: nobody can know that it was sent");
}

#[test]
fn twelve_slots_that_fail_at_once_are_one_digest_of_the_whole_cluster() {
    let mut world = World::new(3);
    (0..12).for_each(|job| world.all_learn(&failed(&format!("j{job}"))));
    world.run(120);
    assert_eq!(world.count(), 1, "{:?}", world.sent);
    assert_eq!((world.sent[0].0.len(), world.sent[0].1, world.is_all_told()), (12, true, true));
}

#[test]
fn the_node_that_dies_with_a_digest_is_followed_by_another_with_all_of_it() {
    let mut world = World::new(2);
    (0..12).for_each(|job| world.all_learn(&failed(&format!("j{job}"))));
    world.dies_before_recording = Some(0);
    world.run(90);
    let told: BTreeSet<&String> = world.sent.iter().skip(1).flat_map(|(names, _)| names).collect();
    assert_eq!((told.len(), world.is_all_told()), (12, true), "{:?}", world.sent);
    assert!(world.count() <= 3, "{:?}", world.sent);
}

#[test]
fn five_are_told_one_by_one_and_a_sixth_within_half_a_minute_is_a_flood() {
    let mut world = World::new(1);
    (0..5).for_each(|job| world.learn(0, &failed(&format!("j{job}"))));
    world.run(25);
    assert_eq!(world.sent.iter().filter(|(_, digest)| !digest).count(), 5);
    (5..8).for_each(|job| world.learn(0, &failed(&format!("j{job}"))));
    world.run(60);
    let (names, digest) = world.sent.last().unwrap();
    assert_eq!((names.len(), *digest), (3, true), "{:?}", world.sent);
}

#[test]
fn what_is_not_taken_is_tried_again_later_and_later_and_given_up_after_a_day() {
    let mut world = World::new(2);
    world.answers.extend(std::iter::repeat_n(again(None), 60));
    world.all_learn(&failed("billing"));
    assert!(world.seconds_until_sent() <= 21);
    for seconds in [10, 30, 120, 600, 1_800, 3_600, 3_600] {
        let waited = world.seconds_until_sent();
        assert!((seconds..=seconds + 2).contains(&waited), "{waited} s, not {seconds}");
    }
    world.run(86_400);
    assert!(world.is_all_told() && world.count() < 40, "{}", world.count());
    world.run(7_200);
    assert_eq!(world.nodes[0].as_ref().unwrap().pending().len(), 0);
}

#[test]
fn a_receiver_that_wishes_to_be_asked_later_is_asked_then() {
    let mut world = World::new(1);
    world.answers.push_back(again(Some(300)));
    world.learn(0, &failed("billing"));
    world.seconds_until_sent();
    let waited = world.seconds_until_sent();
    assert!((300..303).contains(&waited), "{waited} s");
    assert!(world.is_all_told());
}

#[test]
fn what_is_refused_is_given_up_at_once_by_all() {
    let mut world = World::new(3);
    world.answers.push_back(Receipt::Refused("answered 404".to_owned()));
    world.all_learn(&failed("billing"));
    world.run(200);
    assert_eq!((world.count(), world.is_all_told()), (1, true));
    let tallies: Vec<_> = world.nodes.iter_mut().flatten().flat_map(Courier::take_tallies).collect();
    assert_eq!(tallies, [(SINK.to_owned(), Tally::GaveUp)]);
}

#[test]
fn a_store_that_is_away_loses_no_message_and_is_not_asked_all_the_time() {
    let mut world = World::new(2);
    world.store_is_away = true;
    world.all_learn(&failed("billing"));
    world.run(900);
    assert_eq!(world.count(), 0);
    world.store_is_away = false;
    world.run(61);
    assert_eq!((world.count(), world.is_all_told()), (1, true));
}

#[test]
fn a_record_that_the_store_did_not_take_is_recorded_later_and_nothing_is_sent_twice() {
    let mut world = World::new(1);
    world.learn(0, &failed("billing"));
    while world.count() == 0 {
        let now = world.clock.now();
        let courier = world.nodes[0].as_mut().unwrap();
        courier.handle_timeout(now);
        if let Some(CourierStep::Tell(key, token)) = courier.poll_step() {
            let name = NodeName::new("n0").unwrap();
            let told = ready(world.store.tell(&key, &name, token, LEASE)).unwrap();
            world.nodes[0].as_mut().unwrap().handle_telling(now, &key, Some(told));
            world.store_is_away = true;
            world.act(0);
        }
        world.clock.advance(Duration::from_secs(1));
    }
    world.run(100);
    assert!(!world.is_all_told());
    world.store_is_away = false;
    world.run(61);
    assert_eq!((world.count(), world.is_all_told()), (1, true));
}

#[test]
fn more_than_ten_thousand_are_dropped_and_counted() {
    let mut courier = Courier::new(true, Token::from_bits(1));
    let now = ManualClock::at("2026-11-21T14:05:00Z".parse().unwrap()).now();
    courier.set_sinks(&rule(20), now);
    let job = JobName::new("billing").unwrap();
    let slot = "2026-11-21T14Z".parse().unwrap();
    for number in 0..u32::try_from(MOST_PENDING).unwrap() + 7 {
        courier.learn(now, &Notice::of_slot(NoticeKind::Started, &job, slot).numbered(number), SINK);
    }
    assert_eq!(courier.pending()[SINK].0, MOST_PENDING);
    assert_eq!(courier.take_tallies().len(), 7);
}

#[test]
fn without_a_store_that_keeps_messages_each_node_sends_its_own() {
    let mut courier = Courier::new(false, Token::from_bits(1));
    let clock = ManualClock::at("2026-11-21T14:05:00Z".parse().unwrap());
    courier.set_sinks(&rule(0), clock.now());
    courier.learn(clock.now(), &failed("billing"), SINK);
    for answer in [again(None), Receipt::Taken("200".to_owned())] {
        courier.handle_timeout(clock.now());
        assert!(matches!(courier.poll_step(), Some(CourierStep::Send { .. })));
        courier.handle_answer(clock.now(), SINK, &answer);
        assert_eq!(courier.poll_step(), None);
        clock.advance(Duration::from_secs(11));
    }
    assert!(courier.pending().is_empty());
}

#[test]
fn a_node_that_leaves_sends_at_once_what_waited_for_its_turn() {
    let mut world = World::new(1);
    world.learn(0, &failed("billing"));
    let now = world.clock.now();
    world.nodes[0].as_mut().unwrap().hurry(now);
    world.run(1);
    assert_eq!((world.count(), world.is_all_told()), (1, true));
}

#[test]
fn a_node_that_leaves_waits_for_no_other_to_send() {
    let mut world = World::new(2);
    world.all_learn(&failed("billing"));
    world.dies_before_recording = Some(0);
    world.seconds_until_sent();
    world.run(1);
    let now = world.clock.now();
    let courier = world.nodes[1].as_mut().unwrap();
    courier.hurry(now);
    assert!(courier.poll_timeout().unwrap() > now.mono, "its turn comes when the claim of the dead one has lapsed");
}

#[test]
fn what_waits_for_a_sink_that_is_gone_is_dropped() {
    let mut world = World::new(1);
    world.learn(0, &failed("billing"));
    let now = world.clock.now();
    let courier = world.nodes[0].as_mut().unwrap();
    courier.set_sinks(&BTreeMap::new(), now);
    assert_eq!(courier.take_tallies(), [(SINK.to_owned(), Tally::Dropped)]);
    assert_eq!(courier.poll_timeout(), None);
}

/// What may happen to a world.
#[derive(Clone, Debug)]
enum Blow {
    Learn(usize, usize),
    Pass(u64),
    Away(bool),
    Kill(usize),
    Fail,
}

fn blows() -> impl Strategy<Value = Vec<Blow>> {
    let blow = prop_oneof![
        4 => (0..3_usize, 0..8_usize).prop_map(|(node, job)| Blow::Learn(node, job)),
        4 => (1..40_u64).prop_map(Blow::Pass),
        1 => any::<bool>().prop_map(Blow::Away),
        1 => (0..2_usize).prop_map(Blow::Kill),
        2 => Just(Blow::Fail),
    ];
    proptest::collection::vec(blow, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// The third node never dies and learns of everything, as the looks at the store make sure of.
    #[test]
    fn each_message_is_told_and_twice_only_after_a_death_or_a_failed_try(blows in blows()) {
        let mut world = World::new(3);
        let (mut learned, mut excuses) = (BTreeSet::new(), 0);
        for blow in blows {
            match blow {
                Blow::Learn(node, job) => {
                    let notice = failed(&format!("j{job}"));
                    if world.nodes[node].is_some() {
                        world.learn(node, &notice);
                    }
                    world.learn(2, &notice);
                    learned.insert(format!("j{job}"));
                }
                Blow::Pass(seconds) => world.run(seconds),
                Blow::Away(away) => world.store_is_away = away,
                Blow::Kill(node) => {
                    world.dies_before_recording = Some(node);
                    excuses += 1;
                }
                Blow::Fail => {
                    world.answers.push_back(again(None));
                    excuses += 1;
                }
            }
        }
        (world.store_is_away, world.dies_before_recording) = (false, None);
        world.answers.clear();
        world.run(3_900);
        let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
        world.sent.iter().flat_map(|(names, _)| names).for_each(|name| *counts.entry(name).or_default() += 1);
        prop_assert!(world.is_all_told());
        for job in &learned {
            let count = counts.get(job).copied().unwrap_or(0);
            prop_assert!(count >= 1, "{job} was never told");
            prop_assert!(count <= 1 + excuses, "{job} was told {count} times with {excuses} excuses");
        }
    }
}

#[test]
fn messages_of_one_job_come_as_they_happened_though_each_waits_for_its_turn() {
    let clock = ManualClock::at("2026-11-21T14:00:00Z".parse().unwrap());
    for job in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        let mut courier = Courier::new(false, Token::from_bits(1));
        courier.set_sinks(&rule(20), clock.now());
        let name = JobName::new(job).unwrap();
        let notice = |kind| Notice::of_slot(kind, &name, "2026-11-21T14Z".parse().unwrap());
        courier.learn(clock.now(), &notice(NoticeKind::Started), SINK);
        clock.advance(Duration::from_secs(1));
        courier.learn(clock.now(), &notice(NoticeKind::Recovered), SINK);
        courier.learn(clock.now(), &notice(NoticeKind::Succeeded), SINK);
        let mut sent = Vec::new();
        for _ in 0..60 {
            courier.handle_timeout(clock.now());
            while let Some(step) = courier.poll_step() {
                let CourierStep::Send { sink, notices, .. } = step else { continue };
                sent.extend(notices.iter().map(|(_, notice)| notice.kind));
                courier.handle_answer(clock.now(), &sink, &Receipt::Taken(String::new()));
            }
            clock.advance(Duration::from_secs(1));
        }
        assert_eq!(sent, [NoticeKind::Started, NoticeKind::Succeeded, NoticeKind::Recovered], "{job}");
    }
}

#[test]
fn a_digest_names_what_happened_first_at_first() {
    let clock = ManualClock::at("2026-11-21T14:00:00Z".parse().unwrap());
    let mut courier = Courier::new(false, Token::from_bits(1));
    courier.set_sinks(&rule(20), clock.now());
    let keys = ["2026-11-21T13Z", "2026-11-21T12Z", "2026-11-21T11Z"];
    for job in ["a", "b"] {
        let name = JobName::new(job).unwrap();
        courier.learn(clock.now(), &Notice::of_slot(NoticeKind::Recovered, &name, keys[2].parse().unwrap()), SINK);
        for key in keys {
            courier.learn(clock.now(), &Notice::of_slot(NoticeKind::Failed, &name, key.parse().unwrap()), SINK);
        }
    }
    clock.advance(Duration::from_secs(20));
    courier.handle_timeout(clock.now());
    let step = std::iter::from_fn(|| courier.poll_step()).last();
    let Some(CourierStep::Send { notices, digest: true, .. }) = step else { panic!("{step:?}") };
    let told: Vec<_> = notices.iter().map(|(_, notice)| (notice.kind, notice.slot.unwrap().to_string())).collect();
    let failed = |key: &str| (NoticeKind::Failed, key.to_owned());
    let wanted: Vec<_> = keys.iter().rev().flat_map(|key| [failed(key), failed(key)]).collect();
    assert_eq!(told[..6], wanted);
    assert!(told[6..].iter().all(|(kind, _)| *kind == NoticeKind::Recovered), "{told:?}");
}
