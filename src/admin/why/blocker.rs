//! Which other slot of the job keeps a slot from being claimed. The decision log has its node alone.

use std::time::Duration;

use crate::admin::catalog::KnownJob;
use crate::admin::{AdminError, AdminSession, BATCH};
use crate::job::NodeName;
use crate::slot::{Decision, Mark, NotePage, Slot, SlotRecord};

/// A lease lasts a day at most, and its holder may renew it for longer.
const HORIZON: Duration = Duration::from_secs(7 * 86_400);

/// An older slot of the job whose lease stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blocker {
    pub(crate) slot: Slot,
    pub(crate) node: NodeName,
    /// What is left of its lease.
    pub(crate) remaining: Duration,
}

/// Looks through the job's older slots, a hundred at most, where a node was answered that one of them still runs.
pub(super) async fn find(
    session: &AdminSession,
    job: &KnownJob,
    record: &SlotRecord,
    pages: &[NotePage],
) -> Result<Option<Blocker>, AdminError> {
    let is_blocked = |page: &NotePage| page.notes.iter().any(|note| matches!(note.decision, Decision::Blocked { .. }));
    let is_open = record.mark == Mark::Free && session.now < record.slot.end();
    if !is_open || !pages.iter().any(is_blocked) {
        return Ok(None);
    }
    let older = job.timetable.older(&record.slot, HORIZON, BATCH);
    let records = session.inspect_each(&older).await?;
    Ok(records.into_iter().flatten().find_map(holder))
}

fn holder(record: SlotRecord) -> Option<Blocker> {
    match record.mark {
        Mark::Leased { by, remaining, .. } => Some(Blocker { slot: record.slot, node: by.node, remaining }),
        _ => None,
    }
}
