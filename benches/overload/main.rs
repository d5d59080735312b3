//! More jobs than a machine can start: what a node makes of them, against starting the same commands without a guard on the
//! same machine in the same run.
//!
//! `make overload` runs everything, about forty minutes; `cargo bench --bench overload -- --seconds 60 forbid 600` a part. How the
//! figures are made is in `benches/README.md`. This is no test: what is missed is printed and fails nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    missing_docs,
    reason = "a benchmark measures real time, tells it on stdout, and stops where it cannot measure"
)]

mod bare;
#[path = "../figures/machine.rs"]
mod machine;
mod node;
#[path = "../../tests/support/mod.rs"]
mod support;

use support::redis_server;

use std::time::Duration;

use node::Watched;

/// How long the commands are started without a guard, before and after each load.
const BARE: Duration = Duration::from_secs(15);
/// The part of the machine's own rate that a node has to reach.
const WANTED: f64 = 0.6;
/// Resident memory that a node may take.
const MEMORY_MIB: u64 = 96;
/// After the end of the load, until a light load is done in full.
const RECOVERY: Duration = Duration::from_secs(2);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--list") {
        return println!("overload: benchmark");
    }
    let seconds = words.iter().position(|word| word == "--seconds").map_or(300, |at| words[at + 1].parse().unwrap());
    let is_wanted = |all: &[&str], one: &str| {
        let named: Vec<&&str> = all.iter().filter(|it| words.iter().any(|word| word == **it)).collect();
        named.is_empty() || named.contains(&&one)
    };
    let (modes, loads) = (["allow", "forbid"], ["300", "600", "2000"]);
    println!("{}", machine::describe());
    println!(
        "\n| concurrency | jobs each second | bare /s | runs /s | of what is possible | each 30 s | memory | log lines | full rate after |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut missed = 0;
    for mode in modes.into_iter().filter(|mode| is_wanted(&modes, mode)) {
        for load in loads.into_iter().filter(|load| is_wanted(&loads, load)) {
            missed += measure(mode, load.parse().unwrap(), Duration::from_secs(seconds));
        }
    }
    println!("\n{missed} of these miss {WANTED} of what is possible, {MEMORY_MIB} MiB, or {RECOVERY:?}.");
}

/// Prints a row; 1 when it misses what is wanted.
fn measure(mode: &str, jobs: usize, span: Duration) -> u32 {
    let before = bare::rate(BARE);
    let light = ((before * 0.3) as usize).clamp(1, jobs);
    let Watched { each, memory_mib, lines, warnings, recovered } = node::watch(mode, jobs, light, span);
    let bare = f64::midpoint(before, bare::rate(BARE));
    let rate = each.iter().sum::<f64>() / each.len() as f64;
    let ratio = rate / bare.min(jobs as f64);
    let each: Vec<String> = each.iter().map(|rate| format!("{rate:.0}")).collect();
    let after = recovered.map_or_else(|| "not within 30 s".to_owned(), |after| format!("{:.0} s", after.as_secs_f64()));
    println!(
        "| {mode} | {jobs} | {bare:.0} | {rate:.0} | {:.0} % | {} | {memory_mib} MiB | {lines}, {warnings} of them warnings or errors | {after} |",
        ratio * 100.0,
        each.join(" ")
    );
    let well = ratio >= WANTED && memory_mib < MEMORY_MIB && recovered.is_some_and(|after| after <= RECOVERY);
    u32::from(!well)
}
