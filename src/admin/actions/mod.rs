//! What an operator may change: of a slot, of a job.
//!
//! A [`Proposal`] is made by looking: what will happen, how it is undone, the same as a command line. Whoever has agreed to it carries
//! it out, with an [`Audit`](crate::slot::Audit) of who asks and why: one atomic step of the store. The commands ask on a terminal, the
//! port asks on a page; neither decides anything besides.
//!
//! `texts` is which sentences tell what is done and how it is undone, `english` what they say; other languages stand with the pages that
//! show them. Why something is not done is a value, which shows itself in English.
//!
//! Nothing here asks anybody, prints, or runs a command: what a `trigger` runs, whoever asked for it runs.

/// A longer reason is cut: it is kept with the slot, and shown in one line.
pub(crate) const LONGEST_REASON: usize = 500;

mod change;
mod english;
mod jobs;
mod proposal;
mod slots;
mod texts;
mod verb;

#[cfg(feature = "http")]
pub(crate) use change::HeldSlot;
pub(crate) use change::{Change, RequestEnd, RequestView, Undo};
pub(crate) use english::ENGLISH;
#[cfg(feature = "http")]
pub(crate) use jobs::until;
pub(crate) use jobs::{pause, resume};
pub(crate) use proposal::Proposal;
#[cfg(feature = "http")]
pub(crate) use slots::NotBegun;
pub(crate) use slots::{RunPlace, mark_done, not_begun, reset, trigger, unlock};
#[cfg(feature = "http")]
pub(crate) use texts::{ActionTexts, MarkDoneTexts, PauseTexts, ResetTexts, ResumeTexts, TriggerTexts, UnlockTexts};
#[cfg(feature = "http")]
pub(crate) use verb::Verb;
