//! The time zones of the host: a running node takes the rules of an updated database. Files are read on a thread of their own.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::clock::Clock;
use crate::node::{Command, Health, ZonesNow};
use crate::zone::Database;

/// Between two looks at the database. Laws change at a few days' notice; a look reads one small file for each zone in use.
const BETWEEN_LOOKS: Duration = Duration::from_secs(600);

/// Reads the database again, and logs what is different.
pub(super) fn look() {
    let refresh = Database::refresh();
    if refresh.changed {
        tracing::info!(zones = %Database::current(), "time zones changed");
    }
    for error in refresh.kept {
        tracing::warn!(%error, "time zone kept as it was");
    }
}

/// What [`look`] found last.
pub(super) fn now() -> ZonesNow {
    let database = Database::current();
    ZonesNow { release: database.release(), zones: database.used() }
}

/// Looks at the database every ten minutes, at a beat of the node, and gives the node what it found.
pub(super) async fn follow(
    mut health: watch::Receiver<Health>,
    clock: Arc<dyn Clock>,
    commands: mpsc::Sender<Command>,
) {
    let mut looked = clock.now().mono;
    while health.changed().await.is_ok() {
        let beat = clock.now().mono;
        if beat.since(looked) < BETWEEN_LOOKS {
            continue;
        }
        looked = beat;
        // A look that panicked changed nothing.
        let looked = tokio::task::spawn_blocking(look).await;
        if looked.is_ok() && commands.send(Command::Zones(now())).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    #[tokio::test]
    async fn a_beat_that_comes_ten_minutes_after_the_last_look_gives_the_node_the_zones() {
        let clock = ManualClock::at("2026-11-21T14:00:00Z".parse().unwrap());
        let (beats, health) = watch::channel(Health::default());
        let (commands, mut inbox) = mpsc::channel(1);
        let following = tokio::spawn(follow(health, Arc::new(clock.clone()), commands));
        tokio::task::yield_now().await;
        for seconds in [599, 1, 600] {
            clock.advance(Duration::from_secs(seconds));
            beats.send_modify(|health| health.beats += 1);
            tokio::task::yield_now().await;
            if seconds == 599 {
                assert!(inbox.try_recv().is_err(), "too early");
            } else {
                assert!(matches!(inbox.recv().await, Some(Command::Zones(_))));
            }
        }
        drop(beats);
        following.await.unwrap();
    }
}
