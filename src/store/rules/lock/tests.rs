//! The rules of locks where time, late copies and lost data matter; and the laws that no single case of the suite can show. The rest
//! is in `store::conformance`, which the store in memory passes by these rules. Each is named as in the table of `docs/locks.md`.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::LockStep;
use crate::clock::later;
use crate::job::{LockName, NodeName};
use crate::reply::Intervention;
use crate::resource::{
    AcquireRequest, Acquired, Demand, Demands, LockHold, LockRefusal, LockRelease, LockRenewal, MOST_ENTRIES, OwnerId,
};
use crate::slot::{Audit, Fence, Token};

const TTL: Duration = Duration::from_secs(30);
const THIRD: Duration = Duration::from_secs(10);

fn name(text: &str) -> LockName {
    LockName::new(text).unwrap()
}

fn write(lock: &str) -> Demand {
    Demand::exclusive(name(lock))
}

fn read(lock: &str) -> Demand {
    Demand::shared(name(lock))
}

fn some(lock: &str, weight: u32, of: u32) -> Demand {
    Demand::permits(name(lock), weight, of).unwrap()
}

fn audit() -> Audit {
    let word = String::new;
    Audit { verb: word(), who: "alice".to_owned(), host: word(), why: word(), at: DateTime::UNIX_EPOCH }
}

/// A store of nothing but locks. Clients are numbers: their tokens, and unless said otherwise their owners.
struct Bench {
    locks: BTreeMap<LockName, super::LockState>,
    now: DateTime<Utc>,
    holds: BTreeMap<u128, LockHold>,
    told: Vec<u128>,
}

impl Bench {
    fn new() -> Self {
        let now = "2026-11-21T14:00:00Z".parse().unwrap();
        Self { locks: BTreeMap::new(), now, holds: BTreeMap::new(), told: Vec::new() }
    }

    fn step<T>(&mut self, rule: impl FnOnce(&mut LockStep) -> T) -> T {
        let mut step = LockStep::new(self.locks.clone(), self.now);
        let answer = rule(&mut step);
        self.locks = step.locks;
        self.told.extend(step.wakes.into_iter().map(|(_, token)| token.bits()));
        answer
    }

    fn pass(&mut self, span: Duration) {
        self.now = later(self.now, span);
    }

    fn request(token: u128, demands: &[Demand]) -> AcquireRequest {
        let node = NodeName::new(&format!("n{token}")).unwrap();
        let token = Token::from_bits(token);
        AcquireRequest::new(token, node, token, TTL, Demands::new(demands.to_vec()).unwrap())
    }

    fn send(&mut self, request: &AcquireRequest) -> Acquired {
        let answer = self.step(|step| step.acquire(request));
        if let Acquired::Held { fence, places, .. } = &answer {
            self.holds.insert(request.token.bits(), request.granted(*fence, places.clone()));
        }
        answer
    }

    fn ask(&mut self, token: u128, demands: &[Demand]) -> Acquired {
        self.send(&Self::request(token, demands))
    }

    fn ask_as(&mut self, owner: u128, token: u128, demands: &[Demand]) -> Acquired {
        let owner = OwnerId::new(Token::from_bits(owner));
        self.send(&AcquireRequest { owner, ..Self::request(token, demands) })
    }

    fn hold(&mut self, token: u128, demands: &[Demand]) -> Fence {
        match self.ask(token, demands) {
            Acquired::Held { fence, .. } => fence,
            other => panic!("{token}: {other:?}"),
        }
    }

    fn waits(&mut self, token: u128, demands: &[Demand]) -> u32 {
        match self.ask(token, demands) {
            Acquired::Waiting { ahead, .. } => ahead,
            other => panic!("{token}: {other:?}"),
        }
    }

    fn renew(&mut self, token: u128) -> LockRenewal {
        let hold = self.holds[&token].clone();
        self.step(|step| step.renew(&hold))
    }

    fn release(&mut self, token: u128) -> LockRelease {
        let exit = self.holds[&token].exit(false);
        self.step(|step| step.release(&exit))
    }

    fn leave(&mut self, token: u128, demands: &[Demand]) -> LockRelease {
        let exit = Self::request(token, demands).exit(true);
        self.step(|step| step.release(&exit))
    }

    fn holding(&mut self, lock: &str) -> Vec<u128> {
        let record = self.locks.entry(name(lock)).or_default().record(&name(lock), self.now);
        record.holders().map(|entry| entry.token.bits()).collect()
    }

    fn queue(&mut self, lock: &str) -> Vec<u128> {
        let record = self.locks.entry(name(lock)).or_default().record(&name(lock), self.now);
        record.entries.iter().map(|entry| entry.token.bits()).collect()
    }
}

#[test]
fn late_renewal_after_release_restores_nothing() {
    let mut bench = Bench::new();
    bench.hold(1, &[write("a")]);
    bench.release(1);
    assert!(matches!(bench.renew(1), LockRenewal::Lost { .. }));
    // The same where the entry had lapsed before it was left.
    bench.pass(TTL);
    bench.hold(2, &[write("a")]);
    bench.pass(TTL);
    assert_eq!(bench.release(2), LockRelease::Expired);
    assert!(matches!(bench.renew(2), LockRenewal::Lost { .. }));
    assert_eq!(bench.queue("a"), []);
}

#[test]
fn late_acquire_does_not_renew_in_silence() {
    let mut bench = Bench::new();
    let first = bench.hold(1, &[write("a")]);
    let old = bench.holds[&1].clone();
    bench.pass(TTL);
    bench.hold(2, &[write("a")]);
    bench.release(2);
    // The old copy joins again, and is a new grant.
    assert!(bench.hold(1, &[write("a")]) > first);
    assert!(matches!(bench.step(|step| step.renew(&old)), LockRenewal::Lost { .. }));
    assert!(matches!(bench.step(|step| step.release(&old.exit(false))), LockRelease::Overtaken { .. }));
    assert_eq!(bench.queue("a"), [], "whatever stands there under the token goes");
}

#[test]
fn late_acquire_after_release_is_spent() {
    let mut bench = Bench::new();
    bench.leave(1, &[write("a")]);
    assert_eq!(bench.ask(1, &[write("a")]), Acquired::Refused(LockRefusal::Spent));
    assert_eq!(bench.queue("a"), []);
    bench.pass(TTL);
    bench.hold(1, &[write("a")]);
}

#[test]
fn no_overtaking_by_newcomer() {
    let mut bench = Bench::new();
    bench.hold(1, &[write("a")]);
    bench.waits(2, &[write("a")]);
    bench.release(1);
    assert_eq!(bench.told, [2]);
    assert_eq!(bench.waits(3, &[write("a")]), 1);
    bench.hold(2, &[write("a")]);
}

#[test]
fn fifo_by_the_order_in_which_the_store_was_asked() {
    let mut bench = Bench::new();
    for token in 1..=9 {
        bench.ask(token, &[write("a")]);
    }
    for token in 1..=9 {
        bench.hold(token, &[write("a")]);
        bench.release(token);
    }
}

#[test]
fn waiter_keeps_its_place_by_asking() {
    let mut bench = Bench::new();
    bench.hold(1, &[write("a")]);
    bench.waits(2, &[write("a")]);
    for round in 0..30 {
        bench.pass(THIRD);
        assert_eq!(bench.renew(1), LockRenewal::Renewed);
        assert_eq!(bench.waits(2, &[write("a")]), 1, "round {round}");
        if round == 3 {
            bench.waits(3, &[write("a")]);
        }
        if round > 3 {
            assert_eq!(bench.waits(3, &[write("a")]), 2);
        }
    }
    bench.release(1);
    bench.hold(2, &[write("a")]);
}

#[test]
fn place_does_not_drift() {
    let mut bench = Bench::new();
    bench.hold(9, &[write("a")]);
    for round in 0..50 {
        let token = 100 + round;
        bench.waits(token, &[write("a")]);
        bench.pass(Duration::from_millis(100));
        bench.leave(token, &[write("a")]);
        bench.renew(9);
    }
    bench.waits(1, &[write("a")]);
    bench.waits(2, &[write("a")]);
    // The holder dies, and so does whoever waits behind it: both are gone within one TTL.
    bench.pass(TTL - Duration::from_millis(1));
    bench.waits(2, &[write("a")]);
    bench.pass(Duration::from_millis(1));
    bench.hold(2, &[write("a")]);
    assert_eq!(bench.queue("a"), [2]);
}

#[test]
fn k_dead_waiters_cost_one_ttl() {
    let mut bench = Bench::new();
    bench.hold(1, &[write("a")]);
    for token in 2..502 {
        bench.waits(token, &[write("a")]);
    }
    bench.pass(THIRD);
    bench.waits(1_000, &[write("a")]);
    bench.pass(THIRD * 2);
    bench.hold(1_000, &[write("a")]);
    assert_eq!(bench.queue("a"), [1_000]);
}

#[test]
fn lapse_frees_without_publish() {
    let mut bench = Bench::new();
    bench.hold(1, &[write("a")]);
    bench.pass(THIRD);
    let Acquired::Waiting { remaining, .. } = bench.ask(2, &[write("a")]) else { panic!() };
    assert_eq!(remaining, THIRD * 2, "when to look");
    bench.waits(3, &[write("a")]);
    bench.pass(remaining);
    // Whoever sees it tells whom it concerns.
    bench.waits(3, &[write("a")]);
    assert_eq!(bench.told, [2]);
    bench.hold(2, &[write("a")]);
}

#[test]
fn writer_is_not_starved() {
    let mut bench = Bench::new();
    bench.hold(1, &[read("a")]);
    bench.hold(2, &[read("a")]);
    bench.waits(3, &[write("a")]);
    for token in 10..20 {
        bench.waits(token, &[read("a")]);
    }
    bench.release(1);
    bench.waits(3, &[write("a")]);
    bench.release(2);
    bench.hold(3, &[write("a")]);
}

#[test]
fn read_and_write_never_wait_for_each_other() {
    let mut bench = Bench::new();
    for (token, demand) in [(1, write("a")), (2, read("a")), (3, write("a")), (4, read("a"))] {
        bench.ask(token, &[demand]);
    }
    for (token, demand) in [(1, write("a")), (2, read("a")), (3, write("a")), (4, read("a"))] {
        assert_eq!(bench.holding("a"), [token]);
        bench.hold(token, &[demand]);
        bench.release(token);
    }
}

#[test]
fn upgraded_fence_is_newer() {
    let mut bench = Bench::new();
    let Acquired::Held { .. } = bench.ask_as(1, 1, &[read("a")]) else { panic!() };
    let other = bench.hold(2, &[read("a")]);
    bench.release(2);
    let Acquired::Held { fence, places, .. } = bench.ask_as(1, 11, &[write("a")]) else { panic!() };
    assert!(fence > other);
    assert_eq!(places, bench.holds[&1].places, "it stands where its owner stands");
}

#[test]
fn permits_never_exceed() {
    let mut bench = Bench::new();
    for token in 1..=3 {
        bench.hold(token, &[some("p", 1, 3)]);
    }
    let stale = bench.holds[&1].clone();
    bench.pass(THIRD);
    bench.renew(2);
    bench.renew(3);
    bench.waits(4, &[some("p", 1, 3)]);
    bench.pass(THIRD * 2);
    bench.hold(4, &[some("p", 1, 3)]);
    // The end of one who was taken for dead makes no room.
    bench.step(|step| step.release(&stale.exit(false)));
    bench.step(|step| step.release(&stale.exit(true)));
    bench.waits(5, &[some("p", 1, 3)]);
    assert_eq!(bench.holding("p"), [2, 3, 4]);
}

#[test]
fn opposite_order_no_deadlock() {
    let rings: [&[[&str; 2]]; 2] = [&[["a", "b"], ["b", "a"]], &[["a", "b"], ["b", "c"], ["c", "a"]]];
    for ring in rings {
        let mut bench = Bench::new();
        let demands: Vec<[Demand; 2]> = ring.iter().map(|pair| [write(pair[0]), write(pair[1])]).collect();
        for (index, pair) in demands.iter().enumerate() {
            bench.ask(index as u128 + 1, pair);
        }
        for (index, pair) in demands.iter().enumerate() {
            bench.hold(index as u128 + 1, pair);
            bench.release(index as u128 + 1);
        }
    }
}

#[test]
fn many_locks_keep_order() {
    let mut bench = Bench::new();
    bench.hold(1, &[write("a")]);
    bench.waits(2, &[write("a"), write("b")]);
    // It holds b by its place, so nobody passes it there.
    bench.waits(3, &[write("b")]);
    bench.release(1);
    bench.hold(2, &[write("a"), write("b")]);
    assert_eq!(bench.release(2), LockRelease::Released);
    bench.hold(3, &[write("b")]);
}

#[test]
fn a_part_that_was_lost_has_the_whole_join_anew_with_one_place() {
    let mut bench = Bench::new();
    bench.hold(1, &[write("a"), write("b")]);
    bench.waits(2, &[write("a"), write("b")]);
    bench.waits(3, &[write("b"), write("a")]);
    bench.locks.remove(&name("b"));
    // Its old place in a and a new one in b would let 2 and 3 wait for each other.
    bench.waits(3, &[write("b"), write("a")]);
    bench.waits(2, &[write("a"), write("b")]);
    assert!(matches!(bench.renew(1), LockRenewal::Lost { .. }), "b is another's by now");
    assert_eq!(bench.release(1), LockRelease::Expired);
    let first = if bench.queue("a")[0] == 3 { 3 } else { 2 };
    assert_eq!((bench.queue("a")[0], bench.queue("b")[0]), (first, first));
}

#[test]
fn flush_restores_shared() {
    let mut bench = Bench::new();
    for token in 1..=4 {
        bench.hold(token, &[read("a")]);
    }
    bench.waits(5, &[write("a")]);
    bench.locks.clear();
    for token in [3, 1, 4, 2] {
        assert_eq!(bench.renew(token), LockRenewal::Restored);
    }
    bench.waits(5, &[write("a")]);
    assert_eq!(bench.holding("a"), [1, 2, 3, 4]);
}

#[test]
fn failover_holder_restores_unless_somebody_who_excludes_it_came_first() {
    let mut bench = Bench::new();
    bench.hold(1, &[write("a")]);
    bench.locks.clear();
    bench.pass(THIRD);
    assert_eq!(bench.renew(1), LockRenewal::Restored, "nobody came");
    bench.waits(3, &[write("a")]);
    bench.locks.clear();
    bench.pass(THIRD);
    bench.hold(2, &[write("a")]);
    let LockRenewal::Lost { to } = bench.renew(1) else { panic!() };
    assert_eq!(to.unwrap().node.as_str(), "n2");
    let LockRelease::Overtaken { by: Some(by) } = bench.release(1) else { panic!() };
    assert_eq!(by.node.as_str(), "n2");
    assert_eq!(bench.renew(2), LockRenewal::Renewed);
}

#[test]
fn fence_rises_also_when_the_clock_goes_back() {
    let mut bench = Bench::new();
    let mut last = Fence(0);
    for round in 0..20 {
        let fence = bench.hold(round, &[write("a")]);
        assert!(fence > last);
        last = fence;
        bench.release(round);
        bench.now = crate::clock::earlier(bench.now, Duration::from_secs(1));
    }
    // Lost with the data, it goes on from the clock.
    bench.now = later(bench.now, Duration::from_secs(60));
    bench.locks.clear();
    assert!(bench.hold(99, &[write("a")]) > last);
}

#[test]
fn reentry_that_another_keeps_waiting_takes_its_owners_place_once_that_holds() {
    let mut bench = Bench::new();
    bench.hold(1, &[write("a")]);
    assert!(matches!(bench.ask_as(7, 71, &[write("a")]), Acquired::Waiting { .. }));
    bench.waits(2, &[write("a")]);
    assert!(matches!(bench.ask_as(7, 72, &[write("a")]), Acquired::Waiting { .. }));
    bench.release(1);
    assert!(matches!(bench.ask_as(7, 72, &[write("a")]), Acquired::Held { .. }), "its owner holds, and it is alone");
    assert_eq!(bench.holding("a"), [71, 72]);
}

#[test]
fn upgrade_behind_which_others_wait_is_granted_when_its_owner_is_alone() {
    let mut bench = Bench::new();
    assert!(matches!(bench.ask_as(7, 71, &[read("a")]), Acquired::Held { .. }));
    bench.waits(2, &[write("a")]);
    bench.waits(3, &[read("a")]);
    assert!(matches!(bench.ask_as(7, 72, &[write("a")]), Acquired::Held { .. }));
    assert_eq!(bench.holding("a"), [71, 72]);
}

#[test]
fn evicted_is_lost_and_does_not_come_back() {
    let mut bench = Bench::new();
    let audit = audit();
    bench.hold(1, &[write("a")]);
    bench.waits(2, &[write("a")]);
    bench.waits(3, &[write("a")]);
    for (token, answer) in [(1, Intervention::Applied), (1, Intervention::Unchanged), (3, Intervention::Applied)] {
        assert_eq!(bench.step(|step| step.evict(&name("a"), Token::from_bits(token), &audit)), answer);
    }
    assert_eq!(bench.told, [2], "once");
    assert_eq!(bench.renew(1), LockRenewal::Lost { to: None }, "the next one was not told yet");
    assert!(matches!(bench.ask(2, &[write("a")]), Acquired::Held { .. }));
    assert!(matches!(bench.renew(1), LockRenewal::Lost { to: Some(_) }));
    assert!(matches!(bench.release(1), LockRelease::Overtaken { .. }));
    assert_eq!(bench.ask(3, &[write("a")]), Acquired::Refused(LockRefusal::Spent));
    let record = bench.locks[&name("a")].record(&name("a"), bench.now);
    assert_eq!(record.audit.iter().map(|audit| audit.at).collect::<Vec<_>>(), [bench.now, bench.now]);
}

#[test]
fn a_loss_names_nobody_who_still_waits_for_another_lock() {
    let mut bench = Bench::new();
    bench.hold(1, &[write("a")]);
    bench.hold(2, &[write("b")]);
    bench.waits(3, &[write("a"), write("b")]);
    assert_eq!(bench.step(|step| step.evict(&name("a"), Token::from_bits(1), &audit())), Intervention::Applied);
    assert_eq!(bench.holding("a"), [3], "it stands in front");
    assert_eq!(bench.renew(1), LockRenewal::Lost { to: None });
}

#[test]
fn queue_is_bounded() {
    let mut bench = Bench::new();
    for token in 1..=MOST_ENTRIES as u128 {
        bench.ask(token, &[read("a")]);
    }
    assert_eq!(bench.ask(5_000, &[read("b"), read("a")]), Acquired::Refused(LockRefusal::Full));
    assert_eq!(bench.queue("b"), [], "nothing of it stands anywhere");
    bench.release(7);
    bench.hold(5_000, &[read("b"), read("a")]);
}

#[test]
fn one_release_tells_each_who_may_hold_now_once() {
    let mut bench = Bench::new();
    bench.hold(1, &[write("a"), write("b")]);
    for token in 2..=5 {
        bench.waits(token, &[read("a"), read("b")]);
    }
    bench.waits(6, &[write("a")]);
    bench.release(1);
    assert_eq!(bench.told, [2, 3, 4, 5]);
}

#[test]
fn a_departure_tells_only_whom_it_lets_hold() {
    let mut bench = Bench::new();
    let both = [write("a"), read("b")];
    bench.hold(1, &[write("a"), write("b")]);
    for token in 2..=41 {
        bench.waits(token, &both);
    }
    // All of them come to fit in b with the first departure, and one in a.
    bench.release(1);
    assert_eq!(bench.told, [2]);
    for token in 2..=20 {
        bench.hold(token, &both);
        bench.release(token);
    }
    assert_eq!(bench.told, (2..=21).collect::<Vec<_>>(), "one message for each departure");
    // Also where somebody waits no more, has lapsed, or was taken out of one of the two.
    bench.told.clear();
    bench.leave(30, &both);
    assert_eq!(bench.told, []);
    bench.hold(21, &both);
    bench.pass(THIRD);
    for token in (22..=41).filter(|token| *token != 30) {
        bench.waits(token, &both);
    }
    bench.pass(THIRD * 2);
    bench.waits(41, &both);
    assert_eq!(bench.told, [22]);
    bench.hold(22, &both);
    bench.step(|step| step.evict(&name("b"), Token::from_bits(22), &audit()));
    assert_eq!(bench.told, [22]);
    bench.step(|step| step.evict(&name("a"), Token::from_bits(22), &audit()));
    assert_eq!(bench.told, [22, 23]);
}

#[test]
fn of_several_locks_the_one_that_comes_free_last_tells() {
    let mut bench = Bench::new();
    let locks = ["a", "b", "c"];
    for (token, lock) in (1..).zip(locks) {
        bench.hold(token, &[write(lock)]);
    }
    bench.waits(4, &locks.map(write));
    bench.waits(5, &[write("a"), write("c")]);
    bench.release(2);
    bench.release(1);
    // Who leaves a alone knows nothing of the others, and 5 has 4 before it.
    assert_eq!(bench.told, [4, 4]);
    // The last one lapses, and somebody behind is the first to see it.
    bench.pass(THIRD);
    bench.waits(4, &locks.map(write));
    bench.waits(5, &[write("a"), write("c")]);
    bench.pass(THIRD * 2);
    bench.waits(5, &[write("a"), write("c")]);
    assert_eq!(bench.told, [4, 4, 4]);
    bench.hold(4, &locks.map(write));
    bench.release(4);
    assert_eq!(bench.told, [4, 4, 4, 5]);
}

#[test]
fn a_lock_is_idle_once_nobody_is_there_and_its_numbers_are_old() {
    let mut bench = Bench::new();
    bench.hold(1, &[write("a")]);
    bench.release(1);
    let (lock, retention) = (bench.locks[&name("a")].clone(), TTL * 10);
    assert!(!lock.is_idle(bench.now, retention));
    assert!(!lock.is_idle(later(bench.now, TTL * 9), retention));
    assert!(lock.is_idle(later(bench.now, TTL * 11), retention));
}

#[test]
fn what_is_stored_reads_back() {
    let mut bench = Bench::new();
    bench.hold(1, &[write("a")]);
    bench.waits(2, &[some("a", 2, 3)]);
    bench.leave(9, &[write("a")]);
    let state = &bench.locks[&name("a")];
    let json = serde_json::to_string(state).unwrap();
    assert_eq!(&serde_json::from_str::<super::LockState>(&json).unwrap(), state, "{json}");
}

#[test]
fn who_stands_beside_its_owner_in_one_lock_waits_for_nobody_in_another() {
    let mut bench = Bench::new();
    assert!(matches!(bench.ask_as(7, 71, &[write("x")]), Acquired::Held { .. }));
    bench.waits(2, &[write("x"), write("y")]);
    // 2 waits for 7 in x: a request of 7 that waited for 2 in y would go on waiting when 71 has been left.
    let refused = Acquired::Refused(LockRefusal::WaitsForItself);
    assert_eq!(bench.ask_as(7, 72, &[write("x"), write("y")]), refused);
    assert_eq!((bench.queue("x"), bench.queue("y")), (vec![71, 2], vec![2]));
    // Also where its owner came to hold after it had asked, behind somebody in the other lock.
    bench.hold(3, &[write("z")]);
    bench.hold(4, &[write("v")]);
    assert!(matches!(bench.ask_as(8, 81, &[write("v")]), Acquired::Waiting { .. }));
    assert!(matches!(bench.ask_as(8, 82, &[write("v"), write("z")]), Acquired::Waiting { .. }));
    bench.waits(5, &[write("v")]);
    assert!(matches!(bench.ask_as(8, 83, &[write("v"), write("z")]), Acquired::Waiting { .. }));
    bench.release(4);
    assert!(matches!(bench.ask_as(8, 81, &[write("v")]), Acquired::Held { .. }));
    assert!(
        matches!(bench.ask_as(8, 82, &[write("v"), write("z")]), Acquired::Waiting { .. }),
        "nobody stands between"
    );
    assert_eq!(bench.ask_as(8, 83, &[write("v"), write("z")]), refused);
    assert_eq!((bench.queue("v"), bench.queue("z")), (vec![81, 82, 5], vec![3, 82]));
}

#[test]
fn a_waiter_that_looks_often_changes_nothing_until_its_beat_is_near() {
    let mut bench = Bench::new();
    bench.hold(1, &[write("a")]);
    bench.waits(2, &[write("a")]);
    let before = bench.locks.clone();
    bench.pass(TTL / 10);
    bench.waits(2, &[write("a")]);
    assert_eq!(bench.locks, before);
    bench.pass(TTL / 10);
    bench.waits(2, &[write("a")]);
    assert_ne!(bench.locks, before);
    // Who is told that it holds counts on the whole of it.
    bench.release(1);
    bench.pass(TTL / 10);
    bench.hold(2, &[write("a")]);
    let record = bench.locks[&name("a")].record(&name("a"), bench.now);
    assert_eq!(record.entries[0].remaining, TTL);
}

#[test]
fn of_releases_with_nothing_under_way_a_few_are_remembered_and_of_others_all() {
    let mut bench = Bench::new();
    bench.hold(1, &[write("a")]);
    let unsure = bench.holds[&1].exit(true);
    bench.step(|step| step.release(&unsure));
    for token in 2..1_000 {
        bench.hold(token, &[write("a")]);
        bench.release(token);
    }
    assert_eq!(bench.ask(1, &[write("a")]), Acquired::Refused(LockRefusal::Spent), "a copy of it may be under way");
    assert_eq!(bench.release(999), LockRelease::Released, "again, for its answer was lost");
    let json = serde_json::to_string(&bench.locks[&name("a")]).unwrap();
    assert!(json.len() < 4_096, "{}", json.len());
}

#[test]
fn what_was_taken_out_is_remembered_for_as_long_as_it_may_ask() {
    let day = Duration::from_secs(86_400);
    let mut bench = Bench::new();
    bench.hold(1, &[write("a")]);
    // A waiter whose beat comes hours later.
    let waiter = AcquireRequest { ttl: day, ..Bench::request(2, &[write("a")]) };
    assert!(matches!(bench.send(&waiter), Acquired::Waiting { .. }));
    bench.step(|step| step.evict(&name("a"), Token::from_bits(2), &audit()));
    bench.pass(day / 3);
    assert_eq!(bench.send(&waiter), Acquired::Refused(LockRefusal::Spent));
    // A holder that has renewed for longer than the retention, and was stopped.
    bench.hold(3, &[write("b")]);
    for _ in 0..20 {
        bench.pass(TTL / 2);
        assert_eq!(bench.renew(3), LockRenewal::Renewed);
    }
    bench.step(|step| step.evict(&name("b"), Token::from_bits(3), &audit()));
    let retention = TTL * 5;
    assert!(!bench.locks[&name("b")].is_idle(later(bench.now, TTL * 4), retention));
}
