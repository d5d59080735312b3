//! What the service manager hears of the daemon: ready, alive, reloading, stopping.

use sd_notify::NotifyState;
use tokio::sync::watch;

use crate::node::Health;

/// Ready once the store is reached; the watchdog is fed by the planner's beats, so that a planner that stands still is
/// restarted.
pub(super) async fn tell_of(mut watched: watch::Receiver<Health>) {
    let (mut ready, mut last_beat) = (false, 0);
    while watched.changed().await.is_ok() {
        let health = watched.borrow_and_update().clone();
        if health.store_up && !ready {
            ready = true;
            tell(&[NotifyState::Ready]);
        }
        if health.beats != last_beat {
            last_beat = health.beats;
            let store = match (health.store_up, health.store_refuses) {
                (true, _) => "store reached",
                (false, true) => "store refuses: see cronward doctor",
                (false, false) => "store unreachable",
            };
            let status = format!("{} running; {store}", health.running);
            tell(&[NotifyState::Watchdog, NotifyState::Status(&status)]);
        }
    }
}

/// Without a service manager there is nobody to tell, and nothing depends on being heard.
pub(super) fn tell(state: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(state);
}
