//! What people and programs see of a lock: its entries in the order of the queue.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::job::{LockName, NodeName};
use crate::resource::{Demand, LockPlace, OwnerId, UNLIMITED};
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

/// What these entries of one lock weigh together, those of one owner once, with the largest weight among them; and the smallest of
/// their limits.
pub(crate) fn weigh<'a>(entries: impl Iterator<Item = &'a LockEntry>) -> (u64, u32) {
    let mut weights: BTreeMap<OwnerId, u32> = BTreeMap::new();
    let mut limit = UNLIMITED;
    for entry in entries {
        let weight = weights.entry(entry.by.owner).or_default();
        *weight = entry.demand.weight().max(*weight);
        limit = limit.min(entry.demand.of());
    }
    (weights.into_values().map(u64::from).sum(), limit)
}

impl LockRecord {
    /// Who holds.
    pub fn holders(&self) -> impl Iterator<Item = &LockEntry> {
        self.entries.iter().filter(|entry| entry.holds)
    }

    /// What those who hold weigh in all: entries of one owner weigh once, with the largest weight among them.
    pub fn held(&self) -> u64 {
        weigh(self.holders()).0
    }

    /// The most that those who hold may weigh; none where nobody holds, or they share without a limit.
    pub fn limit(&self) -> Option<u32> {
        self.holders().map(|entry| entry.demand.of()).min().filter(|limit| *limit != UNLIMITED)
    }

    /// Those of other owners that stand before this one.
    pub fn before(&self, entry: &LockEntry) -> impl Iterator<Item = &LockEntry> {
        let (place, owner) = (entry.place, entry.by.owner);
        self.entries.iter().filter(move |other| other.place < place && other.by.owner != owner)
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

    /// When it came: its place is that instant in milliseconds, or a little more where several came in one.
    pub fn asked(&self) -> Option<DateTime<Utc>> {
        i64::try_from(self.place).ok().and_then(DateTime::from_timestamp_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(owner: u128, demand: &str, place: LockPlace, holds: bool) -> LockEntry {
        let owner = OwnerId::new(Token::from_bits(owner));
        let by = LockHolder { node: NodeName::new("a").unwrap(), label: String::new(), owner, fence: None };
        let (token, demand) = (Token::from_bits(u128::from(place)), demand.parse().unwrap());
        LockEntry { token, by, demand, place, holds, remaining: Duration::from_secs(1) }
    }

    fn record(entries: Vec<LockEntry>) -> LockRecord {
        LockRecord { lock: LockName::new("x").unwrap(), entries, audit: Vec::new() }
    }

    #[test]
    fn entries_of_one_owner_weigh_once_and_the_smallest_limit_counts() {
        let entries = [entry(1, "x:2/5", 1, true), entry(1, "x:3/5", 2, true), entry(2, "x:1/4", 3, true)];
        let record = record([&entries[..], &[entry(3, "x", 4, false)]].concat());
        assert_eq!((record.held(), record.limit()), (4, Some(4)));
    }

    #[test]
    fn who_shares_has_no_limit() {
        let shared = record(vec![entry(1, "x:shared", 1, true), entry(2, "x:shared", 2, true)]);
        assert_eq!((shared.held(), shared.limit()), (2, None));
        assert_eq!((record(Vec::new()).held(), record(Vec::new()).limit()), (0, None));
    }

    #[test]
    fn before_an_entry_stand_those_of_others_alone() {
        let record = record(vec![entry(1, "x", 1, true), entry(2, "x", 2, false), entry(1, "x", 3, false)]);
        let before = |at: usize| record.before(&record.entries[at]).count();
        assert_eq!([before(0), before(1), before(2)], [0, 1, 1]);
    }
}
