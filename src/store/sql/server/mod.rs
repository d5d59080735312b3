//! Stores in a database server that several nodes share. What is the same for every server is here; each `Dialect` has its
//! own connection, texts, errors and way to write.
//!
//! - **Atomic steps without locks that outlive a thought.** A slot is read by one statement, the rule is applied here, and
//!   the change is written by one transaction that succeeds only if the row's version is still the one that was read. If
//!   not, somebody else's step came first: it is read again (I1, I5). A node that stalls between the two holds nothing.
//! - **Time** is the server's clock, read by the statement that reads the slot. A change that comes later than the time limit
//!   of a call after that is refused by the server.
//! - **Bounded.** A call ends within `op_timeout`, and the server is told to give up a statement by then too. At most
//!   [`pool::MOST`] connections are open, one more for hints.
//! - **Tried again here** is only what certainly was not applied: a step that another's came before, a transaction that the
//!   server rolled back for a deadlock, and a first statement on a connection that had died while it was idle.
//! - **Applied.** An error before the write is sent is [`Applied::No`](crate::store::Applied), so is the server's answer that
//!   it rolled back; everything else about a write is `Maybe`.

mod dialect;
mod operations;
mod pool;
mod store;

pub(super) use dialect::{Access, Dialect, Isolation, MIGRATION_LIMIT, Sent, are_missing, migrated, take_access};
pub(super) use store::ServerStore;
