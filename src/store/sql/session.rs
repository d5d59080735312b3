//! What the shared code needs of a database: one place to run a statement, and rows with numbers and texts in them.
//!
//! Only these two types cross: instants are epoch milliseconds, records are JSON, and a dialect cannot mistake either. A
//! statement is a file of its dialect; what users wrote reaches it as a value only.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

/// Why a column cannot be read, with its name.
pub(super) type Why = String;

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

/// A connection of sqlx.
#[async_trait]
pub(super) trait Driver: Send {
    type Row: Columns;

    async fn fetch(&mut self, sql: &'static str, values: Vec<Value>) -> Result<Vec<Self::Row>, sqlx::Error>;

    /// Answers how many rows were changed.
    async fn execute(&mut self, sql: &'static str, values: Vec<Value>) -> Result<u64, sqlx::Error>;

    /// One number of a statement's one row.
    async fn number(&mut self, sql: &'static str) -> Result<Option<i64>, sqlx::Error>;

    /// Runs statements without values, as they stand.
    async fn run(&mut self, sql: &'static str) -> Result<(), sqlx::Error>;
}

/// A statement with its values.
macro_rules! bound {
    ($database:ident, $sql:expr, $values:expr) => {
        $values.into_iter().fold(sqlx::query::<sqlx::$database>($sql), |query, value| match value {
            Value::Text(text) => query.bind(text),
            Value::Number(number) => query.bind(number),
        })
    };
}

/// The same for each driver. Written as one function, its bounds on what sqlx can bind, send and read would be longer than it.
macro_rules! driver {
    ($database:ident, $connection:ty, $row:ty) => {
        impl Columns for $row {
            fn number(&self, column: &str) -> Result<Option<i64>, sqlx::Error> {
                sqlx::Row::try_get(self, column)
            }

            fn text(&self, column: &str) -> Result<Option<String>, sqlx::Error> {
                sqlx::Row::try_get(self, column)
            }
        }

        #[async_trait]
        impl Driver for $connection {
            type Row = $row;

            async fn fetch(&mut self, sql: &'static str, values: Vec<Value>) -> Result<Vec<$row>, sqlx::Error> {
                bound!($database, sql, values).fetch_all(self).await
            }

            async fn execute(&mut self, sql: &'static str, values: Vec<Value>) -> Result<u64, sqlx::Error> {
                Ok(bound!($database, sql, values).execute(self).await?.rows_affected())
            }

            async fn number(&mut self, sql: &'static str) -> Result<Option<i64>, sqlx::Error> {
                sqlx::query_scalar(sql).fetch_one(self).await
            }

            async fn run(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
                sqlx::raw_sql(sql).execute(self).await.map(drop)
            }
        }
    };
}

#[cfg(feature = "sqlite")]
driver!(Sqlite, sqlx::SqliteConnection, sqlx::sqlite::SqliteRow);
#[cfg(feature = "postgres")]
driver!(Postgres, sqlx::PgConnection, sqlx::postgres::PgRow);
#[cfg(feature = "mysql")]
driver!(MySql, sqlx::MySqlConnection, sqlx::mysql::MySqlRow);

/// A connection while one call has it.
#[async_trait]
pub(super) trait Session: Send {
    type Row: Columns;
    type Connection: Driver<Row = Self::Row>;

    fn connection(&mut self) -> &mut Self::Connection;

    /// The dialect's statements.
    fn texts(&self) -> &'static Texts;

    /// The instant by which everything in a transaction is judged.
    fn now(&self) -> DateTime<Utc>;

    /// The instant by which a slot is judged that was read in this row.
    fn read_at(&self, row: &Self::Row) -> Result<DateTime<Utc>, Why>;

    async fn fetch(&mut self, sql: &'static str, values: Vec<Value>) -> Result<Vec<Self::Row>, sqlx::Error> {
        self.connection().fetch(sql, values).await
    }

    /// Answers how many rows were changed.
    async fn execute(&mut self, sql: &'static str, values: Vec<Value>) -> Result<u64, sqlx::Error> {
        self.connection().execute(sql, values).await
    }
}

/// The statements of a dialect's file, `-- name: NAME` before each.
fn named(file: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    file.split("-- name: ").skip(1).filter_map(|block| block.split_once('\n')).map(|(name, text)| (name, text.trim()))
}

/// The statement of that name. A test of each dialect shows that there is one.
pub(super) fn statement(file: &'static str, name: &str) -> &'static str {
    named(file).find(|(known, _)| *known == name).map_or("", |(_, text)| text)
}

/// A set of statements, each named once: here and in the dialects' files.
macro_rules! statements {
    ($(#[$doc:meta])* $set:ident { $($name:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(in crate::store::sql) struct $set {
            $(pub(in crate::store::sql) $name: &'static str),*
        }

        impl $set {
            #[cfg(test)]
            pub(in crate::store::sql) const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            pub(in crate::store::sql) fn of(file: &'static str) -> Self {
                Self { $($name: $crate::store::sql::session::statement(file, stringify!($name))),* }
            }
        }
    };
}
pub(super) use statements;

statements! {
    /// The statements that every dialect has. What a number stands for in one is the same in all dialects.
    Texts {
        slot_load,
        slots_read,
        output_read,
        latest_read,
        pause_get,
        pause_read,
        pause_set,
        pauses,
        jobs_register,
        jobs,
        nodes_forget,
        node_known,
        node_save,
        nodes,
        purge,
        notes_save,
        notes_there,
        notes_read,
        notes_forget,
        notes_purge,
        locks_read,
        locks_all,
        locks_purge,
        messages_read,
        messages_insert,
        messages_update,
        messages_purge,
        trial_jobs,
        trial_nodes,
        trial_pauses,
        trial_slots,
        trial_notes,
        trial_latest,
        trial_locks,
        trial_messages,
    }
}

/// What a dialect's file and the names in use do not share: a statement that nobody asks, a name without a statement, one that is
/// there twice, and one that says nothing.
#[cfg(test)]
pub(super) fn unmatched(file: &'static str, own: &[&'static str]) -> Vec<String> {
    let used = || Texts::NAMES.iter().chain(own);
    let there = |name: &str| named(file).filter(|(known, text)| *known == name && !text.is_empty()).count();
    let missing = used().filter(|name| there(name) != 1).map(|name| format!("{name} is there {} times", there(name)));
    let idle = named(file).filter(|(name, _)| used().filter(|used| *used == name).count() != 1);
    missing.chain(idle.map(|(name, _)| format!("{name} is not asked once"))).collect()
}
