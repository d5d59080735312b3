//! The queues of locks in their table: each is one row with its document. Read, decided on by a rule, and written where it has changed;
//! and removed once nobody needs it.

use std::collections::BTreeMap;

use super::lane::{OWN, Tx};
use crate::job::LockName;
use crate::slot::Token;
use crate::store::rules::{LockState, LockStep};
use crate::store::sql::fault::SqlFault;
use crate::store::sql::row;
use crate::store::sql::session::{Columns, Session as _, Why, values};
use crate::store::sql::slots::Scope;

/// The most locks that one purge removes.
const PURGE_AT_ONCE: i64 = 500;

fn odd(why: Why) -> SqlFault {
    SqlFault::Row(format!("table locks: {why}"))
}

/// A lock and its queue.
fn state(found: &impl Columns) -> Result<(LockName, LockState), SqlFault> {
    let decode = || {
        let name = row::there(row::text(found, "lock")?, "lock")?;
        let name = LockName::new(&name).map_err(|error| format!("column lock: {error}"))?;
        Ok((name, row::there(row::record(found, "document")?, "document")?))
    };
    decode().map_err(odd)
}

/// The queues of these locks; of all where none is named. One that nobody has used is not there.
pub(super) async fn read(
    tx: &mut Tx<'_>,
    scope: &Scope,
    names: &[LockName],
) -> Result<BTreeMap<LockName, LockState>, SqlFault> {
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
pub(super) async fn step<T>(
    tx: &mut Tx<'_>,
    scope: &Scope,
    names: &[LockName],
    rule: &(impl Fn(&mut LockStep) -> T + Sync),
) -> Result<(T, Vec<(Token, Token)>), SqlFault> {
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
pub(super) async fn purge(tx: &mut Tx<'_>, scope: &Scope) -> Result<u64, SqlFault> {
    let values = values![scope.namespace.as_str(), tx.now, PURGE_AT_ONCE];
    Ok(tx.execute(OWN.locks_purge, values).await?)
}
