//! Many slots at once, as people and dashboards ask for them: three statements, however many there are.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::fault::Fault;
use super::lane::Tx;
use super::row;
use super::slots::{Scope, asked};
use crate::slot::{Mark, RunRecord, Slot, SlotRecord};

/// A slot's identity in the tables.
type Id = (String, i64);

fn id(slot: &Slot) -> Id {
    (slot.job().as_str().to_owned(), slot.start().timestamp_millis())
}

/// The store's clock, and what is known of each slot, in the order asked.
pub(super) async fn inspect(
    tx: &mut Tx<'_>,
    scope: &Scope,
    slots: &[Slot],
) -> Result<(DateTime<Utc>, Vec<SlotRecord>), Fault> {
    let rows = by_slot(read(tx, scope, include_str!("slots_read.sql"), slots).await?)?;
    let runs = by_slot(read(tx, scope, include_str!("runs_read.sql"), slots).await?)?;
    let audit = by_slot(read(tx, scope, include_str!("audit_read.sql"), slots).await?)?;
    let mut records = Vec::with_capacity(slots.len());
    for slot in slots {
        let id = id(slot);
        let mut record = SlotRecord::untouched(slot.clone());
        let odd = |why| Fault::row(slot, why);
        if let Some(found) = rows.get(&id).and_then(|rows| rows.first()) {
            let current = fill(&mut record, found, tx, scope).map_err(odd)?;
            if current {
                record.runs = decode(runs.get(&id)).map_err(odd)?;
                record.audit = decode(audit.get(&id)).map_err(odd)?;
            }
        }
        record.runs.sort_by_key(|run: &RunRecord| (run.attempt, run.claimed_at, run.token));
        record.attempts = record.runs.iter().map(|run| run.attempt).fold(record.attempts, u32::max);
        records.push(record);
    }
    Ok((tx.now, records))
}

/// Fills in what the row says; answers whether its records are within the retention.
fn fill(record: &mut SlotRecord, found: &SqliteRow, tx: &Tx<'_>, scope: &Scope) -> Result<bool, row::Why> {
    let row = row::slot_row(found)?;
    let mark = row.mark.filter(|mark| mark.until > tx.now);
    record.mark = mark.map_or(Mark::Free, |mark| mark.shown(tx.now));
    let current = row::there(row::instant(found, "touched_ms")?, "touched_ms")? > scope.oldest(tx.now);
    if current {
        record.attempts = row.counter;
        record.forgiven = row.forgiven;
        record.verdict = row.verdict;
    }
    Ok(current)
}

async fn read(tx: &mut Tx<'_>, scope: &Scope, sql: &'static str, slots: &[Slot]) -> Result<Vec<SqliteRow>, Fault> {
    Ok(sqlx::query(sql).bind(scope.namespace.as_str()).bind(asked(slots)).fetch_all(tx.on()).await?)
}

fn by_slot(rows: Vec<SqliteRow>) -> Result<HashMap<Id, Vec<SqliteRow>>, Fault> {
    let mut found: HashMap<Id, Vec<SqliteRow>> = HashMap::new();
    for row in rows {
        let id = (row.try_get("job")?, row.try_get("start_ms")?);
        found.entry(id).or_default().push(row);
    }
    Ok(found)
}

fn decode<T: DeserializeOwned>(rows: Option<&Vec<SqliteRow>>) -> Result<Vec<T>, row::Why> {
    let rows = rows.map_or(&[][..], Vec::as_slice);
    rows.iter().map(|found| row::there(row::record(found, "record")?, "record")).collect()
}
