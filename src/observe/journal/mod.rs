//! The journal: every event of a node as a line of JSON in a file, so that what happened can be checked afterwards
//! (`cronward verify`). `docs/journal.md` is its contract.
//!
//! - [`Line`] and [`Fact`] are the schema, for whoever writes or reads one; [`Fact`] is made of the events.
//! - [`Journal`] is the observer. It never waits for the disk: a thread of its own writes, a bounded queue leads to it,
//!   and what does not fit is counted and told by a `dropped` line.
//!
//! A journal never stops a node, and nothing that a node does depends on it.

mod facts;
mod line;
mod recorder;

pub use line::{Fact, Line, Plan};
pub use recorder::Journal;
