//! The suite that every store must pass. It needs three things of a store's author: a [`Setup`] that opens independent
//! connections, a [`Probe`] that reaches the data behind the store's back, and a runner that calls [`run_case`] for each
//! of [`cases()`]. `tests/conformance/` of this crate is such a runner.
//!
//! Cases never sleep: a lease runs out because the probe makes it. Slots are built around the store's own clock, read
//! through `inspect`, so that a server whose clock differs from this host's is judged by its own. Each case works in a
//! namespace of its own and cites the invariants of `docs/PROTOCOL.md` that it checks.

#[macro_use]
mod ensure;

mod bench;
mod case;
mod setup;

mod attempts;
mod beside;
pub mod broken;
mod claim;
mod close;
mod expiry;
mod hostile;
mod idempotence;
mod lost;
mod memory;
mod namespaces;
mod notes;
mod operator;
mod past;
mod races;
mod registry;
mod renew;
pub mod sequence;
mod settle;
mod suite;
mod wake;
mod window;

pub use bench::Bench;
pub use case::Case;
pub use ensure::{Failure, Outcome};
pub use memory::MemorySetup;
pub use setup::{Probe, Scale, Setup};
pub use suite::{cases, run_case};
