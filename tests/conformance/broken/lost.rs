//! Flaws of what a claim finds again: attempts whose answer was lost, done markers that are gone.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::broken::{Control, Flaw};
use cronward::slot::{Lease, RunRecord};
use cronward::store::memory::Ledger;
use cronward::store::{Claim, ClaimRequest, Renewal};

pub(super) fn controls() -> Vec<Control> {
    vec![
        Control {
            flaw: Arc::new(LapsedGrantIsBurned),
            caught_by: &[
                "lost::a_claim_unheard_until_its_lease_had_lapsed_burns_no_attempt",
                "lost::an_attempt_found_again_keeps_the_others_out",
            ],
        },
        Control { flaw: Arc::new(LastAttemptIsUsedUp), caught_by: &["lost::the_last_attempt_is_found_again_too"] },
        Control {
            flaw: Arc::new(LapsedGrantIsAnybodys),
            caught_by: &[
                "lost::an_attempt_is_found_again_by_its_own_token_alone",
                "attempts::a_crashed_attempt_counts",
            ],
        },
        Control {
            flaw: Arc::new(FollowedGrantIsFound),
            caught_by: &["lost::an_attempt_that_was_followed_is_not_found_again"],
        },
        Control {
            flaw: Arc::new(EndedGrantIsFound),
            caught_by: &["lost::an_attempt_that_has_ended_is_not_found_again"],
        },
        Control {
            flaw: Arc::new(ForgivenGrantIsFound),
            caught_by: &["lost::an_attempt_that_was_forgiven_is_not_found_again"],
        },
        Control {
            flaw: Arc::new(FoundGrantWaitsForNobody),
            caught_by: &["lost::an_attempt_found_again_waits_like_any_other"],
        },
        Control {
            flaw: Arc::new(FoundGrantHasNoCounter),
            caught_by: &["lost::an_attempt_is_found_again_where_the_counter_was_lost"],
        },
        Control {
            flaw: Arc::new(DoneIsTheMarkerAlone),
            caught_by: &[
                "lost::a_slot_whose_done_marker_was_lost_is_done",
                "lost::a_slot_marked_done_stays_done_without_its_marker",
                "lost::no_lease_is_restored_where_the_done_marker_was_lost",
            ],
        },
        Control {
            flaw: Arc::new(DoneIsForEver),
            caught_by: &["lost::a_reset_opens_a_slot_whose_done_marker_was_lost"],
        },
    ]
}

/// The runs of a slot at whose key nothing stands; none where something does.
fn free(ledger: &Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Vec<RunRecord> {
    if ledger.mark_ttl(&request.slot, now).is_some() {
        return Vec::new();
    }
    ledger.inspect(std::slice::from_ref(&request.slot), now).into_iter().flat_map(|record| record.runs).collect()
}

fn lease(request: &ClaimRequest, run: &RunRecord) -> Lease {
    Lease { token: run.token, ..request.granted(run.attempt, run.claimed_at) }
}

/// The lease of this run is set again, whatever stands in its way.
fn set_again(ledger: &mut Ledger, request: &ClaimRequest, run: &RunRecord, now: DateTime<Utc>) -> Claim {
    let lease = lease(request, run);
    ledger.forget_log(&lease.slot);
    ledger.renew(&lease, now);
    Claim::Claimed { attempt: lease.attempt, used: lease.attempt, at: lease.claimed_at, revision: None }
}

/// A lease that has lapsed is nobody's: its own claim, sent again, is a new attempt.
#[derive(Debug)]
struct LapsedGrantIsBurned;

impl Flaw for LapsedGrantIsBurned {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        let lapsed = free(ledger, request, now).iter().any(|run| run.token == request.token && run.outcome.is_none());
        let token = if lapsed { request.token.next() } else { request.token };
        ledger.claim(&ClaimRequest { token, ..request.clone() }, now)
    }
}

/// Used-up attempts are looked at first.
#[derive(Debug)]
struct LastAttemptIsUsedUp;

impl Flaw for LastAttemptIsUsedUp {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        let runs = free(ledger, request, now);
        let used = runs.iter().map(|run| run.attempt).max().unwrap_or(0);
        if !runs.is_empty() && used >= request.max_attempts {
            return Claim::Exhausted { used };
        }
        ledger.claim(request, now)
    }
}

/// Whoever comes goes on with the attempt of a node that has crashed: it costs none, and the job that takes its node down is
/// tried for ever.
#[derive(Debug)]
struct LapsedGrantIsAnybodys;

impl Flaw for LapsedGrantIsAnybodys {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        match free(ledger, request, now).last().filter(|run| run.outcome.is_none()) {
            Some(run) => set_again(ledger, request, &RunRecord { token: request.token, ..run.clone() }, now),
            None => ledger.claim(request, now),
        }
    }
}

/// The number is given again though a later one was granted.
#[derive(Debug)]
struct FollowedGrantIsFound;

impl Flaw for FollowedGrantIsFound {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        let runs = free(ledger, request, now);
        match runs.iter().find(|run| run.token == request.token && run.outcome.is_none()) {
            Some(run) if runs.len() > 1 => set_again(ledger, request, run, now),
            _ => ledger.claim(request, now),
        }
    }
}

/// An attempt that has failed, or was taken from its holder, begins anew under its old number.
#[derive(Debug)]
struct EndedGrantIsFound;

impl Flaw for EndedGrantIsFound {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        match free(ledger, request, now).iter().find(|run| run.token == request.token && run.outcome.is_some()) {
            Some(run) => set_again(ledger, request, run, now),
            None => ledger.claim(request, now),
        }
    }
}

/// A reset forgives the attempt, and it goes on all the same: one more than is allowed.
#[derive(Debug)]
struct ForgivenGrantIsFound;

impl Flaw for ForgivenGrantIsFound {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        match free(ledger, request, now).last().filter(|run| run.token == request.token && run.outcome.is_none()) {
            Some(run) => {
                let lease = lease(request, run);
                ledger.renew(&lease, now);
                Claim::Claimed { attempt: lease.attempt, used: lease.attempt, at: lease.claimed_at, revision: None }
            }
            None => ledger.claim(request, now),
        }
    }
}

/// Neither a pause nor an older run is looked at again.
#[derive(Debug)]
struct FoundGrantWaitsForNobody;

impl Flaw for FoundGrantWaitsForNobody {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        match ledger.claim(request, now) {
            Claim::Paused { .. } | Claim::Blocked { .. } if !free(ledger, request, now).is_empty() => {
                let mut runs = free(ledger, request, now);
                runs.retain(|run| run.token == request.token && run.outcome.is_none());
                runs.first().map_or(Claim::Closed, |run| set_again(ledger, request, run, now))
            }
            other => other,
        }
    }
}

/// The lease is set again, and the counter that was lost stays lost.
#[derive(Debug)]
struct FoundGrantHasNoCounter;

impl Flaw for FoundGrantHasNoCounter {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        let (runs, counter) = (free(ledger, request, now).len(), ledger.counter(&request.slot));
        let answer = ledger.claim(request, now);
        if counter.is_none() && matches!(answer, Claim::Claimed { attempt, .. } if usize::try_from(attempt) == Ok(runs))
        {
            ledger.forget_counter(&request.slot);
        }
        answer
    }
}

/// Only the marker tells that a slot is done: a store that evicts it repeats the work.
#[derive(Debug)]
struct DoneIsTheMarkerAlone;

impl Flaw for DoneIsTheMarkerAlone {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        if ledger.mark_ttl(&request.slot, now).is_none() {
            ledger.forget_verdict(&request.slot);
        }
        ledger.claim(request, now)
    }

    fn renew(&self, ledger: &mut Ledger, lease: &Lease, now: DateTime<Utc>) -> Renewal {
        if ledger.mark_ttl(&lease.slot, now).is_none() {
            ledger.forget_verdict(&lease.slot);
        }
        ledger.renew(lease, now)
    }
}

/// A run that succeeded once makes the slot done, also after a reset.
#[derive(Debug)]
struct DoneIsForEver;

impl Flaw for DoneIsForEver {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        let runs = free(ledger, request, now);
        match runs.iter().find(|run| run.outcome == Some(cronward::slot::Outcome::Success)) {
            Some(run) => {
                let by = cronward::slot::Holder { node: run.node.clone(), attempt: run.attempt };
                Claim::Done(cronward::slot::DoneMark { by, at: run.claimed_at, token: Some(run.token) })
            }
            None => ledger.claim(request, now),
        }
    }
}
