//! How a holder keeps what it holds: `renew`, by which all of its entries last, and are set again where they were lost and nobody who
//! excludes it was granted since.

use super::LockStep;
use super::queue::{QueueEntry, lapses};
use crate::job::LockName;
use crate::resource::{Demand, LockHold, LockPlace, LockRenewal};

impl LockStep {
    /// Makes what is held last ([`crate::store::LockStore::renew_lock`]).
    pub(in crate::store) fn renew(&mut self, hold: &LockHold) -> LockRenewal {
        let before = self.fronts(&hold.demands.names());
        self.lapse(&hold.demands);
        let answer = self.keep(hold);
        self.tell(&before, hold.token);
        answer
    }

    fn keep(&mut self, hold: &LockHold) -> LockRenewal {
        let mut absent = Vec::new();
        for (index, demand) in hold.demands.iter().enumerate() {
            let lock = self.lock(demand.lock());
            match lock.find(hold.token) {
                // A late copy of the request has joined again: what stands there is not what was granted.
                Some(entry) if entry.told() != Some(hold.fence) || !lock.holds(hold.token) => {
                    return self.lost(hold, demand.lock());
                }
                Some(_) => {}
                None if !lock.may_return(hold.fence) || lock.is_spent(hold.token) => {
                    return self.lost(hold, demand.lock());
                }
                None => absent.push((demand, hold.places.get(index).copied().unwrap_or(hold.fence.0))),
            }
        }
        if let Some(lock) = self.restore(hold, &absent) {
            return self.lost(hold, &lock);
        }
        let until = lapses(self.now, hold.ttl);
        for name in hold.demands.names() {
            self.lock(&name).prolong(hold.token, until);
        }
        if absent.is_empty() { LockRenewal::Renewed } else { LockRenewal::Restored }
    }

    /// Sets again what is absent, all of it or nothing. Answers the lock in which it cannot be: it would not hold there, or somebody
    /// who holds would not any more.
    fn restore(&mut self, hold: &LockHold, absent: &[(&Demand, LockPlace)]) -> Option<LockName> {
        if absent.is_empty() {
            return None;
        }
        let before = self.locks.clone();
        for (demand, place) in absent {
            let entry = QueueEntry {
                token: hold.token,
                owner: hold.owner,
                place: *place,
                fence: hold.fence.0,
                weight: demand.weight(),
                of: demand.of(),
                until: lapses(self.now, hold.ttl),
                node: hold.node.clone(),
                label: hold.label.clone(),
                instance: hold.instance,
            };
            let lock = self.lock(demand.lock());
            let held = lock.holding();
            lock.put(entry);
            let after = lock.holding();
            if !after.contains(&hold.token) || !held.is_subset(&after) {
                self.locks = before;
                return Some(demand.lock().clone());
            }
        }
        None
    }

    fn lost(&mut self, hold: &LockHold, lock: &LockName) -> LockRenewal {
        LockRenewal::Lost { to: self.lock(lock).first_told(hold.owner) }
    }
}
