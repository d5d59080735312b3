//! Why an action was not done, in a problem's words; with what was seen, so that whoever asked can look again.

use serde_json::Value;

use crate::admin::AdminError;
use crate::admin::actions::not_begun;
use crate::slot::{Mark, SlotRecord, SlotState};
use crate::store::{Applied, StoreError};
use crate::web::detail::ProblemDetail;
use crate::web::problem::Problem;
use crate::web::prospect::Prospect;

/// An action that was not done.
pub(super) struct ActionRefusal {
    pub(super) problem: Problem,
    /// What was seen of the slot or the job; none where that was not seen either.
    pub(super) look: Option<Box<Prospect>>,
}

impl ActionRefusal {
    pub(super) const fn unseen(problem: Problem) -> Self {
        Self { problem, look: None }
    }

    /// After a look: a conflict tells the slot as it is.
    pub(super) fn after(look: Prospect, problem: Problem) -> Self {
        let slot = look.slot_view().filter(|_| problem.is_conflict());
        let slot = slot.and_then(|view| serde_json::to_value(view).ok()).unwrap_or(Value::Null);
        let problem = if problem.is_conflict() { problem.with("slot", slot) } else { problem };
        Self { problem, look: Some(Box::new(look)) }
    }
}

pub(super) fn of_admin(error: AdminError) -> Problem {
    match error {
        AdminError::Store(error) => of_store(&error),
        other => other.into(),
    }
}

/// A store's error names the store without its secrets.
pub(super) fn of_store(error: &StoreError) -> Problem {
    tracing::warn!(%error, "an action met an error of the store");
    let maybe = error.applied == Applied::Maybe;
    let refused = || Problem::internal(ProblemDetail::StoreRefuses { error: error.to_string(), maybe });
    let refused = || error.is_refusal().then(refused);
    Problem::of_answer(error).or_else(refused).unwrap_or_else(|| Problem::store_away(maybe))
}

pub(super) fn not_as_expected(look: &Prospect, expect: &str) -> Problem {
    let (target, expected) = (look.proposal.change.target.clone(), crate::text::message(expect, 20));
    Problem::conflict(ProblemDetail::NotAsExpected { target, is: look.state(), expected })
}

pub(super) fn no_reason() -> Problem {
    Problem::bad_request(ProblemDetail::NoReason)
}

pub(super) fn paused(look: &Prospect) -> Problem {
    Problem::conflict(ProblemDetail::Paused(look.job.clone()))
}

/// Why a slot is not to be tried again by a reset.
pub(super) fn of_retry(record: &SlotRecord, look: &Prospect) -> Option<Problem> {
    if let Some(early) = not_begun(&record.slot, look.now) {
        return Some(Problem::conflict(ProblemDetail::NotBegun(early)));
    }
    let is_done = record.state(look.now, look.max_attempts) == SlotState::Done;
    is_done.then(|| Problem::conflict(ProblemDetail::Done(record.slot.clone())))
}

/// Why a slot cannot be run now, as far as its record says: the store's answer to the claim may say more.
pub(super) fn of_run(record: &SlotRecord, look: &Prospect, past: bool, resets: bool) -> Option<Problem> {
    let slot = &record.slot;
    if let Some(early) = not_begun(slot, look.now) {
        return Some(Problem::conflict(ProblemDetail::NotBegun(early)));
    }
    if let Mark::Leased { by, remaining, .. } = &record.mark {
        return Some(Problem::conflict(ProblemDetail::Held(look.proposal.change.held(by, *remaining))));
    }
    let why = if record.state(look.now, look.max_attempts) == SlotState::Done {
        ProblemDetail::Done
    } else if record.used() >= look.max_attempts && !resets {
        ProblemDetail::NoAttemptsLeft
    } else if slot.end() <= look.now && !past {
        ProblemDetail::Ended
    } else if matches!(record.mark, Mark::Backoff { .. }) && !resets {
        ProblemDetail::JustFailed
    } else {
        return None;
    };
    Some(Problem::conflict(why(slot.clone())))
}
