//! The MySQL store: tables in a database that every node reaches; MariaDB 10.6 or later, MySQL 8.0.4 or later.
//!
//! - **A step** is a SELECT and, where something changes, one statement that writes the slot's row on the condition of its version.
//!   Only where a run's output changes, which stands in a table of its own, it needs a short transaction.
//! - **Hints** reach this process only; others look again at an interval.
//! - **Isolation** is READ COMMITTED, set on each connection: fewer gap locks, so fewer deadlocks. A listing of many slots
//!   reads from one consistent snapshot.
//! - **Strict.** The SQL mode is set on each connection, so that nothing is cut or rounded in silence.

mod examine;
mod fault;
mod open;
mod session;

pub(in crate::store) use examine::examine;
pub(in crate::store) use open::{CAPABILITY, forget};
pub use open::{migrate, open};
pub(in crate::store) use session::{FORM, check};
