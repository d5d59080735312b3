//! Locks: a step reads the queues that it names, lets the rule decide, and writes what has changed, in one `BEGIN IMMEDIATE` transaction.
//! Hints reach this process alone; a waiter in another one looks again every quarter of a second.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::queues::{purge, read, step};
use super::{OwnCall, POLL, SqliteStore};
use crate::job::LockName;
use crate::resource::LockRecord;
use crate::slot::Token;
use crate::store::Op;
use crate::store::locks::{LockRuled, LockWakeups};
use crate::store::ruled::Reply;
use crate::store::rules::LockStep;

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
            let done = step(&mut tx, &shared.scope, &names, &rule).await?;
            call.commit(tx).await?;
            Ok(done)
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
            let stored = read(&mut tx, &shared.scope, names).await?;
            let now = tx.now;
            call.commit(tx).await?;
            Ok((now, stored))
        };
        let (now, stored) = self.within(shared.limit, &call, &shared.reader, work).await?;
        let record = |name: &LockName| stored.get(name).cloned().unwrap_or_default().record(name, now);
        let all =
            if names.is_empty() { stored.keys().map(record).collect() } else { names.iter().map(record).collect() };
        Ok((now, all))
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
            let gone = purge(&mut tx, &shared.scope).await?;
            call.commit(tx).await?;
            Ok(gone)
        };
        self.within(shared.limit, &call, &shared.writer, work).await
    }
}
