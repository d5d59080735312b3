//! From columns to words and back. Total: whatever stands in a row, reading it ends in a value or in words that name the column.

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::job::NodeName;
use crate::slot::{Audit, Holder, JobLatest, OutputTail, SlotKey, Token};
use crate::store::Pause;
use crate::store::sql::session::{Columns, Value, Why, values};
use crate::store::state::{MarkKind, SlotState, StoredMark};
use crate::text::message;

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
fn count(row: &impl Columns, column: &str) -> Result<u32, Why> {
    let found = number(row, column)?.unwrap_or(0);
    u32::try_from(found).map_err(|_| odd(column, format!("{found} is no count")))
}

/// An instant that may be absent.
pub(super) fn instant(row: &impl Columns, column: &str) -> Result<Option<DateTime<Utc>>, Why> {
    let Some(found) = number(row, column)? else { return Ok(None) };
    DateTime::from_timestamp_millis(found).map(Some).ok_or_else(|| odd(column, format!("{found} ms is no instant")))
}

/// What is there in JSON, and may be absent.
pub(super) fn record<T: DeserializeOwned>(row: &impl Columns, column: &str) -> Result<Option<T>, Why> {
    let read = |found: String| serde_json::from_str(&found).map_err(|error| odd(column, error));
    text(row, column)?.map(read).transpose()
}

/// The JSON of a record. Its types have no key or number that JSON lacks.
pub(super) fn json<T: Serialize>(value: &T) -> Result<String, Why> {
    serde_json::to_string(value).map_err(|error| error.to_string())
}

/// A slot's key, as it is shown.
pub(super) fn key(row: &impl Columns) -> Result<SlotKey, Why> {
    there(text(row, "slot")?, "slot")?.parse().map_err(|error| odd("slot", error))
}

/// The server's clock when the row was read.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) fn now(row: &impl Columns) -> Result<DateTime<Utc>, Why> {
    there(instant(row, "now_ms")?, "now_ms")
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

/// A pause, in its table.
pub(super) fn pause(row: &impl Columns) -> Result<Pause, Why> {
    pause_in(row, ["since_ms", "until_ms", "audit"])
}

/// The job's pause in the row of a slot, where it has one.
pub(super) fn pause_beside(row: &impl Columns) -> Result<Option<Pause>, Why> {
    let columns @ [since, ..] = ["pause_since_ms", "pause_until_ms", "pause_audit"];
    if number(row, since)?.is_some() { pause_in(row, columns).map(Some) } else { Ok(None) }
}

fn pause_in(row: &impl Columns, [since, until, by]: [&str; 3]) -> Result<Pause, Why> {
    let PauseAudit { audit, ended } = there(record(row, by)?, by)?;
    let since = there(instant(row, since)?, since)?;
    Ok(Pause { since, until: instant(row, until)?, audit, ended })
}

/// What a job has come to lately; nothing where that is NULL.
pub(super) fn latest(row: &impl Columns) -> Result<JobLatest, Why> {
    record(row, "latest").map(Option::unwrap_or_default)
}

/// The end of a run's output.
pub(super) fn output(row: &impl Columns) -> Result<OutputTail, Why> {
    there(record(row, "output")?, "output")
}

/// All that is kept of a slot but its outputs: its document, the counter, and what stands at its key.
pub(super) fn state(row: &impl Columns) -> Result<SlotState, Why> {
    let kept: SlotState = there(record(row, "document")?, "document")?;
    Ok(SlotState { mark: mark(row)?, counter: count(row, "attempts")?, ..kept })
}

/// What stands at the key; none where `state` says so.
pub(super) fn mark(row: &impl Columns) -> Result<Option<StoredMark>, Why> {
    let word = there(text(row, "state")?, "state")?;
    if word == NO_MARK {
        return Ok(None);
    }
    let node = there(text(row, "node")?, "node")?;
    let node = NodeName::new(&node).map_err(|error| odd("node", error))?;
    Ok(Some(StoredMark {
        kind: kind(&word, token(row)?)?,
        by: Holder { node, attempt: count(row, "attempt")? },
        since: there(instant(row, "since_ms")?, "since_ms")?,
        until: there(instant(row, "until_ms")?, "until_ms")?,
    }))
}

/// The word of a slot at whose key nothing stands.
const NO_MARK: &str = "none";

fn token(row: &impl Columns) -> Result<Option<Token>, Why> {
    let Some(found) = text(row, "token")? else { return Ok(None) };
    found.parse().map(Some).map_err(|error| odd("token", error))
}

fn kind(word: &str, token: Option<Token>) -> Result<MarkKind, Why> {
    match word {
        "running" => there(token, "token").map(MarkKind::Lease),
        "backoff" => there(token, "token").map(MarkKind::Wait),
        "done" => Ok(MarkKind::Done(token)),
        _ => Err(odd("state", format!("{word:?} is no state"))),
    }
}

/// The columns of what stands at the key: state, node, attempt, token, since and until.
pub(super) fn mark_columns(mark: Option<&StoredMark>) -> Vec<Value> {
    let Some(mark) = mark else {
        return values![NO_MARK, None::<String>, None::<i64>, None::<String>, None::<i64>, None::<i64>];
    };
    let (word, token) = match mark.kind {
        MarkKind::Lease(token) => ("running", Some(token)),
        MarkKind::Wait(token) => ("backoff", Some(token)),
        MarkKind::Done(token) => ("done", token),
    };
    let (node, attempt) = (mark.by.node.as_str(), i64::from(mark.by.attempt));
    values![word, node, attempt, token.map(|token| token.to_string()), mark.since, mark.until]
}
