//! How a run ends in the ledger: `complete`, `fail`, `give_back`. The run's own record is written in any case; what stands
//! at the key is changed by `complete` always, and by the others only where it is their own lease (I4).

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::later;
use crate::slot::{DoneMark, Holder, Lease, RunRecord};
use crate::store::memory::ledger::{Ledger, Standing};
use crate::store::{Release, Settlement, WakeKind};

impl Ledger {
    /// Records success ([`crate::store::Store::complete`]).
    pub fn complete(&mut self, lease: &Lease, run: &RunRecord, done_ttl: Duration, now: DateTime<Utc>) -> Settlement {
        self.write_run(lease, run, now);
        let log = self.log_mut(&lease.slot, now);
        log.raise(lease.attempt);
        log.done(&holder(lease), now);
        let overtaken = self.log(&lease.slot, now).overtaker(lease);
        let meanwhile = overtaken.map_or(Settlement::Recorded, |by| Settlement::Overtaken { by });
        let answer = match self.mark(&lease.slot, now).map(|placed| &placed.standing) {
            Some(Standing::Done { token, .. }) if *token == Some(lease.token) => return meanwhile,
            Some(Standing::Done { mark, .. }) => return Settlement::Overtaken { by: mark.by.clone() },
            Some(Standing::Lease { by, token, .. } | Standing::Backoff { by, token }) if *token != lease.token => {
                Settlement::Overtaken { by: by.clone() }
            }
            _ => meanwhile,
        };
        let mark = DoneMark { by: holder(lease), at: now };
        self.place(&lease.slot, Standing::Done { mark, token: Some(lease.token) }, later(now, done_ttl));
        self.tell(&lease.slot, WakeKind::Done);
        answer
    }

    /// Records a failed run and releases its lease ([`crate::store::Store::fail`]).
    pub fn fail(&mut self, lease: &Lease, run: &RunRecord, retry_after: Duration, now: DateTime<Utc>) -> Release {
        let held = self.holds(lease, now);
        let answer = self.released(lease, now);
        self.write_run(lease, run, now);
        if held && retry_after.is_zero() {
            self.lift(&lease.slot);
        } else if held {
            let wait = Standing::Backoff { by: holder(lease), token: lease.token };
            self.place(&lease.slot, wait, later(now, retry_after));
        }
        if held {
            self.tell(&lease.slot, WakeKind::Released);
        }
        answer
    }

    /// Releases the lease of a run that never began or was drained, and refunds its attempt
    /// ([`crate::store::Store::give_back`]). The counter stays: attempt numbers never fall (I2).
    pub fn give_back(&mut self, lease: &Lease, run: &RunRecord, now: DateTime<Utc>) -> Release {
        if self.holds(lease, now) {
            let log = self.log_mut(&lease.slot, now);
            log.forgiven = log.forgiven.saturating_add(1);
        }
        self.fail(lease, run, Duration::ZERO, now)
    }

    fn holds(&self, lease: &Lease, now: DateTime<Utc>) -> bool {
        self.mark(&lease.slot, now).and_then(|placed| placed.lease()).is_some_and(|(_, token)| token == lease.token)
    }

    /// What a release is answered. A repetition finds its own wait, or nothing and its own run ended. Who held the slot
    /// meanwhile and is gone has overtaken it all the same: two runs may have overlapped, and that is told.
    fn released(&self, lease: &Lease, now: DateTime<Utc>) -> Release {
        match self.mark(&lease.slot, now).map(|placed| &placed.standing) {
            Some(Standing::Lease { token, .. } | Standing::Backoff { token, .. }) if *token == lease.token => {
                Release::Released
            }
            Some(Standing::Lease { by, .. } | Standing::Backoff { by, .. }) => Release::Overtaken { by: by.clone() },
            Some(Standing::Done { mark, .. }) => Release::Overtaken { by: mark.by.clone() },
            None => self.log(&lease.slot, now).overtaker(lease).map_or_else(
                || if self.log(&lease.slot, now).has_ended(lease) { Release::Released } else { Release::Expired },
                |by| Release::Overtaken { by },
            ),
        }
    }

    /// The lease says whose record it is, whatever the record itself says.
    fn write_run(&mut self, lease: &Lease, run: &RunRecord, now: DateTime<Utc>) {
        let own = RunRecord { attempt: lease.attempt, token: lease.token, ..run.clone() };
        self.log_mut(&lease.slot, now).write(own);
    }
}

fn holder(lease: &Lease) -> Holder {
    Holder { node: lease.node.clone(), attempt: lease.attempt }
}
