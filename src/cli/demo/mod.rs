//! `cronward demo`: a cluster of three real nodes in one terminal, for half a minute.
//!
//! - `script`: the jobs, and when their slots begin. Pure.
//! - `cluster`: the folder with the embedded store, and the nodes, which are processes of this very program.
//! - `words`: what a line of a node's journal says, for people. Pure.
//! - `stage`: follows the journals and the store, shows both, and kills the node that holds a lease.
//! - `verdict`: hands the journals to the checker.
//!
//! Nothing in it is staged but the schedule: the nodes run as `cronward run` does, one is killed with SIGKILL, and the checker
//! is that of `cronward verify`. It meets no file and no store but its own.

mod cluster;
mod command;
mod script;
mod stage;
mod verdict;
mod words;

pub(crate) use command::{Args, demo};
