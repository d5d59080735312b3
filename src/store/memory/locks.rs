//! The locks of the ledger: plain data, decided on by `store::rules::lock`; and the store's part of the contract.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::error::Reply;
use crate::job::LockName;
use crate::resource::{AcquireRequest, Acquired, LockExit, LockHold, LockRecord, LockRelease, LockRenewal};
use crate::slot::{Audit, Token};
use crate::store::locks::{LockRuled, LockWakeups};
use crate::store::memory::{Ledger, MemoryStore};
use crate::store::rules::LockStep;
use crate::store::{Intervention, Op};

impl Ledger {
    /// Asks for locks ([`crate::store::LockStore::acquire`]).
    pub fn acquire(&mut self, request: &AcquireRequest, now: DateTime<Utc>) -> Acquired {
        self.on_locks(&request.demands.names(), now, |step| step.acquire(request))
    }

    /// Makes what is held last ([`crate::store::LockStore::renew_lock`]).
    pub fn renew_lock(&mut self, hold: &LockHold, now: DateTime<Utc>) -> LockRenewal {
        self.on_locks(&hold.demands.names(), now, |step| step.renew(hold))
    }

    /// Ends a request ([`crate::store::LockStore::release`]).
    pub fn release(&mut self, exit: &LockExit, now: DateTime<Utc>) -> LockRelease {
        self.on_locks(&exit.demands.names(), now, |step| step.release(exit))
    }

    /// Takes somebody out ([`crate::store::LockStore::evict`]).
    pub fn evict(&mut self, lock: &LockName, token: Token, audit: &Audit, now: DateTime<Utc>) -> Intervention {
        self.on_locks(std::slice::from_ref(lock), now, |step| step.evict(lock, token, audit))
    }

    /// What is known of these locks; of all where none is named ([`crate::store::LockStore::locks`]).
    pub fn lock_records(&self, names: &[LockName], now: DateTime<Utc>) -> Vec<LockRecord> {
        let record = |name: &LockName| {
            let state = self.locks.get(name).cloned().unwrap_or_default();
            state.record(name, now)
        };
        if names.is_empty() { self.locks.keys().map(record).collect() } else { names.iter().map(record).collect() }
    }

    /// The name of every lock that somebody has used.
    pub fn lock_names(&self) -> Vec<LockName> {
        self.locks.keys().cloned().collect()
    }

    /// The hints to publish for what was done to locks since the last call: the process, and its request.
    #[must_use]
    pub fn take_lock_wakes(&mut self) -> Vec<(Token, Token)> {
        std::mem::take(&mut self.lock_wakes)
    }

    /// One rule on several locks.
    pub(super) fn on_locks<T>(
        &mut self,
        names: &[LockName],
        now: DateTime<Utc>,
        rule: impl FnOnce(&mut LockStep) -> T,
    ) -> T {
        let read = names.iter().map(|name| (name.clone(), self.locks.get(name).cloned().unwrap_or_default())).collect();
        let mut step = LockStep::new(read, now);
        let answer = rule(&mut step);
        self.locks.extend(step.locks.into_iter().filter(|(_, state)| !state.is_untouched()));
        self.lock_wakes.extend(step.wakes);
        answer
    }

    /// Removes locks that nobody has used for the retention.
    pub fn purge_locks(&mut self, now: DateTime<Utc>) -> u64 {
        let before = self.locks.len();
        let retention = self.retention();
        self.locks.retain(|_, state| !state.is_idle(now, retention));
        u64::try_from(before.saturating_sub(self.locks.len())).unwrap_or(u64::MAX)
    }
}

/// What happens to locks behind cronward's back: for probes, the model and the simulator.
impl Ledger {
    /// The request's entries lapse now; those of everybody where none is named.
    pub fn expire_lock(&mut self, lock: &LockName, token: Option<Token>, now: DateTime<Utc>) {
        if let Some(state) = self.locks.get_mut(lock) {
            state.lapse_at(token, now);
        }
    }

    /// All that is known of the lock is gone, as by an eviction.
    pub fn forget_lock(&mut self, lock: &LockName) {
        self.locks.remove(lock);
    }
}

impl LockRuled for MemoryStore {
    async fn on_locks<T: Send + 'static>(
        &self,
        _op: Op,
        names: Vec<LockName>,
        rule: impl Fn(&mut LockStep) -> T + Send + Sync + 'static,
    ) -> Reply<T> {
        Ok(self.with_ledger(|ledger, now| ledger.on_locks(&names, now, rule)))
    }

    async fn lock_records(&self, names: &[LockName]) -> Reply<(DateTime<Utc>, Vec<LockRecord>)> {
        let answer = self.with_ledger(|ledger, now| (now, ledger.lock_records(names, now)));
        #[cfg(test)]
        self.read_each(Op::Locks, &answer.1.iter().map(|record| &record.lock).collect::<Vec<_>>())?;
        Ok(answer)
    }

    async fn known_names(&self) -> Reply<Vec<LockName>> {
        Ok(self.with_ledger(|ledger, _| ledger.lock_names()))
    }

    fn lock_hints(&self, instance: Token) -> LockWakeups {
        self.enter(|room, _| room.lock_hints.listen(instance))
    }

    fn poll(&self) -> Option<Duration> {
        None
    }

    async fn remove_idle_locks(&self) -> Reply<u64> {
        Ok(self.with_ledger(Ledger::purge_locks))
    }
}
