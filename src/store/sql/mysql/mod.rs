//! The MySQL store: tables in a database that every node reaches; MariaDB 10.6 or later, MySQL 8.0.4 or later.
//!
//! - **A step** is a SELECT and, where something changes, one statement that writes the slot's row, the last run's record in it, on
//!   the condition of its version; the first claim of a slot is one INSERT. Only an operator's verb, which adds to the audit, and what
//!   takes the place of outlasted records need a short transaction.
//! - **Hints** reach this process only; others look again at an interval.
//! - **Isolation** is READ COMMITTED, set on each connection: fewer gap locks, so fewer deadlocks. A listing of many slots
//!   reads from one consistent snapshot.
//! - **Strict.** The SQL mode is set on each connection, so that nothing is cut or rounded in silence.

mod examine;
mod fault;
mod open;
mod place;
mod schema;
mod session;

pub(in crate::store) use examine::examine;
pub(in crate::store) use open::{CAPABILITY, forget};
pub use open::{migrate, open};
