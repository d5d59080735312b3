//! What the store knows of the run of who was granted a slot meanwhile: whether two runs overlapped is judged by their records.

use crate::slot::{Holder, Lease, RunRecord};
use crate::store::{Release, Settlement, Store, StoreError};

/// After a success was recorded.
pub(super) async fn after_completion(
    store: &dyn Store,
    lease: &Lease,
    reply: &Result<Settlement, StoreError>,
) -> Option<RunRecord> {
    match reply {
        Ok(Settlement::Overtaken { by }) => read(store, lease, by).await,
        _ => None,
    }
}

/// After an attempt was released.
pub(super) async fn after_release(
    store: &dyn Store,
    lease: &Lease,
    reply: &Result<Release, StoreError>,
) -> Option<RunRecord> {
    match reply {
        Ok(Release::Overtaken { by }) => read(store, lease, by).await,
        _ => None,
    }
}

/// None where the store does not say: it stays open then whether the two overlapped.
async fn read(store: &dyn Store, lease: &Lease, by: &Holder) -> Option<RunRecord> {
    let (_, records) = store.inspect(std::slice::from_ref(&lease.slot)).await.ok()?;
    let is_other = |run: &RunRecord| run.token != lease.token && run.attempt == by.attempt && run.node == by.node;
    records.into_iter().next()?.runs.into_iter().rfind(is_other)
}
