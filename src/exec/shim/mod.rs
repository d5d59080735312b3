//! The shim: `cronward __shim`, one small single-threaded process that keeps one command. No runtime, no logging, and no
//! output of its own: its stdout and stderr are the command's.

mod control;
mod descendants;
mod entry;
mod identity;
mod keep;
mod start;
mod sys;

pub(in crate::exec) use control::send_greeting;
pub use entry::main;
pub(in crate::exec) use entry::{ARGUMENT, VERSION};
