//! Stores in SQL databases.
//!
//! A database keeps rows and makes a transaction atomic; the rules are Rust, on the state of one slot (`store::rules`), shared
//! with stores that are no databases. Each dialect
//! has its own connection, its own statements (`statements.sql`) and its own errors; all else is shared.
//!
//! | part | what it does |
//! |---|---|
//! | `session`, `row` | a connection, its statements and rows, as the shared code sees them |
//! | `slots`, `registry`, `schema` | what is read and written: the same tables in every dialect |
//! | `sqlite` | one file, and the lock on it |
//! | `server` | what database servers have in common: connections, limits, steps that others come before |
//! | `postgres`, `mysql` | the servers' own |

mod backend;
mod fault;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "postgres")]
pub mod postgres;
mod registry;
mod row;
mod schema;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod server;
mod session;
mod slots;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "mysql")]
pub(super) use backend::MysqlBackend;
#[cfg(feature = "postgres")]
pub(super) use backend::PostgresBackend;
#[cfg(feature = "sqlite")]
pub(super) use backend::SqliteBackend;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;
