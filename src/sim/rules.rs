//! Which promise is broken when a store answers or keeps something else than its shadow.

use chrono::{DateTime, Utc};

use crate::clock::later;
use crate::sim::backend::{Broken, closing};
use crate::sim::finding::Check;
use crate::sim::shadow::Shadow;
use crate::slot::{Attempt, Mark, SlotRecord, Verdict};
use crate::store::{Claim, Closing, Renewal};

pub(super) fn differs(answer: &str, expected: &str, check: Check) -> Option<Broken> {
    (answer != expected).then(|| (check, format!("the store answered {answer:?} where it is to answer {expected:?}")))
}

/// A claim's answer, looked at before the shadow takes the grant. `own`: the attempt whose lease this claim's token holds.
pub(super) fn claim(answer: &Claim, expected: &'static str, shadow: &Shadow, own: Option<Attempt>) -> Option<Broken> {
    let word = answer.as_str();
    if word != expected {
        let check = match (word, expected) {
            ("claimed", "held") => Check::I1,
            ("claimed", "done") => Check::I3,
            ("claimed", "early" | "closed") => Check::I6,
            ("claimed", "exhausted" | "backoff") => Check::I5,
            ("claimed", "blocked") => Check::Beside,
            _ => Check::Answer,
        };
        return differs(word, expected, check);
    }
    let Claim::Claimed { attempt, used, .. } = answer else { return None };
    let next = own.unwrap_or(shadow.known + 1);
    if *attempt != next {
        return Some((Check::I2, format!("attempt {attempt} was granted where it is to be {next}")));
    }
    let expected = if own.is_some() { shadow.used() } else { shadow.used() + 1 };
    (*used != expected).then(|| (Check::I5, format!("{used} attempts are said to be used where {expected} are")))
}

pub(super) fn renewal(answer: &Renewal, expected: &'static str) -> Option<Broken> {
    let word = match answer {
        Renewal::Renewed => "renewed",
        Renewal::Restored => "restored",
        Renewal::Lost { .. } => "lost",
        Renewal::Done(_) => "done",
    };
    differs(word, expected, Check::I4)
}

pub(super) fn close(answer: &Closing, expected: &'static str, verdict: Option<Verdict>) -> Option<Broken> {
    let told = match answer {
        Closing::First(verdict) | Closing::Already(verdict) => Some(*verdict),
        Closing::Running { .. } | Closing::Open { .. } => None,
    };
    differs(closing(answer), expected, Check::Answer).or_else(|| {
        let wrong = told.is_some() && told != verdict;
        wrong.then(|| (Check::I7, format!("the verdict is said to be {told:?} where it is {verdict:?}")))
    })
}

/// What is kept of a slot, after a step.
pub(super) fn record(record: &SlotRecord, shadow: &Shadow, now: DateTime<Utc>) -> Option<Broken> {
    let stands = match &record.mark {
        Mark::Free => None,
        Mark::Leased { token, remaining, .. } => Some(("a lease", Some(*token), Some(later(now, *remaining)))),
        Mark::Backoff { remaining, .. } => Some(("a wait", None, Some(later(now, *remaining)))),
        Mark::Done(_) => Some(("done", None, None)),
    };
    let expected = if shadow.done_at(now).is_some() {
        Some(("done", None, None))
    } else if let Some(lease) = shadow.lease_at(now) {
        Some(("a lease", Some(lease.token), Some(lease.until)))
    } else {
        shadow.wait_at(now).map(|wait| ("a wait", None, Some(wait.until)))
    };
    if stands != expected {
        let done = expected.is_some_and(|(what, ..)| what == "done");
        let check = if done { Check::I3 } else { Check::I4 };
        return Some((check, format!("{stands:?} stands there where it is to be {expected:?}")));
    }
    let (counts, known) = ((record.attempts, record.forgiven), (shadow.known, shadow.forgiven));
    if counts != known {
        return Some((Check::I2, format!("attempts and forgiven are {counts:?} where they are to be {known:?}")));
    }
    let verdict = record.verdict.as_ref().map(|recorded| recorded.verdict);
    (verdict != shadow.verdict)
        .then(|| (Check::I3, format!("the verdict is {verdict:?} where it is to be {:?}", shadow.verdict)))
}
