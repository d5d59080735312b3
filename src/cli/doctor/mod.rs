//! `cronward doctor`: which settings of the store in use can lose or repeat a run. Opens the store, prints, and ends
//! with 0, 1 or 2.
//!
//! - `probe` uses the store as nodes do, on slots of a job that nobody has, and measures; `lock_probe` a lock that nobody has.
//! - `judge` says what that means. Pure.
//!
//! What is particular to a kind of store is looked at by its adapter ([`crate::store::examine`]).

mod judge;
mod lock_probe;
mod probe;

use std::sync::Arc;

use crate::admin::words::harmless;
use crate::cli::console::{Console, OutputArgs};
use crate::cli::doctor::judge::{Thresholds, judge, unreachable};
use crate::cli::doctor::probe::{Left, Probe};
use crate::cli::failure::Failure;
use crate::cli::format::{self, Grid};
use crate::cli::store_args::{StoreAddress, StoreArgs};
use crate::clock::SystemClock;
use crate::config::Config;
use crate::drive::Entropy;
use crate::job::Policy;
use crate::observe::view::DoctorView;
use crate::store::{self, Finding, OpenError, Severity, StoreOptions, Trial, redact};

/// How long what is tried here is kept, where the store forgets by itself.
const SCRATCH: std::time::Duration = std::time::Duration::from_secs(300);

/// Longer than any record is kept: nothing is older.
const FOR_EVER: std::time::Duration = std::time::Duration::from_secs(100 * 365 * 86_400);

/// Check the configured store for settings that can lose or repeat a run, and show how to fix them
///
/// Tries each operation of the store on a temporary job, node and lock, and removes them again. Changes nothing else.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Example: cronward doctor --config /etc/cronward/jobs.toml",
    after_help = "Exit codes: 0 no problems, 1 warnings, 2 errors."
)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Looks at the store.
pub(crate) async fn doctor(args: &DoctorArgs, console: &mut Console) -> Result<(), Failure> {
    let file = args.store.read_file(console)?;
    let address = args.store.address(file.as_ref(), console)?.only_looked_at();
    let entropy = Entropy::from_system().map_err(|error| Failure::Internal(format!("no random source: {error}")))?;
    let view = examine(&address, file.as_ref(), &entropy).await?;
    if args.output.json {
        console.json(&view)?;
    } else {
        print(&view, console)?;
    }
    match view.severity {
        Severity::Ok => Ok(()),
        Severity::Warning => Err(Failure::Found),
        Severity::Fault => Err(Failure::Faults),
    }
}

/// Everything that was found.
async fn examine(address: &StoreAddress, file: Option<&Config>, entropy: &Entropy) -> Result<DoctorView, Failure> {
    let kind = store::capability(&address.url).map_or("", |capability| capability.name);
    let view = |findings| DoctorView::new(redact(&address.url), kind, findings);
    // Only what is tried here is kept for so short a time: nothing here forgets what others have written.
    let options = StoreOptions { retention: SCRATCH, ..address.options.clone() };
    let clock = Arc::new(SystemClock);
    let opened = match store::open_with_clock(&address.url, options.clone(), clock.clone()).await {
        Ok(opened) => opened,
        Err(OpenError::Store(error)) => return Ok(view(vec![unreachable(&error)])),
        Err(error) => return Err(Failure::opening(error, address.from_command_line)),
    };
    let keeping = StoreOptions { retention: FOR_EVER, ..options.clone() };
    let kept = |error| Failure::opening(error, address.from_command_line);
    let keeper = store::open_with_clock(&address.url, keeping.clone(), clock.clone()).await.map_err(kept)?;
    let stations = async |options| store::stations(&address.url, options, clock.clone()).await.map_err(kept);
    // The servers are listed in the same order.
    let stations: Vec<_> = stations(options.clone()).await?.into_iter().zip(stations(keeping).await?).collect();
    let locks = Arc::clone(&opened).lock_store();
    let probe = Probe {
        store: &*opened,
        keeper: &*keeper,
        locks: locks.as_deref(),
        stations: &stations,
        clock: &SystemClock,
        entropy,
    };
    let mut observed = probe.observe().await;
    for trial in std::mem::take(&mut observed.trials) {
        observed.left.extend(clean(&address.url, &options, trial).await);
    }
    if let Some(lock) = observed.locks.lock.take() {
        let left = clean(&address.url, &options, Trial { lock: Some(lock), ..Trial::default() }).await;
        // Who may write nothing may remove nothing either, and has nothing to remove.
        observed.left.extend(left.filter(|_| observed.locks.is_written));
    }
    let limits = Thresholds {
        lease_ttl: shortest_lease(file),
        op_timeout: options.op_timeout,
        needs_locks: file.is_some_and(|config| config.jobs.values().any(|job| job.policy.locks.is_some())),
    };
    let mut findings = judge(&observed, opened.capability(), limits);
    if observed.calls.is_ok() {
        let particular = store::examine(&address.url, options, clock).await;
        findings.extend(particular.map_err(kept)?);
    }
    Ok(view(findings))
}

/// Takes away what was tried; answers what could not be.
async fn clean(url: &str, options: &StoreOptions, trial: Trial) -> Option<Left> {
    // Several steps, at some stores.
    let options = StoreOptions { op_timeout: options.op_timeout.saturating_mul(4), ..options.clone() };
    let cleaned = store::forget(url, options, Arc::new(SystemClock), &trial).await;
    cleaned.err().map(|error| Left { trial, why: error.to_string() })
}

/// Of the file's jobs, or the default.
fn shortest_lease(file: Option<&Config>) -> std::time::Duration {
    let leases = file.into_iter().flat_map(|config| config.jobs.values()).map(|job| job.policy.lease_ttl);
    leases.min().unwrap_or_else(|| Policy::default().lease_ttl)
}

/// The table, and below it each thing that is not well.
fn print(view: &DoctorView, console: &mut Console) -> Result<(), Failure> {
    console.print(&format!("{}\n", harmless(&view.store)))?;
    let mut grid = Grid::new(console, &["STATE", "CHECK", "FOUND"]);
    for finding in &view.findings {
        grid.row(vec![
            format::text(finding.severity.as_str()),
            format::text(&finding.check),
            format::text(&finding.found),
        ]);
    }
    grid.print(console)?;
    for Finding { check, severity, found, effect, fix } in &view.findings {
        let (Some(effect), Some(fix)) = (effect, fix) else { continue };
        console.print(&format!("\n{}: {check}: {}\n", severity.as_str(), harmless(found)))?;
        console.print(&format!("  can happen: {}\n  fix: {}\n", harmless(effect), harmless(fix)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str) -> StoreAddress {
        StoreAddress { url: url.to_owned(), options: StoreOptions::default(), url_file: None, from_command_line: true }
    }

    fn shown(view: &DoctorView) -> String {
        let (mut console, out, _) = Console::captured(false);
        print(view, &mut console).unwrap();
        out.text()
    }

    #[tokio::test]
    async fn a_store_in_memory_answers_everything_and_is_told_to_be_lost_with_its_process() {
        let view = examine(&address("memory"), None, &Entropy::from_system().unwrap()).await.unwrap();
        let bad: Vec<_> = view.findings.iter().filter(|finding| finding.severity > Severity::Ok).collect();
        assert_eq!(bad.iter().map(|finding| finding.check.as_str()).collect::<Vec<_>>(), ["durability"], "{bad:?}");
        assert_eq!((view.severity, view.kind), (Severity::Fault, "memory"));
    }

    #[tokio::test]
    async fn a_url_that_cannot_be_used_is_a_usage_error() {
        let refused = examine(&address("nonsense://h"), None, &Entropy::from_system().unwrap()).await;
        assert_eq!(refused.err().map(|error| error.exit_code()), Some(crate::cli::ExitCode::Usage));
    }

    #[test]
    fn what_is_not_well_is_told_in_full_below_the_table() {
        let findings = vec![
            Finding::ok("reachable", "redis"),
            Finding::fault(
                "eviction",
                "maxmemory-policy allkeys-lru",
                "a slot may run twice",
                "redis.conf: noeviction",
            ),
        ];
        assert_eq!(
            shown(&DoctorView::new("redis://h".to_owned(), "redis", findings)),
            "redis://h\n\
             STATE  CHECK      FOUND\n\
             ok     reachable  redis\n\
             error  eviction   maxmemory-policy allkeys-lru\n\
             \n\
             error: eviction: maxmemory-policy allkeys-lru\n  can happen: a slot may run twice\n  fix: redis.conf: noeviction\n"
        );
    }

    #[test]
    fn away_from_a_terminal_a_finding_is_one_line_that_is_not_cut() {
        let found = "x ".repeat(100);
        let view = DoctorView::new(
            "redis://h".to_owned(),
            "redis",
            vec![Finding::warning("persistence", found.as_str(), "x", "x")],
        );
        assert_eq!(shown(&view).lines().nth(2), Some(format!("warning  persistence  {found}").trim_end()));
    }
}
