//! What the fuzz targets claim of each parser, tried on every run: `fuzz/README.md` says more. The checks themselves are
//! in `cronward::fuzzing`; here are inputs that reach them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test says what it expects; how long a parser takes is judged by the machine's clock"
)]

mod found;
mod large;
mod material;
mod memory;
mod twins;
