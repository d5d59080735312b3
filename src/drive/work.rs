//! What a granted slot starts, as its driver sees it.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::slot::{Exit, RunContext};

/// Something that can be started, once for each attempt.
#[async_trait]
pub trait Work: Debug + Send + Sync + 'static {
    /// Starts it. That it cannot be started is no error: its [`Started::wait`] says so. Does not wait for its end.
    async fn start(&self, run: RunContext) -> Box<dyn Started>;
}

/// One attempt that was started. Dropping it stops it at once.
#[async_trait]
pub trait Started: Send {
    /// Asks it to end.
    fn terminate(&self);

    /// Ends it.
    fn kill(&self);

    /// Waits for its end. Cancel-safe; once ended it answers the same again.
    async fn wait(&mut self) -> Exit;
}
