//! The run of the node that was granted a slot meanwhile, as the store knows it: whether two runs overlapped is judged by their records.
//! It is read after the answer that names the node, once, and never decides how an attempt ended.

use crate::slot::{Holder, Lease, RunRecord};
use crate::store::Store;

/// The run of the holder that an answer names; none where it names none, or the store does not say: it stays open then whether the two
/// overlapped.
pub(super) async fn overtaking_run(store: &dyn Store, lease: &Lease, by: Option<&Holder>) -> Option<RunRecord> {
    let by = by?;
    let (_, records) = store.inspect(std::slice::from_ref(&lease.slot)).await.ok()?;
    let is_other = |run: &RunRecord| run.token != lease.token && run.attempt == by.attempt && run.node == by.node;
    records.into_iter().next()?.runs.into_iter().rfind(is_other)
}
