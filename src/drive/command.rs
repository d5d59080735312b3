//! A command as the work of a slot: one child process for each attempt.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use crate::drive::{Renewals, Started, Work};
use crate::exec::{Launcher, Running};
use crate::job::JobSpec;
use crate::slot::{Exit, RunContext};

/// Commands being started at once: more would only wait for the processors, and starve the renewals.
const LAUNCHES: usize = 32;

/// Starts the commands of a process. Shared, not copied: a launcher holds a whole environment.
#[derive(Debug)]
pub struct Launches {
    launcher: Launcher,
    at_once: Semaphore,
}

impl Launches {
    /// With this launcher.
    pub const fn new(launcher: Launcher) -> Self {
        Self { launcher, at_once: Semaphore::const_new(LAUNCHES) }
    }
}

/// A job's command.
#[derive(Debug)]
pub struct JobCommand {
    /// Whose command it is.
    pub spec: Arc<JobSpec>,
    /// Starts it.
    pub launches: Arc<Launches>,
}

#[async_trait]
impl Work for JobCommand {
    async fn start(&self, run: RunContext, lease: Renewals) -> Box<dyn Started> {
        // Never closed; and if it were, starting at once would be right.
        let _permit = self.launches.at_once.acquire().await;
        Box::new(self.launches.launcher.launch(&self.spec.command, &run, lease.deadline).await)
    }
}

#[async_trait]
impl Started for Running {
    fn begun(&self) -> BoxFuture<'static, ()> {
        Box::pin(Self::begun(self))
    }

    fn terminate(&self) {
        Self::terminate(self);
    }

    fn kill(&self) {
        Self::kill(self);
    }

    async fn wait(&mut self) -> Exit {
        Self::wait(self).await
    }
}
