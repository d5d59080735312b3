//! Stores whose locks are broken on purpose: the suite's cases about locks must catch each, and each case must catch one.

mod flaws;
mod store;

use std::collections::BTreeSet;
use std::sync::Arc;

use cronward::clock::SystemClock;
use cronward::store::conformance::{Setup, lock_cases, run_lock_case};
use libtest_mimic::{Failed, Trial};

pub use store::{BrokenLocks, LockFlaw};

/// A flaw with the cases that must catch it.
#[derive(Clone, Copy)]
pub struct LockControl {
    /// What is broken, as it is before anything was asked.
    pub flaw: fn() -> Arc<dyn LockFlaw>,
    /// Cases that fail because of it, among others.
    pub caught_by: &'static [&'static str],
}

impl LockControl {
    /// The name of the flaw.
    pub fn name(&self) -> String {
        format!("{:?}", (self.flaw)()).split('(').next().unwrap_or_default().to_owned()
    }
}

/// Every flaw.
pub fn lock_controls() -> Vec<LockControl> {
    flaws::controls()
}

/// That each flaw is caught by the cases that are there for it, that each case is there for one, and that without a flaw nothing is caught.
pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test(
            "broken::locks::every_broken_store_is_caught_by_the_cases_that_are_there_for_it",
            every_one_is_caught,
        ),
        Trial::test("broken::locks::every_case_catches_a_broken_store", every_case_is_named),
        Trial::test("broken::locks::a_store_without_a_flaw_passes_every_case", || {
            let all: Vec<_> = lock_cases().map(|case| case.name).collect();
            let caught = caught_by(Arc::new(Right), &all);
            if caught.is_empty() { Ok(()) } else { Err(format!("it fails in {caught:?}").into()) }
        }),
    ]
}

#[derive(Debug)]
struct Right;
impl LockFlaw for Right {}

/// Of these cases those that fail.
fn caught_by(flaw: Arc<dyn LockFlaw>, names: &[&str]) -> Vec<&'static str> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let setup: Arc<dyn Setup> = Arc::new(BrokenLocks::new(flaw, Arc::new(SystemClock)));
    let fails = |case: &_| runtime.block_on(run_lock_case(Arc::clone(&setup), case)).is_err();
    lock_cases().filter(|case| names.contains(&case.name)).filter(fails).map(|case| case.name).collect()
}

fn every_one_is_caught() -> Result<(), Failed> {
    let hunts: Vec<_> = lock_controls()
        .into_iter()
        .map(|control| (control, std::thread::spawn(move || caught_by((control.flaw)(), control.caught_by))))
        .collect();
    let mut escaped = Vec::new();
    for (control, hunt) in hunts {
        let caught = hunt.join().unwrap();
        escaped
            .extend(control.caught_by.iter().filter(|name| !caught.contains(name)).map(|name| (control.name(), name)));
    }
    if escaped.is_empty() { Ok(()) } else { Err(format!("not caught: {escaped:?}").into()) }
}

fn every_case_is_named() -> Result<(), Failed> {
    let known: BTreeSet<&str> = lock_cases().map(|case| case.name).collect();
    let named: BTreeSet<&str> = lock_controls().iter().flat_map(|control| control.caught_by).copied().collect();
    let (idle, unknown): (Vec<_>, Vec<_>) = (known.difference(&named).collect(), named.difference(&known).collect());
    if idle.is_empty() && unknown.is_empty() {
        return Ok(());
    }
    Err(format!("no flaw shows that {idle:?} can fail; there is no case {unknown:?}").into())
}
