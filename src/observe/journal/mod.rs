//! The journal: every event of a node as a line of JSON in a file, so that what happened can be checked afterwards
//! (`cronward verify`). `docs/journal.md` is its contract.
//!
//! - [`Line`] is the schema, for whoever writes or reads one: an [`crate::event::Event`], who tells it, and when.
//! - [`Journal`] is the observer. It never waits for the disk: a thread of its own writes, a bounded queue leads to it,
//!   and what does not fit is counted and told by a `dropped` line.
//!
//! A journal never stops a node, and nothing that a node does depends on it.

mod line;
mod recorder;

pub use line::Line;
pub use recorder::Journal;
