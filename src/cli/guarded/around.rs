//! The locks that are held around a guard: by the `cronward lock`, or by the run, that it was started under. Whoever holds them waits
//! for the guard to end, so a guard that asks for them would wait for itself. It only looks, and before anything is claimed.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cli::ExitCode;
use crate::cli::guarded::task::Task;
use crate::cli::guarded::told::{AROUND, OWNER};
use crate::cli::guarded::verdict::Verdict;
use crate::resource::{Demand, Demands, LockEntry, LockRecord, OwnerId, weigh};
use crate::store::{LockStore, Store};

/// Why the run would wait for itself; none where it would not.
pub(super) async fn waits_for_itself(
    task: &Task,
    store: &Arc<dyn Store>,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<Verdict> {
    let demands = task.spec.policy.locks.as_ref()?;
    // An earlier attempt of this very slot is the same owner: it takes them again.
    let owners = owners_around(Some(OwnerId::of_text(&task.slot.to_string())), variable);
    let why = held_around(&*Arc::clone(store).lock_store()?, demands, &owners).await?;
    let told = format!("{} was not run: {why}", task.slot);
    Some(Verdict { code: ExitCode::StoreRefuses as u8, result: "locked", told: vec![told] })
}

/// The owners of what is held around this process, as its environment names them, but for the one that it is itself.
pub(super) fn owners_around(own: Option<OwnerId>, variable: impl Fn(&str) -> Option<String>) -> BTreeSet<OwnerId> {
    let named = [AROUND, OWNER].into_iter().filter_map(variable).collect::<Vec<_>>().join(" ");
    named.split_whitespace().filter_map(|owner| owner.parse().ok()).filter(|owner| Some(*owner) != own).collect()
}

/// Why a request would wait for one of these owners, who all wait for it. A store that does not answer says nothing of that: then the
/// wait has its own end.
pub(super) async fn held_around(
    store: &dyn LockStore,
    demands: &Demands,
    owners: &BTreeSet<OwnerId>,
) -> Option<String> {
    if owners.is_empty() {
        return None;
    }
    let (_, records) = store.locks(&demands.names()).await.ok()?;
    let is_held = |demand: &&Demand| records.iter().any(|record| leaves_no_room(record, owners, demand));
    let lock = demands.iter().find(is_held)?.lock();
    Some(format!(
        "{lock} is held by the cronward lock or the run that this was started under, so it would wait for itself: take {lock} in \
         one of the two only"
    ))
}

/// Whether what these owners hold of the lock, all together, cannot be held beside the demand.
fn leaves_no_room(record: &LockRecord, owners: &BTreeSet<OwnerId>, demand: &Demand) -> bool {
    let around = |entry: &&LockEntry| owners.contains(&entry.by.owner) && entry.demand.lock() == demand.lock();
    let (held, limit) = weigh(record.holders().filter(around));
    held > 0 && held + u64::from(demand.weight()) > u64::from(limit.min(demand.of()))
}
