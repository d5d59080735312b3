//! The part of the suite that a store passes which keeps locks ([`LockStore`](crate::store::LockStore)). As the other part it never
//! sleeps: entries lapse because the probe makes them. Each case is named as in the table of `docs/locks.md`, and cites K1 to K11.

mod ask;
mod bench;
mod many;
mod queue;
mod sequence;
mod settle;
mod share;

use std::sync::Arc;

pub use bench::{LockBench, LockCase};
pub use sequence::{LockMove, agree_on_locks};

use super::Setup;

/// Every case, in the order in which one would want to read the first failure.
pub fn lock_cases() -> impl Iterator<Item = LockCase> {
    [ask::CASES, queue::CASES, settle::CASES, share::CASES, many::CASES].into_iter().flatten().copied()
}

/// Runs one case in a namespace of its own, which is wiped first. The message says where in the suite it failed. The future is not
/// `Send`: drive it with `Runtime::block_on`.
pub async fn run_lock_case(setup: Arc<dyn Setup>, case: &LockCase) -> Result<(), String> {
    let told = |failure: super::Failure| format!("{} {:?}: {failure}", case.name, case.invariants);
    let index = lock_cases().position(|other| other.name == case.name).unwrap_or(usize::MAX);
    let bench = LockBench::open(setup, &format!("lock-{index}")).await.map_err(told)?;
    (case.run)(&bench).await.map_err(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::store::conformance::MemorySetup;

    #[tokio::test]
    async fn the_store_in_memory_keeps_locks_as_the_suite_says() {
        let setup = Arc::new(MemorySetup::new(Arc::new(SystemClock)));
        for case in lock_cases() {
            run_lock_case(setup.clone(), &case).await.unwrap();
        }
    }
}
