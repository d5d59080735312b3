//! `?wait=N` behind sentinels: after a success is written, N replicas are waited for, so that a failover right after it
//! finds the done mark. Best effort: whatever comes of it, the success counts, no run is refused and nothing is repeated.
//!
//! WAIT counts what its own connection has written, and holds up everything behind it on that connection. So successes go
//! over a connection of their own, and no claim or renewal ever queues behind a replica.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::Value;

use super::link::Endpoint;
use super::link::{Link, LinkError};
use super::route::Route;

/// The replicas that a success is to reach.
#[derive(Debug)]
pub(super) struct Replicas {
    wanted: u32,
    patience: Duration,
    /// Where successes are written.
    route: Route,
    /// Fewer than wanted were reached last time, and that was told.
    short: AtomicBool,
}

impl Replicas {
    /// Half of `op_timeout` is for the write, half for the replicas.
    pub(super) fn new(wanted: u32, endpoint: Endpoint, op_timeout: Duration) -> Self {
        let route = Route::One(Box::new(Link::new(endpoint, op_timeout)));
        Self { wanted, patience: op_timeout / 2, route, short: AtomicBool::new(false) }
    }

    /// Where a success is to be written, for it to be waited for.
    pub(super) const fn route(&self) -> &Route {
        &self.route
    }

    /// Waits for the replicas to have what was written, no longer than half of `op_timeout`. Tells when too few have it, once
    /// until enough have.
    pub(super) async fn confirm(&self, location: &str) {
        let command = redis::cmd("WAIT").arg(self.wanted).arg(self.patience.as_millis().max(1).to_string()).take();
        let reached = reached(self.route.call(None, &command).await);
        let enough = reached.as_ref().is_ok_and(|reached| *reached >= i64::from(self.wanted));
        let was_short = self.short.swap(!enough, Ordering::Relaxed);
        let wanted = self.wanted;
        match (reached, enough, was_short) {
            (Ok(reached), true, true) => tracing::info!(store = location, wanted, reached, "replicas reached again"),
            (Ok(reached), false, false) => {
                tracing::warn!(store = location, wanted, reached, "too few replicas reached");
            }
            (Err(error), _, false) => tracing::warn!(store = location, wanted, error, "too few replicas reached"),
            _ => {}
        }
    }
}

/// The number of replicas, or why it is not known.
fn reached(answer: Result<Value, LinkError>) -> Result<i64, String> {
    match answer {
        Ok(Value::Int(reached)) => Ok(reached),
        Ok(other) => Err(format!("WAIT is answered with {other:?}")),
        Err(LinkError::Connect(error) | LinkError::Call(error)) => Err(error.to_string()),
    }
}
