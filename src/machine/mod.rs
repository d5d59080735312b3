//! The protocol as one node sees it, for one slot: a state machine without I/O.
//!
//! [`SlotMachine`] is told what happened (`handle_*`) and says what to do ([`SlotMachine::poll_action`]), until when to
//! wait ([`SlotMachine::poll_timeout`]) and what is worth telling ([`SlotMachine::poll_event`]). The daemon drives it with
//! a runtime and a real store, a simulator with virtual time; both feed it the same calls.
//!
//! ```text
//!             tick, wake, timer                 granted                     exited
//!  Waiting ───────────────────▶ Claiming ───────────────────▶ Running ───────────────▶ Settling
//!     ▲                            │  done · exhausted · closed                            │
//!     │   held · backoff · early   ▼                                                       │
//!     └─────────────────────────── ┴ ──▶ Ended ◀───────── complete · used up ──────────────┤
//!     ▲                                                                                    │
//!     └───────────────────────── failed, attempts left ────────────────────────────────────┘
//! ```
//!
//! Of a job that names locks, Queueing stands between Claiming and Running: its locks are waited for under the lease. It ends in
//! Running where both are trusted, else in Settling, with the attempt given back.
//!
//! [`LockMachine`] is the same for one request for locks.
//!
//! Nothing here awaits, reads a clock, draws a random number, does I/O or logs: instants come in as
//! [`crate::clock::Now`], random bits once as the first token.

mod action;
mod claiming;
mod job_locks;
mod lock_action;
mod locking;
mod pace;
mod queueing;
mod running;
mod settling;
mod slot;
mod trust;

#[cfg(test)]
mod tests;

pub use action::Action;
pub use lock_action::{LockAction, LockEnd, LockNews, LockReply};
pub use locking::LockMachine;
pub(crate) use pace::{after_queue, own_handicap};
pub use slot::{Assignment, End, LockPort, SlotMachine};
pub use trust::TrustWindow;
