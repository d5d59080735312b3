//! What the shared code needs of a database: one place to run a statement, and rows with numbers and texts in them.
//!
//! Only these two types cross: instants are epoch milliseconds, records are JSON, and a dialect cannot mistake either. A
//! statement is a file of its dialect; what users wrote reaches it as a value only.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::row::Why;
use crate::slot::RunRecord;

/// A value for a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Text(Option<String>),
    Number(Option<i64>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(Some(number))
    }
}

impl From<Option<i64>> for Value {
    fn from(number: Option<i64>) -> Self {
        Self::Number(number)
    }
}

impl From<DateTime<Utc>> for Value {
    fn from(instant: DateTime<Utc>) -> Self {
        instant.timestamp_millis().into()
    }
}

/// The values of a statement, in the order of its numbers.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::store::sql::session::Value::from($value)),*] };
}
pub(super) use values;

/// A row. A column that is not there, or has another type, is an error and never a default.
pub(super) trait Columns: Send + Sync {
    fn number(&self, column: &str) -> Result<Option<i64>, sqlx::Error>;
    fn text(&self, column: &str) -> Result<Option<String>, sqlx::Error>;
}

/// A connection while one call has it.
#[async_trait]
pub(super) trait Session: Send {
    type Row: Columns;

    /// The dialect's statements.
    fn texts(&self) -> &'static Texts;

    /// The instant by which everything in a transaction is judged.
    fn now(&self) -> DateTime<Utc>;

    /// The run in a slot's row, where the dialect keeps the last one there.
    fn last_run(&self, _row: &Self::Row) -> Result<Option<RunRecord>, Why> {
        Ok(None)
    }

    /// The last turn of the slot's job, where the dialect keeps turns: of two claims at once that must not both be granted, one
    /// is, because no turn is taken twice.
    fn last_turn(&self, _row: &Self::Row) -> Result<Option<i64>, Why> {
        Ok(None)
    }

    /// The instant by which a slot is judged that was read in this row.
    fn read_at(&self, row: &Self::Row) -> Result<DateTime<Utc>, Why>;

    async fn fetch(&mut self, sql: &'static str, values: Vec<Value>) -> Result<Vec<Self::Row>, sqlx::Error>;

    /// Answers how many rows were changed.
    async fn execute(&mut self, sql: &'static str, values: Vec<Value>) -> Result<u64, sqlx::Error>;
}

/// Names the statements that every dialect has, once: `Texts`, and `texts!()`, which reads those of the folder of the file that
/// says it. What a number stands for in a statement is the same in all dialects.
macro_rules! statements {
    ($dollar:tt $($name:ident),* $(,)?) => {
        /// The statements that every dialect has, each a file of its own with the same name.
        #[derive(Debug)]
        pub(super) struct Texts {
            $(pub(super) $name: &'static str),*
        }

        /// The statements of the folder of the file that says this.
        macro_rules! texts {
            () => {
                $dollar crate::store::sql::session::Texts {
                    $($name: include_str!(concat!(stringify!($name), ".sql"))),*
                }
            };
        }
    };
}

statements!($
    slot_load,
    slots_read,
    runs_read,
    output_read,
    audit_read,
    pause_get,
    pause_set,
    pauses,
    jobs_register,
    jobs,
    nodes_forget,
    node_save,
    nodes,
    purge,
    notes_save,
    notes_there,
    notes_read,
    notes_forget,
    notes_purge,
    trial_jobs,
    trial_nodes,
    trial_pauses,
    trial_slots,
    trial_notes,
);
pub(super) use texts;
