//! The locks that are held around a guard: by the `cronward lock`, or by the run, that it was started under. Whoever holds them waits
//! for the guard to end, so a guard that asks for them would wait for itself. It only looks, and before anything is claimed.

use std::sync::Arc;

use crate::cli::ExitCode;
use crate::cli::guarded::task::Task;
use crate::cli::guarded::told::OWNER;
use crate::cli::guarded::verdict::Verdict;
use crate::resource::{Demand, LockRecord, OwnerId};
use crate::store::Store;

/// Why the run would wait for itself; none where it would not. A store that does not answer says nothing of that: then the wait has
/// its own end.
pub(super) async fn waits_for_itself(
    task: &Task,
    store: &Arc<dyn Store>,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<Verdict> {
    let demands = task.spec.policy.locks.as_ref()?;
    let outer: OwnerId = variable(OWNER)?.parse().ok()?;
    // An earlier attempt of this very slot is the same owner: it takes them again.
    if outer == OwnerId::of_text(&task.slot.to_string()) {
        return None;
    }
    let (_, records) = Arc::clone(store).lock_store()?.locks(&demands.names()).await.ok()?;
    let demand = demands.iter().find(|demand| records.iter().any(|record| excludes(record, outer, demand)))?;
    let (slot, lock) = (&task.slot, demand.lock());
    let told = format!(
        "{slot} was not run: {lock} is held by the cronward lock or the run that this was started under, so it would wait for \
         itself: take {lock} in one of the two only"
    );
    Some(Verdict { code: ExitCode::StoreRefuses as u8, result: "locked", told: vec![told] })
}

/// Whether what this owner holds of the lock cannot be held beside the demand.
fn excludes(record: &LockRecord, owner: OwnerId, demand: &Demand) -> bool {
    let mut own = record.holders().filter(|entry| entry.by.owner == owner && entry.demand.lock() == demand.lock());
    own.any(|entry| {
        let weight = u64::from(entry.demand.weight()) + u64::from(demand.weight());
        weight > u64::from(entry.demand.of().min(demand.of()))
    })
}
