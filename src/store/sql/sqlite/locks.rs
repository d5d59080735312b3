//! Locks: each is one row with its queue in JSON. A step reads those that it names, lets the rule decide, and writes what has changed,
//! in one `BEGIN IMMEDIATE` transaction. Hints reach this process alone; a waiter in another one looks again every quarter of a second.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::lane::{OWN, Tx};
use super::{Call, POLL, SqliteStore};
use crate::job::LockName;
use crate::resource::LockRecord;
use crate::slot::Token;
use crate::store::Op;
use crate::store::locks::{LockRuled, LockWakeups};
use crate::store::ruled::Reply;
use crate::store::rules::{LockState, LockStep};
use crate::store::sql::fault::Fault;
use crate::store::sql::row;
use crate::store::sql::session::{Columns, Session as _, Why, values};
use crate::store::sql::slots::Scope;

/// The most locks that one purge removes.
const PURGE_AT_ONCE: i64 = 500;

fn odd(why: Why) -> Fault {
    Fault::Row(format!("table locks: {why}"))
}

/// A lock and its queue.
fn state(found: &impl Columns) -> Result<(LockName, LockState), Fault> {
    let decode = || {
        let name = row::there(row::text(found, "lock")?, "lock")?;
        let name = LockName::new(&name).map_err(|error| format!("column lock: {error}"))?;
        Ok((name, row::there(row::record(found, "document")?, "document")?))
    };
    decode().map_err(odd)
}

/// The queues of these locks; of all where none is named. One that nobody has used is not there.
async fn read(tx: &mut Tx<'_>, scope: &Scope, names: &[LockName]) -> Result<BTreeMap<LockName, LockState>, Fault> {
    let namespace = scope.namespace.as_str();
    let rows = if names.is_empty() {
        tx.fetch(OWN.locks_all, values![namespace]).await?
    } else {
        let names = row::json(&names).map_err(odd)?;
        tx.fetch(OWN.locks_read, values![namespace, names]).await?
    };
    rows.iter().map(state).collect()
}

/// One rule on these locks: its answer, and who is told once that is written.
async fn step<T>(
    tx: &mut Tx<'_>,
    scope: &Scope,
    names: &[LockName],
    rule: &(impl Fn(&mut LockStep) -> T + Sync),
) -> Result<(T, Vec<(Token, Token)>), Fault> {
    let stored = read(tx, scope, names).await?;
    let mut step = LockStep::new(stored.clone(), tx.now);
    let answer = rule(&mut step);
    for (name, state) in step.locks {
        if state.is_untouched() || stored.get(&name) == Some(&state) {
            continue;
        }
        let document = row::json(&state).map_err(odd)?;
        let needed = state.needed_until(scope.retention);
        let values = values![scope.namespace.as_str(), name.as_str(), needed, document];
        tx.execute(OWN.lock_save, values).await?;
    }
    Ok((answer, step.wakes))
}

/// Removes locks that nobody has used for the retention.
pub(super) async fn purge(tx: &mut Tx<'_>, scope: &Scope) -> Result<u64, Fault> {
    let values = values![scope.namespace.as_str(), tx.now, PURGE_AT_ONCE];
    Ok(tx.execute(OWN.locks_purge, values).await?)
}

impl LockRuled for SqliteStore {
    async fn on_locks<T: Send + 'static>(
        &self,
        op: Op,
        names: Vec<LockName>,
        rule: impl Fn(&mut LockStep) -> T + Send + Sync + 'static,
    ) -> Reply<T> {
        let (shared, call) = (&self.shared, Call::new(op));
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
        let (shared, call) = (&self.shared, Call::new(Op::Locks));
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
        let (shared, call) = (&self.shared, Call::new(Op::Purge));
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
