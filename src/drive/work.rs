//! What a granted slot starts, as the driver sees it: a command, or a future of a service.

use std::fmt::Debug;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::slot::{Exit, LeaseDeadline, RunContext};

/// By when a work has to be over unless its lease is renewed; none where it may outlast it.
pub type Renewals = watch::Receiver<Option<LeaseDeadline>>;

/// Something that can be started, once for each attempt.
#[async_trait]
pub trait Work: Debug + Send + Sync + 'static {
    /// Starts it. That it cannot be started is no error: its [`Started::wait`] says so. Does not wait for its end.
    ///
    /// `lease` is by when it has to be over, where it must not outlast its lease; it moves on with each renewal. Whoever can
    /// hold to it while this process stands still does so.
    async fn start(&self, run: RunContext, lease: Renewals) -> Box<dyn Started>;
}

/// One attempt that was started. Dropping it stops it at once.
#[async_trait]
pub trait Started: Send {
    /// Ends once the command itself runs, or never will.
    fn begun(&self) -> BoxFuture<'static, ()>;

    /// Asks it to end.
    fn terminate(&self);

    /// Ends it.
    fn kill(&self);

    /// Waits for its end. Cancel-safe; once ended it answers the same again.
    async fn wait(&mut self) -> Exit;
}
