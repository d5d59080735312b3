//! A door for the fuzz target: any bytes as a row of a table, and each column read as what it may be. Only behind its
//! feature.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use sqlx::Error;

use super::row;
use super::session::{Columns, Why};
use super::{queues, registry};
use crate::slot::{MOST_PAGES, NotePage, Slot};
use crate::store::state::Moment;
use crate::store::{JobEntry, NodeReport};

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Cell {
    Number(i64),
    Text(String),
}

/// A row as JSON: the object's keys are the columns.
#[derive(Debug, Deserialize)]
struct Cells(BTreeMap<String, Option<Cell>>);

impl Columns for Cells {
    fn number(&self, column: &str) -> Result<Option<i64>, Error> {
        match self.cell(column)? {
            None => Ok(None),
            Some(Cell::Number(number)) => Ok(Some(*number)),
            Some(Cell::Text(text)) => Err(mismatched(text)),
        }
    }

    fn text(&self, column: &str) -> Result<Option<String>, Error> {
        match self.cell(column)? {
            None => Ok(None),
            Some(Cell::Text(text)) => Ok(Some(text.clone())),
            Some(Cell::Number(number)) => Err(mismatched(&number.to_string())),
        }
    }
}

impl Cells {
    fn cell(&self, column: &str) -> Result<Option<&Cell>, Error> {
        self.0.get(column).map(Option::as_ref).ok_or_else(|| Error::ColumnNotFound(column.to_owned()))
    }
}

/// A driver's words, with what stood there.
fn mismatched(found: &str) -> Error {
    Error::Decode(format!("mismatched types: {found}").into())
}

/// A row of any of the tables. True when one of them could hold it. What is refused is told in one line.
pub fn sql_row(bytes: &[u8]) -> bool {
    let Ok(row) = serde_json::from_slice::<Cells>(bytes) else { return false };
    let taken = [
        is_slot(&row),
        told(row::pause_beside(&row)) && row.0.contains_key("pause_audit"),
        told(row::pause(&row)),
        told(row::output(&row)),
        told(row::latest(&row)) && row.0.contains_key("latest"),
        told(needed::<JobEntry>(&row, "entry")),
        told(needed::<NodeReport>(&row, "report")),
        told(needed::<NotePage>(&row, "record")),
        queues::queue(&row).is_ok_and(|lock| lock.is_some()),
    ];
    for column in ["first_seen_ms", "seen_ms"] {
        told(row::instant(&row, column));
    }
    told(row::key(&row));
    told(queues::queue(&row));
    told(registry::place(&row));
    if let Ok(page) = registry::page(&row) {
        is_sorted(page, bytes.len());
    }
    taken.contains(&true)
}

/// A slot that was read is shown, and is the same when it is written: what stands at its key by columns, the rest by its document.
fn is_slot(row: &Cells) -> bool {
    let state = row::state(row);
    if let (Ok(state), Ok(slot)) = (&state, Slot::parse("a", "2026-11-21T14Z", "2026-11-21T15Z")) {
        let written = row::json(state).unwrap_or_default();
        let again = serde_json::from_str(&written).ok().map(|kept| crate::store::state::SlotState {
            mark: state.mark.clone(),
            counter: state.counter,
            ..kept
        });
        assert_eq!(again.as_ref(), Some(state), "{written}");
        assert_eq!(row::mark_columns(state.mark.as_ref()).len(), 6);
        let _ = state.record(&slot, Moment { now: slot.end(), retention: Duration::MAX });
    }
    told(state)
}

/// A page has a place among others, and of too many as many go as are too many.
fn is_sorted(page: NotePage, length: usize) {
    assert!(page.notes.len() <= length, "no more comes out than went in");
    let kept = (0..MOST_PAGES + 2).map(|_| (page.last, page.id.clone(), ())).collect();
    assert_eq!(NotePage::surplus(kept).len(), 2);
    NotePage::sort(&mut [page.clone(), page]);
}

fn needed<T: serde::de::DeserializeOwned + serde::Serialize>(row: &Cells, column: &str) -> Result<T, Why> {
    let value = row::there(row::record::<T>(row, column)?, column)?;
    let again = row::json(&value)?;
    assert!(serde_json::from_str::<T>(&again).is_ok(), "{again}");
    Ok(value)
}

fn told<T>(outcome: Result<T, Why>) -> bool {
    if let Err(why) = &outcome {
        assert!(!why.chars().any(crate::text::is_harmful), "not one harmless line: {why:?}");
        assert!(why.chars().count() <= 2_500, "{} bytes of message", why.len());
    }
    outcome.is_ok()
}
