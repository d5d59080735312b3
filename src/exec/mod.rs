//! Child processes: spawned in their own group, stopped as a group, their output kept within bounds.
//!
//! ```text
//!  daemon ── Launcher::launch ──► Running            terminate · kill · wait; dropping it kills
//!                                   │ attend: one task per run; reads the pipes, passes signals on
//!                     socketpair    ▼                 plan, requests ▼   ▲ starting, started, lapsed, …, swept
//!  shim   ── `cronward __shim` ── keep                sub-reaper; holds the other end; end of file = kill everything;
//!                                   │                 holds the deadline of the lease, whoever else stands still
//!                                   │ own process group, stdin /dev/null, stdout and stderr pipes, nothing else
//!  command                          ▼                 dies with the shim (PR_SET_PDEATHSIG)
//! ```
//!
//! The shim is one small single-threaded process for each run. Because it is the sub-reaper of all that the command
//! starts, what leaves the command's group or session is still found; because it holds a socket, the kill -9 of the
//! daemon reaches the command; because it is not a thread, no runtime decides when a command dies.
//!
//! Linux only. What it cannot stop: a process of another user when the daemon is not root (sudo), and a process that
//! hangs in the kernel. What the shim's own kill -9 leaves: processes that had left the command's group. A daemon
//! that is process 1 reaps them when they end (`orphans`). With
//! `kill_mode = "process"` what the command leaves behind is left alone.

mod accounts;
mod capture;
pub(crate) mod env_file;
mod environment;
mod launch;
mod messages;
mod orphans;
mod outbox;
mod passing;
mod processes;
mod running;

pub mod shim;

pub use environment::{Environment, OF_A_RUN, PlaceholderError, check_placeholders, fill_placeholders, rfc3339};
pub use launch::{Launcher, Output};
pub use orphans::Orphanage;
pub use running::{Renewals, Running};
