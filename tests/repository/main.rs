//! What the repository says of itself is so: the layers, the documents, the examples, and the page that `make report` writes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test says what it expects"
)]

#[cfg(feature = "daemon")]
mod defaults;
mod documents;
mod examples;
mod layering;
mod report;
#[cfg(feature = "daemon")]
mod units;

// The program that writes the page finds its parts at the root of its crate.
use report::{evidence, names, render, servers, simulated};
