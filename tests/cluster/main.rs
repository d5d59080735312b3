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

mod chaos;
mod daemon;
#[cfg(feature = "etcd")]
#[path = "../support/etcd_server.rs"]
mod etcd_server;
mod jobs;
mod library_node;
mod link;
mod manager;
#[cfg(feature = "mysql")]
#[path = "../support/mariadb_server.rs"]
mod mariadb_server;
mod place;
#[cfg(feature = "postgres")]
#[path = "../support/postgres_server.rs"]
mod postgres_server;
#[path = "../support/proxy.rs"]
mod proxy;
mod recorder;
#[cfg(any(feature = "redis-sentinel", feature = "redis-cluster"))]
#[path = "../support/redis_group.rs"]
mod redis_group;
#[path = "../support/redis_server.rs"]
mod redis_server;
mod stall;
mod wait;
#[cfg(feature = "zookeeper")]
#[path = "../support/zookeeper_server.rs"]
mod zookeeper_server;

mod trials;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

use crate::place::Place;

/// Trials wait far more than they compute: more of them at once than there are processors. Eight of them wait for their turn.
const TRIALS_AT_ONCE: usize = 8 + 8;

fn main() -> ExitCode {
    if library_node::is_asked_for() {
        library_node::run();
        return ExitCode::SUCCESS;
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(TRIALS_AT_ONCE);
    stall::watch();
    let mut trials: Vec<Trial> = chaos::trials::short_on_each_store().map(|(name, body)| trial(&name, body)).collect();
    trials.extend(trials::all().into_iter().map(|(name, body)| trial(name, body)));
    let mut long: Vec<Trial> = chaos::trials::long_on_each_store().map(|(name, body)| trial(&name, body)).collect();
    long.extend(trials::only_when_asked_for().into_iter().map(|(name, body)| trial(name, body)));
    trials.extend(long.into_iter().map(|trial| trial.with_ignored_flag(true)));
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(name: &str, body: impl FnOnce(&Place) + Send + 'static) -> Trial {
    Trial::test(name, move || run(body))
}

/// Runs one trial; what it leaves behind is shown when it fails.
fn run(body: impl FnOnce(&Place)) -> Result<(), Failed> {
    let place = Place::new();
    catch_unwind(AssertUnwindSafe(|| body(&place))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let said = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words");
        Failed::from(format!("{said}\n{}", place.report()))
    })
}
