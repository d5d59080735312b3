//! Which settings of a store can lose or repeat a run: it is tried as nodes use it, and what was seen is judged. In values: the command
//! prints them, and a page may show them.
//!
//! - `probe` uses the store as nodes do, on slots of a job that nobody has, and measures; `lock_probe` a lock that nobody has.
//! - `judge` says what that means, `holders` who has held a lock for too long, and `commands` which jobs have two commands. Pure.
//!
//! What is particular to a kind of store is looked at by its adapter ([`crate::store::examine`]).

mod commands;
mod holders;
mod judge;
mod lock_probe;
mod probe;

use std::sync::Arc;
use std::time::Duration;

use crate::admin::doctor::holders::{RunLimits, overdue};
use crate::admin::doctor::judge::{Thresholds, judge, unreachable};
use crate::admin::doctor::probe::{Left, Probe};
use crate::clock::Clock;
use crate::drive::Entropy;
use crate::job::{JobSpec, Policy};
use crate::observe::view::DoctorView;
use crate::store::{self, Finding, OpenError, Severity, StoreOptions, Trial, redact};
use crate::zone::{Database, Zone};

/// How long what is tried here is kept, where the store forgets by itself.
const SCRATCH: Duration = Duration::from_secs(300);

/// Longer than any record is kept: nothing is older.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// What jobs need of their store.
#[derive(Clone, Debug)]
pub(crate) struct Needs {
    /// The shortest lease.
    lease_ttl: Duration,
    /// A job names locks: without them it does not start.
    locks: bool,
    /// How long their runs may last.
    limits: RunLimits,
    /// A job is in a time zone other than UTC.
    zones: bool,
}

impl Needs {
    /// Of these jobs; of a job as it is by default where there is none.
    pub(crate) fn of<'a>(jobs: impl Iterator<Item = &'a JobSpec> + Clone) -> Self {
        let limits = RunLimits::of(jobs.clone());
        let leases = jobs.clone().map(|job| job.policy.lease_ttl);
        let lease_ttl = leases.min().unwrap_or_else(|| Policy::default().lease_ttl);
        let locks = jobs.clone().any(|job| job.policy.locks.is_some());
        Self { lease_ttl, locks, limits, zones: jobs.into_iter().any(|job| job.timezone != Zone::UTC) }
    }
}

/// Everything that was found.
pub(crate) async fn examine(
    url: &str,
    options: &StoreOptions,
    needs: Needs,
    clock: Arc<dyn Clock>,
    entropy: &Entropy,
) -> Result<DoctorView, OpenError> {
    let kind = store::capability(url).map_or("", |capability| capability.name);
    let view = |findings| DoctorView::new(redact(url), kind, findings);
    // Only what is tried here is kept for so short a time: nothing here forgets what others have written.
    let options = StoreOptions { retention: SCRATCH, ..options.clone() };
    let opened = match store::open_with_clock(url, options.clone(), clock.clone()).await {
        Ok(opened) => opened,
        Err(OpenError::Store(error)) => return Ok(view(vec![unreachable(&error)])),
        Err(error) => return Err(error),
    };
    let keeping = StoreOptions { retention: FOR_EVER, ..options.clone() };
    let keeper = store::open_with_clock(url, keeping.clone(), clock.clone()).await?;
    let stations = async |options| store::stations(url, options, clock.clone()).await;
    // The servers are listed in the same order.
    let stations: Vec<_> = stations(options.clone()).await?.into_iter().zip(stations(keeping).await?).collect();
    let locks = Arc::clone(&opened).lock_store();
    let probe = Probe {
        store: &*opened,
        keeper: &*keeper,
        locks: locks.as_deref(),
        stations: &stations,
        clock: &*clock,
        entropy,
    };
    let mut observed = probe.observe().await;
    for trial in std::mem::take(&mut observed.trials) {
        observed.left.extend(clean(url, &options, &clock, trial).await);
    }
    if let Some(lock) = observed.locks.lock.take() {
        let left = clean(url, &options, &clock, Trial { lock: Some(lock), ..Trial::default() }).await;
        // Who may write nothing may remove nothing either, and has nothing to remove.
        observed.left.extend(left.filter(|_| observed.locks.is_written));
    }
    if observed.has_written_nothing() {
        observed.left.clear();
    }
    let particular =
        if observed.calls.is_ok() { store::examine(url, options.clone(), clock.clone()).await? } else { Vec::new() };
    let limits = Thresholds {
        lease_ttl: needs.lease_ttl,
        op_timeout: options.op_timeout,
        needs_locks: needs.locks,
        cause_is_known: particular.iter().any(|finding| finding.severity == Severity::Fault),
    };
    let mut findings = judge(&observed, opened.capability(), limits);
    // That they cannot be listed was told with the rights.
    if observed.calls.is_ok()
        && let Some(locks) = &locks
        && let Ok((now, records)) = locks.locks(&[]).await
    {
        findings.extend(overdue(&records, now, &needs.limits));
    }
    // The registry of the jobs was listed with the rights, too.
    if observed.calls.is_ok()
        && let Ok(jobs) = opened.jobs().await
    {
        findings.extend(commands::conflicts(&jobs, clock.now().wall));
    }
    findings.extend(particular);
    findings.extend(needs.zones.then(|| time_zones(&Database::current())));
    Ok(view(findings))
}

/// Which time zone database this host has.
fn time_zones(database: &Database) -> Finding {
    let found = database.to_string();
    let effect = "after a change of law a job starts at another hour than on other hosts";
    match (database.passed_over(), database.folder()) {
        (Some(folder), _) => {
            let found = format!("{found}: TZDIR={} has no zone files", folder.display());
            Finding::warning("time-zones", found, effect, "unset TZDIR, or name a folder like /usr/share/zoneinfo")
        }
        (None, None) => Finding::warning(
            "time-zones",
            found,
            effect,
            "install the tzdata package: only a new cronward renews its copy",
        ),
        (None, Some(_)) => Finding::ok("time-zones", found),
    }
}

/// Takes away what was tried; answers what could not be.
async fn clean(url: &str, options: &StoreOptions, clock: &Arc<dyn Clock>, trial: Trial) -> Option<Left> {
    // Several steps, at some stores.
    let options = StoreOptions { op_timeout: options.op_timeout.saturating_mul(4), ..options.clone() };
    let cleaned = store::forget(url, options, Arc::clone(clock), &trial).await;
    cleaned.err().map(|error| Left { trial, why: error.to_string() })
}
