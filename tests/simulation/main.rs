//! Clusters in virtual time keep their promises under every fault, and each bug that is put in on purpose is found.
//!
//! This is the short form; `make sim` runs as many slots as CI wants, in a release build, and `make sim-long` millions.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test says what it expects"
)]

use cronward::sim::{Bug, Control, Finding, Limits, Options, Outcome, Summary, control, run, shrink};

fn world(seed: u64, options: &Options) -> Outcome {
    run(seed, options).unwrap()
}

/// How to see a finding again.
fn shown(seed: u64, finding: &Finding) -> String {
    let smallest = shrink(seed, Options::default(), finding.check).options.limits;
    format!("seed {seed}: {finding}\n  see `simulate --seed {seed}`; smallest with {smallest:?}")
}

fn keep(seeds: std::ops::Range<u64>) -> Summary {
    let mut summary = Summary::default();
    for seed in seeds {
        let outcome = world(seed, &Options::default());
        if let Some(finding) = &outcome.finding {
            panic!("{}", shown(seed, finding));
        }
        summary.add(&outcome.summary);
    }
    summary
}

#[test]
fn every_world_keeps_its_promises() {
    let summary = keep(0..400);
    println!("{summary}");
    let classes = summary.classes;
    assert!(classes.slots > 10_000);
    // Worlds in which nothing goes wrong would prove nothing.
    for (what, count) in [
        ("retried", classes.retried),
        ("repeated", classes.repeated),
        ("overlapped", classes.overlapped),
        ("failed", classes.failed),
        ("missed", classes.missed),
    ] {
        assert!(count > 20, "{what}: {count}");
    }
    assert_eq!(summary.faults.len(), cronward::sim::Fault::ALL.len() - 3, "{:?}", summary.faults);
}

/// Worlds that broke a promise before the code was mended; what each had found stands beside it.
const MENDED: &[(u64, &str)] = &[
    (1, "after a reload nobody looked at the current slot again"),
    (5, "a run of an hour's slot was not among those that forbid a start"),
    (18, "a hint that came while a claim was on its way was forgotten"),
    (36, "a node that died at the end of a slot and was back at once left it without a verdict"),
    (121, "a late copy of a claim was granted although its run was over"),
    (729, "an attempt that was overtaken by one that came and went was told of nothing"),
    (2403, "a first contact that was long in coming began with the slot of that moment"),
    (4208, "a node that left 20 to 60 s after the end of a slot that it still ran left it without a verdict"),
    (7935, "a slot that was let go by a wrong clock while the store was away was not looked at again"),
    (11566, "a clock that was put right did not tell the guards when their slots end"),
    (
        20631,
        "a verdict was asked for twice at a time, and the answer that said who recorded it was the one that was lost",
    ),
    (66542, "a lease was to be renewed that a late copy had set again after its run had failed"),
    (74967, "a node that stood still counted the time that an answer named from when it read it"),
    (96852, "a node that stood still ran beside its own older run, which had outlasted the limits of its job"),
    (120528, "an overlap was to be told although the store had lost, in a second loss, all that it knew of it"),
];

#[test]
fn worlds_that_once_broke_a_promise_keep_it() {
    for (seed, found) in MENDED {
        let outcome = world(*seed, &Options::default());
        if let Some(finding) = &outcome.finding {
            panic!("{}\n  once: {found}", shown(*seed, finding));
        }
    }
}

/// Worlds within which each bug must be found.
const WITHIN: u64 = 200;

#[test]
fn each_bug_that_is_put_in_on_purpose_is_found() {
    for bug in Bug::ALL.iter().copied() {
        let found = control(bug, WITHIN).unwrap();
        let Control { seed, finding, .. } =
            found.unwrap_or_else(|| panic!("{bug:?} was not found within {WITHIN} worlds"));
        println!("{bug:?}: found by {:?} in world {seed}: {}", finding.check, finding.text);
    }
}

#[test]
fn a_seed_is_one_history() {
    for seed in 0..20 {
        let (once, again) = (world(seed, &Options::default()), world(seed, &Options::default()));
        let traced = world(seed, &Options { trace: true, ..Options::default() });
        assert_eq!((once.fingerprint, &once.summary), (again.fingerprint, &again.summary), "{seed}");
        assert_eq!((once.fingerprint, &once.summary), (traced.fingerprint, &traced.summary), "{seed}");
        assert!(once.trace.is_empty() && !traced.trace.is_empty());
    }
    assert_ne!(world(1, &Options::default()).fingerprint, world(2, &Options::default()).fingerprint);
}

#[test]
fn a_broken_world_is_cut_down_to_one_that_breaks_the_same_promise() {
    let options = Options { bug: Some(Bug::DoneIsNotAbsorbing), ..Options::default() };
    let (seed, finding) = (0..50).find_map(|seed| Some((seed, world(seed, &options).finding?))).unwrap();
    let smallest = shrink(seed, options, finding.check).options;
    let again = world(seed, &smallest).finding.unwrap();
    assert_eq!(again.check, finding.check);
    assert!(smallest.limits != Limits::NONE && smallest.limits.periods <= 24, "{:?}", smallest.limits);
    assert_eq!(smallest.limits.faults.to_string().parse(), Ok(smallest.limits.faults));
}
