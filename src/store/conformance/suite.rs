//! Every case there is, and how one of them is run.

use crate::store::conformance::{self as suite, Bench, Case, Failure, Setup};

/// Every case, in the order in which one would want to read the first failure.
pub fn cases() -> impl Iterator<Item = Case> {
    [
        suite::claim::CASES,
        suite::lost::CASES,
        suite::renew::CASES,
        suite::settle::CASES,
        suite::attempts::CASES,
        suite::expiry::CASES,
        suite::window::CASES,
        suite::beside::CASES,
        suite::past::CASES,
        suite::close::CASES,
        suite::operator::CASES,
        suite::registry::CASES,
        suite::notes::CASES,
        suite::namespaces::CASES,
        suite::hostile::CASES,
        suite::idempotence::CASES,
        suite::wake::CASES,
        suite::races::CASES,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// Runs one case in a namespace of its own, which is wiped first. The message says where in the suite it failed. The
/// future is not `Send`: drive it with `Runtime::block_on`.
pub async fn run_case(setup: std::sync::Arc<dyn Setup>, case: &Case) -> Result<(), String> {
    let told = |failure: Failure| format!("{} {:?}: {failure}", case.name, case.invariants);
    let index = cases().position(|other| other.name == case.name).unwrap_or(usize::MAX);
    let bench = Bench::open(setup, &format!("case-{index}")).await.map_err(told)?;
    (case.run)(&bench).await.map_err(told)
}
