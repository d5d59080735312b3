//! Processes that die or stand still, holding a lock or waiting for it.

use std::time::{Duration, Instant};

use crate::daemon::Daemon;
use crate::inconclusive::found;
use crate::locker::{Locker, all_that_began, began, ended_ms, ends, queued};
use crate::place::Place;
use crate::shared_store::SharedStore;
use crate::{stall, wait};

use super::{LONG, SHORT, TTL, each_alone, in_time, order};

pub(super) fn the_second_waiter_follows_the_first_that_was_killed_within_its_ttl(place: &Place, store: &SharedStore) {
    let store = store.url();
    let begun = Instant::now();
    let mut holder = Locker::of(place, store, &LONG).holds("holder");
    let mut first = Locker::of(place, store, &SHORT).queues_as(2, "first");
    let mut second = Locker::of(place, store, &LONG).queues_as(3, "second");
    first.kill();
    let killed_ms = wait::now_ms();
    ends(place, "holder", &mut holder);
    in_time(killed_ms, &began(place, "second"), TTL, begun);
    ends(place, "second", &mut second);
    each_alone(place);
    assert_eq!(order(place), ["holder", "second"]);
}

pub(super) fn a_killed_reader_is_not_kept_by_one_that_lives(place: &Place, store: &SharedStore) {
    let store = store.url();
    let (reads, begun) = (["x:shared", "--ttl", "3s"], Instant::now());
    // The one that lives is renewed meanwhile.
    let lasting = [&reads[..], &["--on-lost", "continue"]].concat();
    let mut live = Locker::of(place, store, &lasting).holds("live");
    let mut dead = Locker::of(place, store, &reads).holds("dead");
    let mut writer = Locker::of(place, store, &LONG).queues_as(3, "writer");
    dead.kill();
    let killed = Instant::now();
    wait::until_true("the dead one is gone", || queued(place, store) == 2);
    let (after, limit) = (killed.elapsed(), TTL + Duration::from_secs(1) + stall::allowance(begun));
    assert!(after <= limit, "gone {after:?} after the kill, allowed {limit:?}");
    assert_eq!(order(place), ["live", "dead"], "the other one reads on");
    ends(place, "live", &mut live);
    in_time(ended_ms(place, "live"), &began(place, "writer"), Duration::ZERO, begun);
    ends(place, "writer", &mut writer);
    let beside = began(place, "writer").beside;
    if !beside.is_empty() {
        found(format!("it writes beside {beside:?}"));
    }
}

pub(super) fn permits_come_back_from_processes_that_died_and_are_never_more(place: &Place, store: &SharedStore) {
    let store = store.url();
    const TTL: Duration = Duration::from_secs(4);
    // No late renewal stops their commands: a keeper does it at once where its `cronward lock` is dead.
    let permit = ["x:1/4", "--ttl", "4s", "--on-lost", "continue"];
    let begun = Instant::now();
    let mut dying = ["a", "b", "c", "d"].map(|name| Locker::of(place, store, &permit).holds(name));
    let waiting = ["e", "f", "g", "h"];
    let mut waiting = std::array::from_fn::<_, 4, _>(|at| {
        Locker::of(place, store, &["x:1/4", "--ttl", "10m"]).queues_as(5 + at, waiting[at])
    });
    dying.iter_mut().for_each(Daemon::kill);
    let killed_ms = wait::now_ms();
    for next in &waiting {
        in_time(killed_ms, &began(place, &next.name), TTL, begun);
    }
    for began in all_that_began(place) {
        if began.beside.len() >= 4 {
            found(format!("more than four hold: {began:?}"));
        }
        let beside_the_dead = waiting.iter().any(|next| next.name == began.name)
            && dying.iter().any(|dead| began.beside.contains(&dead.name));
        assert!(!beside_the_dead, "{began:?}");
    }
    for next in &mut waiting {
        let name = next.name.clone();
        ends(place, &name, next);
    }
}

pub(super) fn a_killed_holder_is_followed_within_its_ttl(place: &Place, store: &SharedStore) {
    let (store, begun) = (store.url(), Instant::now());
    let mut holder = Locker::of(place, store, &["x", "--ttl", "5s"]).with_child().holds("holder");
    let mut next = Locker::of(place, store, &LONG).queues_as(2, "next");
    holder.kill();
    let killed_ms = wait::now_ms();
    in_time(killed_ms, &began(place, "next"), Duration::from_secs(5), begun);
    each_alone(place);
    ends(place, "next", &mut next);
}

pub(super) fn a_stopped_holder_has_an_older_number_no_command_and_is_told(place: &Place, store: &SharedStore) {
    let store = store.url();
    let mut holder = Locker::of(place, store, &["x", "--ttl", "5s"]).with_child().holds("holder");
    let mut next = Locker::of(place, store, &LONG).queues_as(2, "next");
    holder.freeze();
    let (first, second) = (began(place, "holder"), began(place, "next"));
    each_alone(place);
    // What the resource refuses the holder by, were its command alive.
    assert!(second.fence > first.fence, "{first:?} {second:?}");
    holder.thaw();
    assert_eq!(holder.exits().code(), Some(76), "{}", holder.text());
    assert!(holder.text().contains("x: the lock was lost or its renewal was overdue"), "{}", holder.text());
    ends(place, "next", &mut next);
}
