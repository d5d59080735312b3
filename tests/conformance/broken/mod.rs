//! Stores that are broken on purpose, as real ones have been: the suite must catch each of them. They are the specification
//! with one [`Flaw`] each, so that what is caught is the flaw and nothing else.
//!
//! A suite that lets one of these pass proves nothing about the stores that it lets pass.

mod latest;
mod leases;
mod locks;
mod lost;
mod messages;
mod records;
mod store;

pub use locks::{BrokenLocks, lock_controls};
pub use store::{BrokenSetup, Control, Flaw};

use std::sync::Arc;

use cronward::clock::SystemClock;
use cronward::store::conformance::{Setup, cases, run_case};
use libtest_mimic::{Failed, Trial};

/// Every flaw.
pub fn controls() -> Vec<Control> {
    [leases::controls(), lost::controls(), records::controls(), latest::controls(), messages::controls()].concat()
}

/// Each of them is a trial: that every broken store is caught by the cases that are there for it, that those cases exist, and that
/// without a flaw nothing is caught.
pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        Trial::test("broken::every_broken_store_is_caught_by_the_cases_that_are_there_for_it", every_one_is_caught),
        Trial::test("broken::a_store_without_a_flaw_passes_every_case", || {
            let caught = caught_by(Arc::new(Right));
            if caught.is_empty() { Ok(()) } else { Err(format!("it fails in {caught:?}").into()) }
        }),
        Trial::test("broken::every_case_that_a_control_names_exists", || {
            let known: Vec<&str> = cases().map(|case| case.name).collect();
            let named = controls().into_iter().flat_map(|control| control.caught_by);
            let unknown: Vec<_> = named.filter(|name| !known.contains(name)).collect();
            if unknown.is_empty() { Ok(()) } else { Err(format!("there is no case {unknown:?}").into()) }
        }),
    ];
    trials.extend(locks::trials());
    trials
}

#[derive(Debug)]
struct Right;
impl Flaw for Right {}

/// The names of the cases that fail.
fn caught_by(flaw: Arc<dyn Flaw>) -> Vec<&'static str> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let setup: Arc<dyn Setup> = Arc::new(BrokenSetup::new(flaw, Arc::new(SystemClock)));
    let fails = |case: &_| runtime.block_on(run_case(Arc::clone(&setup), case)).is_err();
    cases().filter(fails).map(|case| case.name).collect()
}

fn every_one_is_caught() -> Result<(), Failed> {
    let hunts: Vec<_> = controls()
        .into_iter()
        .map(|control| (control.clone(), std::thread::spawn(move || caught_by(control.flaw))))
        .collect();
    let mut escaped = Vec::new();
    for (control, hunt) in hunts {
        let caught = hunt.join().unwrap();
        println!("{:?} is caught by {} cases: {}", control.flaw, caught.len(), caught.join(", "));
        if control.caught_by.is_empty() {
            return Err(format!("no case is there for {:?}", control.flaw).into());
        }
        escaped.extend(
            control.caught_by.iter().filter(|name| !caught.contains(name)).map(|name| (control.flaw.clone(), name)),
        );
    }
    if escaped.is_empty() { Ok(()) } else { Err(format!("not caught: {escaped:?}").into()) }
}
