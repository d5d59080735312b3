//! Every history of a few requests for locks: each order in which they ask, renew and leave, answers that are lost, copies that come late,
//! clients that die, entries that lapse, and a store that loses all it knows. Each state that can be reached is visited, and the
//! invariants of `docs/locks.md` are asked of it.
//!
//! What decides is the real code: the rules that the store in memory runs. What is modelled is the world around them: clients that do what
//! `machine::LockMachine` does (`world`), in whole ticks, each call one step. `laws` says what must hold.
//!
//! **What is left out**: the machine itself, whose timers these clients replace by asking at any moment; `Full`, several losses
//! of data, a second namespace (K10) and what a client makes of an error (K11), which the suite and the machine's tests ask. A copy is under way
//! until one TTL after its client has left, at most. The worlds here are small enough for every run; larger ones take minutes.

mod flawed;
mod laws;
mod step;
mod world;

use std::collections::BTreeSet;
use std::time::Instant;

use stateright::{Checker, Expectation, HasDiscoveries, Model};

use self::flawed::Bug;
use self::laws as is;
use self::world::{Client, Faults, World};
use cronward::resource::{Demand, LockName};

fn name(lock: &str) -> LockName {
    LockName::new(lock).unwrap()
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

/// Written directly: what is printed by a test that passes is not shown.
fn say(line: &str) {
    use std::io::Write;
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
    if let Some(file) = std::env::var_os("CRONWARD_MODEL_JSON").filter(|_| line.starts_with('{')) {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
        writeln!(file, "{line}").unwrap();
    }
}

/// Visits every state; nothing may be broken, and these must have been possible.
fn holds(title: &str, world: World, possible: &[&'static str]) {
    let started = Instant::now();
    let checker = world.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let found = checker.discoveries();
    let reached: BTreeSet<&'static str> = found.keys().copied().collect();
    say(&format!(
        r#"{{"world":"locks: {title}","states":{},"unique":{},"depth":{},"seconds":{:.1},"reached":{reached:?}}}"#,
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth(),
        started.elapsed().as_secs_f64(),
    ));
    for (law, path) in found {
        let failed = checker.model().property(law).expectation == Expectation::Always;
        if failed {
            path.clone().into_vec().into_iter().for_each(|(state, then)| say(&format!("{state:?}\n{then:?}")));
        }
        assert!(!failed, "{title}: {law}: broken, as shown above");
    }
    for law in possible {
        assert!(reached.contains(law), "{title}: impossible: {law}");
    }
}

/// Visits states until this law was broken.
fn breaks(bug: Bug, world: World, law: &'static str) {
    let world = World { bug: Some(bug), ..world };
    let until = HasDiscoveries::AllOf([law].into_iter().collect());
    let checker = world.checker().threads(2).finish_when(until).spawn_bfs().join();
    let found = checker.discoveries();
    say(&format!(
        r#"{{"control":"locks: {bug:?}","breaks":{law:?},"states":{},"steps":{}}}"#,
        checker.unique_state_count(),
        found.get(law).map_or(0, |path| path.clone().into_actions().len())
    ));
    assert!(found.contains_key(law), "{bug:?} does not break: {law}");
}

const NONE: Faults = Faults { losses: 0, late: 0, crashes: 0, flushes: 0, evictions: 0 };

fn world(clients: Vec<Client>, faults: Faults) -> World {
    World { clients, horizon: 2, ttl: 1, faults, bug: None }
}

fn one_each(demands: &[Demand]) -> Vec<Client> {
    demands.iter().map(|demand| Client::new(vec![demand.clone()])).collect()
}

#[test]
fn a_mutex_with_lost_answers_late_copies_and_a_crash() {
    let three = one_each(&[write("a"), write("a"), write("a")]);
    let two = one_each(&[write("a"), write("a")]);
    holds("mutex of three", world(three, Faults { crashes: 1, ..NONE }), &[is::WAITED, is::TAKEN_OVER]);
    holds(
        "mutex, a lost answer",
        world(two.clone(), Faults { losses: 1, crashes: 1, ..NONE }),
        &[is::WAITED, is::LOST],
    );
    holds("mutex, late copies", world(two, Faults { late: 2, ..NONE }), &[is::SPENT, is::RESTORED, is::OVERTAKEN]);
}

#[test]
fn readers_and_a_writer() {
    let clients = one_each(&[read("a"), read("a"), write("a")]);
    holds("readers and a writer", world(clients, NONE), &[is::WAITED, is::SHARED]);
    // Where a TTL is longer than a tick, who has asked again outlives who has not.
    let two = World { horizon: 3, ttl: 2, ..world(one_each(&[read("a"), write("a")]), Faults { crashes: 1, ..NONE }) };
    holds("a reader and a writer, long TTL", two, &[is::WAITED, is::TAKEN_OVER]);
}

#[test]
fn permits_of_different_weights_and_limits() {
    let clients = one_each(&[some("a", 2, 3), some("a", 1, 3), some("a", 1, 2)]);
    holds("permits", world(clients, NONE), &[is::WAITED, is::SHARED]);
}

#[test]
fn several_locks_in_opposite_order_and_in_a_ring() {
    let pair = |a, b| Client::new(vec![write(a), write(b)]);
    let opposite = vec![pair("a", "b"), pair("b", "a"), Client::new(vec![write("a")])];
    let ring = vec![pair("a", "b"), pair("b", "c"), pair("c", "a")];
    holds("opposite order", world(opposite, NONE), &[is::WAITED]);
    holds("a ring of three", world(ring, NONE), &[is::WAITED]);
}

#[test]
fn two_locks_of_which_one_is_shared() {
    let both = || Client::new(vec![write("a"), read("b")]);
    holds("one alone, one shared", world(vec![both(), both(), both()], NONE), &[is::WAITED]);
    let writer = Client::new(vec![write("b")]);
    holds("one alone, one shared, a writer", world(vec![both(), both(), writer], NONE), &[is::WAITED]);
}

#[test]
fn one_owner_that_takes_more() {
    owner_that_takes_more(false);
}

fn owner_that_takes_more(long: bool) {
    let again = |first: Demand, second: Demand, other: Demand| {
        vec![Client::new(vec![first]), Client { after: Some(0), ..Client::new(vec![second]) }, Client::new(vec![other])]
    };
    for (title, faults) in [("", NONE), ("long: ", Faults { late: 1, ..NONE })].into_iter().take(1 + usize::from(long))
    {
        let title = |what: &str| format!("{title}{what}");
        let again = |first, second, other| world(again(first, second, other), faults);
        holds(&title("re-entrance"), again(write("a"), write("a"), write("a")), &[is::WAITED, is::SHARED]);
        holds(&title("an upgrade"), again(read("a"), write("a"), read("a")), &[is::REFUSED, is::SHARED]);
        holds(&title("a downgrade"), again(write("a"), read("a"), write("a")), &[is::WAITED, is::SHARED]);
        // What stood beside its owner in one lock and behind others in another could wait for those who wait for it.
        let pair = || Client::new(vec![write("a"), write("b")]);
        let one_then_pair = vec![Client::new(vec![write("a")]), Client { after: Some(0), ..pair() }, pair()];
        holds(&title("one lock, then two"), world(one_then_pair, faults), &[is::WAITED, is::REFUSED]);
    }
}

#[test]
fn a_store_that_loses_all_it_knows() {
    let flush = Faults { flushes: 1, ..NONE };
    holds("mutex, a flush", world(one_each(&[write("a"), write("a")]), flush), &[is::RESTORED, is::LOST]);
    holds("readers, a flush", world(one_each(&[read("a"), write("a"), read("a")]), flush), &[is::RESTORED, is::SHARED]);
}

/// Every shape of requests that has a test of its own above, beside this one fault.
fn each_shape(fault: &str, faults: Faults, possible: &[&'static str]) {
    let pair = |a, b| Client::new(vec![write(a), write(b)]);
    let again = |first: Demand, second: Demand, other: Demand| {
        vec![Client::new(vec![first]), Client { after: Some(0), ..Client::new(vec![second]) }, Client::new(vec![other])]
    };
    let shapes = [
        ("permits", one_each(&[some("a", 2, 3), some("a", 1, 3), some("a", 1, 2)])),
        ("opposite order", vec![pair("a", "b"), pair("b", "a"), Client::new(vec![write("a")])]),
        ("a ring of three", vec![pair("a", "b"), pair("b", "c"), pair("c", "a")]),
        ("re-entrance", again(write("a"), write("a"), write("a"))),
        ("an upgrade", again(read("a"), write("a"), read("a"))),
        ("a downgrade", again(write("a"), read("a"), write("a"))),
    ];
    for (shape, clients) in shapes {
        holds(&format!("{shape}, {fault}"), world(clients, faults), possible);
    }
}

#[test]
fn each_shape_with_a_death() {
    each_shape("a death", Faults { crashes: 1, ..NONE }, &[is::TAKEN_OVER]);
}

#[test]
fn each_shape_in_a_store_that_loses_all_it_knows() {
    each_shape("a flush", Faults { flushes: 1, ..NONE }, &[is::RESTORED]);
}

#[test]
fn an_operator_who_takes_somebody_out() {
    let one = Faults { evictions: 1, late: 1, ..NONE };
    let mutex = one_each(&[write("a"), write("a")]);
    holds("mutex, an eviction", world(mutex.clone(), one), &[is::LOST, is::TAKEN_OUT, is::SPENT]);
    let twice = Faults { evictions: 2, losses: 1, ..NONE };
    holds("mutex, two evictions", world(mutex, twice), &[is::LOST, is::TAKEN_OUT]);
    let readers = one_each(&[read("a"), write("a"), read("a")]);
    let alone = Faults { evictions: 1, ..NONE };
    holds("readers and a writer, an eviction", world(readers, alone), &[is::LOST, is::TAKEN_OUT, is::SHARED]);
    let pair = |a, b| Client::new(vec![write(a), write(b)]);
    let opposite = vec![pair("a", "b"), pair("b", "a"), Client::new(vec![write("a")])];
    holds("opposite order, an eviction", world(opposite, alone), &[is::LOST, is::TAKEN_OUT]);
    let again = vec![
        Client::new(vec![write("a")]),
        Client { after: Some(0), ..Client::new(vec![read("a")]) },
        Client::new(vec![write("a")]),
    ];
    holds("a downgrade, an eviction", world(again, alone), &[is::LOST, is::SHARED]);
    breaks(Bug::EvictedAsLapsed, world(one_each(&[write("a"), write("a")]), alone), is::RETURNED);
}

#[test]
fn each_bug_breaks_what_it_should() {
    let mutex = |faults| world(one_each(&[write("a"), write("a")]), faults);
    let late = Faults { late: 1, ..NONE };
    breaks(Bug::RestoredWithoutGone, mutex(late), is::GONE);
    breaks(Bug::NoSpentTokens, mutex(late), is::GONE);
    breaks(Bug::RenewalWithoutFence, mutex(Faults { late: 2, ..NONE }), is::NUMBERED);
    breaks(Bug::TrustWithoutEnd, mutex(NONE), is::EXCLUSION);
    let three = one_each(&[write("a"), write("a"), write("a")]);
    breaks(Bug::ReleasedByName, world(three.clone(), NONE), is::EXCLUSION);
    breaks(Bug::Barging, world(three.clone(), NONE), is::TURN);
    breaks(Bug::WakesAll, world(three.clone(), NONE), is::TURN);
    breaks(Bug::WakesAll, world(three.clone(), NONE), is::HINTED_ALONE);
    let both = || Client::new(vec![write("a"), read("b")]);
    breaks(Bug::WakesWhoFits, world(vec![both(), both(), both()], NONE), is::HINTED_ALONE);
    breaks(Bug::PromotionLost, world(three.clone(), NONE), is::PROGRESS);
    breaks(Bug::HintNotPassedOn, world(three, NONE), is::HINTED);
    breaks(Bug::LeaksOnCancel, mutex(NONE), is::GONE);
    let readers = World { horizon: 3, ttl: 2, ..world(one_each(&[read("a"), read("a")]), NONE) };
    breaks(Bug::RenewsOthers, readers, is::UNTOUCHED);
    let upgrade = vec![Client::new(vec![read("a")]), Client { after: Some(0), ..Client::new(vec![write("a")]) }];
    breaks(Bug::OwnersAreStrangers, world(upgrade, NONE), is::ITSELF);
    let pair = |a, b| Client::new(vec![write(a), write(b)]);
    breaks(Bug::PlacesThatDiffer, world(vec![pair("a", "b"), pair("b", "a")], NONE), is::PROGRESS);
}

#[test]
#[ignore = "minutes: make model-long"]
fn larger_worlds_of_locks() {
    owner_that_takes_more(true);
    let late = Faults { late: 1, ..NONE };
    let pair = |a, b| Client::new(vec![write(a), write(b)]);
    let opposite = vec![pair("a", "b"), pair("b", "a"), Client::new(vec![write("a")])];
    holds("long: opposite order", world(opposite, late), &[is::WAITED]);
    let permits = one_each(&[some("a", 2, 3), some("a", 1, 3), some("a", 1, 2)]);
    holds("long: permits", world(permits, late), &[is::WAITED, is::SHARED]);
    let all = Faults { losses: 1, late: 1, crashes: 1, ..NONE };
    let three = |demand: fn() -> Demand| one_each(&[demand(), demand(), demand()]);
    holds("long: mutex", world(three(|| write("a")), all), &[is::SPENT, is::LOST, is::TAKEN_OVER]);
    let readers = one_each(&[read("a"), read("a"), write("a")]);
    holds("long: readers and a writer", world(readers, all), &[is::SHARED]);
}

#[test]
#[ignore = "minutes: make model-long"]
fn larger_worlds_of_locks_that_lose_all() {
    let flush = Faults { flushes: 1, late: 1, ..NONE };
    let three = one_each(&[write("a"), write("a"), write("a")]);
    holds("long: mutex, a flush", world(three, flush), &[is::RESTORED, is::LOST]);
    let readers = one_each(&[read("a"), read("a"), write("a")]);
    holds("long: readers, a flush", World { horizon: 3, ..world(readers, flush) }, &[is::RESTORED]);
}
