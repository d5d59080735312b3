//! A store that is away from those who hold a lock or wait for it, and comes back.

use std::time::{Duration, Instant};

use cronward::lock::{Locks, Standing};
use cronward::{StoreOptions, open_locks};

use crate::inconclusive::found;
use crate::locker::{Locker, began, ends, queued};
use crate::place::Place;
use crate::shared_store::SharedStore;
use crate::{stall, wait};

use super::{LASTING, LONG, TTL, order};

/// The token of the first in the queue of `x`, and how many seconds its entry lasts.
fn first(place: &Place, store: &str) -> (String, f64) {
    let lock = place.json(&["locks", "x"], store);
    let entry = &lock["queue"][0];
    (entry["token"].as_str().unwrap_or_default().to_owned(), entry["remaining_s"].as_f64().unwrap_or_default())
}

/// Waits for a renewal, and answers whose it is.
fn renewed(place: &Place, store: &str) -> String {
    let mut before = first(place, store).1;
    wait::until("a renewal", || {
        let (token, remaining) = first(place, store);
        let is_longer = remaining > before;
        before = remaining;
        is_longer.then_some(token)
    })
}

pub(super) fn who_holds_while_the_store_is_away_for_less_than_the_ttl_holds_on(place: &Place, store: &SharedStore) {
    let mut way = store.way();
    // With `kill` its command would be stopped from half of the TTL on, as nobody can know that the store comes back.
    let (url, words) = (way.url().to_owned(), ["x", "--ttl", "6s", "--on-lost", "continue"]);
    let mut holder = Locker::of(place, &url, &words).holds("holder");
    let token = renewed(place, store.url());
    way.cut();
    // The next renewal comes to nothing.
    wait::let_pass(Duration::from_millis(2_600));
    assert!(first(place, store.url()).1 < 3.5);
    way.mend();
    assert_eq!(renewed(place, store.url()), token);
    ends(place, "holder", &mut holder);
    assert_eq!(order(place), ["holder"]);
}

pub(super) fn who_holds_while_the_store_is_away_for_longer_is_in_doubt_and_told(_: &Place, store: &SharedStore) {
    let mut way = store.way();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // No call fails because the machine is slow.
    let options = StoreOptions::default().with_op_timeout(Duration::from_secs(5));
    let locks = async |url: &str, node: &str| {
        let store = open_locks(url, options.clone()).await.unwrap();
        Locks::builder(store, node).ttl(TTL).store_wait(wait::LIMIT).build().unwrap().mutex("x").unwrap()
    };
    let (mutex, others) = runtime.block_on(async { (locks(way.url(), "a").await, locks(store.url(), "b").await) });
    let held = runtime.block_on(mutex.lock()).unwrap();
    way.cut();
    let lost = runtime.block_on(async { tokio::time::timeout(wait::LIMIT, held.lost()).await.expect("it is told") });
    assert_eq!(lost, Standing::InDoubt);
    // Nobody came: it is held after all.
    way.mend();
    wait::until_true("it holds again", || held.standing() == Standing::Held);
    if store.is_a_file() {
        return;
    }
    way.cut();
    let other = runtime.block_on(async { tokio::time::timeout(wait::LIMIT, others.lock()).await.expect("it lapses") });
    let other = other.unwrap();
    if held.standing() == Standing::Held {
        found("both believe that they hold".to_owned());
    }
    assert!(other.fence() > held.fence());
    way.mend();
    wait::until_true("its loss is told", || held.standing() == Standing::Lost);
    assert_eq!(held.taken_by().unwrap().node.as_str(), "b");
}

pub(super) fn who_may_go_on_while_the_store_is_away_is_told_of_the_overlap(place: &Place, store: &SharedStore) {
    let mut way = store.way();
    let url = way.url().to_owned();
    let mut holder = Locker::of(place, &url, &LASTING).holds("holder");
    let _next = Locker::of(place, store.url(), &LONG).queues_as(2, "next");
    way.cut();
    assert_eq!(began(place, "next").beside, ["holder"], "it goes on");
    way.mend();
    place.write("holder.end", "");
    let status = holder.exits();
    let told = holder.text();
    assert!(status.success(), "{status}: {told}");
    let line = "x: the lock was lost or its renewal was overdue; since then it was held by next (sh); another holder may have overlapped\n";
    assert!(told.contains(line), "{told}");
}

pub(super) fn a_cut_off_holders_group_is_dead_before_another_holds(place: &Place, store: &SharedStore) {
    let mut way = store.way();
    let url = way.url().to_owned();
    // TERM comes more than two seconds before it lapses: enough for any machine that trials are judged on.
    let mut holder = Locker::of(place, &url, &["x", "--ttl", "5s"]).with_child().holds("holder");
    let mut next = Locker::of(place, store.url(), &LONG).queues_as(2, "next");
    way.cut();
    assert_eq!(began(place, "next").beside, [""; 0], "its group was alive when the next one began");
    way.mend();
    assert_eq!(holder.exits().code(), Some(76), "{}", holder.text());
    assert!(holder.text().contains("; the command was killed\n"), "{}", holder.text());
    ends(place, "next", &mut next);
}

pub(super) fn who_gives_up_while_the_store_stands_still_stands_in_no_queue_afterwards(
    place: &Place,
    store: &SharedStore,
) {
    let url = store.url();
    let mut holder = Locker::of(place, url, &LONG).holds("holder");
    let asking = Locker::of(place, url, &["x", "--ttl", "3s", "--wait", "8s"]);
    place.jobs("[store]\nop_timeout = \"2s\"\n");
    let mut asking = asking.queues_as(2, "asking");
    let still = store.stands_still();
    let status = asking.exits();
    assert!(!status.success(), "{status}: {}", asking.text());
    drop(still);
    let begun = Instant::now();
    place.jobs("[store]\nop_timeout = \"5s\"\n");
    wait::until_true("the holder stands alone", || queued(place, url) == 1);
    let (after, limit) = (begun.elapsed(), TTL + Duration::from_secs(1) + stall::allowance(begun));
    assert!(after <= limit, "gone {after:?} after the store went on, allowed {limit:?}");
    ends(place, "holder", &mut holder);
    assert_eq!(order(place), ["holder"]);
}
