//! Locks: queues are read by one statement, the rule decides here, and what it has changed is written on the condition that each row still
//! has the version that was read; otherwise all over again. No row is locked while a node thinks.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::Dialect;
use super::call::ServerCall;
use super::pool::Lane;
use super::store::{ServerStore, TRIES, Tried, asked_first, contended, transaction};
use super::{Isolation, Sent};
use crate::job::LockName;
use crate::resource::LockRecord;
use crate::slot::Token;
use crate::store::Op;
use crate::store::locks::{LockRuled, LockWakeups};
use crate::store::ruled::Reply;
use crate::store::rules::LockStep;
use crate::store::shelf::LoadedLocks;
use crate::store::sql::fault::SqlFault;
use crate::store::sql::queues::{self, LocksWrite};

impl<D: Dialect> ServerStore<D> {
    async fn load_locks(&self, lane: &mut Lane<'_, D>, names: &[LockName]) -> Result<LoadedLocks<i64>, SqlFault> {
        asked_first!(self, lane, |session| queues::load(session, &self.scope, names))
    }

    async fn load_names(&self, lane: &mut Lane<'_, D>) -> Result<Vec<LockName>, SqlFault> {
        asked_first!(self, lane, |session| queues::names(session, &self.scope))
    }

    async fn save_locks(
        &self,
        lane: &mut Lane<'_, D>,
        call: &ServerCall,
        write: &LocksWrite,
    ) -> Result<Tried<()>, SqlFault> {
        if write.is_none() {
            return Ok(Tried::Answered(()));
        }
        let session = lane.session(&self.place).await?;
        call.send();
        let written = D::write_locks(session, &self.scope, write, self.limit).await;
        self.written(lane, call, written).await
    }
}

impl<D: Dialect> LockRuled for ServerStore<D> {
    async fn on_locks<T: Send + 'static>(
        &self,
        op: Op,
        names: Vec<LockName>,
        rule: impl Fn(&mut LockStep) -> T + Send + Sync + 'static,
    ) -> Reply<T> {
        let call = ServerCall::new(op);
        let work = async {
            let mut lane = self.lane().await?;
            call.ask();
            for _ in 0..TRIES {
                let loaded = self.load_locks(&mut lane, &names).await?;
                let mut step = loaded.step();
                let answer = rule(&mut step);
                let write = queues::write(&loaded, step, &self.scope)?;
                if matches!(self.save_locks(&mut lane, &call, &write).await?, Tried::Answered(())) {
                    lane.keep();
                    self.dialect.told_locks(write.wakes);
                    return Ok(answer);
                }
            }
            Err(contended())
        };
        self.within(&call, work).await
    }

    async fn lock_records(&self, names: &[LockName]) -> Reply<(DateTime<Utc>, Vec<LockRecord>)> {
        let call = ServerCall::new(Op::Locks);
        let work = async {
            let mut lane = self.lane().await?;
            call.ask();
            let loaded = self.load_locks(&mut lane, names).await?;
            lane.keep();
            Ok(loaded.records(names))
        };
        self.within(&call, work).await
    }

    async fn known_names(&self) -> Reply<Vec<LockName>> {
        let call = ServerCall::new(Op::Locks);
        let work = async {
            let mut lane = self.lane().await?;
            call.ask();
            let names = self.load_names(&mut lane).await?;
            lane.keep();
            Ok(names)
        };
        self.within(&call, work).await
    }

    fn lock_hints(&self, instance: Token) -> LockWakeups {
        self.dialect.listen_locks(instance)
    }

    fn poll(&self) -> Option<Duration> {
        Some(D::CAPABILITY.poll)
    }

    async fn remove_idle_locks(&self) -> Reply<u64> {
        transaction!(self, Op::Purge, Committed, |tx| queues::purge(tx, &self.scope))
    }
}
