//! What each node decided on a slot, in order, and one sentence that says why it ran or did not.
//!
//! - `facts` is what is known, with where an attempt stands in the queues of its locks (`queued`) and which slot blocks this one
//!   (`blocker`); and the store's record and the nodes' decision log in one order.
//! - `explain` makes the sentence and names the command that fixes it; `obstacle` and `locks` make parts of it.
//! - `texts` is which sentences there are, `english` what they say; other languages stand with the pages that show them.
//!
//! All but the reading here are pure: values in, values out. They work from the record alone where there is no decision log.

mod blocker;
mod english;
mod explain;
mod facts;
mod locks;
mod obstacle;
mod queued;
#[cfg(test)]
pub(crate) mod tests;
mod texts;

#[cfg(feature = "http")]
pub(crate) use english::ENGLISH;
#[cfg(feature = "http")]
pub(crate) use explain::explain_in;
pub(crate) use explain::{Explanation, explain};
pub(crate) use facts::{Facts, timeline};
pub(crate) use queued::Queued;
#[cfg(feature = "http")]
pub(crate) use texts::{AttemptReasons, ClaimObstacle, ClaimReasons, SlotReasons, StarterReasons, WhyTexts};

use std::sync::Arc;

use crate::admin::catalog::KnownJob;
use crate::admin::command_line::CommandLine;
use crate::admin::lookup::{self, SlotRef};
use crate::admin::{AdminError, AdminSession};
use crate::error::ErrorKind;
use crate::job::LockName;
use crate::observe::view::WhyView;
use crate::resource::{DeadlockStep, OwnerId, attempt_label};
use crate::slot::{Mark, SlotRecord};
use crate::store::handover;

/// Reads all that is known.
pub(crate) async fn facts(session: &AdminSession, wanted: &SlotRef, store: CommandLine) -> Result<Facts, AdminError> {
    let (job, record) = lookup::find(session, wanted).await?;
    let (pages, unreadable) = match session.store.notes(&record.slot).await {
        Err(error) if error.kind == ErrorKind::Corrupt => (Vec::new(), vec![error.to_string()]),
        notes => (notes?, Vec::new()),
    };
    let pauses = session.store.pauses().await?;
    let (now, nodes) = session.store.nodes().await?;
    let (queued, ring) = queues(session, job, &record).await?;
    let blocker = blocker::find(session, job, &record, &pages).await?;
    let tick = job.owed_tick(&record.slot).or(job.first_tick(&record.slot));
    let silence = tick.and_then(|tick| handover::silence_over(&nodes, (tick, record.slot.end()), now));
    let alive = nodes.into_iter().filter(|node| node.is_alive(now)).map(|node| node.report.name);
    Ok(Facts {
        tick,
        silence,
        not_owed: job.not_owed(&record.slot),
        pages,
        unreadable,
        queued,
        ring,
        blocker,
        pause: pauses.into_iter().find(|(name, _)| *name == job.entry.name).map(|(_, pause)| pause),
        job: job.entry.clone(),
        has_command: job.spec.is_some(),
        store,
        known_since: job.known_since,
        orphaned: job.is_nobodys(record.slot.start()),
        no_start: job.no_start(&record.slot, now),
        alive: alive.collect(),
        now: session.now,
        retention: session.retention,
        zone: None,
        record,
    })
}

/// Asks the store, where a node has the slot: for the locks of the job, or for all where no file has the job. Who stands in a queue may
/// be in a ring of waits through locks that its command took, so for all then.
async fn queues(
    session: &AdminSession,
    job: &KnownJob,
    record: &SlotRecord,
) -> Result<(Queued, Vec<DeadlockStep>), AdminError> {
    let nowhere = Ok((Queued::Nowhere, Vec::new()));
    let (Mark::Leased { by, .. }, Some(store)) = (&record.mark, Arc::clone(&session.store).lock_store()) else {
        return nowhere;
    };
    let locks: Vec<LockName> = match job.spec.as_ref().map(|spec| &spec.policy.locks) {
        None => Vec::new(),
        Some(Some(demands)) => demands.names(),
        Some(None) => return nowhere,
    };
    let (_, mut records) = store.locks(&locks).await?;
    let queued = queued::queued(&records, &attempt_label(&record.slot, by.attempt));
    if queued == Queued::Nowhere {
        return nowhere;
    }
    if !locks.is_empty() {
        records = store.locks(&[]).await?.1;
    }
    Ok((queued, queued::ring_of(&records, OwnerId::of_text(&record.slot.to_string()))))
}

/// A ring of waits, as commands say it, with the words of the command that opens it; none of no ring.
pub(crate) fn deadlock(ring: &[DeadlockStep]) -> Option<(String, String)> {
    locks::deadlock(ring, &english::ENGLISH)
}

/// What programs are told.
pub(crate) fn view(facts: &Facts) -> WhyView {
    let (decisions, Explanation { sentence, fix }) = (timeline(facts), explain(facts));
    let slot = &facts.record.slot;
    WhyView {
        job: slot.job().clone(),
        slot: slot.key().to_string(),
        start: slot.start(),
        end: slot.end(),
        state: facts.record.state(facts.now, facts.job.max_attempts),
        decisions,
        unreadable: facts.unreadable.first().cloned(),
        dropped: facts.pages.iter().map(|page| page.dropped).fold(0, u32::saturating_add),
        sentence,
        fix,
    }
}
