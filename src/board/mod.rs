//! The board: what the cluster looks like now, kept while somebody looks and forgotten a minute after, so that a cluster that nobody looks
//! at pays nothing, and a hundred viewers cost the store what one does (docs/adr/0042).
//!
//! - `snapshot` is what is shown: a row for each job, with a cell for each hour; `concern` what needs a person.
//! - `patch` is what changed; `filter` the language that rows are asked for in.

mod cell;
mod concern;
mod filter;
mod handle;
mod patch;
mod snapshot;

pub use cell::{CellState, HourCell};
pub use concern::{Concern, ConcernKind, Fault};
pub use filter::{Filter, FilterError};
pub use handle::Board;
pub use patch::Patch;
pub use snapshot::{BoardRow, Snapshot, StoreStanding};
