//! What an operator asks of the store, and may do there, in values: for the commands, and for whatever else shows the same.
//!
//! - `session` is an open store with the jobs that are known there, `catalog` these jobs, `lookup` how a person names a slot.
//! - `why` puts what nodes decided on a slot in order, and says in a sentence why it ran or did not.
//! - `jobs`, `attempts` and `ticks` list.
//! - `doctor` tries a store and judges what it found.
//! - `actions` are what may be changed: what will happen, how it is undone, and the store's step.
//! - `words` and `command_line` are how instants, outcomes and commands are told.

pub(crate) mod actions;
pub(crate) mod attempts;
pub(crate) mod catalog;
pub(crate) mod command_line;
pub(crate) mod doctor;
mod error;
#[cfg(test)]
pub(crate) mod fixture;
pub(crate) mod jobs;
pub(crate) mod lookup;
mod session;
pub(crate) mod ticks;
pub(crate) mod why;
pub(crate) mod words;

pub(crate) use catalog::{Catalog, IdleReason, KnownJob};
pub(crate) use error::{AdminError, PauseEndError, UnknownTarget};
pub(crate) use session::{AdminSession, BATCH};
