//! Redlock: what a majority of independent masters said, put together. `docs/redlock.md` is its specification.
//!
//! Pure: answers and times come in, a decision goes out. Nothing here talks to a server, waits or reads a clock; the adapter
//! that asks the masters is `store::redis::redlock`, and `tests/model/redlock` visits every history of a small cluster with
//! these very functions.
//!
//! | part | what it decides |
//! |---|---|
//! | `quorum` | how many masters are a majority, and what may hold beyond the answers that came |
//! | `claim` | from the looks at all masters to a number, a wait or a refusal |
//! | `lease` | whether a number that was written made a lease, whether it still stands, and how a run's end was taken |
//! | `records` | one slot's record from the masters' records; jobs, nodes, pauses and notes from what they keep |

pub mod claim;
pub mod lease;
pub mod quorum;
pub mod records;
#[cfg(test)]
mod tests;

pub use quorum::{Quorum, QuorumError, median};
