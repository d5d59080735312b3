//! Waiting for an instant of the node's own clock. The one file that sleeps.

use std::time::Duration;

use crate::clock::{Clock, Mono};

/// The runtime's timers stand still while the machine is suspended and the node's clock does not: no single sleep is
/// longer than this, and the node tells its tasks to look again when a beat shows that time has jumped.
const LONGEST: Duration = Duration::from_secs(60);

/// Returns at or after `at`; never when there is none.
pub(crate) async fn until(clock: &dyn Clock, at: Option<Mono>) {
    let Some(at) = at else { return std::future::pending().await };
    loop {
        let left = at.since(clock.now().mono);
        if left.is_zero() {
            return;
        }
        rest(left.min(LONGEST)).await;
    }
}

/// Returns once the wall clock shows `at`, or after a minute; the caller looks at the clock again in any case.
#[cfg(feature = "daemon")]
pub(crate) async fn until_wall(clock: &dyn Clock, at: Option<chrono::DateTime<chrono::Utc>>) {
    let Some(at) = at else { return std::future::pending().await };
    let left = crate::clock::between(clock.now().wall, at);
    if !left.is_zero() {
        rest(left.min(LONGEST)).await;
    }
}

#[allow(clippy::disallowed_methods, reason = "the one file that sleeps")]
async fn rest(span: Duration) {
    tokio::time::sleep(span).await;
}
