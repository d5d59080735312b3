//! The PostgreSQL store: tables in a database that every node reaches; version 12 or later.
//!
//! - **A step** is a SELECT and, where something changes, one statement that writes the slot's row, the run's output and
//!   the hint together, or nothing: two round trips, and no transaction is open between them.
//! - **Hints** come by LISTEN on a connection of its own; NOTIFY is part of the writing statement, so none is sent for what was
//!   not committed.
//! - **Isolation** is READ COMMITTED, set on each connection: each statement sees what was committed before it, and a
//!   conditional write judges the row as it is when its lock is there.

mod examine;
mod fault;
mod listen;
mod open;
mod session;

pub(in crate::store) use examine::examine;
pub(in crate::store) use open::{CAPABILITY, forget};
pub use open::{migrate, open};
pub(in crate::store) use session::{FORM, check};
