//! Copies of answers without what may differ between two stores that both keep the contract: instants become the epoch,
//! and what is left of a TTL becomes the TTL that it must have been.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::slot::{DoneMark, Mark, SlotRecord};
use crate::store::conformance::bench::{DONE, LEASE, WAIT};
use crate::store::{Claim, Closing, Intervention, Pause, Renewal};

const THEN: DateTime<Utc> = DateTime::UNIX_EPOCH;

/// Every span that a sequence sets, in rising order and far enough apart for the slowest machine.
const SPANS: [Duration; 6] = [Duration::ZERO, WAIT, LEASE, LEASE.saturating_mul(2), Duration::from_secs(3_600), DONE];

/// The span that this is what is left of.
fn whole(remaining: Duration) -> Duration {
    SPANS.into_iter().find(|span| remaining <= *span).unwrap_or(Duration::MAX)
}

fn done(mark: DoneMark) -> DoneMark {
    DoneMark { at: THEN, ..mark }
}

pub(super) fn claim(answer: Claim) -> Claim {
    match answer {
        Claim::Claimed { attempt, used, .. } => Claim::Claimed { attempt, used, at: THEN, revision: None },
        Claim::Held { by, remaining } => Claim::Held { by, remaining: whole(remaining) },
        Claim::Done(mark) => Claim::Done(done(mark)),
        Claim::Backoff { remaining } => Claim::Backoff { remaining: whole(remaining) },
        Claim::Paused { remaining } => Claim::Paused { remaining: remaining.map(whole) },
        Claim::Blocked { key, by, remaining } => Claim::Blocked { key, by, remaining: whole(remaining) },
        Claim::Early { remaining } => Claim::Early { remaining: whole(remaining) },
        Claim::Exhausted { .. } | Claim::Closed => answer,
    }
}

pub(super) fn renewal(answer: Renewal) -> Renewal {
    match answer {
        Renewal::Done(mark) => Renewal::Done(done(mark)),
        other => other,
    }
}

pub(super) fn closing(answer: Closing) -> Closing {
    match answer {
        Closing::Running { by, remaining } => Closing::Running { by, remaining: whole(remaining) },
        Closing::Open { remaining } => Closing::Open { remaining: whole(remaining) },
        other => other,
    }
}

pub(super) fn intervention(answer: Intervention) -> Intervention {
    match answer {
        Intervention::Held { by, remaining } => Intervention::Held { by, remaining: whole(remaining) },
        other => other,
    }
}

/// Of a pause, whether it still lasts is compared, and until when only if that was asked for.
pub(super) fn pause(pause: Pause, now: DateTime<Utc>) -> (Option<Option<Duration>>, String, Option<String>) {
    let remaining = pause.remaining(now).map(|left| left.map(whole));
    (remaining, pause.audit.verb, pause.ended.map(|ended| ended.verb))
}

pub(super) fn record(record: SlotRecord) -> SlotRecord {
    let mark = match record.mark {
        Mark::Leased { by, token, remaining } => Mark::Leased { by, token, remaining: whole(remaining) },
        Mark::Backoff { by, remaining } => Mark::Backoff { by, remaining: whole(remaining) },
        Mark::Done(mark) => Mark::Done(done(mark)),
        Mark::Free => Mark::Free,
    };
    let mut runs = record.runs;
    for run in &mut runs {
        run.claimed_at = THEN;
    }
    runs.sort_by_key(|run| (run.attempt, run.token));
    let mut audit = record.audit;
    for entry in &mut audit {
        entry.at = THEN;
    }
    // A verb that a network delivers twice may be recorded twice.
    audit.dedup();
    let verdict = record.verdict.map(|verdict| crate::slot::VerdictRecord { at: THEN, ..verdict });
    SlotRecord { mark, runs, audit, verdict, ..record }
}
