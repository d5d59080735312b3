//! Entries that an operator takes out, and a store that loses all of them.

use std::time::{Duration, Instant};

use crate::locker::{Locker, all_that_began, began, ends, queued};
use crate::place::Place;
use crate::shared_store::SharedStore;
use crate::{stall, wait};

use super::{LASTING, LONG, SHORT, TTL, each_alone, in_time, lives, order};

/// Its next renewal is told, a third of its TTL later. Its keeper would not stop the command before half of the TTL is over.
pub(super) fn an_entry_that_is_evicted_is_told_and_the_commands_group_is_killed(place: &Place, store: &SharedStore) {
    let url = store.url();
    let mut holder = Locker::of(place, url, &["x", "--ttl", "18s"]).with_child().holds("holder");
    let begun = Instant::now();
    let (flags, store) = (["--yes", "--reason", "it hangs", "--config", "jobs.toml"], ["--store", url]);
    let unlocked = place.cronward(&[&["unlock", "--lock", "x"], &flags[..], &store].concat());
    assert_eq!(unlocked.code, 0, "{unlocked:?}");
    let status = holder.exits();
    let (after, limit) = (begun.elapsed(), Duration::from_secs(7) + stall::allowance(begun));
    assert_eq!(status.code(), Some(76), "{}", holder.text());
    assert!(holder.text().contains("; the command was killed\n"), "{}", holder.text());
    assert!(after <= limit, "killed {after:?} after the eviction, allowed {limit:?}");
    let mut next = Locker::of(place, url, &LONG).holds("next");
    ends(place, "next", &mut next);
    each_alone(place);
}

/// Its holder may last for ten minutes and is dead: nobody releases, nothing lapses, and no hint comes.
pub(super) fn without_any_hint_a_waiter_looks_at_its_beat(place: &Place, store: &SharedStore) {
    let (url, begun) = (store.url(), Instant::now());
    let mut holder = Locker::of(place, url, &LONG).holds("holder");
    let mut waiter = Locker::of(place, url, &SHORT).queues_as(2, "waiter");
    holder.kill();
    wait::until_true("its command is dead", || !lives(place, "holder"));
    store.forgets_locks();
    in_time(wait::now_ms(), &began(place, "waiter"), TTL / 3, begun);
    ends(place, "waiter", &mut waiter);
}

pub(super) fn readers_whose_store_forgot_them_hold_on(place: &Place, store: &SharedStore) {
    let (url, names) = (store.url(), ["a", "b", "c", "d"]);
    let reads = ["x:shared", "--ttl", "3s", "--on-lost", "continue"];
    let mut readers = names.map(|name| Locker::of(place, url, &reads).holds(name));
    store.forgets_locks();
    wait::until_true("all of them are back", || queued(place, url) == readers.len());
    for (name, reader) in names.iter().zip(&mut readers) {
        ends(place, name, reader);
    }
    assert_eq!(order(place), names);
}

/// Whoever asks first holds. Where that is not the one that held, that one is told.
pub(super) fn a_queue_that_was_lost_is_there_again(place: &Place, store: &SharedStore) {
    let url = store.url();
    let mut holder = Locker::of(place, url, &LASTING).holds("holder");
    let mut waiter = Locker::of(place, url, &["x", "--ttl", "9s"]).queues_as(2, "waiter");
    store.forgets_locks();
    let begins = || all_that_began(place).iter().any(|began| began.name == "waiter");
    wait::until_true("both are back", || queued(place, url) == 2 || begins());
    place.write("holder.end", "");
    let status = holder.exits();
    let (beside, told) = (began(place, "waiter").beside, holder.text());
    assert!(status.success(), "{status}: {told}");
    let is_told = told.contains("; another holder may have overlapped");
    assert_eq!(is_told, !beside.is_empty(), "beside {beside:?}: {told}");
    ends(place, "waiter", &mut waiter);
}
