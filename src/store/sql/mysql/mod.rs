//! The MySQL store: tables in a database that every node reaches; MariaDB 10.6 or later, MySQL 8.0.4 or later.
//!
//! - **A step** is a SELECT and, where something changes, a short transaction: the slot's row on the condition of its version,
//!   then the run's record and the operator's verb. A renewal changes the row alone and needs no transaction.
//! - **Hints** reach this process only; others look again at an interval.
//! - **Isolation** is READ COMMITTED, set on each connection: fewer gap locks, so fewer deadlocks. A listing of many slots
//!   reads from one consistent snapshot.
//! - **Strict.** The SQL mode is set on each connection, so that nothing is cut or rounded in silence.

mod fault;
mod open;
mod place;
mod schema;
mod session;

pub(in crate::store) use open::CAPABILITY;
pub use open::{migrate, open};
