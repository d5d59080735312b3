//! The commands: what a person types, and what they read. One file per command; each reads the store directly.
//!
//! Results go to stdout, messages to stderr. [`ExitCode`] has every exit code. A command never decides what a record
//! means: states come from [`crate::slot::SlotRecord`], JSON from [`crate::observe::view`].

mod attempts;
pub mod check;
mod command;
mod completions;
mod console;
mod daemon;
mod demo;
mod doctor;
mod failure;
mod forget;
mod format;
mod guarded;
#[cfg(feature = "http")]
mod healthcheck;
mod help;
pub(crate) mod import;
mod jobs;
mod launching;
mod locks;
mod next;
mod nodes;
#[cfg(feature = "notify")]
mod notify;
mod run;
mod session;
mod setup;
mod show;
mod store_args;
#[cfg(feature = "http")]
mod token;
mod value_parsers;
mod verbs;
mod verify;
mod watch;
mod why;

pub use command::{command, main};
pub use failure::ExitCode;
