//! Random sequences of operations: a store gives the same answers as the specification, and knows the same afterwards.
//!
//! [`Step`]s are plain data, so that any generator can make and shrink them; `tests/conformance/sequences.rs` uses
//! proptest. Time does not pass in a sequence: what would lapse is made to run out by the probe, in the store and in the
//! ledger alike. What cannot be equal (instants; what is left of a TTL) is compared by plain copies.

mod ask;
mod plain;
mod run;

pub use run::{Actor, Place, Step, agree};
