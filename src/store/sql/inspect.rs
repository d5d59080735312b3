//! Many slots at once, as people and dashboards ask for them: three statements, however many there are.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;

use super::fault::Fault;
use super::row;
use super::session::{Columns, Session, values};
use super::slots::{Scope, asked};
use crate::slot::{Attempt, OutputTail, RunRecord, Slot, SlotRecord, Token};
use crate::store::state::SlotState;

/// A slot's identity in the tables.
type Id = (String, i64);

fn id(slot: &Slot) -> Id {
    (slot.job().as_str().to_owned(), slot.start().timestamp_millis())
}

/// The store's clock, and what is known of each slot, in the order asked.
pub(super) async fn inspect<S: Session>(
    tx: &mut S,
    scope: &Scope,
    slots: &[Slot],
) -> Result<(DateTime<Utc>, Vec<SlotRecord>), Fault> {
    let rows = by_slot(read(tx, scope, tx.texts().slots_read, slots).await?)?;
    let runs = by_slot(read(tx, scope, tx.texts().runs_read, slots).await?)?;
    let audit = by_slot(read(tx, scope, tx.texts().audit_read, slots).await?)?;
    let state = |slot: &Slot| -> Result<SlotState, row::Why> {
        let id = id(slot);
        let Some(row) = rows.get(&id).and_then(|rows| rows.first()) else { return Ok(SlotState::default()) };
        let (runs, audit) = (decode(runs.get(&id))?, decode(audit.get(&id))?);
        let mut stored = SlotState { runs, audit, ..row::slot_row(row)? };
        stored.sort_runs();
        Ok(stored)
    };
    let at = scope.at(tx.now());
    let record = |slot: &Slot| Ok(state(slot).map_err(|why| Fault::row(slot, why))?.record(slot, at));
    Ok((at.now, slots.iter().map(record).collect::<Result<_, Fault>>()?))
}

/// The end of one run's output. It stands in the run's record, and `runs_read` leaves it out.
pub(super) async fn output<S: Session>(
    tx: &mut S,
    scope: &Scope,
    slot: &Slot,
    attempt: Attempt,
    token: Token,
) -> Result<Option<OutputTail>, Fault> {
    let mut named = values![scope.namespace.as_str(), slot.job().as_str(), slot.start()];
    named.extend(values![i64::from(attempt), token.to_string()]);
    let rows = tx.fetch(tx.texts().output_read, named).await?;
    for found in &rows {
        let run = row::record::<RunRecord>(found, "record").map_err(|why| Fault::row(slot, why))?;
        if let Some(output) = run.and_then(|run| run.output) {
            return Ok(Some(output));
        }
    }
    Ok(None)
}

async fn read<S: Session>(tx: &mut S, scope: &Scope, sql: &'static str, slots: &[Slot]) -> Result<Vec<S::Row>, Fault> {
    Ok(tx.fetch(sql, values![scope.namespace.as_str(), asked(slots)]).await?)
}

fn by_slot<R: Columns>(rows: Vec<R>) -> Result<HashMap<Id, Vec<R>>, Fault> {
    let mut found: HashMap<Id, Vec<R>> = HashMap::new();
    for row in rows {
        let Some(id) = row.text("job")?.zip(row.number("start_ms")?) else { continue };
        found.entry(id).or_default().push(row);
    }
    Ok(found)
}

fn decode<T: DeserializeOwned>(rows: Option<&Vec<impl Columns>>) -> Result<Vec<T>, row::Why> {
    let rows = rows.into_iter().flatten();
    rows.map(|found| row::there(row::record(found, "record")?, "record")).collect()
}
