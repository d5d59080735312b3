//! What an operator may change: of a slot, of a job.
//!
//! A [`Proposal`] is made by looking: what will happen, how it is undone, the same as a command line. Whoever has agreed to it carries
//! it out, with an [`Audit`](crate::slot::Audit) of who asks and why: one atomic step of the store. The commands ask on a terminal, the
//! port asks on a page; neither decides anything besides.
//!
//! Nothing here asks anybody, prints, or runs a command: what a `trigger` runs, whoever asked for it runs.

/// A longer reason is cut: it is kept with the slot, and shown in one line.
pub(crate) const LONGEST_REASON: usize = 500;

mod change;
mod jobs;
mod proposal;
mod slots;
mod verb;

pub(crate) use change::{Change, RequestEnd, RequestView, Undo};
#[cfg(feature = "http")]
pub(crate) use jobs::until;
pub(crate) use jobs::{pause, resume};
pub(crate) use proposal::Proposal;
pub(crate) use slots::{RunPlace, mark_done, not_begun, reset, trigger, unlock};
#[cfg(feature = "http")]
pub(crate) use verb::Verb;
