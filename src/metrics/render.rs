//! The text: every family once, its series behind it. It asks nobody: what is told was counted, or read before.

use std::fmt::{self, Display, Write};
use std::sync::atomic::Ordering;

use crate::clock::Now;
use crate::metrics::Metrics;
use crate::metrics::exposition::{Exposition, Millis, Seconds};
use crate::metrics::family::{self, Family};
use crate::metrics::figures::Counters;
use crate::metrics::histogram::{OF_CALLS, OF_RUNS, OF_STARTS};
use crate::metrics::jobs::{JobFigures, JobTable, ListedJob};
use crate::metrics::process::ProcessFigures;
use crate::metrics::registry::{STATES, SinkFigures};
use crate::zone::{Database, Zone, ZoneRelease};

/// Where the jobs come from that a daemon plans: its file.
const ORIGIN: &str = "file";

/// Of a build that nobody named.
const REVISION: &str = match option_env!("CRONWARD_REVISION") {
    Some(revision) => revision,
    None => "unknown",
};

impl Metrics {
    /// Writes the text, piece by piece; whoever takes it may stop by an error. From now on, for a while, the store is read for
    /// whoever comes next ([`Metrics::follow`]).
    pub fn write(&self, now: Now, out: &mut dyn Write) -> fmt::Result {
        self.scraped.store(now.mono.nanos().max(1), Ordering::Relaxed);
        self.asked.notify_one();
        let table = self.table();
        let page = &mut Exposition { out, namespace: self.setting.namespace.as_str() };
        of_runs(page, &table)?;
        self.of_claims(page)?;
        self.of_locks(page, &table)?;
        of_jobs(page, &table, now)?;
        self.of_store(page)?;
        self.of_node(page, &table)?;
        self.of_notifications(page, now)?;
        self.of_process(page)
    }

    fn of_claims(&self, page: &mut Exposition<'_>) -> fmt::Result {
        page.head(&family::START_DELAY)?;
        page.histogram(&family::START_DELAY, &[], &OF_STARTS, &self.start_delay)?;
        words(page, &family::CLAIMS, self.claims.each())?;
        words(page, &family::RENEWALS, self.renewals.each())
    }

    fn of_locks(&self, page: &mut Exposition<'_>, table: &JobTable) -> fmt::Result {
        page.alone(&family::LOCK_WAITING, self.locks.waiting())?;
        page.head(&family::LOCK_WAITS)?;
        page.histogram(&family::LOCK_WAITS, &[], &OF_RUNS, &self.locks.waits)?;
        page.head(&family::LOCK_HOLDS)?;
        page.histogram(&family::LOCK_HOLDS, &[], &OF_RUNS, &self.locks.holds)?;
        each(page, table, &family::LOCKS_LOST, |job| {
            job.spec.policy.locks.is_some().then(|| job.figures.locks_lost.count())
        })
    }

    fn of_store(&self, page: &mut Exposition<'_>) -> fmt::Result {
        page.head(&family::STORE_OPS)?;
        for (op, histogram) in self.store.called() {
            page.histogram(&family::STORE_OPS, &[op.as_str()], &OF_CALLS, histogram)?;
        }
        page.head(&family::STORE_ERRORS)?;
        for (op, kind, count) in self.store.errors() {
            page.series(&family::STORE_ERRORS, &[op.as_str(), kind.as_str()], count)?;
        }
        Ok(())
    }

    fn of_node(&self, page: &mut Exposition<'_>, table: &JobTable) -> fmt::Result {
        let health = self.setting.health.borrow().clone();
        page.alone(&family::STORE_UP, u8::from(health.store_up))?;
        page.alone(&family::STORE_DATA_LOSSES, self.data_losses.load(Ordering::Relaxed))?;
        page.alone(&family::CLOCK_OFFSET, Millis(health.clock_offset_ms))?;
        page.head(&family::PLANNER_BEAT)?;
        if let Some(at) = health.last_beat.map(|beat| beat.wall) {
            page.series(&family::PLANNER_BEAT, &[], Millis(at.timestamp_millis()))?;
        }
        let nodes = self.nodes().into_iter().flat_map(|counts| STATES.into_iter().zip(counts));
        words(page, &family::NODES, nodes)?;
        page.alone(&family::DRAINING, u8::from(health.draining))?;
        page.head(&family::CONFIG_INFO)?;
        page.series(&family::CONFIG_INFO, &[&table.config_hash], 1)?;
        page.head(&family::TIME_ZONES_INFO)?;
        if table.jobs().iter().any(|job| job.spec.timezone != Zone::UTC) {
            let ZoneRelease { folder, version } = Database::current().release();
            let (release, folder) = (version.unwrap_or_default(), folder.unwrap_or_else(|| "bundled".to_owned()));
            page.series(&family::TIME_ZONES_INFO, &[&release, &folder], 1)?;
        }
        page.alone(&family::RELOAD_SUCCESSFUL, u8::from(!self.reload_refused.load(Ordering::Relaxed)))?;
        page.head(&family::RELOAD_SUCCESS_AT)?;
        if let Some(at) = self.reloaded.millis() {
            page.series(&family::RELOAD_SUCCESS_AT, &[], Millis(at))?;
        }
        page.head(&family::BUILD_INFO)?;
        page.series(&family::BUILD_INFO, &[env!("CARGO_PKG_VERSION"), REVISION], 1)?;
        page.alone(&family::JOURNAL_LOST, self.setting.journal.as_ref().map_or(0, |journal| journal.lines_lost()))?;
        page.alone(&family::NOTES_REFUSED, u8::from(health.notes_refused))
    }

    fn of_notifications(&self, page: &mut Exposition<'_>, now: Now) -> fmt::Result {
        let sinks = self.setting.notifications.as_ref().map_or(Vec::new(), |counts| counts.each(now.mono));
        page.head(&family::NOTIFICATIONS)?;
        for sink in &sinks {
            sink.results
                .iter()
                .try_for_each(|(result, count)| page.series(&family::NOTIFICATIONS, &[&sink.sink, result], count))?;
        }
        page.head(&family::NOTIFICATIONS_PENDING)?;
        let pending = |sink: &SinkFigures| {
            page.series(&family::NOTIFICATIONS_PENDING, &[&sink.sink], Seconds(sink.oldest_pending))
        };
        sinks.iter().try_for_each(pending)
    }

    fn of_process(&self, page: &mut Exposition<'_>) -> fmt::Result {
        let process = ProcessFigures::read();
        maybe(page, &family::PROCESS_MEMORY, process.resident_bytes)?;
        maybe(page, &family::PROCESS_CPU, process.cpu_seconds)?;
        maybe(page, &family::PROCESS_FDS, process.open_fds)?;
        maybe(page, &family::PROCESS_START, self.started.millis().map(Millis))
    }
}

/// A family of one series, where there is a value.
fn maybe(page: &mut Exposition<'_>, family: &Family, value: Option<impl Display>) -> fmt::Result {
    value.map_or(Ok(()), |value| page.alone(family, value))
}

/// A family with a series for each word.
fn words<'a>(
    page: &mut Exposition<'_>,
    family: &Family,
    mut counts: impl Iterator<Item = (&'a str, u64)>,
) -> fmt::Result {
    page.head(family)?;
    counts.try_for_each(|(word, count)| page.series(family, &[word], count))
}

/// A family with a series for each job and word.
fn words_of_jobs<const N: usize>(
    page: &mut Exposition<'_>,
    table: &JobTable,
    family: &Family,
    counts: impl Fn(&JobFigures) -> &Counters<N>,
) -> fmt::Result {
    page.head(family)?;
    for job in table.jobs() {
        let name = job.spec.name.as_str();
        counts(&job.figures).each().try_for_each(|(word, count)| page.series(family, &[name, word], count))?;
    }
    Ok(())
}

/// A series for each job that has a value.
fn each<T: Display>(
    page: &mut Exposition<'_>,
    table: &JobTable,
    family: &Family,
    value: impl Fn(&ListedJob) -> Option<T>,
) -> fmt::Result {
    page.head(family)?;
    for job in table.jobs() {
        if let Some(value) = value(job) {
            page.series(family, &[job.spec.name.as_str()], value)?;
        }
    }
    Ok(())
}

fn of_runs(page: &mut Exposition<'_>, table: &JobTable) -> fmt::Result {
    words_of_jobs(page, table, &family::RUNS, |job| &job.runs)?;
    words_of_jobs(page, table, &family::SLOTS, |job| &job.slots)?;
    each(page, table, &family::OVERLAPS, |job| Some(job.figures.overlaps.count()))?;
    page.head(&family::RUN_DURATION)?;
    for job in table.jobs() {
        if let Some(durations) = job.figures.durations() {
            page.histogram(&family::RUN_DURATION, &[job.spec.name.as_str()], &OF_RUNS, durations)?;
        }
    }
    Ok(())
}

fn of_jobs(page: &mut Exposition<'_>, table: &JobTable, now: Now) -> fmt::Result {
    page.head(&family::JOB_INFO)?;
    for ListedJob { spec, .. } in table.jobs() {
        let (zone, period) = (spec.timezone.name(), spec.period.to_string());
        let owner = spec.owner.as_deref().unwrap_or("");
        let labels = [spec.name.as_str(), spec.schedule.as_str(), zone, &period, owner, ORIGIN];
        page.series(&family::JOB_INFO, &labels, 1)?;
    }
    each(page, table, &family::JOB_RUNNING, |job| Some(job.figures.running()))?;
    each(page, table, &family::JOB_ATTEMPTS, |job| Some(job.figures.attempts(now.wall)))?;
    each(page, table, &family::JOB_PAUSED, |job| job.figures.paused())?;
    each(page, table, &family::JOB_NEXT_TICK, |job| job.figures.next_tick().map(Millis))?;
    each(page, table, &family::JOB_LAST_SUCCESS, |job| job.figures.last_success().map(Millis))?;
    each(page, table, &family::JOB_FAILING_SINCE, |job| job.figures.failing_since().map(Millis))?;
    each(page, table, &family::JOB_ALERT_AFTER, |job| job.spec.alert_after.map(Seconds))?;
    each(page, table, &family::JOB_TIMEOUT, |job| job.spec.policy.timeout.map(Seconds))
}
