//! Whether live daemons plan a job: those close its slots, and whoever else runs it leaves that to them. Asks the store, and changes nothing there.

use crate::job::JobName;
use crate::store::{JobOrigin, Store, StoreError};

/// Whether live daemons plan the job: they close its slots and report what became of them. One that is disabled, or whose daemons are
/// gone, is closed by nobody else.
pub async fn is_planned(store: &dyn Store, job: &JobName) -> Result<bool, StoreError> {
    let jobs = store.jobs().await?;
    if !jobs.iter().any(|entry| entry.name == *job && entry.origin == JobOrigin::File && entry.enabled) {
        return Ok(false);
    }
    let (now, nodes) = store.nodes().await?;
    Ok(nodes.iter().any(|node| node.is_alive(now) && node.plans(job)))
}
