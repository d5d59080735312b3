//! The commands: what a person types, and what they read. One file per command; each reads the store directly.
//!
//! Results go to stdout, messages to stderr. [`ExitCode`] has every exit code. A command never decides what a record
//! means: states come from [`crate::slot::SlotRecord`], JSON from [`crate::observe::view`].

mod attempts;
mod catalog;
pub mod check;
mod command;
mod completions;
mod console;
mod daemon;
mod demo;
mod doctor;
mod exit_code;
mod failure;
#[cfg(test)]
mod fixture;
mod forget;
mod guarded;
mod help;
pub(crate) mod import;
mod init;
mod jobs;
mod live;
mod logs;
mod lookup;
mod migrate;
mod next;
mod nodes;
mod pasted;
mod reference;
mod run;
#[cfg(test)]
mod scene;
mod session;
mod show;
mod store_args;
mod table;
mod text;
mod values;
mod verbs;
mod verify;
mod watch;
mod why;
mod wrong;

pub use command::{command, main};
pub use exit_code::ExitCode;
