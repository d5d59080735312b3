//! Locks in the store, and processes that die, give up, are cut off, or have a wrong clock: each case on each store that keeps locks.

mod away;
mod clocks;
mod commands;
mod crowds;
mod deaths;
mod losses;
pub(super) mod redis;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::inconclusive::found;
use crate::locker::{Began, all_that_began};
use crate::place::Place;
use crate::shared_store::SharedStore;
use crate::stall;
use crate::trials::locks;

/// What is tried on each of these stores.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) body: fn(&Place, &SharedStore),
    pub(super) is_for: fn(&str) -> bool,
}

const EACH: fn(&str) -> bool = |_| true;
/// A file is away for all who use it at once.
const WHERE_ONE_IS_CUT_OFF: fn(&str) -> bool = |store| store != "a_file";
/// A file has the clock of whoever opens it, and etcd tells no time.
const WITH_A_CLOCK: fn(&str) -> bool = |store| !["a_file", "etcd"].contains(&store);

macro_rules! cases {
    ($($stores:ident: $($module:ident::$name:ident),+;)+) => {
        &[$($(Case { name: stringify!($name), body: $module::$name, is_for: $stores }),+),+]
    };
}

/// The longest first.
pub(super) const CASES: &[Case] = cases![
    EACH:
        losses::an_entry_that_is_evicted_is_told_and_the_commands_group_is_killed,
        locks::a_slot_that_only_waited_is_missed_uses_no_attempt_and_says_why,
        locks::a_pause_and_a_changed_job_end_the_wait_and_the_slot_comes_back,
        locks::whoever_drains_while_it_waits_leaves_the_slot_and_its_attempt_to_another,
        locks::the_place_of_a_node_that_dies_while_it_waits_is_another_nodes_in_a_second_attempt,
        locks::two_jobs_that_name_one_lock_run_one_after_the_other,
        locks::a_slot_that_waits_for_the_one_before_it_asks_for_no_lock,
        locks::a_lock_is_free_while_its_job_waits_for_a_retry,
        locks::the_timeout_counts_from_the_start_of_the_command;
    WITH_A_CLOCK:
        clocks::clocks_that_are_off_by_an_hour_change_neither_order_nor_lapses;
    WHERE_ONE_IS_CUT_OFF:
        away::who_may_go_on_while_the_store_is_away_is_told_of_the_overlap,
        away::a_cut_off_holders_group_is_dead_before_another_holds;
    EACH:
        away::who_holds_while_the_store_is_away_for_longer_is_in_doubt_and_told,
        away::who_holds_while_the_store_is_away_for_less_than_the_ttl_holds_on,
        away::who_gives_up_while_the_store_stands_still_stands_in_no_queue_afterwards,
        crowds::many_waiters_in_one_process_are_all_served,
        deaths::a_killed_holder_is_followed_within_its_ttl,
        deaths::a_stopped_holder_has_an_older_number_no_command_and_is_told,
        deaths::the_second_waiter_follows_the_first_that_was_killed_within_its_ttl,
        deaths::a_killed_reader_is_not_kept_by_one_that_lives,
        deaths::permits_come_back_from_processes_that_died_and_are_never_more,
        losses::without_any_hint_a_waiter_looks_at_its_beat,
        losses::readers_whose_store_forgot_them_hold_on,
        losses::a_queue_that_was_lost_is_there_again,
        commands::a_command_under_a_lock_ends_nests_and_is_signalled_as_documented;
];

const TTL: Duration = Duration::from_secs(3);
const SHORT: [&str; 3] = ["x", "--ttl", "3s"];
/// Whose command is stopped by no renewal that is a little late.
const LASTING: [&str; 5] = ["x", "--ttl", "3s", "--on-lost", "continue"];
/// Of those who wait, so that no lapse and no beat of their own is what is seen.
const LONG: [&str; 3] = ["x", "--ttl", "10m"];

/// From what a lock waits for to a line of the next command: a bound of the protocol, and one second.
fn in_time(from_ms: i64, began: &Began, bound: Duration, begun: Instant) {
    let after = Duration::from_millis(u64::try_from(began.at_ms - from_ms).unwrap_or(0));
    let limit = bound + Duration::from_secs(1) + stall::allowance(begun);
    println!("{} after {after:?}, allowed {limit:?}", began.name);
    assert!(after <= limit, "{} after {after:?}, allowed {limit:?}", began.name);
}

/// Nobody has run beside another, however slow the machine was.
fn each_alone(place: &Place) {
    if let Some(second) = all_that_began(place).into_iter().find(|began| !began.beside.is_empty()) {
        found(format!("an overlap: {second:?}"));
    }
}

/// The names of those who have begun, in this order.
fn order(place: &Place) -> Vec<String> {
    all_that_began(place).into_iter().map(|began| began.name).collect()
}

/// Whether any process of a command lives.
fn lives(place: &Place, name: &str) -> bool {
    let alive = place.file(&format!("{name}.alive"));
    let mut free = Command::new("flock");
    free.args(["--shared", "--nonblock"]).arg(alive).arg("true").stdin(Stdio::null());
    !free.status().unwrap().success()
}
