//! Stores that are broken on purpose, as real ones have been: the suite must catch each of them. They are the specification
//! with one [`Flaw`] each, so that what is caught is the flaw and nothing else.
//!
//! A suite that lets one of these pass proves nothing about the stores that it lets pass.

mod latest;
mod leases;
mod lost;
mod records;
mod store;

pub use store::{Broken, BrokenSetup, Control, Flaw};

/// Every flaw.
pub fn controls() -> Vec<Control> {
    [leases::controls(), lost::controls(), records::controls(), latest::controls()].concat()
}

#[cfg(test)]
mod tests {
    // Each broken store is caught, by the cases that are there for it.

    use std::sync::Arc;

    use super::*;
    use crate::clock::SystemClock;
    use crate::store::conformance::{Setup, cases, run_case};

    #[derive(Debug)]
    struct None;
    impl Flaw for None {}

    /// The names of the cases that fail.
    fn caught_by(flaw: Arc<dyn Flaw>) -> Vec<&'static str> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let setup: Arc<dyn Setup> = Arc::new(BrokenSetup::new(flaw, Arc::new(SystemClock)));
        let fails = |case: &_| runtime.block_on(run_case(Arc::clone(&setup), case)).is_err();
        cases().filter(fails).map(|case| case.name).collect()
    }

    #[test]
    fn every_broken_store_is_caught_by_the_cases_that_are_there_for_it() {
        let hunts: Vec<_> = controls()
            .into_iter()
            .map(|control| (control.clone(), std::thread::spawn(move || caught_by(control.flaw))))
            .collect();
        let mut escaped = Vec::new();
        for (control, hunt) in hunts {
            let caught = hunt.join().unwrap();
            println!("{:?} is caught by {} cases: {}", control.flaw, caught.len(), caught.join(", "));
            escaped.extend(
                control.caught_by.iter().filter(|name| !caught.contains(name)).map(|name| (control.flaw.clone(), name)),
            );
            assert!(!control.caught_by.is_empty(), "{:?}", control.flaw);
        }
        assert!(escaped.is_empty(), "not caught: {escaped:?}");
    }

    #[test]
    fn a_store_without_a_flaw_passes_every_case() {
        assert_eq!(caught_by(Arc::new(None)), Vec::<&str>::new());
    }

    #[test]
    fn every_case_that_a_control_names_exists() {
        let known: Vec<&str> = cases().map(|case| case.name).collect();
        for control in controls() {
            for name in control.caught_by {
                assert!(known.contains(name), "{name}");
            }
        }
    }
}
