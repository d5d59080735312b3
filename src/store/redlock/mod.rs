//! Redlock: what a majority of independent masters said, put together. `docs/redlock.md` is its specification.
//!
//! Pure: answers and times come in, a decision goes out. Nothing here talks to a server, waits or reads a clock; the adapter
//! that asks the masters is `store::redis::redlock`, and `tests/protocol/model/redlock` visits every history of a small cluster with
//! these very functions.
//!
//! | part | what it decides |
//! |---|---|
//! | `quorum` | how many masters are a majority, and what may hold beyond the answers that came |
//! | `claim` | from the looks at all masters to a number, a wait or a refusal |
//! | `grant` | whether a number that was written made a lease |
//! | `renewal` | whether a lease still stands |
//! | `settle` | how a run's end was taken |
//! | `record` | one slot's record from the masters' records |
//! | `registry` | jobs, nodes, pauses and notes from what the masters keep |

pub mod claim;
pub mod grant;
pub mod quorum;
pub mod record;
pub mod registry;
pub mod renewal;
pub mod settle;
#[cfg(test)]
mod tests;

pub use quorum::{Quorum, QuorumError, median};
