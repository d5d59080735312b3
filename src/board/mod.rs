//! The board: what the cluster looks like now, kept while somebody looks and forgotten a minute after, so that a cluster that nobody looks
//! at pays nothing, and a hundred viewers cost the store what one does (docs/adr/0042).
//!
//! - `snapshot` is what is shown: a row for each job, with a cell for each hour; `concern` what needs a person.
//! - `patch` is what changed; `filter` the language that rows are asked for in.
//! - `line` is what is known of one job, `sheet` of all of them, and what is to be read next: told what was read, they read nothing.
//! - `unreadable` is what the store has and cannot be read, `faults` how slots failed.
//! - `store_loss` is when it may be said that the node cannot use a store that answers.
//! - `follow` reads, for as long as somebody looks. `handle` is the board as others hold it: looking never asks the store.

mod cell;
mod chores;
mod concern;
mod faults;
mod filter;
mod follow;
#[cfg(test)]
mod follow_tests;
mod handle;
mod judge;
mod line;
mod pace;
mod patch;
mod seen;
mod sheet;
mod snapshot;
mod store_loss;
mod unreadable;
mod window;

pub use cell::{CellState, HourCell};
pub use concern::{Concern, ConcernKind, Fault};
pub use filter::{Filter, FilterError, known_states};
pub use handle::{Board, BoardSetting};
pub use patch::Patch;
pub use snapshot::{BoardRow, Snapshot, StoreStanding};
