//! `cronward doctor`: what about the store in use can betray the guard, before it does.
//!
//! - `command` opens the store, prints, and ends with 0, 1 or 2.
//! - `probe` uses the store as nodes do, on slots of a job that nobody has, and measures.
//! - `judge` says what that means. Pure.
//!
//! What is particular to a kind of store is looked at by its adapter ([`crate::store::examine`]).

mod command;
mod judge;
mod probe;

pub(crate) use command::{Args, doctor};
