//! Why an action was not done, in a problem's words; with what was seen, so that whoever asked can look again.

use axum::http::StatusCode;
use serde_json::Value;

use crate::admin::AdminError;
use crate::admin::actions::not_begun;
use crate::slot::{Mark, SlotRecord, SlotState};
use crate::store::{Applied, StoreError};
use crate::web::problem::Problem;
use crate::web::prospect::Prospect;

/// When the store may be there again, in seconds: a node looks each ten.
const LATER: u64 = 10;

/// An action that was not done.
pub(super) struct ActionRefusal {
    pub(super) problem: Problem,
    /// What was seen of the slot or the job; none where that was not seen either.
    #[allow(dead_code, reason = "the form of a page shows it again")]
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
        AdminError::Unknown(what) => Problem::new(StatusCode::NOT_FOUND, "not-found", what),
        AdminError::Passed(what) => Problem::bad_request(format!("until: {what}")),
        AdminError::Store(error) => of_store(&error),
        AdminError::Unusable(what) | AdminError::Internal(what) => {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", what)
        }
    }
}

/// A store's error names the store without its secrets.
pub(super) fn of_store(error: &StoreError) -> Problem {
    tracing::warn!(%error, "an action met an error of the store");
    let known = match error.applied {
        Applied::No => "",
        Applied::Maybe => "; it may have been done all the same: look before you ask again",
    };
    if error.is_transient() {
        let detail = format!("the store does not answer; the node goes on asking it{known}");
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store-away", detail).retry_after(LATER);
    }
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", format!("the store refuses: {error}{known}"))
}

pub(super) fn not_as_expected(look: &Prospect, expect: &str) -> Problem {
    let is = look.state().unwrap_or("a job, which has no state");
    Problem::conflict(format!("{} is {is}, not {}", look.proposal.change.target, crate::text::message(expect, 20)))
}

pub(super) fn no_reason() -> Problem {
    Problem::bad_request("say why: this needs a reason")
}

pub(super) fn paused(look: &Prospect) -> Problem {
    Problem::conflict(format!("{} is paused: resume the job first", look.job))
}

/// Why a slot is not to be tried again by a reset.
pub(super) fn of_retry(record: &SlotRecord, look: &Prospect) -> Option<Problem> {
    let is_done = record.state(look.now, look.max_attempts) == SlotState::Done;
    is_done.then(|| Problem::conflict(format!("{} is done: reset it to run it again", record.slot)))
}

/// Why a slot cannot be run now, as far as its record says: the store's answer to the claim may say more.
pub(super) fn of_run(record: &SlotRecord, look: &Prospect, past: bool, resets: bool) -> Option<Problem> {
    let slot = &record.slot;
    if let Some(early) = not_begun(slot, look.now) {
        return Some(Problem::conflict(early));
    }
    if let Mark::Leased { by, remaining, .. } = &record.mark {
        return Some(Problem::conflict(look.proposal.change.held(by, *remaining)));
    }
    let why = if record.state(look.now, look.max_attempts) == SlotState::Done {
        "is done: reset it first to run it again"
    } else if record.used() >= look.max_attempts && !resets {
        "has no attempts left: reset it first"
    } else if slot.end() <= look.now && !past {
        "has ended: ask for past to run it all the same"
    } else if matches!(record.mark, Mark::Backoff { .. }) && !resets {
        "has just failed and waits to be tried again: reset it to end the wait"
    } else {
        return None;
    };
    Some(Problem::conflict(format!("{slot} {why}")))
}
