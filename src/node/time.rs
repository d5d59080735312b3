//! What a node takes its time from: the beat of its planner, and its clocks, with a wall clock that is put right by the store's when
//! it is far off.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::TimeDelta;
use tokio::sync::Notify;
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};

use crate::clock::{Clock, Now};

/// Messages of the scheduler to itself: of the 200 that it has room for by itself one job needs a few.
const CHANNEL: usize = 16;

/// The planner's heartbeat, one tokio-cron-scheduler job, every second: beats until it is dropped or stopped.
///
/// It only beats. Its callbacks come up to half a second late and do not know their scheduled instant, so nothing here
/// decides when a job runs; a late or lost beat costs nothing while the planner's horizon is longer than it.
pub(super) struct Heart {
    scheduler: JobScheduler,
    beats: Arc<Notify>,
}

impl Heart {
    /// Starts beating.
    pub(super) async fn start() -> Result<Self, JobSchedulerError> {
        let scheduler = JobScheduler::new_with_channel_size(CHANNEL).await?;
        let beats = Arc::new(Notify::new());
        let notify = Arc::clone(&beats);
        let job = Job::new_async("* * * * * *", move |_, _| {
            let notify = Arc::clone(&notify);
            Box::pin(async move { notify.notify_one() })
        })?;
        scheduler.add(job).await?;
        scheduler.start().await?;
        // The first beat is now: what is due need not wait for the next whole second.
        beats.notify_one();
        Ok(Self { scheduler, beats })
    }

    /// The next beat. Beats that nobody waited for are one.
    pub(super) async fn beat(&self) {
        self.beats.notified().await;
    }

    /// Stops beating.
    pub(super) async fn stop(mut self) {
        // It can only fail when it is gone already.
        let _ = self.scheduler.shutdown().await;
    }
}

/// The node's clocks.
///
/// The store judges slots by its own clock. A node that is an hour behind would ask for slots that are over, one that is
/// ahead for slots that have not begun: it would reach the store and yet do nothing (L1). What differs by less than a
/// person notices is left alone: the store refuses what is early, and the guard waits. Monotonic time is never touched.
#[derive(Debug)]
pub(super) struct StoreTime {
    clock: Arc<dyn Clock>,
    /// What the wall clock is ahead of the store's; 0 while it is left alone.
    ahead_ms: AtomicI64,
}

impl StoreTime {
    pub(super) fn over(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { clock, ahead_ms: AtomicI64::new(0) })
    }

    /// The machine's own clocks, by which the difference is measured.
    pub(super) fn uncorrected(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// The machine's wall clock is so many milliseconds ahead of the store's.
    pub(super) fn correct(&self, ahead_ms: i64) {
        self.ahead_ms.store(ahead_ms, Ordering::Relaxed);
    }
}

impl Clock for StoreTime {
    fn now(&self) -> Now {
        let now = self.clock.now();
        let ahead = TimeDelta::milliseconds(self.ahead_ms.load(Ordering::Relaxed));
        Now { wall: now.wall.checked_sub_signed(ahead).unwrap_or(now.wall), ..now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn a_clock_that_is_put_right_shows_the_stores_time_and_its_monotonic_clock_is_never_touched() {
        let clock = StoreTime::over(Arc::new(ManualClock::at("2026-11-21T15:00:00Z".parse().unwrap())));
        let (shows, before) = (|| clock.now().wall.format("%T").to_string(), clock.now().mono);
        clock.correct(3_600_000);
        assert_eq!(shows(), "14:00:00");
        clock.correct(-3_600_000);
        assert_eq!(shows(), "16:00:00");
        clock.correct(0);
        assert_eq!(shows(), "15:00:00");
        assert_eq!(clock.now().mono, before);
    }
}
