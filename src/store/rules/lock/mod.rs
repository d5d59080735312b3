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

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::job::LockName;
use crate::resource::Demands;
use crate::slot::Token;
use queue::millis;

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

    /// Takes out what has lapsed; answers in which locks somebody left by that.
    fn lapse(&mut self, demands: &Demands) -> Vec<LockName> {
        let now = self.now;
        demands.names().into_iter().filter(|name| self.lock(name).lapse(now)).collect()
    }

    /// Takes the request's entries out of every queue; answers where it had one.
    fn take(&mut self, demands: &Demands, token: Token) -> Vec<LockName> {
        demands.names().into_iter().filter(|name| self.lock(name).take(token).is_some()).collect()
    }

    /// Somebody has left these queues: whoever holds now and was not told yet is told, but for the one who asks.
    fn tell(&mut self, left: &[LockName], asker: Token) {
        for name in left {
            let front = self.locks.get(name).map_or(&[][..], LockState::front);
            let untold = front.iter().filter(|entry| entry.fence == 0 && entry.token != asker);
            self.wakes.extend(untold.map(|entry| (entry.instance, entry.token)));
        }
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
