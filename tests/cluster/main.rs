//! Real daemons, real servers, real commands: what the guard promises, on one machine with several nodes.
//!
//! Each trial has its own folder, its own store and its own nodes, so they run side by side; most of their time they
//! wait. What a job did is read from the recorder, a file to which every run appends; what a node decided from its log;
//! what is stored from the store itself. A trial that fails prints the recorder and the logs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test says what it expects; real processes are judged by the machine's clock"
)]
#![allow(clippy::duplicate_mod, reason = "what is alike for two database servers is said once")]

mod chaos;
mod daemon;
mod inconclusive;
mod jobs;
mod library_node;
mod link;
mod locker;
mod manager;
mod place;
mod recorder;
mod shared_store;
mod stall;
mod wait;

#[path = "../support/mod.rs"]
mod support;
mod trials;
#[path = "../support/zone_file.rs"]
mod zone_file;

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
use support::{proxy, redis_server};

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::inconclusive::End;
use crate::place::Place;

/// Trials wait far more than they compute: more of them at once than there are processors. Eight of them wait for their turn.
const TRIALS_AT_ONCE: usize = 8 + 8;

/// How often a trial is made at the most whose machine is too slow for it.
const TRIES: u32 = 2;

fn main() -> ExitCode {
    if library_node::is_asked_for() {
        library_node::run();
        return ExitCode::SUCCESS;
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(TRIALS_AT_ONCE);
    stall::watch();
    let short = chaos::trials::short_on_each_store();
    let mut trials: Vec<Trial> =
        short.map(|(name, asked_for, body)| trial(&name, body).with_ignored_flag(asked_for)).collect();
    trials.extend(trials::all().into_iter().map(|(name, body)| trial(name, body)));
    // After those under chaos, which are judged by how fast the store is: most of these have a server of their own.
    trials.extend(trials::of_locks().map(|(name, body)| trial(&name, body)));
    let mut long: Vec<Trial> = chaos::trials::long_on_each_store().map(|(name, body)| trial(&name, body)).collect();
    long.extend(trials::only_when_asked_for().into_iter().map(|(name, body)| trial(name, body)));
    trials.extend(long.into_iter().map(|trial| trial.with_ignored_flag(true)));
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(name: &str, body: impl Fn(&Place) + Send + 'static) -> Trial {
    let name = name.to_owned();
    Trial::ignorable_test(name.clone(), move || run(&name, body))
}

/// Runs one trial; what it leaves behind is shown when it fails. One that fails while its machine lets processes wait for
/// longer than a lease has shown nothing: leases lapse then that are renewed, and nothing comes in time. It is made once more,
/// and at last told as ignored. What a run under chaos has found counts all the same.
fn run(name: &str, body: impl Fn(&Place)) -> Result<Completion, Failed> {
    let mut shown = Completion::Completed;
    for _ in 0..TRIES {
        let (place, begun) = (Place::new(), Instant::now());
        let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(&place))) else { return Ok(Completion::Completed) };
        let (waited, least) = (stall::allowance(begun), jobs::LEASE_TTL);
        let failed = |text: &str| Err(Failed::from(format!("{text}\n{}", place.report())));
        let why = match inconclusive::end(&*panic) {
            Some(End::Inconclusive(why)) => why.clone(),
            Some(End::Found(what)) => return failed(what),
            None if waited <= least => return failed(words(&*panic)),
            None => {
                let said = words(&*panic);
                format!("inconclusive: processes waited for {waited:.1?}, longer than a lease of {least:?}: {said}")
            }
        };
        // Told at once as well: the list of all trials shows no reason.
        eprintln!("{name}: {why}");
        shown = Completion::ignored_with(why);
        if name.starts_with("chaos::") {
            // It was made again, if that was worth the time.
            break;
        }
    }
    Ok(shown)
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words")
}
