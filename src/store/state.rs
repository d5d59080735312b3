//! The one form of a stored slot: what every [rule](super::rules) works on, what the store in memory keeps, and what stores that
//! cannot decide by themselves read and write. Plain data: knows no store, does no I/O, reads no clock.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::clock::{between, later};
use crate::slot::{
    Attempt, Audit, DoneMark, Holder, Lease, Mark, Outcome, RunRecord, Slot, SlotRecord, Token, Verdict, VerdictRecord,
};
use crate::store::ClaimRequest;

/// What was put at a slot's key. It counts only while `until` lies ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredMark {
    pub(super) kind: MarkKind,
    pub(super) by: Holder,
    /// When it was granted, when the wait began, when it was done.
    pub(super) since: DateTime<Utc>,
    pub(super) until: DateTime<Utc>,
}

/// What can stand at a slot's key, with the token of the claim that it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkKind {
    Lease(Token),
    Wait(Token),
    /// Without a token when an operator said so.
    Done(Option<Token>),
}

/// All that is kept of a slot. Its JSON is without the mark and the counter, which stores keep where a person finds them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SlotState {
    #[serde(skip)]
    pub(super) mark: Option<StoredMark>,
    /// The attempt counter, as stored. Rises with each grant; never falls (I2).
    #[serde(skip)]
    pub(super) counter: Attempt,
    /// The last change, or the slot's end where that is later: the retention begins here. None where nothing was recorded.
    #[serde(rename = "touched_ms", with = "chrono::serde::ts_milliseconds_option")]
    pub(super) touched: Option<DateTime<Utc>>,
    /// Attempts that do not count: given back, or forgiven by a reset.
    #[serde(default)]
    pub(super) forgiven: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) verdict: Option<VerdictRecord>,
    /// By attempt, without their outputs, which may be long; of an output that was not kept, how long it was. A number that was granted twice, before and after the store lost
    /// its data, has a record for each token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) runs: Vec<RunRecord>,
    /// The operators' verbs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) audit: Vec<Audit>,
}

/// Time, for a slot that is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// The store's clock.
    pub(super) now: DateTime<Utc>,
    pub(super) retention: Duration,
}

/// What a step asks to see.
#[derive(Clone, Debug)]
pub(super) struct SlotQuery {
    pub(super) slot: Slot,
    /// Whose request it is; none for those who hold no lease of it.
    #[cfg_attr(not(feature = "zookeeper"), allow(dead_code, reason = "a session beside the lease is ZooKeeper's"))]
    pub(super) token: Option<Token>,
    /// Whether the leases of the job's other slots count.
    pub(super) exclusive: bool,
    /// Whether the job's pause counts.
    pub(super) pause: bool,
    /// Whether what the job has come to lately may change.
    pub(super) latest: bool,
}

impl StoredMark {
    pub(super) fn remaining(&self, now: DateTime<Utc>) -> Duration {
        between(now, self.until)
    }

    pub(super) const fn is_lease(&self) -> bool {
        matches!(self.kind, MarkKind::Lease(_))
    }

    pub(super) const fn is_done(&self) -> bool {
        matches!(self.kind, MarkKind::Done(_))
    }

    pub(super) fn done(&self) -> DoneMark {
        let token = match self.kind {
            MarkKind::Lease(token) | MarkKind::Wait(token) => Some(token),
            MarkKind::Done(token) => token,
        };
        DoneMark { by: self.by.clone(), at: self.since, token }
    }

    /// As it is shown.
    fn shown(&self, now: DateTime<Utc>) -> Mark {
        let by = self.by.clone();
        match self.kind {
            MarkKind::Lease(token) => Mark::Leased { by, token, remaining: self.remaining(now) },
            MarkKind::Wait(_) => Mark::Backoff { by, remaining: self.remaining(now) },
            MarkKind::Done(_) => Mark::Done(self.done()),
        }
    }
}

impl SlotQuery {
    pub(super) fn slot(slot: &Slot) -> Self {
        Self { slot: slot.clone(), token: None, exclusive: false, pause: false, latest: false }
    }

    pub(super) fn claim(request: &ClaimRequest) -> Self {
        Self {
            slot: request.slot.clone(),
            token: Some(request.token),
            exclusive: request.exclusive,
            pause: true,
            latest: false,
        }
    }

    pub(super) fn lease(lease: &Lease) -> Self {
        Self { token: Some(lease.token), ..Self::slot(&lease.slot) }
    }

    /// For a lease whose run has ended.
    pub(super) fn end(lease: &Lease) -> Self {
        Self { latest: true, ..Self::lease(lease) }
    }

    pub(super) fn close(slot: &Slot) -> Self {
        Self { pause: true, latest: true, ..Self::slot(slot) }
    }

    /// For an operator's verb by which the slot ends, or is opened.
    pub(super) fn operate(slot: &Slot) -> Self {
        Self { latest: true, ..Self::slot(slot) }
    }
}

impl SlotState {
    /// What of it counts. What was kept for its time is gone, but for the mark, which has its own.
    pub(super) fn current(&self, at: Moment) -> Self {
        if self.is_outdated(at) { Self { mark: self.mark.clone(), ..Self::default() } } else { self.clone() }
    }

    /// Whether its records are older than the retention.
    pub(super) fn is_outdated(&self, at: Moment) -> bool {
        self.touched.is_some_and(|touched| later(touched, at.retention) <= at.now)
    }

    /// What stands at the key. What has run out is gone.
    pub(super) fn mark(&self, now: DateTime<Utc>) -> Option<&StoredMark> {
        self.mark.as_ref().filter(|mark| mark.until > now)
    }

    /// The largest attempt that is known of: a counter that was lost while the runs were kept does not start again.
    pub(super) fn known(&self) -> Attempt {
        self.runs.iter().map(|run| run.attempt).fold(self.counter, Attempt::max)
    }

    /// Attempts that count against `max_attempts`.
    pub(super) fn used(&self) -> u32 {
        self.known().saturating_sub(self.forgiven)
    }

    pub(super) fn run(&self, attempt: Attempt, token: Token) -> Option<&RunRecord> {
        self.runs.iter().find(|run| run.attempt == attempt && run.token == token)
    }

    /// Whether this lease's run has a recorded end.
    pub(super) fn has_ended(&self, lease: &Lease) -> bool {
        self.run(lease.attempt, lease.token).is_some_and(|run| run.outcome.is_some())
    }

    /// Whether a run under this token has a recorded end.
    pub(super) fn is_spent(&self, token: Token) -> bool {
        self.runs.iter().any(|run| run.token == token && run.outcome.is_some())
    }

    /// The newest attempt, if it counts, is this token's, and its run has no recorded end: its claim's answer may have been
    /// lost, and nobody has followed it. A reset forgives it, and it is then no longer that claim's to go on with.
    pub(super) fn unanswered(&self, token: Token) -> Option<&RunRecord> {
        let run = self.run(self.known(), token)?;
        let alone = self.follower(run.attempt, token, run.claimed_at).is_none();
        (alone && !self.is_spent(token) && self.used() > 0).then_some(run)
    }

    /// Who was granted the slot after this lease or in its place, also if that is over: two runs may have overlapped.
    pub(super) fn overtaker(&self, lease: &Lease) -> Option<Holder> {
        let newest = self.follower(lease.attempt, lease.token, lease.claimed_at)?;
        Some(Holder { node: newest.node.clone(), attempt: newest.attempt })
    }

    /// Who followed a claim: by its number; or by when it was granted, where numbers began anew because the store had lost its
    /// data. A run without a guard is in nobody's place, and nobody is in its.
    fn follower(&self, attempt: Attempt, token: Token, claimed_at: DateTime<Utc>) -> Option<&RunRecord> {
        let others = || self.runs.iter().filter(|run| run.token != token && run.attempt > 0 && attempt > 0);
        let above = others().filter(|run| run.attempt >= attempt).max_by_key(|run| run.attempt);
        let later =
            || others().filter(|run| run.claimed_at > claimed_at).max_by_key(|run| (run.claimed_at, run.attempt));
        above.or_else(later)
    }

    /// Writes a run's record. An end is never overwritten by the lack of one, nor success by anything else (I7).
    pub(super) fn write_run(&mut self, run: RunRecord) {
        let same = |old: &RunRecord| old.attempt == run.attempt && old.token == run.token;
        match self.runs.iter_mut().find(|old| same(old)) {
            // A record that is kept as it is keeps its output.
            Some(old) if may_replace(old.outcome, run.outcome) && !is_repeated_without_output(old, &run) => *old = run,
            Some(_) => {}
            None => {
                self.runs.push(run);
                self.sort_runs();
            }
        }
    }

    /// In the order in which they are shown.
    fn sort_runs(&mut self) {
        self.runs.sort_by_key(|run| (run.attempt, run.claimed_at, run.token));
    }

    /// Records the verdict `done` over whatever was recorded; the first to record `done` stays.
    pub(super) fn record_done(&mut self, by: &Holder, at: DateTime<Utc>) {
        if !self.verdict.as_ref().is_some_and(|record| record.verdict == Verdict::Done) {
            let Holder { node, attempt } = by.clone();
            self.verdict = Some(VerdictRecord { verdict: Verdict::Done, by: node, at, attempt });
        }
    }

    /// What is known of the slot but for the outputs.
    pub(super) fn record(&self, slot: &Slot, at: Moment) -> SlotRecord {
        let state = self.current(at);
        let mark = state.mark(at.now).map_or(Mark::Free, |mark| mark.shown(at.now));
        let attempts = state.known();
        let Self { forgiven, verdict, runs, audit, .. } = state;
        SlotRecord { slot: slot.clone(), attempts, forgiven, mark, verdict, runs, audit }
    }

    /// Whether something else is recorded than in the other, whatever stands at the key.
    pub(super) fn differs(&self, other: &Self) -> bool {
        let kept = |state: &Self| (state.counter, state.forgiven);
        kept(self) != kept(other)
            || self.verdict != other.verdict
            || self.runs != other.runs
            || self.audit.len() != other.audit.len()
    }
}

/// Whether this end is recorded already, and is sent again without its output because the answer was lost.
fn is_repeated_without_output(old: &RunRecord, new: &RunRecord) -> bool {
    old.outcome.is_some() && old.outcome == new.outcome && new.lost_output().is_some()
}

fn may_replace(old: Option<Outcome>, new: Option<Outcome>) -> bool {
    match (old, new) {
        (Some(Outcome::Success), new) => new == Some(Outcome::Success),
        (Some(_), None) => false,
        (Some(_) | None, _) => true,
    }
}
