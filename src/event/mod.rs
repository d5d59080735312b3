//! What happens on a node, in the past tense: one word for the machines that tell it, for whoever hears it, and for the journal, of
//! which it is a line (`docs/journal.md` is that contract). Nothing here asks for anything.
//!
//! Fields are added, never renamed and never given another meaning: what one has no place for in a journal is skipped there.

mod about;
pub(crate) mod json;
mod locks;
mod notice;
mod plan;

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::error::{ErrorKind, Op};
use crate::event::json::{instant, is_false, maybe_seconds, seconds};
use crate::job::{JobName, NodeName, OnLost};
use crate::resource::Demand;
use crate::slot::{Attempt, Fence, Outcome, Overlap, Trigger, Verdict};

#[doc(inline)]
pub use crate::reply::{ClaimAnswer, RenewalAnswer};
pub(crate) use locks::lock_names;
pub use locks::{LeaveAnswer, LockGrant, LockLeave, LockLoss, LockWait};
pub use notice::NoticeKind;
pub use plan::Plan;

/// Something that happened to the node, or at a slot ([`Event::is_of_slot`]).
///
/// Events are added, and fields to them: whoever matches has an arm for others, and `..` where it names fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The node plans its jobs from now on.
    Started {
        /// Jobs that it plans.
        jobs: usize,
    },
    /// One of the jobs of the plan that is in force from now on. Told for each, after [`Event::Started`] and
    /// [`Event::Reloaded`].
    Planned(Plan),
    /// Another plan is in force.
    Reloaded {
        /// Jobs that it plans.
        jobs: usize,
        /// Jobs that are new, changed or gone. In a journal every job of the plan follows.
        #[serde(skip)]
        changed: Vec<JobName>,
    },
    /// A plan was refused; the old one stays in force.
    ReloadRefused {
        /// Why.
        error: String,
    },
    /// The store answers, for the first time or again.
    StoreReached {
        /// For how long it had not, as far as this node knows.
        #[serde(rename = "away_s", with = "maybe_seconds", default, skip_serializing_if = "Option::is_none")]
        away: Option<Duration>,
    },
    /// The store does not answer, or refuses. Told once for each outage.
    StoreLost {
        /// The error, in one line.
        error: String,
        /// What kind of error; unknown in a journal of an earlier version.
        #[serde(default)]
        kind: ErrorKind,
    },
    /// The registry of jobs does not take the plan: listings without the file will not know all jobs.
    RegistrationRefused {
        /// Why.
        error: String,
    },
    /// The node's clock and the store's differ by more than a run's start can bear.
    ClockOff {
        /// The node's minus the store's, in milliseconds.
        offset_ms: i64,
    },
    /// Another node that is alive goes by the name of this one. Told once for each.
    Namesake {
        /// Its instance.
        other: String,
        /// When it started, by its own clock.
        #[serde(with = "instant")]
        started: DateTime<Utc>,
    },
    /// No node was alive for a while; the slots that ended meanwhile get their verdict now.
    ClusterWasDown {
        /// For how long.
        #[serde(rename = "gap_s", with = "seconds")]
        gap: Duration,
    },
    /// The registry has no trace of this node, though the store had acknowledged its heartbeats: the store has lost its data. Told once
    /// for each loss, by each node that finds it.
    StoreForgot {
        /// When the store last acknowledged a heartbeat, by the node's clock.
        #[serde(with = "instant")]
        acknowledged: DateTime<Utc>,
    },
    /// The store had no record that this node has done a slot: it was told again. It had forgotten it, or had not heard yet.
    DoneAgain {
        /// The slot: `job@slot`.
        of: String,
    },
    /// The node cannot start all that is due: it has no room, or is too slow. Told at most once a minute.
    Overloaded {
        /// Slots that ended before there was room for them, since the last such line.
        shed: u64,
        /// Of so many jobs.
        jobs: usize,
        /// Jobs of which a slot waits now.
        waiting: usize,
        /// Slots that are claimed, running or being recorded.
        running: usize,
        /// As many as `max_running` allows.
        full: bool,
    },
    /// Commands cannot be started on this node for want of a resource: it claims nothing for some seconds. Told once, until
    /// [`Event::StartsResumed`].
    StartsPaused {
        /// The error of the first start that failed, in one line.
        error: String,
    },
    /// A command was started again after [`Event::StartsPaused`].
    StartsResumed,
    /// Slots that could not be asked for, because the store failed. Told at most once a minute.
    StoreFailing {
        /// How many, since the last such line.
        slots: u64,
        /// The last error, in one line.
        error: String,
    },
    /// That is over.
    StoreFailingOver {
        /// How many they were in all.
        slots: u64,
    },
    /// Slots of a job that ended without a success, with attempts left: never started, or cut off. This node recorded their verdicts one after the other.
    SlotsMissed {
        /// The job; in a journal the line names it.
        #[serde(skip)]
        job: Option<JobName>,
        /// How many.
        slots: u64,
        /// The key of the first.
        first: String,
        /// That of the last; not each one between them was missed.
        last: String,
    },
    /// Time jumped, or the node stood still: current slots are looked at again.
    Gap {
        /// How many.
        slots: usize,
    },
    /// The node begins nothing more and waits for its runs.
    Draining {
        /// Runs that it waits for.
        running: usize,
        /// At the most this long.
        #[serde(rename = "drain_s", with = "seconds")]
        drain: Duration,
    },
    /// The node is about to leave.
    Stopped,
    /// A fault in cronward itself; the slot is looked at again at its next tick.
    Fault {
        /// What happened.
        error: String,
    },
    /// Lines of this journal that were never written.
    Dropped {
        /// How many.
        lines: u64,
    },
    /// The store answered a claim.
    ClaimAnswered {
        /// Which answer.
        answer: ClaimAnswer,
        /// Who holds or did it, where that is the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<NodeName>,
        /// The holder is another program's lock (`exec --key`): what it does in the slot, nobody knows.
        #[serde(skip)]
        foreign: bool,
        /// How long until the slot begins, by the store's clock, where it has not.
        #[serde(skip)]
        begins_in: Option<Duration>,
    },
    /// The store granted a claim; the run that follows, if one does, is told by [`Event::RunStarted`]. Told again when
    /// the same claim had to be asked for again.
    Granted {
        /// Which attempt.
        attempt: Attempt,
        /// Attempts that count against the maximum, this one included, as the store counts them.
        used: u32,
        /// The maximum.
        max_attempts: u32,
        /// By the store's clock.
        #[serde(with = "instant")]
        granted_at: DateTime<Utc>,
        /// [`crate::slot::Token::first_digits`].
        token: String,
        /// Why it was claimed.
        trigger: Trigger,
        /// TTL of the lease.
        #[serde(rename = "lease_ttl_s", with = "seconds")]
        lease_ttl: Duration,
        /// The wait that everybody keeps should this attempt fail.
        #[serde(rename = "retry_delay_s", with = "seconds")]
        retry_delay: Duration,
        /// How often a waiting node looks again; none where the store wakes it.
        #[serde(rename = "poll_s", with = "maybe_seconds", default, skip_serializing_if = "Option::is_none")]
        poll: Option<Duration>,
        /// What becomes of the run when the lease is lost.
        on_lost: OnLost,
        /// A person asked for the slot by name although it was over.
        #[serde(default, skip_serializing_if = "is_false")]
        past: bool,
    },
    /// The command is being started.
    RunStarted {
        /// Which attempt; 0 without a guard.
        attempt: Attempt,
        /// Its fence.
        fence: Fence,
        /// Why.
        trigger: Trigger,
        /// False: the store was away and the policy says to run all the same.
        guarded: bool,
        /// So long after its tick, or after it was asked for.
        #[serde(skip)]
        late: Duration,
    },
    /// An attempt is being given back: its command was never started.
    Unstarted {
        /// Which attempt.
        attempt: Attempt,
        /// Why.
        why: String,
        /// The locks that it waited for; none where the grant came too late.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        locks: Vec<Demand>,
    },
    /// The command ended.
    RunEnded {
        /// Which attempt.
        attempt: Attempt,
        /// How.
        outcome: Outcome,
        /// Its exit code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// The signal that ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
        /// How long it ran; at the most, where `ended_between` is there.
        #[serde(rename = "duration_s", with = "seconds")]
        duration: Duration,
        /// Its node stood still while it ended: the earliest and the latest instant of its end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended_between: Option<(DateTime<Utc>, DateTime<Utc>)>,
        /// What went wrong, in words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// The command did not end within its timeout and is being stopped.
    RunTimedOut {
        /// Which attempt.
        attempt: Attempt,
    },
    /// The store answered a renewal.
    RenewalAnswered {
        /// Which answer.
        answer: RenewalAnswer,
    },
    /// The trust in the lease ended without an answer: another node may start.
    LeaseInDoubt {
        /// Which attempt.
        attempt: Attempt,
        /// Whether the command is being killed.
        killing: bool,
        /// The command had ended by then: its node learned of both at once.
        #[serde(default, skip_serializing_if = "is_false")]
        ended: bool,
    },
    /// The lease is another's, or the attempt was unlocked: two runs may overlap.
    LeaseLost {
        /// Which attempt.
        attempt: Attempt,
        /// Who holds the slot, if anybody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<NodeName>,
        /// As which attempt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to_attempt: Option<Attempt>,
        /// Whether the command is being killed.
        killing: bool,
        /// The command was not started yet: nothing overlaps.
        #[serde(default, skip_serializing_if = "is_false")]
        unstarted: bool,
    },
    /// The store had forgotten the lease and has it again.
    LeaseRestored {
        /// Which attempt.
        attempt: Attempt,
    },
    /// The settlement is recorded: the slot is done, or the attempt failed.
    Settled {
        /// Which attempt.
        attempt: Attempt,
        /// How.
        outcome: Outcome,
    },
    /// Another attempt held or did the slot meanwhile: it ran more than once.
    Overtaken {
        /// Our attempt.
        attempt: Attempt,
        /// Whose the other is.
        by: NodeName,
        /// The other.
        by_attempt: Attempt,
        /// Our command was never started: it ran no more than once.
        #[serde(default, skip_serializing_if = "is_false")]
        unstarted: bool,
        /// Whether the two ran at the same time.
        #[serde(default, skip_serializing_if = "Overlap::is_possible")]
        overlap: Overlap,
    },
    /// The last attempt failed: nobody tries this slot again.
    AttemptsUsedUp {
        /// How many were made.
        used: u32,
    },
    /// The settlement could not be recorded in time and was given up: the store does not know how the attempt ended.
    SettlementGivenUp {
        /// Which attempt.
        attempt: Attempt,
        /// How it ended.
        outcome: Outcome,
    },
    /// The start deadline after the tick has passed.
    StartDeadlinePassed,
    /// The node was overloaded: it had no room to ask for the slot until its end, or its start deadline.
    Shed,
    /// The store could not be asked. Told at the first error in a row, and again when the kind changes.
    StoreFailed {
        /// The operation.
        op: Op,
        /// The kind of error.
        kind: ErrorKind,
        /// The error, in one line.
        error: String,
    },
    /// An attempt stands in the queues of its locks. Told again when that changed, once for each `lease_ttl` at the most.
    LockWaiting(LockWait),
    /// It holds them.
    LockHeld(LockGrant),
    /// It may hold them no longer, while its command runs or is about to be started.
    LockLost(LockLoss),
    /// It has left them.
    LockLeft(LockLeave),
    /// This node recorded the slot's verdict: it is told once in the whole cluster.
    Closed {
        /// Which.
        verdict: Verdict,
    },
    /// Written by a later version.
    #[serde(other)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_of_the_node_and_name_no_slot() {
        let (first, last) = ("2026-11-21T14Z".to_owned(), "2026-11-21T14Z".to_owned());
        for event in [
            Event::Overloaded { shed: 1, jobs: 1, waiting: 1, running: 1, full: true },
            Event::StoreFailing { slots: 1, error: "no answer".to_owned() },
            Event::StoreFailingOver { slots: 1 },
            Event::SlotsMissed { job: Some("push".parse().unwrap()), slots: 1, first, last },
        ] {
            assert!(!event.is_of_slot(), "{event:?}");
        }
    }
}
