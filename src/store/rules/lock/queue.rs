//! One lock: its queue as it is stored, and who of it holds. Plain data; its JSON is what stores with documents keep.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::clock::{between, earlier, later};
use crate::job::{LockName, NodeName};
use crate::resource::{Demand, LockEntry, LockHolder, LockPlace, LockRecord, MOST_ENTRIES, OwnerId};
use crate::slot::{Audit, Fence, Token};

/// Tokens that are remembered as spent, at the most: the one that ends soonest goes first.
pub(in crate::store) const MOST_SPENT: usize = 4 * MOST_ENTRIES;

/// Of those that were left with nothing of theirs under way: enough for a release whose answer was lost and that comes again. Were all of
/// them kept, a lock that is taken a hundred times in a second would be thousands of tokens long.
pub(in crate::store) const MOST_LEFT: usize = 16;

/// Operators' verbs that are kept.
pub(in crate::store) const MOST_AUDITS: usize = 16;

/// One request's entry in one queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct QueueEntry {
    pub(in crate::store) token: Token,
    pub(in crate::store) owner: OwnerId,
    pub(in crate::store) place: LockPlace,
    /// The number of its grant; 0 until it was told that it holds in every lock that it named.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(in crate::store) fence: u64,
    pub(in crate::store) weight: u32,
    pub(in crate::store) of: u32,
    /// It counts until then.
    #[serde(rename = "until_ms", with = "chrono::serde::ts_milliseconds")]
    pub(in crate::store) until: DateTime<Utc>,
    pub(in crate::store) node: NodeName,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(in crate::store) label: String,
    pub(in crate::store) instance: Token,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A request that was left: nothing that comes under its token is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Spent {
    until_ms: u64,
    /// It was there when it was left, so that a repetition of the release is answered alike.
    #[serde(default)]
    released: bool,
    /// No copy of it is under way.
    #[serde(default)]
    last: bool,
}

/// All that is kept of a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct LockState {
    /// The largest number that was ever given here.
    #[serde(default)]
    pub(super) last: u64,
    /// What is known of those that are gone, in halves: twice the largest fence that lapsed, and one more where it was left. So a
    /// hold that only lapsed can be told from one that was left, and both from a later one.
    #[serde(default)]
    gone: u64,
    /// In the order of the queue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    entries: Vec<QueueEntry>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    spent: BTreeMap<Token, Spent>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    audit: Vec<Audit>,
}

impl QueueEntry {
    /// Its place; two that have the same, after a loss of data, stand by their owners.
    fn key(&self) -> (LockPlace, OwnerId, Token) {
        (self.place, self.owner, self.token)
    }

    /// Its fence, once it was told.
    pub(super) fn told(&self) -> Option<Fence> {
        (self.fence > 0).then_some(Fence(self.fence))
    }

    pub(super) fn remaining(&self, now: DateTime<Utc>) -> Duration {
        between(now, self.until)
    }

    /// Whether the two cannot both hold.
    fn excludes(&self, demand: &Demand) -> bool {
        u64::from(self.weight) + u64::from(demand.weight()) > u64::from(self.of.min(demand.of()))
    }

    /// What it asked for; the limits of what was stored are not believed blindly.
    fn demand(&self, lock: &LockName) -> Demand {
        let whole = || Demand::exclusive(lock.clone());
        Demand::permits(lock.clone(), self.weight, self.of).unwrap_or_else(|_| whole())
    }
}

impl LockState {
    /// Those that hold: the longest front that weighs no more than the smallest limit in it. Entries of one owner at one place are
    /// one step.
    pub(super) fn front(&self) -> &[QueueEntry] {
        let mut weights: BTreeMap<OwnerId, u32> = BTreeMap::new();
        let (mut sum, mut limit, mut front) = (0_u64, u32::MAX, 0_usize);
        for group in self.entries.chunk_by(|a, b| (a.place, a.owner) == (b.place, b.owner)) {
            for entry in group {
                let weight = weights.entry(entry.owner).or_default();
                sum += u64::from(entry.weight.saturating_sub(*weight));
                *weight = entry.weight.max(*weight);
                limit = limit.min(entry.of);
            }
            if sum > u64::from(limit) {
                break;
            }
            front += group.len();
        }
        self.entries.get(..front).unwrap_or_default()
    }

    /// Whether the request holds here.
    pub(super) fn holds(&self, token: Token) -> bool {
        self.front().iter().any(|entry| entry.token == token)
    }

    /// The requests that hold here.
    pub(super) fn holding(&self) -> BTreeSet<Token> {
        self.front().iter().map(|entry| entry.token).collect()
    }

    /// The foremost place where this owner holds by another request.
    pub(super) fn own_place(&self, owner: OwnerId, but: Token) -> Option<LockPlace> {
        self.front().iter().find(|entry| entry.owner == owner && entry.token != but).map(|entry| entry.place)
    }

    /// Who holds first, of other owners.
    pub(super) fn first_holder(&self, but: OwnerId) -> Option<LockHolder> {
        self.front().iter().find(|entry| entry.owner != but).map(holder)
    }

    /// The first of them who was told so. One that still waits for another of its locks stands in front here, and works on nothing.
    pub(super) fn first_told(&self, but: OwnerId) -> Option<LockHolder> {
        self.front().iter().find(|entry| entry.owner != but && entry.told().is_some()).map(holder)
    }

    /// Entries of other owners in front of the request.
    pub(super) fn ahead(&self, token: Token) -> Vec<&QueueEntry> {
        let Some(own) = self.find(token) else { return Vec::new() };
        self.entries.iter().filter(|other| other.key() < own.key() && other.owner != own.owner).collect()
    }

    /// Everybody else.
    pub(super) fn others(&self, owner: OwnerId) -> impl Iterator<Item = &QueueEntry> {
        self.entries.iter().filter(move |entry| entry.owner != owner)
    }

    /// Somebody who holds, was told so no earlier than `fence`, and cannot hold beside this demand.
    pub(super) fn granted_since(&self, owner: OwnerId, demand: &Demand, fence: Fence) -> Option<LockHolder> {
        let since = |entry: &&QueueEntry| entry.told().is_some_and(|told| told >= fence);
        let mut told = self.front().iter().filter(since);
        told.find(|entry| entry.owner != owner && entry.excludes(demand)).map(holder)
    }

    /// All that stands there, in the order of the queue.
    #[cfg(feature = "fuzzing")]
    pub(super) fn entries(&self) -> impl Iterator<Item = &QueueEntry> {
        self.entries.iter()
    }

    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= MOST_ENTRIES
    }

    pub(super) fn find(&self, token: Token) -> Option<&QueueEntry> {
        self.entries.iter().find(|entry| entry.token == token)
    }

    /// Makes the entry last until then, never shorter, and gives it its number.
    pub(super) fn prolong(&mut self, token: Token, until: DateTime<Utc>) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.token == token) {
            entry.until = entry.until.max(until);
        }
    }

    /// The entry was told that it holds.
    pub(super) fn number(&mut self, token: Token, fence: u64) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.token == token) {
            entry.fence = fence;
        }
    }

    /// Puts the entry where it stands.
    pub(super) fn put(&mut self, entry: QueueEntry) {
        let at = self.entries.partition_point(|other| other.key() < entry.key());
        self.last = self.last.max(entry.place).max(entry.fence);
        self.entries.insert(at, entry);
    }

    /// Takes the entry out, without a word about why.
    pub(super) fn take(&mut self, token: Token) -> Option<QueueEntry> {
        let at = self.entries.iter().position(|entry| entry.token == token)?;
        Some(self.entries.remove(at))
    }

    /// A hold with this fence has ended by itself: it can be set again as long as nobody with a later one is gone.
    pub(super) fn note_lapsed(&mut self, fence: u64) {
        self.gone = self.gone.max(fence.saturating_mul(2));
    }

    /// A hold with this fence was left: it is never set again. Nothing is to be noted of one that was never told.
    pub(super) fn note_left(&mut self, fence: u64) {
        if fence > 0 {
            self.gone = self.gone.max(fence.saturating_mul(2).saturating_add(1));
        }
    }

    /// Whether a hold with this fence may be set again, as far as those tell who are gone.
    pub(super) fn may_return(&self, fence: Fence) -> bool {
        fence.0.saturating_mul(2) >= self.gone
    }

    /// Whether somebody with a larger fence than this one is gone.
    pub(super) fn outlasted(&self, fence: Fence) -> bool {
        self.gone > fence.0.saturating_mul(2).saturating_add(1)
    }

    /// Takes out what has lapsed.
    pub(super) fn lapse(&mut self, now: DateTime<Utc>) {
        let gone = self.entries.iter().filter(|entry| entry.until <= now).map(|entry| entry.fence).max();
        self.entries.retain(|entry| entry.until > now);
        self.note_lapsed(gone.unwrap_or(0));
        self.spent.retain(|_, spent| spent.until_ms > millis(now));
    }

    /// What comes under this token until then is a late copy. `last` where none is under way: it is then remembered for a while only.
    pub(super) fn spend(&mut self, token: Token, until: DateTime<Utc>, released: bool, last: bool) {
        let before = self.spent.get(&token).copied();
        let until_ms = millis(until).max(before.map_or(0, |spent| spent.until_ms));
        let released = released || before.is_some_and(|spent| spent.released);
        let last = last && before.is_none_or(|spent| spent.last);
        self.spent.insert(token, Spent { until_ms, released, last });
        self.forget_soonest(MOST_LEFT, |spent| spent.last);
        self.forget_soonest(MOST_SPENT, |_| true);
    }

    /// Of these tokens no more than so many stay; the one that ends soonest goes first.
    fn forget_soonest(&mut self, most: usize, which: impl Fn(&Spent) -> bool) {
        let these = || self.spent.iter().filter(|(_, spent)| which(spent));
        if these().count() > most {
            let soonest = these().min_by_key(|(_, spent)| spent.until_ms).map(|(token, _)| *token);
            soonest.map(|token| self.spent.remove(&token));
        }
    }

    pub(super) fn is_spent(&self, token: Token) -> bool {
        self.spent.contains_key(&token)
    }

    /// Whether the request was there when it was left, as far as that is remembered.
    pub(super) fn was_released(&self, token: Token) -> bool {
        self.spent.get(&token).is_some_and(|spent| spent.released)
    }

    /// Records an operator's verb.
    pub(super) fn record_audit(&mut self, audit: Audit) {
        self.audit.push(audit);
        let surplus = self.audit.len().saturating_sub(MOST_AUDITS);
        self.audit.drain(..surplus);
    }

    /// Whether nothing of it is needed any more: nobody was there and no copy of a request was under way for the retention, and its
    /// numbers are so far below the clock that none can come again. A holder that was stopped for long may still ask to have its entry
    /// set again: what tells that it was taken out is kept as long.
    pub(in crate::store) fn is_idle(&self, now: DateTime<Utc>, retention: Duration) -> bool {
        let then = earlier(now, retention);
        self.entries.iter().all(|entry| entry.until <= then)
            && self.spent.values().all(|spent| spent.until_ms <= millis(then))
            && self.last <= millis(then)
    }

    /// Until when something of it is needed, by what is known now; see [`LockState::is_idle`].
    #[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
    pub(in crate::store) fn needed_until(&self, retention: Duration) -> DateTime<Utc> {
        let there = self.entries.iter().map(|entry| millis(entry.until));
        let newest = there.chain(self.spent.values().map(|spent| spent.until_ms)).chain([self.last]).max();
        let newest = newest.and_then(|newest| i64::try_from(newest).ok()).and_then(DateTime::from_timestamp_millis);
        newest.map_or(DateTime::UNIX_EPOCH, |newest| later(newest, retention))
    }

    /// Whether anybody ever used it.
    pub(in crate::store) fn is_untouched(&self) -> bool {
        *self == Self::default()
    }

    /// What is known of a lock whose entries a store keeps apart; in any order.
    #[cfg(feature = "redis")]
    pub(in crate::store) fn of_entries(entries: Vec<QueueEntry>, audit: Vec<Audit>) -> Self {
        let mut state = Self { audit, ..Self::default() };
        entries.into_iter().for_each(|entry| state.put(entry));
        state
    }

    /// What people see of it.
    pub(in crate::store) fn record(&self, lock: &LockName, now: DateTime<Utc>) -> LockRecord {
        let mut live = self.clone();
        live.lapse(now);
        let front = live.front().len();
        let shown = |(index, entry): (usize, &QueueEntry)| LockEntry {
            token: entry.token,
            by: holder(entry),
            demand: entry.demand(lock),
            place: entry.place,
            holds: index < front,
            remaining: entry.remaining(now),
        };
        let entries = live.entries.iter().enumerate().map(shown).collect();
        LockRecord { lock: lock.clone(), entries, audit: live.audit }
    }
}

/// What happens to a lock behind the store's back; for probes.
impl LockState {
    /// Every entry of the request, or of all, lapses at that instant.
    pub(in crate::store) fn lapse_at(&mut self, token: Option<Token>, at: DateTime<Utc>) {
        for entry in self.entries.iter_mut().filter(|entry| token.is_none_or(|token| entry.token == token)) {
            entry.until = entry.until.min(at);
        }
    }
}

/// The instant at which an entry lapses that is asked for now.
pub(super) fn lapses(now: DateTime<Utc>, ttl: Duration) -> DateTime<Utc> {
    later(now, ttl)
}

/// The store's clock in milliseconds: what numbers are made of, so that they rise also after the last one was lost with the data.
/// They stay below 2^53, where JavaScript and JSON begin to round.
pub(super) fn millis(now: DateTime<Utc>) -> u64 {
    u64::try_from(now.timestamp_millis()).unwrap_or(0)
}

/// As the others are told.
pub(super) fn holder(entry: &QueueEntry) -> LockHolder {
    LockHolder { node: entry.node.clone(), label: entry.label.clone(), owner: entry.owner, fence: entry.told() }
}
