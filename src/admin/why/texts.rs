//! Which sentences say why a slot ran or did not: the fields that each language fills in, so that one that a language lacks does not
//! compile. No sentence stands here. What people, commands and nodes wrote is passed through in their own words.

use std::time::Duration;

use crate::observe::view::NoStart;
use crate::slot::{Overlap, RunRecord, SlotRecord};
use crate::store::JobOrigin;

/// What kept a node from claiming a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimObstacle {
    /// Another slot of the job still ran.
    Blocked,
    /// The job was paused.
    Paused,
    /// The start deadline had passed.
    TooLate,
    /// It had no capacity before the slot's end.
    Shed,
    /// By the store's clock the slot had not started.
    Early,
    /// By the store's clock the slot had ended.
    Closed,
}

/// The sentences of one language. Instants and durations come written already.
pub(crate) struct WhyTexts {
    /// A duration, cut to its largest sensible unit.
    pub(crate) span: fn(Duration) -> String,
    /// Between two reasons.
    pub(crate) and: &'static str,
    pub(crate) slot: SlotReasons,
    pub(crate) attempt: AttemptReasons,
    pub(crate) claim: ClaimReasons,
    pub(crate) starter: StarterReasons,
}

impl std::fmt::Debug for WhyTexts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WhyTexts")
    }
}

/// What is said of the slot.
pub(crate) struct SlotReasons {
    /// A person and the host they were on.
    pub(crate) who: fn(&str, &str) -> String,
    /// By whom, when, with which reason (perhaps none), for how long.
    pub(crate) paused: fn(&str, &str, &str, Option<&str>) -> String,
    pub(crate) done: &'static str,
    /// By whom, when, and whether an attempt had succeeded before.
    pub(crate) marked: fn(&str, &str, bool) -> String,
    /// On which node, when, by which attempt, after how many without success, how many succeeded, and whether they overlapped.
    pub(crate) ran: fn(&str, &str, u32, usize, usize, Overlap) -> String,
    /// Which node did not see the end of which attempt, and between which instants that was.
    pub(crate) stood_still: fn(&str, u32, &str, &str) -> String,
    pub(crate) running: &'static str,
    /// On which node, since when, with which attempt, for how long unless renewed.
    pub(crate) running_on: fn(&str, Option<&str>, u32, &str) -> String,
    /// The same of a slot that is over, with its end.
    pub(crate) held_past_end: fn(&str, Option<&str>, u32, &str, &str) -> String,
    /// For what, on which node, since when.
    pub(crate) waits: fn(&str, &str, Option<&str>) -> String,
    /// Which locks, how many are ahead, who holds them.
    pub(crate) waits_for: fn(&str, u32, &str) -> String,
    /// Of each request of a ring who it is, as a holder is told, and what it waits for, behind the next one.
    pub(crate) deadlock: fn(&[(String, String)]) -> String,
    /// On which node, what for, since when.
    pub(crate) holder: fn(&str, &str, Option<&str>) -> String,
    /// How the last attempt ended, after which wait the next may start, and who starts it.
    pub(crate) retry_in: fn(&str, &str, Option<&str>) -> String,
    /// How the last attempt ended, how many are used of how many, and who starts the next.
    pub(crate) retry_when: fn(&str, u32, u32, &str) -> String,
    /// How the last attempt ended, and why no node makes another one.
    pub(crate) retry_not: fn(&str, NoStart) -> String,
    /// How the last attempt ended.
    pub(crate) retry_by_nobody: fn(&str) -> String,
    /// How the last attempt ended, how many are used of how many.
    pub(crate) retry: fn(&str, u32, u32) -> String,
    /// How many attempts, how the last one ended.
    pub(crate) failed: fn(u32, &str) -> String,
    /// By whom, when, with which reason (perhaps none).
    pub(crate) skipped_by: fn(&str, &str, &str) -> String,
    pub(crate) skipped: &'static str,
    pub(crate) is_disabled: &'static str,
    pub(crate) was_disabled: &'static str,
    /// The schedule, and whether the slot is over.
    pub(crate) no_tick: fn(&str, bool) -> String,
    /// When, after which wait, and whether no node is alive.
    pub(crate) scheduled: fn(&str, &str, bool) -> String,
    /// When, after which wait.
    pub(crate) starts: fn(&str, &str) -> String,
    /// Why.
    pub(crate) not_yet: fn(&str) -> String,
    /// How long ago it was scheduled.
    pub(crate) no_node: fn(&str) -> String,
    /// The same, with nodes alive.
    pub(crate) unclaimed: fn(&str) -> String,
    /// Whether the slot is over, and since when.
    pub(crate) orphaned: fn(bool, Option<&str>) -> String,
    /// Why, and why then.
    pub(crate) did_not_run: fn(&str, Option<&str>) -> String,
    /// How many attempts failed of how many, the slot's end, how the last one ended, and what kept others.
    pub(crate) missed_after: fn(u32, u32, &str, &str, Option<&str>) -> String,
    /// How the last attempt ended, though none counts; the slot's end, and what kept others.
    pub(crate) no_success: fn(&str, &str, Option<&str>) -> String,
    pub(crate) not_owed: fn(bool, &str) -> String,
    pub(crate) never_known: &'static str,
    /// When it was registered.
    pub(crate) known_later: fn(&str) -> String,
    /// How long records are kept.
    pub(crate) forgotten: fn(&str) -> String,
    /// The last heartbeat before the slot, and when the next node started.
    pub(crate) nobody_alive: fn(&str, Option<&str>) -> String,
    /// What follows that: which node recorded the miss, and when.
    pub(crate) recorded: fn(Option<(&str, &str)>) -> String,
    /// Which node recorded the miss, and when.
    pub(crate) unheard: fn(Option<(&str, &str)>) -> String,
}

/// What is said of an attempt, as the middle of a sentence.
pub(crate) struct AttemptReasons {
    pub(crate) none: &'static str,
    /// On which node, which, claimed when, and whether its lease was in doubt.
    pub(crate) lost: fn(&str, u32, &str, bool) -> String,
    /// Which, on which node.
    pub(crate) running: fn(u32, &str) -> String,
    /// Which, on which node, when, why.
    pub(crate) given_back: fn(u32, &str, Option<&str>, Option<&str>) -> String,
    /// Which, on which node, how.
    pub(crate) ended: fn(u32, &str, &str) -> String,
    /// How an attempt ended, in a word or two.
    pub(crate) ending: fn(&SlotRecord, &RunRecord) -> String,
    /// Why the command could not be started, after how the attempt ended.
    pub(crate) cause: fn(&str) -> String,
}

/// What is said of nodes that did not claim.
pub(crate) struct ClaimReasons {
    /// Which nodes, what kept them.
    pub(crate) kept: fn(&[&str], ClaimObstacle) -> String,
    /// Of a slot that blocks another: its name, its node, when its lease expires, and in which time.
    pub(crate) blocker: fn(&str, &str, &str, &str) -> String,
    /// Which nodes, and the error of the store.
    pub(crate) store_away: fn(&[&str], &str) -> String,
    /// Which label is wanted, and which nodes lack it.
    pub(crate) only_on: fn(Option<&str>, &[&str]) -> String,
}

/// What is said of a job that no daemon plans.
pub(crate) struct StarterReasons {
    /// Who starts it, as the middle of a sentence; none for a job of a file.
    pub(crate) who: fn(JobOrigin) -> Option<&'static str>,
    /// What follows a reset.
    pub(crate) after_reset: fn(&str) -> String,
    /// What they did not do.
    pub(crate) nobody: fn(JobOrigin) -> &'static str,
    /// The command that follows the work.
    pub(crate) by_hand: fn(&str) -> String,
    /// What runs the slot once more while it lasts.
    pub(crate) again: fn(JobOrigin) -> &'static str,
}
