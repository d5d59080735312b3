//! Where the attempt that has a slot stands in the queues of its locks, by the store.

use crate::resource::{DeadlockStep, LockEntry, LockRecord, OwnerId, deadlocks};

/// Where an attempt stands in the queues of its locks. The nodes' decision log comes a few seconds later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Queued {
    /// In none, as far as was looked.
    Nowhere,
    /// It holds all of them.
    Holds,
    /// In these, behind others; at least one.
    Waits(Vec<(LockRecord, LockEntry)>),
}

/// A ring of waits that this owner is in; empty where it is in none.
pub(super) fn ring_of(records: &[LockRecord], owner: OwnerId) -> Vec<DeadlockStep> {
    let is_in = |ring: &Vec<DeadlockStep>| ring.iter().any(|step| step.entry.by.owner == owner);
    deadlocks(records).into_iter().find(is_in).unwrap_or_default()
}

/// Where the request with this label stands.
pub(super) fn queued(records: &[LockRecord], label: &str) -> Queued {
    let mut found = Queued::Nowhere;
    for record in records {
        let Some(entry) = record.entries.iter().find(|entry| entry.by.label == label).cloned() else { continue };
        match &mut found {
            Queued::Nowhere | Queued::Holds if entry.holds => found = Queued::Holds,
            Queued::Nowhere | Queued::Holds => found = Queued::Waits(vec![(record.clone(), entry)]),
            Queued::Waits(_) if entry.holds => {}
            Queued::Waits(behind) => behind.push((record.clone(), entry)),
        }
    }
    found
}
