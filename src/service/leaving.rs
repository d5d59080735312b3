//! How a guard ends: its works are asked to end, and what they hold is released before the process leaves.

use std::time::Duration;

use crate::service::{Guard, ShutdownError};

impl Guard {
    /// Ends every run of this guard, and returns once the store knows. Before a process ends it calls this: a lease that was only dropped
    /// may outlast the process and block the next slots.
    ///
    /// Nothing more is started: [`Guard::run`] answers [`GuardError::ShutDown`](crate::service::GuardError::ShutDown). Works are asked to end
    /// ([`Hold::cancelled`](crate::service::Hold::cancelled)) and have `grace` for that; then their futures are dropped. A work that returns
    /// `Ok` in that time is done. One that returns `Err`, or is dropped, is given back: the attempt does not count, and another process may
    /// start at once. A run whose future was dropped before is waited for as well.
    ///
    /// Takes at most `grace` and [`store_wait`](crate::service::GuardBuilder::store_wait).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// use cronward::Guard;
    ///
    /// let guard = Guard::connect("memory:", "hourly-push").await?;
    /// # let signal = std::future::ready(());
    /// tokio::select! {
    ///     biased;
    ///     () = signal => {} // SIGTERM
    ///     outcome = guard.run_current(|_hold| async { Ok::<_, std::io::Error>(()) }) => println!("{:?}", outcome?),
    /// }
    /// guard.shutdown(Duration::from_secs(20)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ShutdownError`] where the store has not confirmed everything by then, or the future of a run is not polled.
    pub async fn shutdown(&self, grace: Duration) -> Result<(), ShutdownError> {
        match self.shutdown.begin(grace).await {
            Ok(()) => Ok(()),
            Err(_) => self.shutdown.finish(self.patience.store).await,
        }
    }
}
