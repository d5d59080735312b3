//! How a request ends: `release`, which whoever asked sends at the end, whatever it had come to; and `evict`, by which an operator
//! takes somebody out. Nothing that was left comes back: not by a late acquire, not by a late renewal.

use std::time::Duration;

use super::LockStep;
use crate::clock::later;
use crate::job::LockName;
use crate::reply::Intervention;
use crate::resource::{Demand, LockExit, LockRelease};
use crate::slot::{Audit, Token};

/// For how long what an operator took out cannot come back by itself, and at least until it would have lapsed: longer than any copy of a
/// request is under way, and long enough for a waiter's next beat.
pub(in crate::store) const EVICTED: Duration = Duration::from_secs(600);

impl LockStep {
    /// Ends a request ([`crate::store::LockStore::release`]).
    pub(in crate::store) fn release(&mut self, exit: &LockExit) -> LockRelease {
        let before = self.fronts(&exit.demands.names());
        self.lapse(&exit.demands);
        let mut answer = LockRelease::Released;
        for demand in &exit.demands {
            answer = answer.worse(self.depart(exit, demand));
        }
        self.tell(&before, exit.token);
        answer
    }

    /// Leaves one queue. What it comes to.
    fn depart(&mut self, exit: &LockExit, demand: &Demand) -> LockRelease {
        let until = later(self.now, exit.ttl);
        let lock = self.lock(demand.lock());
        let own = lock.take(exit.token);
        let as_granted = own.as_ref().is_some_and(|entry| exit.fence.is_none() || entry.told() == exit.fence);
        let part = match exit.fence {
            _ if as_granted || lock.was_released(exit.token) => LockRelease::Released,
            None => LockRelease::Released,
            Some(fence) => match lock.granted_since(exit.owner, demand, fence) {
                Some(by) => LockRelease::Overtaken { by: Some(by) },
                // Who left since, and had come later.
                None if lock.outlasted(fence) => LockRelease::Overtaken { by: None },
                None => LockRelease::Expired,
            },
        };
        if let Some(entry) = &own {
            lock.note_left(entry.fence);
        }
        lock.spend(exit.token, until, as_granted, as_granted && !exit.unsure);
        part
    }

    /// Takes somebody out ([`crate::store::LockStore::evict`]).
    pub(in crate::store) fn evict(&mut self, name: &LockName, token: Token, audit: &Audit) -> Intervention {
        let before = self.fronts(std::slice::from_ref(name));
        let (now, lock) = (self.now, self.lock(name));
        lock.lapse(now);
        let Some(entry) = lock.take(token) else { return Intervention::Unchanged };
        lock.note_left(entry.fence);
        lock.spend(token, later(now, EVICTED).max(entry.until), false, false);
        lock.record_audit(Audit { at: now, ..audit.clone() });
        self.tell(&before, token);
        Intervention::Applied
    }
}
