//! What an operator may change: of a slot, of a job.
//!
//! A [`Proposal`] is made by looking: what will happen, how it is undone, the same as a command line. Whoever has agreed to it carries
//! it out, with an [`Audit`](crate::slot::Audit) of who asks and why: one atomic step of the store. The commands ask on a terminal, the
//! port asks on a page; neither decides anything besides.
//!
//! Nothing here asks anybody, prints, or runs a command: what a `trigger` runs, whoever asked for it runs.

mod change;
mod jobs;
mod proposal;
mod slots;
mod verb;

pub(crate) use change::{Change, RequestEnd, RequestView, Undo};
pub(crate) use jobs::{pause, resume};
pub(crate) use proposal::Proposal;
pub(crate) use slots::{RunPlace, mark_done, not_begun, reset, trigger, unlock};
#[allow(unused_imports, reason = "the port alone asks by names")]
pub(crate) use verb::Verb;
