//! Locks: a step reads the queues that it names, lets the rule decide, and writes what has changed, in one `BEGIN IMMEDIATE` transaction.
//! Hints reach this process alone; a waiter in another one looks again every quarter of a second.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::lane::OWN;
use super::{OwnCall, POLL, SqliteStore};
use crate::job::LockName;
use crate::resource::LockRecord;
use crate::slot::Token;
use crate::store::Op;
use crate::store::locks::{LockRuled, LockWakeups};
use crate::store::ruled::Reply;
use crate::store::rules::LockStep;
use crate::store::sql::queues;
use crate::store::sql::session::Session as _;

impl LockRuled for SqliteStore {
    async fn on_locks<T: Send + 'static>(
        &self,
        op: Op,
        names: Vec<LockName>,
        rule: impl Fn(&mut LockStep) -> T + Send + Sync + 'static,
    ) -> Reply<T> {
        let (shared, call) = (&self.shared, OwnCall::new(op));
        let work = async {
            let mut lane = shared.writer.hold(&shared.connector).await?;
            let mut tx = lane.write().await?;
            let loaded = queues::load(&mut tx, &shared.scope, &names).await?;
            let mut step = loaded.step();
            let answer = rule(&mut step);
            let write = queues::write(&loaded, step, &shared.scope)?;
            for row in write.known.iter().chain(&write.fresh) {
                tx.execute(OWN.lock_save, row.values(&shared.scope)).await?;
            }
            call.commit(tx).await?;
            Ok((answer, write.wakes))
        };
        let (answer, wakes) = self.within(shared.limit, &call, &shared.writer, work).await?;
        shared.lock_hints.tell(wakes);
        Ok(answer)
    }

    async fn lock_records(&self, names: &[LockName]) -> Reply<(DateTime<Utc>, Vec<LockRecord>)> {
        let (shared, call) = (&self.shared, OwnCall::new(Op::Locks));
        let work = async {
            let mut lane = shared.reader.hold(&shared.connector).await?;
            let mut tx = lane.read().await?;
            let loaded = queues::load(&mut tx, &shared.scope, names).await?;
            call.commit(tx).await?;
            Ok(loaded.records(names))
        };
        self.within(shared.limit, &call, &shared.reader, work).await
    }

    async fn known_names(&self) -> Reply<Vec<LockName>> {
        let (shared, call) = (&self.shared, OwnCall::new(Op::Locks));
        let work = async {
            let mut lane = shared.reader.hold(&shared.connector).await?;
            let mut tx = lane.read().await?;
            let names = queues::names(&mut tx, &shared.scope).await?;
            call.commit(tx).await?;
            Ok(names)
        };
        self.within(shared.limit, &call, &shared.reader, work).await
    }

    fn lock_hints(&self, instance: Token) -> LockWakeups {
        self.shared.lock_hints.listen(instance)
    }

    fn poll(&self) -> Option<Duration> {
        Some(POLL)
    }

    async fn remove_idle_locks(&self) -> Reply<u64> {
        let (shared, call) = (&self.shared, OwnCall::new(Op::Purge));
        let work = async {
            let mut lane = shared.writer.hold(&shared.connector).await?;
            let mut tx = lane.write().await?;
            let gone = queues::purge(&mut tx, &shared.scope).await?;
            call.commit(tx).await?;
            Ok(gone)
        };
        self.within(shared.limit, &call, &shared.writer, work).await
    }
}
