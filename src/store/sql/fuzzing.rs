//! A door for the fuzz target: any bytes as a row of a table, and each column read as what it may be. Only behind its
//! feature.

use super::cells::Cells;
use super::notes;
use super::row::{self, Why};
use crate::slot::{Audit, MOST_PAGES, NotePage, RunRecord};
use crate::store::{JobEntry, NodeReport};

/// A row of any of the tables. True when one of them could hold it. What is refused is told in one line.
pub fn sql_row(bytes: &[u8]) -> bool {
    let Ok(row) = serde_json::from_slice::<Cells>(bytes) else { return false };
    let taken = [
        told(row::slot_row(&row)),
        told(row::runs(&row)),
        told(row::pause_beside(&row)) && row.has("audit"),
        told(row::pause(&row)),
        told(needed::<RunRecord>(&row, "record")),
        told(needed::<Audit>(&row, "record")),
        told(needed::<JobEntry>(&row, "entry")),
        told(needed::<NodeReport>(&row, "report")),
        told(needed::<NotePage>(&row, "record")),
    ];
    for column in ["first_seen_ms", "seen_ms", "touched_ms"] {
        told(row::instant(&row, column));
    }
    told(notes::place(&row));
    if let Ok(page) = notes::page(&row) {
        is_sorted(page, bytes.len());
    }
    taken.contains(&true)
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
