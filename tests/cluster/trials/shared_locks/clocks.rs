//! Nodes whose clocks are wrong.

use std::time::{Duration, Instant};

use crate::locker::{Locker, all_that_began, began, ended_ms, ends, queued};
use crate::place::Place;
use crate::shared_store::SharedStore;
use crate::wait;

use super::{LASTING, SHORT, TTL, in_time, order};

/// The store's clock alone counts.
pub(super) fn clocks_that_are_off_by_an_hour_change_neither_order_nor_lapses(place: &Place, store: &SharedStore) {
    let url = store.url();
    let begun = Instant::now();
    let of = |words: &[&'static str]| Locker::of(place, url, words);
    let mut holder = of(&LASTING).clock("-1h").holds("holder");
    let mut ahead = of(&SHORT).clock("+1h").queues_as(2, "ahead");
    let mut dies = of(&SHORT).clock("-1h").queues_as(3, "dies");
    let mut behind = of(&SHORT).clock("-1h").queues_as(4, "behind");
    let mut right = of(&SHORT).queues_as(5, "right");
    // Nobody lapses who is renewed, and nobody is overtaken.
    wait::let_pass(TTL + Duration::from_millis(500));
    assert_eq!((order(place), queued(place, url)), (vec!["holder".to_owned()], 5));
    ends(place, "holder", &mut holder);
    began(place, "ahead");
    dies.kill();
    // Who dies lapses, waiting or holding, an hour ahead or behind.
    ahead.kill();
    let killed_ms = wait::now_ms();
    in_time(killed_ms, &began(place, "behind"), TTL, begun);
    ends(place, "behind", &mut behind);
    in_time(ended_ms(place, "behind"), &began(place, "right"), Duration::ZERO, begun);
    ends(place, "right", &mut right);
    assert_eq!(order(place), ["holder", "ahead", "behind", "right"]);
    // A command whose keeper's clock is wrong dies with its lease all the same.
    assert!(all_that_began(place).iter().all(|began| began.beside.is_empty()), "{:?}", all_that_began(place));
}
