//! What the store alone knows, read for those who scrape: at most every 10 s, only while somebody has scraped within the last
//! minute, and never by a scrape itself.
//!
//! What was read stays while the store is away, so that no alert ends by that; it goes when nobody has scraped for long, so that
//! nobody is told of hours ago.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::{Mono, Now};
use crate::drive::timers;
use crate::error::Reply;
use crate::job::JobName;
use crate::metrics::Metrics;
use crate::metrics::jobs::{JobTable, ListedJob};
use crate::metrics::registry::STATES;
use crate::observe::view::NodeView;
use crate::schedule::Schedule;
use crate::store::Store;

/// Between two readings.
const PAUSE: Duration = Duration::from_secs(10);
/// So long after a scrape the next one is expected.
const EXPECTED: Duration = Duration::from_secs(60);
/// So long after a scrape what was read is forgotten. Scrapes may be two minutes apart, and one may fail.
const KEPT: Duration = Duration::from_secs(300);
/// Jobs that one call asks for.
const AT_ONCE: usize = 250;
/// Schedules that are looked at before others have a turn.
const SCHEDULES_AT_ONCE: usize = 32;

impl Metrics {
    /// Reads for those who scrape; for ever.
    pub async fn follow(&self, store: &dyn Store) {
        let clock = &*self.setting.clock;
        loop {
            let now = clock.now();
            let scraped = self.scraped_at();
            if scraped.is_some_and(|at| now.mono.since(at) <= EXPECTED) {
                let table = self.table();
                plan_ticks(&table, now.wall).await;
                // What cannot be read now is read the next time.
                let _ = self.read(store, &table).await;
                timers::until(clock, Some(now.mono + PAUSE)).await;
                continue;
            }
            tokio::select! {
                () = self.asked.notified() => {}
                () = timers::until(clock, scraped.map(|at| at + KEPT)) => self.forget(now),
            }
        }
    }

    fn scraped_at(&self) -> Option<Mono> {
        let at = self.scraped.load(Ordering::Relaxed);
        (at > 0).then(|| Mono::from_nanos(at))
    }

    /// Unless somebody has come at this very moment.
    fn forget(&self, since: Now) {
        if self.scraped_at().is_some_and(|at| at > since.mono) {
            return;
        }
        self.scraped.store(0, Ordering::Relaxed);
        self.table().jobs().iter().for_each(|job| job.figures.forget());
        self.put_nodes(None);
    }

    async fn read(&self, store: &dyn Store, table: &JobTable) -> Reply<()> {
        let nodes = store.nodes().await;
        let now = nodes.as_ref().ok().map(|(now, _)| *now);
        self.put_nodes(nodes.as_ref().ok().map(|(now, nodes)| states(&NodeView::all(nodes, *now))));
        nodes?;
        if table.jobs().is_empty() {
            return Ok(());
        }
        let pauses: BTreeMap<JobName, DateTime<Utc>> = {
            let all = store.pauses().await?.into_iter();
            let lasting = all.filter(|(_, pause)| now.is_some_and(|now| pause.remaining(now).is_some()));
            lasting.map(|(job, pause)| (job, pause.since)).collect()
        };
        table.jobs().iter().for_each(|job| job.figures.pause(pauses.get(&job.spec.name).copied()));
        for part in table.jobs().chunks(AT_ONCE) {
            let names: Vec<JobName> = part.iter().map(|job| job.spec.name.clone()).collect();
            let latest = store.latest(&names).await?;
            part.iter().zip(&latest).for_each(|(job, latest)| job.figures.know(latest));
        }
        Ok(())
    }
}

fn states(nodes: &[NodeView]) -> [u64; 4] {
    STATES.map(|state| nodes.iter().filter(|node| node.state.as_str() == state).count() as u64)
}

/// A schedule is compiled when its tick has passed, and not kept: of a thousand hourly jobs each is looked at once in an hour.
async fn plan_ticks(table: &JobTable, now: DateTime<Utc>) {
    let passed = |job: &&ListedJob| job.figures.next_tick().is_none_or(|tick| tick <= now.timestamp_millis());
    for (place, job) in table.jobs().iter().filter(passed).enumerate() {
        let schedule = Schedule::parse(&job.spec.schedule, job.spec.timezone.clone()).ok();
        job.figures.plan_tick(schedule.and_then(|schedule| schedule.next_after(now)));
        if place % SCHEDULES_AT_ONCE == SCHEDULES_AT_ONCE - 1 {
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod follow_tests;
