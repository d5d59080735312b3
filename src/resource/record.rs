//! What people and programs see of a lock: its entries in the order of the queue.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::job::{LockName, NodeName};
use crate::resource::{Demand, LockPlace, OwnerId};
use crate::slot::{Audit, Fence, Token};

/// The most entries of one lock, those that hold included.
pub const MOST_ENTRIES: usize = 1_024;

/// Who holds a lock, as the others are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder {
    /// On which node.
    pub node: NodeName,
    /// What for; may be empty.
    pub label: String,
    /// Its owner: by these a circle of waits is found.
    pub owner: OwnerId,
    /// Its number; none where it may hold and has not been told yet.
    pub fence: Option<Fence>,
}

/// One entry of a lock that has not lapsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockEntry {
    /// The request.
    pub token: Token,
    /// Who.
    pub by: LockHolder,
    /// What it asked for.
    pub demand: Demand,
    /// Where it stands: smaller ones come first.
    pub place: LockPlace,
    /// Whether it holds, by the one rule.
    pub holds: bool,
    /// Until it lapses, unless it asks again or is renewed.
    pub remaining: Duration,
}

/// What is known of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockRecord {
    /// Which.
    pub lock: LockName,
    /// Those that have not lapsed, in the order of the queue: who holds first.
    pub entries: Vec<LockEntry>,
    /// The newest of the operators' verbs, oldest first.
    pub audit: Vec<Audit>,
}

impl LockRecord {
    /// Who holds.
    pub fn holders(&self) -> impl Iterator<Item = &LockEntry> {
        self.entries.iter().filter(|entry| entry.holds)
    }

    /// Who waits, in turn.
    pub fn waiting(&self) -> impl Iterator<Item = &LockEntry> {
        self.entries.iter().filter(|entry| !entry.holds)
    }
}

impl LockEntry {
    /// When it was first told that it holds; none while it was not.
    pub fn since(&self) -> Option<DateTime<Utc>> {
        self.by.fence.and_then(Fence::instant)
    }
}
