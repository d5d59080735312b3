//! The ledger: all that one namespace's store knows, as plain data. It never reads a clock and never fails.
//!
//! Two things are kept of a slot, as every store keeps them. The *mark* stands at the slot's key and has its own TTL: a
//! lease, the wait after a failure, or the done marker. The *log* has the counter, the runs, the verdict and the
//! operators' verbs, and is kept for the retention after its last change.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::{between, later};
use crate::job::{JobName, NodeName};
use crate::slot::{DoneMark, Holder, Mark, Slot, SlotKey, Token, VerdictRecord};
use crate::store::memory::log::{Log, UNTOUCHED};
use crate::store::memory::notes::Noted;
use crate::store::{JobEntry, NodeEntry, Pause, Wake, WakeKind};

/// The identity of a slot: its end is no part of it.
pub(super) type SlotId = (JobName, SlotKey);

pub(super) fn id(slot: &Slot) -> SlotId {
    (slot.job().clone(), slot.key())
}

/// The rules of the protocol on plain data. Each operation takes `now`, the store's clock; cloning it takes a snapshot,
/// which is how a test makes a failover lose writes.
#[derive(Clone, Debug)]
pub struct Ledger {
    pub(super) retention: Duration,
    pub(super) marks: BTreeMap<SlotId, Placed>,
    /// Where a lease was placed and nothing has taken its place: a job's leases are found without looking at all its slots.
    pub(super) leased: BTreeSet<SlotId>,
    pub(super) logs: BTreeMap<SlotId, Log>,
    pub(super) jobs: BTreeMap<JobName, JobEntry>,
    pub(super) nodes: BTreeMap<NodeName, NodeEntry>,
    pub(super) pauses: BTreeMap<JobName, Pause>,
    pub(super) notes: BTreeMap<SlotId, Noted>,
    wakes: Vec<Wake>,
}

/// What was put at a slot's key, and until when it stands.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) standing: Standing,
    pub(super) until: DateTime<Utc>,
}

/// What can stand at a slot's key.
#[derive(Clone, Debug)]
pub(super) enum Standing {
    /// A lease, granted `at`.
    Lease { by: Holder, token: Token, at: DateTime<Utc> },
    /// The wait after a failure of the attempt that had this token.
    Backoff { by: Holder, token: Token },
    /// Done; without a token when an operator said so.
    Done { mark: DoneMark, token: Option<Token> },
}

impl Placed {
    /// Until it ends, unless renewed.
    pub(super) fn remaining(&self, now: DateTime<Utc>) -> Duration {
        between(now, self.until)
    }

    /// The lease, if it is one.
    pub(super) const fn lease(&self) -> Option<(&Holder, Token)> {
        match &self.standing {
            Standing::Lease { by, token, .. } => Some((by, *token)),
            Standing::Backoff { .. } | Standing::Done { .. } => None,
        }
    }

    /// As it is shown.
    pub(super) fn shown(&self, now: DateTime<Utc>) -> Mark {
        let remaining = self.remaining(now);
        match &self.standing {
            Standing::Lease { by, token, .. } => Mark::Leased { by: by.clone(), token: *token, remaining },
            Standing::Backoff { by, .. } => Mark::Backoff { by: by.clone(), remaining },
            Standing::Done { mark, .. } => Mark::Done(mark.clone()),
        }
    }
}

impl Ledger {
    /// An empty ledger that keeps records for `retention`.
    pub const fn new(retention: Duration) -> Self {
        Self {
            retention,
            marks: BTreeMap::new(),
            leased: BTreeSet::new(),
            logs: BTreeMap::new(),
            jobs: BTreeMap::new(),
            nodes: BTreeMap::new(),
            pauses: BTreeMap::new(),
            notes: BTreeMap::new(),
            wakes: Vec::new(),
        }
    }

    /// The hints to publish for what was done since the last call, in order.
    #[must_use]
    pub fn take_wakes(&mut self) -> Vec<Wake> {
        std::mem::take(&mut self.wakes)
    }

    /// What stands at the slot's key now. What has run out is gone.
    pub(super) fn mark(&self, slot: &Slot, now: DateTime<Utc>) -> Option<&Placed> {
        self.marks.get(&id(slot)).filter(|placed| placed.until > now)
    }

    /// Who has done the slot: the done marker, or the recorded verdict where the marker is gone.
    pub(super) fn done_mark(&self, slot: &Slot, now: DateTime<Utc>) -> Option<DoneMark> {
        match self.mark(slot, now).map(|placed| &placed.standing) {
            Some(Standing::Done { mark, .. }) => Some(mark.clone()),
            _ => self.log(slot, now).verdict.as_ref().and_then(VerdictRecord::done),
        }
    }

    /// The leases that stand on slots of this job now, the oldest slot first.
    pub(super) fn leases(&self, job: &JobName, now: DateTime<Utc>) -> impl Iterator<Item = (SlotKey, &Placed)> {
        let of_job = self.leased.range((job.clone(), SlotKey::FIRST)..).take_while(move |(name, _)| name == job);
        let placed = of_job.filter_map(|id| Some((id.1, self.marks.get(id)?)));
        placed.filter(move |(_, placed)| placed.until > now)
    }

    pub(super) fn place(&mut self, slot: &Slot, standing: Standing, until: DateTime<Utc>) {
        self.lift(slot);
        if matches!(standing, Standing::Lease { .. }) {
            self.leased.insert(id(slot));
        }
        self.marks.insert(id(slot), Placed { standing, until });
    }

    pub(super) fn lift(&mut self, slot: &Slot) {
        self.leased.remove(&id(slot));
        self.marks.remove(&id(slot));
    }

    /// Makes what stands at the key last at least until `until`: a renewal never shortens.
    pub(super) fn prolong(&mut self, slot: &Slot, until: DateTime<Utc>) {
        if let Some(placed) = self.marks.get_mut(&id(slot)) {
            placed.until = placed.until.max(until);
        }
    }

    /// What is recorded of the slot; what was kept for its time is gone.
    pub(super) fn log(&self, slot: &Slot, now: DateTime<Utc>) -> &Log {
        self.logs.get(&id(slot)).filter(|log| !self.is_over(log, now)).unwrap_or(&UNTOUCHED)
    }

    /// The same, to be changed: its retention begins anew, and never before the slot's end.
    pub(super) fn log_mut(&mut self, slot: &Slot, now: DateTime<Utc>) -> &mut Log {
        let retention = self.retention;
        let log = self.logs.entry(id(slot)).or_default();
        if later(log.changed, retention) <= now {
            *log = Log::default();
        }
        log.changed = now.max(slot.end());
        log
    }

    pub(super) fn is_over(&self, log: &Log, now: DateTime<Utc>) -> bool {
        later(log.changed, self.retention) <= now
    }

    pub(super) fn tell(&mut self, slot: &Slot, what: WakeKind) {
        self.wakes.push(Wake::Slot { job: slot.job().clone(), key: slot.key(), what });
    }

    pub(super) fn tell_job(&mut self, job: &JobName) {
        self.wakes.push(Wake::Job(job.clone()));
    }
}
