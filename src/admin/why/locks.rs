//! The locks that a slot waits or waited for, in words.

use crate::admin::why::facts::{Facts, holder};
use crate::slot::{Attempt, Decision, Outcome};

/// What the attempt waits for, where that was noted of it last.
pub(super) fn waits(facts: &Facts, attempt: Attempt) -> Option<String> {
    let mut notes = facts.pages.iter().flat_map(|page| &page.notes).map(|note| &note.decision);
    match notes.rfind(|decision| decision.attempt() == Some(attempt))? {
        Decision::LockWaiting { locks, ahead, by, label, since, .. } => {
            Some(format!("{locks}: {ahead} ahead, held by {}", holder(by, label, *since)))
        }
        _ => None,
    }
}

/// What became of the last attempt, where each was given back before its command was started.
pub(super) fn given_back(facts: &Facts) -> Option<String> {
    let record = &facts.record;
    let run = record.runs.last().filter(|run| record.used() == 0 && run.outcome == Some(Outcome::GivenBack))?;
    let (at, why) = (facts.at(run.ended_at.filter(|_| run.started_at.is_none())?), run.message.as_ref()?);
    Some(format!("attempt {} on node {} was given back at {at}: {why}", run.attempt, run.node))
}
