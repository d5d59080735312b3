//! What only shows when the locks of a job are looked at together with its other keys, its store, and the locks of the other jobs.

use std::collections::BTreeMap;

use crate::config::context::Context;
use crate::config::draft::Draft;
use crate::config::lock_timetable::{self, MOST_TOLD, some_of};
use crate::config::notation::format_duration;
use crate::config::{Diagnostic, Severity, StoreConfig};
use crate::job::{Concurrency, LockName, OnStoreError};
use crate::resource::UNLIMITED;
use crate::store::capability;

/// Looks at each job that nothing is wrong with so far.
pub(super) fn conflicts(ctx: &Context<'_>, drafts: &mut [Draft], store: &StoreConfig) {
    for draft in drafts.iter_mut().filter(|draft| draft.sound && draft.spec.policy.locks.is_some()) {
        let errors = ctx.errors();
        unguarded(ctx, draft);
        draft.sound = ctx.errors() == errors;
    }
    store_without(ctx, drafts, store);
}

/// A run that the store did not grant holds nothing there.
fn unguarded(ctx: &Context<'_>, draft: &Draft) {
    if draft.spec.policy.on_store_error == OnStoreError::Run {
        let message = "on_store_error = \"run\" would run the job without its locks".to_owned();
        let hint = "write on_store_error = \"skip\", or remove locks";
        ctx.error("unguarded-locks", draft.place_or_name("on_store_error"), message, hint);
    }
}

/// The file has to be right by itself, as its url has. One error, however many jobs name locks: the store is what is wrong.
fn store_without(ctx: &Context<'_>, drafts: &mut [Draft], store: &StoreConfig) {
    let Some(store) = capability(&store.url).filter(|store| !store.locks) else { return };
    let naming: Vec<&Draft> = drafts.iter().filter(|draft| draft.spec.policy.locks.is_some()).collect();
    let Some(first) = naming.first() else { return };
    let message = format!("the store {} keeps no locks: {} could never run", store.name, some_of(&naming));
    let hint = "use a store that keeps locks: docs/locks.md";
    ctx.error("no-locks", first.place_or_name("locks"), message, hint);
    for draft in drafts.iter_mut().filter(|draft| draft.spec.policy.locks.is_some()) {
        draft.sound = false;
    }
}

/// What is allowed and may not be meant.
pub(super) fn check(ctx: &Context<'_>, drafts: &[Draft]) {
    let mut users: BTreeMap<&LockName, Vec<(&Draft, u32)>> = BTreeMap::new();
    for draft in drafts.iter().filter(|draft| draft.sound && draft.spec.enabled) {
        for demand in draft.spec.policy.locks.iter().flatten() {
            users.entry(demand.lock()).or_default().push((draft, demand.of()));
        }
    }
    for (lock, users) in &users {
        limits(ctx, lock, users);
        // What a job with an error names is not known.
        if drafts.iter().all(|draft| draft.sound) {
            alone(ctx, lock, users);
        }
        without_end(ctx, lock, users);
    }
    let share = |draft: &&Draft| {
        let mut locks = draft.spec.policy.locks.iter().flatten();
        let allows = draft.spec.policy.concurrency == Concurrency::Allow;
        locks.any(|demand| allows || users.get(demand.lock()).is_some_and(|users| users.len() > 1))
    };
    let sharing: Vec<&Draft> = drafts.iter().filter(|draft| draft.sound && draft.spec.enabled).filter(share).collect();
    lock_timetable::check(ctx, &sharing);
}

/// Exclusive and shared beside permits are meant; two sizes of one pool are not.
fn limits(ctx: &Context<'_>, lock: &LockName, users: &[(&Draft, u32)]) {
    let pools = || users.iter().filter(|(_, of)| *of > 1 && *of < UNLIMITED);
    let Some((least_of, least)) = pools().min_by_key(|(_, of)| *of) else { return };
    let larger = || pools().filter(|(_, of)| of > least);
    for (draft, of) in larger().take(MOST_TOLD) {
        let message = format!(
            "{lock} is limited to {of} here and to {least} in job {}: the smaller limit counts while its holder is there",
            least_of.spec.name
        );
        ctx.warn("lock-limits", draft.place_or_name("locks"), message, format!("write of = {least} in both"));
    }
    let rest: Vec<&Draft> = larger().skip(MOST_TOLD).map(|(draft, _)| *draft).collect();
    if let Some(first) = rest.first() {
        let message = format!("{lock} is limited to more than {least} in {} more jobs: {}", rest.len(), some_of(&rest));
        ctx.warn("lock-limits", first.place_or_name("locks"), message, format!("write of = {least} in all"));
    }
}

/// A job that may run beside itself has itself to be kept apart from.
fn alone(ctx: &Context<'_>, lock: &LockName, users: &[(&Draft, u32)]) {
    if let [(draft, _)] = users
        && draft.spec.policy.concurrency != Concurrency::Allow
    {
        let message = format!("no other job of this file names {lock}");
        let hint = Some("check the name, unless only `cronward lock` or a service holds it besides".to_owned());
        let span = draft.place_or_name("locks");
        ctx.add(Diagnostic { severity: Severity::Note, code: "lone-lock", message, span, hint });
    }
}

/// The other jobs that name it wait for as long.
fn without_end(ctx: &Context<'_>, lock: &LockName, users: &[(&Draft, u32)]) {
    if users.len() < 2 {
        return;
    }
    let endless = users.iter().filter(|(draft, _)| draft.spec.policy.timeout.is_none()).map(|(draft, _)| *draft);
    let endless: Vec<&Draft> = endless.collect();
    let tell = |draft: &Draft, message: String| {
        let hint = Some(format!("write timeout = \"{}\" or another limit", format_duration(THREE_QUARTERS)));
        let span = draft.place_or_name("locks");
        ctx.add(Diagnostic { severity: Severity::Note, code: "no-timeout", message, span, hint });
    };
    for draft in endless.iter().take(MOST_TOLD) {
        tell(draft, format!("job {} may hold {lock} without end: timeout is none", draft.spec.name));
    }
    let rest = endless.get(MOST_TOLD..).unwrap_or_default();
    if let Some(first) = rest.first() {
        tell(
            first,
            format!("{} more jobs may hold {lock} without end: {}: timeout is none", rest.len(), some_of(rest)),
        );
    }
}

/// Of an hour, the usual slot.
const THREE_QUARTERS: std::time::Duration = std::time::Duration::from_secs(45 * 60);
