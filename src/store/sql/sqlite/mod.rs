//! The SQLite store: one file, shared by the processes of one host.
//!
//! - **Atomic steps.** Every operation that may write is one `BEGIN IMMEDIATE` transaction: it holds the write lock before
//!   it reads, so what it decided still holds when it writes (I1, I5). Reading never waits for writers (WAL).
//! - **Time** is the host's clock, read by SQLite once per transaction.
//! - **Durable.** `synchronous=FULL`: an answered write outlives a kill and a power cut, as far as the disk keeps its
//!   word. Attempt numbers and done markers are promises to others; a commit costs one fsync, and cron has few.
//! - **In turns.** Calls on slots that wait at the same time share a transaction, and so its sync: see `turn`.
//! - **Bounded.** A call ends within `op_timeout`. Waiting for another process takes at most four fifths of it.
//! - **Applied.** An error before the commit is [`Applied::No`](crate::store::Applied): the transaction is rolled back. An
//!   error of the commit itself is `Maybe`, except when the file was locked; so is a time-out of a call that was begun.
//! - **Replaced file.** Each call looks whether the path still names the open file; if not, it opens what is there now.
//! - **Rows are not believed.** What cannot be read ends in [`ErrorKind::Corrupt`](crate::store::ErrorKind).

mod examine;
mod fault;
mod file;
mod lane;
mod operations;
mod place;
mod schema;
mod store;
mod turn;

pub(in crate::store) use operations::CAPABILITY;
pub(in crate::store) use place::check;
pub use store::SqliteStore;
