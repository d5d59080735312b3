//! The figures that cronward is held to, measured on this machine: upper bounds, and ratios to doing the same by hand.
//!
//! `make bench` runs all of them and ends with a table; `cargo bench -- idle` runs those whose name begins so. How each
//! one is made is in `benches/README.md`. These are no tests: a missed bound is printed and fails nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a benchmark measures real time, tells it on stdout, and stops where it cannot measure"
)]

mod burst;
mod calls;
#[cfg(feature = "http")]
mod dashboard;
mod files;
#[cfg(feature = "http")]
mod filling;
mod idle;
mod locks;
mod machine;
mod processes;
mod rig;
mod sample;
mod side_by_side;
mod spy;
mod stores;
#[path = "../../tests/support/mod.rs"]
mod support;
mod table;
mod ticks;
mod work;

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

use table::Table;

/// A group of figures: its name on the command line, and how it is measured.
type Group = (&'static str, fn(&mut Table));

const GROUPS: &[Group] = &[
    ("calls", calls::measure),
    ("ticks", ticks::measure),
    ("burst", burst::measure),
    ("idle", idle::measure),
    #[cfg(feature = "http")]
    ("dashboard", dashboard::measure),
    #[cfg(feature = "http")]
    ("filling", filling::measure),
    ("files", files::measure),
    ("side-by-side", side_by_side::measure),
    ("stores", stores::measure),
    ("processes", processes::measure),
    ("locks", locks::measure),
];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| name.starts_with(word.as_str()));
    if std::env::args().any(|word| word == "--list") {
        return GROUPS.iter().for_each(|(name, _)| println!("{name}: benchmark"));
    }
    let mut table = Table::default();
    for (name, measure) in GROUPS.iter().filter(|(name, _)| is_wanted(name)) {
        eprintln!("measuring: {name}");
        measure(&mut table);
    }
    println!("\n{}", machine::describe());
    println!("\n{table}");
}

/// A runtime like the daemon's: two workers beside the thread that waits.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let result = runtime.block_on(work);
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    result
}
