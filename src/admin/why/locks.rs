//! The locks that a slot waits or waited for, in words.

use crate::admin::why::facts::{Facts, since};
use crate::admin::why::texts::WhyTexts;
use crate::slot::{Attempt, Decision, Outcome};

/// What the attempt waits for, where that was noted of it last.
pub(super) fn waits(facts: &Facts, attempt: Attempt, t: &WhyTexts) -> Option<String> {
    let mut notes = facts.pages.iter().flat_map(|page| &page.notes).map(|note| &note.decision);
    match notes.rfind(|decision| decision.attempt() == Some(attempt))? {
        Decision::LockWaiting { locks, ahead, by, label, since: from, .. } => {
            let holder = (t.slot.holder)(by.as_str(), label, since(*from).as_deref());
            Some((t.slot.waits_for)(locks, *ahead, &holder))
        }
        _ => None,
    }
}

/// What became of the last attempt, where each was given back before its command was started.
pub(super) fn given_back(facts: &Facts, t: &WhyTexts) -> Option<String> {
    let record = &facts.record;
    let run = record.runs.last().filter(|run| record.used() == 0 && run.outcome == Some(Outcome::GivenBack))?;
    let (at, why) = (facts.at(run.ended_at.filter(|_| run.started_at.is_none())?), run.message.as_ref()?);
    Some((t.attempt.given_back)(run.attempt, run.node.as_str(), Some(&at), Some(why)))
}
