//! A slot as it is read in one transaction, changed by one rule (`rules`), and written back, for stores that do not decide
//! by themselves. Knows no store, does no I/O.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::{between, later};
use crate::job::NodeName;
use crate::slot::{
    Attempt, Audit, DoneMark, Holder, Lease, Mark, Outcome, RunRecord, Slot, SlotKey, Token, Verdict, VerdictRecord,
};
use crate::store::{Pause, WakeKind};

/// What was put at a slot's key. It counts only while `until` lies ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredMark {
    pub(super) standing: Standing,
    pub(super) by: Holder,
    /// When it was granted, when the wait began, when it was done.
    pub(super) since: DateTime<Utc>,
    pub(super) until: DateTime<Utc>,
}

/// What can stand at a slot's key, with the token of the claim that it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Lease(Token),
    Wait(Token),
    /// Without a token when an operator said so.
    Done(Option<Token>),
}

/// The part of a slot that is one row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// The attempt counter, as stored.
    pub(super) counter: u32,
    pub(super) forgiven: u32,
    pub(super) mark: Option<StoredMark>,
    pub(super) verdict: Option<VerdictRecord>,
}

/// What a rule needs of the slot's runs, without their records.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    /// The run that the request names: its lease's, its token's newest, or the current lease's.
    pub(super) own: Option<RunRecord>,
    /// The largest recorded attempt.
    pub(super) newest: Attempt,
    /// The largest recorded attempt under another token than the request's.
    pub(super) newest_other: Attempt,
    /// Whose that is.
    pub(super) newest_other_node: Option<NodeName>,
    /// The guarded run under another token than the request's that was granted last: after the store had lost its data its
    /// number may be a small one.
    pub(super) latest_other: Option<RunRecord>,
    /// A run under the request's token has a recorded end.
    pub(super) spent: bool,
}

/// All that a rule sees, and what it leaves to be written.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) slot: Slot,
    /// The store's clock.
    pub(super) now: DateTime<Utc>,
    pub(super) row: Row,
    pub(super) runs: Runs,
    /// The job's last pause.
    pub(super) pause: Option<Pause>,
    /// The marks of the job's other slots, the oldest slot first; of an exclusive claim alone. Leases that have ended, and marks
    /// that are none, may be among them.
    pub(super) others: Vec<(SlotKey, StoredMark)>,
    pub(super) effects: Effects,
}

/// What is written beside the row, and what is told once it is written.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub(super) run: Option<RunRecord>,
    pub(super) audit: Option<Audit>,
    pub(super) wake: Option<WakeKind>,
}

impl StoredMark {
    pub(super) fn remaining(&self, now: DateTime<Utc>) -> Duration {
        between(now, self.until)
    }

    /// Of the claim that it came from.
    #[cfg(any(feature = "etcd", feature = "mysql", feature = "postgres", feature = "sqlite", feature = "zookeeper"))]
    pub(super) const fn token(&self) -> Option<Token> {
        match self.standing {
            Standing::Lease(token) | Standing::Wait(token) => Some(token),
            Standing::Done(token) => token,
        }
    }

    pub(super) fn done(&self) -> DoneMark {
        DoneMark { by: self.by.clone(), at: self.since }
    }

    /// As it is shown.
    pub(super) fn shown(&self, now: DateTime<Utc>) -> Mark {
        let by = self.by.clone();
        match self.standing {
            Standing::Lease(token) => Mark::Leased { by, token, remaining: self.remaining(now) },
            Standing::Wait(_) => Mark::Backoff { by, remaining: self.remaining(now) },
            Standing::Done(_) => Mark::Done(self.done()),
        }
    }
}

impl Image {
    /// What stands at the key now. What has run out is gone.
    pub(super) fn mark(&self) -> Option<&StoredMark> {
        self.row.mark.as_ref().filter(|mark| mark.until > self.now)
    }

    /// The lease that somebody holds now.
    pub(super) fn held(&self) -> Option<&StoredMark> {
        self.mark().filter(|mark| matches!(mark.standing, Standing::Lease(_)))
    }

    /// Whether this lease stands now.
    pub(super) fn holds(&self, lease: &Lease) -> bool {
        self.mark().is_some_and(|mark| mark.standing == Standing::Lease(lease.token))
    }

    /// The largest attempt that is known of: a counter that was lost while the runs were kept does not start again.
    pub(super) fn known(&self) -> Attempt {
        self.row.counter.max(self.runs.newest)
    }

    /// Attempts that count against `max_attempts`.
    pub(super) fn used(&self) -> u32 {
        self.known().saturating_sub(self.row.forgiven)
    }

    /// Who was granted the slot after this claim of the request's token or in its place, also if that is over: two runs may
    /// have overlapped. By its number; or by when it was granted, where numbers began anew because the store had lost its
    /// data. A run without a guard is in nobody's place, and nobody is in its.
    pub(super) fn overtaker(&self, attempt: Attempt, claimed_at: DateTime<Utc>) -> Option<Holder> {
        if attempt == 0 {
            return None;
        }
        if self.runs.newest_other >= attempt {
            return Some(Holder { node: self.runs.newest_other_node.clone()?, attempt: self.runs.newest_other });
        }
        let latest = self.runs.latest_other.as_ref().filter(|run| run.claimed_at > claimed_at)?;
        Some(Holder { node: latest.node.clone(), attempt: latest.attempt })
    }

    /// Puts the lease at the key, for its TTL from now on.
    pub(super) fn grant(&mut self, lease: &Lease) {
        self.record(RunRecord::begun(lease));
        self.hold(lease);
    }

    /// The same, its record being there.
    pub(super) fn hold(&mut self, lease: &Lease) {
        self.row.counter = self.row.counter.max(lease.attempt);
        let until = later(self.now, lease.ttl);
        self.place(Standing::Lease(lease.token), holder(lease), lease.claimed_at, until);
    }

    pub(super) fn place(&mut self, standing: Standing, by: Holder, since: DateTime<Utc>, until: DateTime<Utc>) {
        self.row.mark = Some(StoredMark { standing, by, since, until });
    }

    /// Makes what stands at the key last for `ttl` from now on; never shortens it.
    pub(super) fn prolong(&mut self, ttl: Duration) {
        let until = later(self.now, ttl);
        if let Some(mark) = self.row.mark.as_mut() {
            mark.until = mark.until.max(until);
        }
    }

    /// Writes a run's record. An end is never overwritten by the lack of one, nor success by anything else (I7).
    pub(super) fn record(&mut self, run: RunRecord) {
        let same = |old: &RunRecord| old.attempt == run.attempt && old.token == run.token;
        let kept = self.runs.own.take().filter(|old| same(old) && !may_replace(old.outcome, run.outcome));
        self.effects.run = Some(kept.unwrap_or(run));
    }

    /// Who has done the slot: the done marker, or the recorded verdict where the marker is gone.
    pub(super) fn done_mark(&self) -> Option<DoneMark> {
        let mark = self.mark().filter(|mark| matches!(mark.standing, Standing::Done(_)));
        mark.map(StoredMark::done).or_else(|| self.row.verdict.as_ref()?.done())
    }

    /// Records the verdict `done` over whatever was recorded; the first to record `done` stays.
    pub(super) fn record_done(&mut self, by: &Holder) {
        if !self.row.verdict.as_ref().is_some_and(|record| record.verdict == Verdict::Done) {
            let Holder { node, attempt } = by.clone();
            self.row.verdict = Some(VerdictRecord { verdict: Verdict::Done, by: node, at: self.now, attempt });
        }
    }

    /// Records an operator's verb at the store's time.
    pub(super) fn record_audit(&mut self, audit: &Audit) {
        self.effects.audit = Some(Audit { at: self.now, ..audit.clone() });
    }
}

fn may_replace(old: Option<Outcome>, new: Option<Outcome>) -> bool {
    match (old, new) {
        (Some(Outcome::Success), new) => new == Some(Outcome::Success),
        (Some(_), None) => false,
        (Some(_) | None, _) => true,
    }
}

/// Who holds the lease.
pub(super) fn holder(lease: &Lease) -> Holder {
    Holder { node: lease.node.clone(), attempt: lease.attempt }
}
