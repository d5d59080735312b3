//! The rules of locks, as pure steps on the queues that one request names: acquire, renew, release, evict. A step sees what was read
//! of each lock at one moment, by the store's clock, changes it, and answers. Never reads a clock, never fails.
//!
//! **The one rule.** Entries stand in the order of their place. *An entry holds when it and all before it weigh no more than the
//! smallest limit among them*; entries of one owner weigh once. Nothing else grants. It is a property of prefixes: the sum only grows
//! and the limit only falls, so those that hold are the front of the queue.

mod enter;
#[cfg(feature = "fuzzing")]
mod fuzzing;
mod keep;
mod leave;
mod queue;
#[cfg(test)]
mod tests;

#[cfg(feature = "fuzzing")]
pub use fuzzing::lock_document;
#[cfg(feature = "redis")]
pub(in crate::store) use leave::EVICTED;
pub(in crate::store) use queue::LockState;
#[cfg(feature = "redis")]
pub(in crate::store) use queue::QueueEntry;
#[cfg(all(test, feature = "redis"))]
pub(in crate::store) use queue::{MOST_AUDITS, MOST_LEFT, MOST_SPENT};

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use crate::job::LockName;
use crate::resource::Demands;
use crate::slot::Token;
use queue::millis;

/// Who holds in each of the locks that a step names.
type Fronts = BTreeMap<LockName, BTreeSet<Token>>;

/// Queues as they were read, and what a step leaves to be written and told.
#[derive(Clone, Debug)]
pub(in crate::store) struct LockStep {
    /// The store's clock.
    now: DateTime<Utc>,
    /// Every lock that the step names; one that nobody has used is as empty.
    pub(in crate::store) locks: BTreeMap<LockName, LockState>,
    /// Who is told once the change is written: the process, and the request that may hold now.
    pub(in crate::store) wakes: Vec<(Token, Token)>,
}

impl LockStep {
    /// A step on these queues.
    pub(in crate::store) const fn new(locks: BTreeMap<LockName, LockState>, now: DateTime<Utc>) -> Self {
        Self { now, locks, wakes: Vec::new() }
    }

    fn lock(&mut self, name: &LockName) -> &mut LockState {
        self.locks.entry(name.clone()).or_default()
    }

    /// Takes out what has lapsed.
    fn lapse(&mut self, demands: &Demands) {
        let now = self.now;
        demands.names().iter().for_each(|name| self.lock(name).lapse(now));
    }

    /// Takes the request's entries out of every queue.
    fn take(&mut self, demands: &Demands, token: Token) {
        demands.names().iter().for_each(|name| drop(self.lock(name).take(token)));
    }

    /// Who holds in these locks by what is stored: before a step has looked for what has lapsed, as the last one left them.
    fn fronts(&self, names: &[LockName]) -> Fronts {
        let holding = |name: &LockName| self.locks.get(name).map(LockState::holding).unwrap_or_default();
        names.iter().map(|name| (name.clone(), holding(name))).collect()
    }

    /// Tells whom this step lets hold, but for the one who asks: who came to hold in one of these locks, and holds in all of them in
    /// which it stands. Who held there before was kept waiting by nobody who left; and who waits in another one still is told by the
    /// step that lets it hold there. Otherwise each departure would tell all who wait for one lock alone and share another.
    fn tell(&mut self, before: &Fronts, asker: Token) {
        let names: Vec<LockName> = before.keys().cloned().collect();
        let after = self.fronts(&names);
        let waits = |token: Token| {
            let holds = |name: &LockName| after.get(name).is_some_and(|holding| holding.contains(&token));
            let stands = |name: &LockName| self.locks.get(name).is_some_and(|lock| lock.find(token).is_some());
            names.iter().any(|name| !holds(name) && stands(name))
        };
        let mut told = Vec::new();
        for (name, held) in before {
            let front = self.locks.get(name).map_or(&[][..], LockState::front);
            let untold = front.iter().filter(|entry| entry.fence == 0 && entry.token != asker);
            let let_in = untold.filter(|entry| !held.contains(&entry.token) && !waits(entry.token));
            told.extend(let_in.map(|entry| (entry.instance, entry.token)));
        }
        self.wakes.extend(told);
        // Told once, in however many of these locks.
        self.wakes.sort_unstable();
        self.wakes.dedup();
    }

    /// A number for all of these locks, larger than every one that was given in any.
    fn draw(&mut self, demands: &Demands) -> u64 {
        let now = millis(self.now);
        let next = demands.names().iter().map(|name| self.lock(name).last.saturating_add(1)).max();
        let number = next.map_or(now, |next| next.max(now));
        for name in demands.names() {
            self.lock(&name).last = number;
        }
        number
    }
}
