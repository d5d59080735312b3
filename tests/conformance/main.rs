//! Runs the suite of `cronward::store::conformance` against each store: one trial per setup and case.
//!
//! A setup that cannot be started makes every one of its trials fail; nothing is ever skipped. A new store adds one file
//! under `setups/` and one line to [`setups::all`]. Which case of locks has which number is said in `docs/locks.md`, "What is tried".
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    unreachable_pub,
    reason = "a test says what it expects"
)]
#![allow(clippy::duplicate_mod, reason = "what is alike for two database servers is said once")]

mod broken;
mod ends;
mod library;
mod sequences;
mod setups;
#[path = "../support/mod.rs"]
mod support;

#[cfg(feature = "etcd")]
use support::etcd_server;
#[cfg(feature = "mysql")]
use support::mariadb_server;
#[cfg(feature = "postgres")]
use support::postgres_server;
#[cfg(any(feature = "redis-sentinel", feature = "redis-cluster"))]
use support::redis_group;
#[cfg(feature = "zookeeper")]
use support::zookeeper_server;
#[cfg(feature = "redis")]
use support::{redis_server, tls_files};

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use cronward::store::conformance::{Case, LockCase, Setup, cases, lock_cases, run_case, run_lock_case};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

/// One store under test: started by the first of its trials that runs, stopped when all have ended.
struct Subject {
    name: &'static str,
    start: setups::Start,
    started: OnceLock<Result<Arc<dyn Setup>, String>>,
    trials: AtomicUsize,
    passed: AtomicUsize,
}

impl Subject {
    fn setup(&self, runtime: &Runtime) -> Result<Arc<dyn Setup>, String> {
        self.started.get_or_init(|| runtime.block_on((self.start)())).clone()
    }

    fn count(&self, outcome: &Result<(), Failed>) {
        self.trials.fetch_add(1, Ordering::Relaxed);
        self.passed.fetch_add(usize::from(outcome.is_ok()), Ordering::Relaxed);
    }
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Half as many as of other suites: these trials wait less, and compute more.
    let others = std::env::var("RUST_TEST_THREADS").ok().and_then(|number| number.parse::<usize>().ok());
    arguments.test_threads = arguments.test_threads.or(others.map(|number| number.div_ceil(2)));
    let runtime = Arc::new(Runtime::new().expect("a runtime"));
    let subjects: Vec<Arc<Subject>> = setups::all()
        .into_iter()
        .map(|(name, start)| Subject {
            name,
            start,
            started: OnceLock::new(),
            trials: AtomicUsize::new(0),
            passed: AtomicUsize::new(0),
        })
        .map(Arc::new)
        .collect();
    let hunter = Arc::clone(&runtime);
    let hunter_of_locks = Arc::clone(&runtime);
    let mut trials = vec![
        Trial::test("broken::sequences_find_every_flaw", move || {
            sequences::find_every_flaw(&hunter).map_err(Failed::from)
        }),
        Trial::test("broken::locks::sequences_find_every_flaw", move || {
            sequences::find_every_flaw_of_locks(&hunter_of_locks).map_err(Failed::from)
        }),
    ];
    trials.extend(broken::trials());
    // In turn: of those that run side by side each has a store of its own, whose connections are few.
    let mut of_each: Vec<_> = subjects.iter().map(|subject| trials_of(subject, &runtime).into_iter()).collect();
    let rounds = std::iter::from_fn(|| Some(of_each.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>()));
    trials.extend(rounds.take_while(|round| !round.is_empty()).flatten());
    let conclusion = libtest_mimic::run(&arguments, trials);
    for subject in &subjects {
        let (passed, trials) = (subject.passed.load(Ordering::Relaxed), subject.trials.load(Ordering::Relaxed));
        if trials > 0 {
            println!("{}: {passed} of {trials} trials passed", subject.name);
        }
    }
    drop(subjects);
    conclusion.exit_code()
}

fn trials_of(subject: &Arc<Subject>, runtime: &Arc<Runtime>) -> Vec<Trial> {
    let of_case =
        |case: Case| trial(subject, runtime, case.name, move |setup, runtime| runtime.block_on(run_case(setup, &case)));
    // What takes longest begins first.
    let name = "sequences::any_sequence_is_answered_as_specified";
    let mut trials = vec![trial(subject, runtime, name, sequences::agree)];
    let keeps_locks = setups::KEEP_LOCKS.contains(&subject.name);
    if keeps_locks {
        let name = "locks::any_sequence_is_answered_by_the_rules";
        trials.push(trial(subject, runtime, name, sequences::agree_about_locks));
    }
    trials.extend(cases().map(of_case));
    trials.extend(ends::CASES.map(|case| {
        trial(subject, runtime, case.name, move |setup, runtime| runtime.block_on(ends::run(setup, case)))
    }));
    if keeps_locks {
        let of_case = |case: LockCase| {
            trial(subject, runtime, case.name, move |setup, runtime| runtime.block_on(run_lock_case(setup, &case)))
        };
        trials.extend(lock_cases().map(of_case));
        trials.extend(library::cases().map(|(name, body)| {
            trial(subject, runtime, name, move |setup, runtime| {
                runtime.block_on(body(library::Bench::new(setup, name)));
                Ok(())
            })
        }));
    }
    trials
}

fn trial(
    subject: &Arc<Subject>,
    runtime: &Arc<Runtime>,
    name: &str,
    run: impl FnOnce(Arc<dyn Setup>, &Runtime) -> Result<(), String> + Send + 'static,
) -> Trial {
    let (subject, runtime) = (Arc::clone(subject), Arc::clone(runtime));
    Trial::test(format!("{}::{name}", subject.name), move || {
        let outcome = subject.setup(&runtime).and_then(|setup| run(setup, &runtime)).map_err(Failed::from);
        subject.count(&outcome);
        outcome
    })
}
