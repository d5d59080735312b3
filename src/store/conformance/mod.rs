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
mod setup;

mod attempts;
mod changes;
mod claim;
mod idempotence;
mod latest;
mod leases;
mod locks;
mod messages;
mod namespaces;
mod operator;
mod outputs;
mod over;
mod pauses;
mod races;
mod registry;
pub mod sequence;
mod settle;
mod wake;

use std::sync::Arc;

pub use bench::{Bench, Case};
pub use ensure::{CaseOutcome, Failure};
pub use locks::{LockBench, LockCase, LockMove, agree_on_locks, lock_cases, run_lock_case};
pub use setup::{LockProbe, MemorySetup, Probe, Rewrite, Scale, Setup};

/// Every case, in the order in which one would want to read the first failure.
pub fn cases() -> impl Iterator<Item = Case> {
    [
        claim::CASES,
        attempts::CASES,
        leases::CASES,
        settle::CASES,
        races::CASES,
        outputs::CASES,
        over::CASES,
        operator::CASES,
        latest::CASES,
        registry::CASES,
        pauses::CASES,
        namespaces::CASES,
        idempotence::CASES,
        wake::CASES,
        changes::CASES,
        messages::CASES,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// Runs one case in a namespace of its own, which is wiped first. The message says where in the suite it failed. The
/// future is not `Send`: drive it with `Runtime::block_on`.
pub async fn run_case(setup: Arc<dyn Setup>, case: &Case) -> Result<(), String> {
    let told = |failure: Failure| format!("{} {:?}: {failure}", case.name, case.invariants);
    let index = cases().position(|other| other.name == case.name).unwrap_or(usize::MAX);
    let bench = Bench::open(setup, &format!("case-{index}")).await.map_err(told)?;
    (case.run)(&bench).await.map_err(told)
}
