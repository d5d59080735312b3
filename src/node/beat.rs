//! The planner's heartbeat: one tokio-cron-scheduler job, every second.
//!
//! It only beats. Its callbacks come up to half a second late and do not know their scheduled instant, so nothing here
//! decides when a job runs; a late or lost beat costs nothing while the planner's horizon is longer than it.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};

/// Beats until it is dropped or stopped.
pub(super) struct Heart {
    scheduler: JobScheduler,
    beats: Arc<Notify>,
}

impl Heart {
    /// Starts beating.
    pub(super) async fn start() -> Result<Self, JobSchedulerError> {
        let scheduler = JobScheduler::new().await?;
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
