//! From columns to words and back. Total: whatever stands in a row, reading it ends in a value or in a [`Fault`] that
//! names the column.

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::job::NodeName;
use crate::slot::{Audit, Holder, RunRecord, Token};
use crate::store::Pause;
use crate::store::sql::session::Columns;
use crate::store::state::{MarkKind, SlotState, StoredMark};
use crate::text::message;

/// Why a column cannot be read, with its name.
pub(super) type Why = String;

fn odd(column: &str, why: impl std::fmt::Display) -> Why {
    // What is found there may be part of the reason.
    message(&format!("column {column}: {why}"), 300)
}

/// A whole number that may be absent.
pub(super) fn number(row: &impl Columns, column: &str) -> Result<Option<i64>, Why> {
    row.number(column).map_err(|error| odd(column, error))
}

/// A text that may be absent.
pub(super) fn text(row: &impl Columns, column: &str) -> Result<Option<String>, Why> {
    row.text(column).map_err(|error| odd(column, error))
}

/// The value that has to be there.
pub(super) fn there<T>(value: Option<T>, column: &str) -> Result<T, Why> {
    value.ok_or_else(|| odd(column, "it is NULL"))
}

/// A count from 0 to 2^32 - 1; absent is 0.
pub(super) fn count(row: &impl Columns, column: &str) -> Result<u32, Why> {
    let found = number(row, column)?.unwrap_or(0);
    u32::try_from(found).map_err(|_| odd(column, format!("{found} is no count")))
}

/// An instant that may be absent.
pub(super) fn instant(row: &impl Columns, column: &str) -> Result<Option<DateTime<Utc>>, Why> {
    let Some(found) = number(row, column)? else { return Ok(None) };
    DateTime::from_timestamp_millis(found).map(Some).ok_or_else(|| odd(column, format!("{found} ms is no instant")))
}

/// A record in JSON that may be absent.
pub(super) fn record<T: DeserializeOwned>(row: &impl Columns, column: &str) -> Result<Option<T>, Why> {
    text(row, column)?.map(|found| read(&found, column)).transpose()
}

fn read<T: DeserializeOwned>(found: &str, column: &str) -> Result<T, Why> {
    serde_json::from_str(found).map_err(|error| odd(column, error))
}

/// The server's clock when the row was read.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) fn now(row: &impl Columns) -> Result<DateTime<Utc>, Why> {
    there(instant(row, "now_ms")?, "now_ms")
}

/// The records of a slot's runs, in no order.
pub(super) fn runs(row: &impl Columns) -> Result<Vec<RunRecord>, Why> {
    let records: Vec<String> = record(row, "runs")?.unwrap_or_default();
    records.iter().map(|found| read(found, "runs")).collect()
}

/// The job's pause in a slot's row, where it has one.
pub(super) fn pause_beside(row: &impl Columns) -> Result<Option<Pause>, Why> {
    if number(row, "since_ms")?.is_some() { pause(row).map(Some) } else { Ok(None) }
}

/// The column `audit` of a pause: who began it, and within that who ended it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PauseAudit {
    #[serde(flatten)]
    audit: Audit,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<Audit>,
}

impl PauseAudit {
    pub(super) fn of(pause: &Pause) -> Self {
        Self { audit: pause.audit.clone(), ended: pause.ended.clone() }
    }
}

/// A pause.
pub(super) fn pause(row: &impl Columns) -> Result<Pause, Why> {
    let PauseAudit { audit, ended } = there(record(row, "audit")?, "audit")?;
    let since = there(instant(row, "since_ms")?, "since_ms")?;
    Ok(Pause { since, until: instant(row, "until_ms")?, audit, ended })
}

/// The JSON of a record. Its types have no key or number that JSON lacks.
pub(super) fn json<T: Serialize>(value: &T) -> Result<String, Why> {
    serde_json::to_string(value).map_err(|error| error.to_string())
}

/// A slot's row: all but its runs and the operators' verbs.
pub(super) fn slot_row(row: &impl Columns) -> Result<SlotState, Why> {
    Ok(SlotState {
        mark: mark(row)?,
        counter: count(row, "counter")?,
        touched: instant(row, "touched_ms")?,
        forgiven: count(row, "forgiven")?,
        verdict: record(row, "verdict")?,
        ..SlotState::default()
    })
}

/// The mark's columns; none when `mark` is NULL.
pub(super) fn mark(row: &impl Columns) -> Result<Option<StoredMark>, Why> {
    let Some(word) = text(row, "mark")? else { return Ok(None) };
    let node = there(text(row, "mark_node")?, "mark_node")?;
    let node = NodeName::new(&node).map_err(|error| odd("mark_node", error))?;
    Ok(Some(StoredMark {
        kind: kind(&word, token(row)?)?,
        by: Holder { node, attempt: count(row, "mark_attempt")? },
        since: there(instant(row, "mark_since_ms")?, "mark_since_ms")?,
        until: there(instant(row, "mark_until_ms")?, "mark_until_ms")?,
    }))
}

fn token(row: &impl Columns) -> Result<Option<Token>, Why> {
    let Some(found) = text(row, "mark_token")? else { return Ok(None) };
    found.parse().map(Some).map_err(|error| odd("mark_token", error))
}

fn kind(word: &str, token: Option<Token>) -> Result<MarkKind, Why> {
    match word {
        "lease" => there(token, "mark_token").map(MarkKind::Lease),
        "wait" => there(token, "mark_token").map(MarkKind::Wait),
        "done" => Ok(MarkKind::Done(token)),
        _ => Err(odd("mark", format!("{word:?} is no mark"))),
    }
}

/// The word and the token of a mark, as [`kind`] reads them.
pub(super) const fn kind_columns(kind: MarkKind) -> (&'static str, Option<Token>) {
    match kind {
        MarkKind::Lease(token) => ("lease", Some(token)),
        MarkKind::Wait(token) => ("wait", Some(token)),
        MarkKind::Done(token) => ("done", token),
    }
}
