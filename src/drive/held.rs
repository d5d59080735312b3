//! Waits for the holder of a slot that is over: only then is it known how the slot came out.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::broadcast::error::RecvError;

use crate::clock::{Clock, Mono};
use crate::drive::timers;
use crate::slot::{Mark, Slot, SlotRecord};
use crate::store::{Store, StoreError, Wake, Wakeups};

/// Before a store that did not answer is asked again.
const AGAIN: Duration = Duration::from_millis(200);

/// After a lease that was not renewed: the store's clock may run a little slower.
const LAPSED: Duration = Duration::from_millis(100);

/// How long a caller waits for the holder of a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HolderWait {
    /// At most until then, whatever the holder does; none while its lease is renewed.
    pub(crate) until: Option<Mono>,
    /// So long for a store that does not answer.
    pub(crate) store: Duration,
}

impl HolderWait {
    /// The record of the slot once no lease stands at it, or as it is when the wait ends; with the store's clock.
    pub(crate) async fn record(
        self,
        store: &dyn Store,
        clock: &dyn Clock,
        slot: &Slot,
    ) -> Result<(DateTime<Utc>, SlotRecord), StoreError> {
        let mut hints = store.subscribe();
        let mut silent = None;
        loop {
            let sent = clock.now().mono;
            match read(store, slot).await {
                Ok((now, record)) => {
                    silent = None;
                    let Mark::Leased { remaining, .. } = &record.mark else { return Ok((now, record)) };
                    if self.until.is_some_and(|until| clock.now().mono >= until) {
                        return Ok((now, record));
                    }
                    let look = sent + pause(store, *remaining);
                    let look = self.until.map_or(look, |until| look.min(until));
                    tokio::select! {
                        () = hint_about(&mut hints, slot) => {}
                        () = timers::until(clock, Some(look)) => {}
                    }
                }
                Err(error) => {
                    let since = *silent.get_or_insert(sent);
                    if !error.is_transient() || clock.now().mono.since(since) >= self.store {
                        return Err(error);
                    }
                    timers::until(clock, Some(clock.now().mono + AGAIN)).await;
                }
            }
        }
    }
}

async fn read(store: &dyn Store, slot: &Slot) -> Result<(DateTime<Utc>, SlotRecord), StoreError> {
    let (now, records) = store.inspect(std::slice::from_ref(slot)).await?;
    Ok((now, records.into_iter().next().unwrap_or_else(|| SlotRecord::untouched(slot.clone()))))
}

/// Until the next look at a lease: its end, or sooner where the store tells of no release.
fn pause(store: &dyn Store, remaining: Duration) -> Duration {
    let capability = store.capability();
    let lapsed = remaining + LAPSED;
    if capability.push { lapsed } else { lapsed.min(capability.poll) }
}

/// Returns at a hint that the slot may have changed.
async fn hint_about(hints: &mut Wakeups, slot: &Slot) {
    loop {
        match hints.recv().await {
            Ok(Wake::Slot { job, key, .. }) if job == *slot.job() && key == slot.key() => return,
            Ok(Wake::Resync) | Err(RecvError::Lagged(_)) => return,
            Ok(Wake::Slot { .. } | Wake::Job(_)) => {}
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
