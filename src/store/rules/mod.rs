//! The rules of the contract, one file for each part of a slot's life. Each is one pure step on a [`SlotState`](super::state::SlotState): it sees what was
//! read at one moment, changes the state, and answers.
//!
//! Every store that does not decide by itself runs these and no others, the one in memory too: so what the model and the
//! simulator visit is what runs in all of these. Redis' scripts and the simulator's reference are written from the contract by
//! themselves, and are held against these.

mod change;
mod claim;
mod lock;
mod message;
mod settle;

pub(super) use change::{Change, MarkChange};
#[cfg(feature = "fuzzing")]
pub use lock::lock_document;
#[cfg(feature = "redis")]
pub(super) use lock::{EVICTED, QueueEntry};
pub(super) use lock::{LockState, LockStep};
#[cfg(all(test, feature = "redis"))]
pub(super) use lock::{MOST_AUDITS, MOST_LEFT, MOST_SPENT};
pub(super) use message::{MessageStep, TopicState};

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::later;
use crate::slot::{Audit, DoneMark, Holder, JobLatest, Lease, RunRecord, Slot, SlotKey, VerdictRecord};
use crate::store::state::{MarkKind, SlotState, StoredMark};
use crate::store::{Pause, WakeKind};

/// All that a rule sees, and what it leaves to be written and told.
#[derive(Debug)]
pub(in crate::store) struct SlotStep {
    pub(in crate::store) slot: Slot,
    /// The store's clock.
    pub(in crate::store) now: DateTime<Utc>,
    /// What counts of the slot at that instant.
    pub(in crate::store) state: SlotState,
    /// The job's last pause, where that was asked for.
    pub(in crate::store) pause: Option<Pause>,
    /// The oldest of the job's other slots that is leased, where that was asked for. Its lease may have run out since.
    pub(in crate::store) other: Option<(SlotKey, StoredMark)>,
    /// What the job has come to lately, where that was asked for: as it was read, and as the step leaves it. What cannot be read
    /// keeps no rule from its decision, and is left as it is.
    pub(in crate::store) read_latest: Option<JobLatest>,
    pub(in crate::store) latest: JobLatest,
    /// What is told once the change is written.
    pub(in crate::store) wake: Option<WakeKind>,
}

impl SlotStep {
    /// A step of a job that is not paused, with no lease at another slot.
    pub(in crate::store) fn new(slot: &Slot, state: SlotState, now: DateTime<Utc>) -> Self {
        Self {
            slot: slot.clone(),
            now,
            state,
            pause: None,
            other: None,
            read_latest: None,
            latest: JobLatest::default(),
            wake: None,
        }
    }

    /// The same of a job that has come to this lately, as far as that can be read.
    pub(in crate::store) fn with_latest(self, latest: Option<JobLatest>) -> Self {
        Self { latest: latest.clone().unwrap_or_default(), read_latest: latest, ..self }
    }

    /// What stands at the key now.
    pub(super) fn mark(&self) -> Option<&StoredMark> {
        self.state.mark(self.now)
    }

    /// The lease that somebody holds now.
    fn held(&self) -> Option<&StoredMark> {
        self.mark().filter(|mark| mark.is_lease())
    }

    /// Whether this lease stands now.
    fn holds(&self, lease: &Lease) -> bool {
        self.mark().is_some_and(|mark| mark.kind == MarkKind::Lease(lease.token))
    }

    /// Whether the slot is marked as done.
    fn is_marked_done(&self) -> bool {
        self.mark().is_some_and(StoredMark::is_done)
    }

    /// Who has done the slot: the done marker, or the recorded verdict where the marker is gone.
    fn done_mark(&self) -> Option<DoneMark> {
        let mark = self.mark().filter(|mark| mark.is_done());
        mark.map(StoredMark::done).or_else(|| self.state.verdict.as_ref().and_then(VerdictRecord::done))
    }

    /// Puts the lease at the key, for its TTL from now on, and begins its run's record.
    fn grant(&mut self, lease: &Lease) {
        self.state.write_run(RunRecord::begun(lease));
        self.hold(lease);
    }

    /// The same, its record being there.
    fn hold(&mut self, lease: &Lease) {
        self.state.counter = self.state.counter.max(lease.attempt);
        let until = later(self.now, lease.ttl);
        self.place(MarkKind::Lease(lease.token), holder(lease), lease.claimed_at, until);
    }

    fn place(&mut self, kind: MarkKind, by: Holder, since: DateTime<Utc>, until: DateTime<Utc>) {
        self.state.mark = Some(StoredMark { kind, by, since, until });
    }

    /// Makes what stands at the key last for `ttl` from now on; never shortens it.
    fn prolong(&mut self, ttl: Duration) {
        let until = later(self.now, ttl);
        if let Some(mark) = self.state.mark.as_mut() {
            mark.until = mark.until.max(until);
        }
    }

    /// Records an operator's verb at the store's time.
    fn record_audit(&mut self, audit: &Audit) {
        self.state.audit.push(Audit { at: self.now, ..audit.clone() });
    }
}

/// Who holds the lease.
fn holder(lease: &Lease) -> Holder {
    Holder { node: lease.node.clone(), attempt: lease.attempt }
}
