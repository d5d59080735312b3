//! The tables' version, and how they are made: by one of the processes that start together. The server commits after each
//! statement that makes a table, so a step can be done again from its beginning, and the version is written last.

use std::time::Duration;

use super::session::MySqlSession;
use crate::store::sql::fault::Fault;
use crate::store::sql::server::{Access, Steps, pending};
use crate::store::sql::session::{Columns, Session, values};
use crate::store::{ErrorKind, Migration};

const STEPS: Steps = &[
    include_str!("0001_tables.sql"),
    include_str!("0002_notes.sql"),
    include_str!("0003_last_run.sql"),
    include_str!("0004_turns.sql"),
];

/// Brings the tables to the newest version, if that is allowed; waits as long for others who do the same.
pub(super) async fn bring_up(session: &mut MySqlSession, access: Access, limit: Duration) -> Result<Migration, Fault> {
    let found = version(session).await?;
    let current = pending(STEPS, found, access)?.next().is_none();
    if current {
        return Ok(Migration { from: found, to: found });
    }
    lock(session, limit).await?;
    let done = step_up(session, access).await;
    // Else the lock would stay as long as the connection.
    session.run(include_str!("schema_unlock.sql")).await?;
    done
}

async fn lock(session: &mut MySqlSession, limit: Duration) -> Result<(), Fault> {
    let seconds = i64::try_from(limit.as_secs()).unwrap_or(i64::MAX).max(1);
    let rows = session.fetch(include_str!("schema_lock.sql"), values![seconds]).await?;
    match rows.first().map(|row| row.number("locked")).transpose()?.flatten() {
        Some(1) => Ok(()),
        _ => Err(Fault::known(ErrorKind::Timeout, "another process makes the tables: try again".to_owned())),
    }
}

async fn step_up(session: &mut MySqlSession, access: Access) -> Result<Migration, Fault> {
    // Read again: another process may have done it meanwhile.
    let from = version(session).await?;
    let mut to = from;
    for (next, step) in pending(STEPS, from, access)? {
        session.run(step).await?;
        session.execute("UPDATE cronward_schema SET version = ?", values![next]).await?;
        to = next;
    }
    Ok(Migration { from, to })
}

/// 0 when there are no tables.
async fn version(session: &mut MySqlSession) -> Result<i64, Fault> {
    if session.number(include_str!("schema_there.sql")).await? == Some(0) {
        return Ok(0);
    }
    Ok(session.number("SELECT max(version) FROM cronward_schema").await?.unwrap_or(0))
}
