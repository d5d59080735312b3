//! The tables' version, and how they are made: by one of the processes that start together, in one transaction.

use super::session::PgSession;
use crate::store::Migration;
use crate::store::sql::fault::Fault;
use crate::store::sql::server::{Access, Steps, pending};
use crate::store::sql::session::{Session, values};

const STEPS: Steps = &[include_str!("0001_tables.sql"), include_str!("0002_notes.sql"), include_str!("0003_turns.sql")];

/// Brings the tables to the newest version, if that is allowed.
pub(super) async fn bring_up(session: &mut PgSession, access: Access) -> Result<Migration, Fault> {
    let found = version(session).await?;
    let current = pending(STEPS, found, access)?.next().is_none();
    if current {
        return Ok(Migration { from: found, to: found });
    }
    session.run("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
    // Until the end of the transaction; processes that start together wait for each other here.
    session.run(include_str!("schema_lock.sql")).await?;
    // Read again: another process may have done it meanwhile.
    let from = version(session).await?;
    let mut to = from;
    for (next, step) in pending(STEPS, from, access)? {
        session.run(step).await?;
        session.execute("UPDATE cronward_schema SET version = $1", values![next]).await?;
        to = next;
    }
    session.run("COMMIT").await?;
    Ok(Migration { from, to })
}

/// 0 when there are no tables.
async fn version(session: &mut PgSession) -> Result<i64, Fault> {
    if session.number(include_str!("schema_there.sql")).await? == Some(0) {
        return Ok(0);
    }
    Ok(session.number("SELECT max(version) FROM cronward_schema").await?.unwrap_or(0))
}
