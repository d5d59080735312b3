//! A row that came as JSON, inside of another row: the object's keys are the columns.

use std::collections::BTreeMap;

use serde::Deserialize;
use sqlx::Error;

use super::session::Columns;

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Cell {
    Number(i64),
    Text(String),
}

/// A row.
#[derive(Debug, Deserialize)]
pub(super) struct Cells(BTreeMap<String, Option<Cell>>);

impl Columns for Cells {
    fn number(&self, column: &str) -> Result<Option<i64>, Error> {
        match self.cell(column)? {
            None => Ok(None),
            Some(Cell::Number(number)) => Ok(Some(*number)),
            Some(Cell::Text(text)) => Err(odd(text)),
        }
    }

    fn text(&self, column: &str) -> Result<Option<String>, Error> {
        match self.cell(column)? {
            None => Ok(None),
            Some(Cell::Text(text)) => Ok(Some(text.clone())),
            Some(Cell::Number(number)) => Err(odd(&number.to_string())),
        }
    }
}

impl Cells {
    /// Whether there is such a column, NULL or not.
    #[cfg(feature = "fuzzing")]
    pub(super) fn has(&self, column: &str) -> bool {
        self.0.contains_key(column)
    }

    fn cell(&self, column: &str) -> Result<Option<&Cell>, Error> {
        self.0.get(column).map(Option::as_ref).ok_or_else(|| Error::ColumnNotFound(column.to_owned()))
    }
}

/// A driver's words, with what stood there.
fn odd(found: &str) -> Error {
    Error::Decode(format!("mismatched types: {found}").into())
}
