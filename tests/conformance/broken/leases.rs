//! Flaws of leases: who may start, who may renew, when a lease ends.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::broken::{Control, Flaw};
use cronward::job::Namespace;
use cronward::slot::{Lease, Mark, RunRecord};
use cronward::store::memory::Ledger;
use cronward::store::{Claim, ClaimRequest, Release, Renewal, Settlement};

pub(super) fn controls() -> Vec<Control> {
    vec![
        Control {
            flaw: Arc::new(PlainDelete),
            caught_by: &[
                "settle::a_stale_failure_leaves_the_holder_alone",
                "settle::a_stale_failure_leaves_done_alone",
            ],
        },
        Control {
            flaw: Arc::new(ClaimForgetsItsToken),
            caught_by: &[
                "idempotence::a_lost_reply_to_a_claim_burns_no_attempt",
                "races::one_request_sent_many_times_at_once_is_one_grant",
            ],
        },
        Control {
            flaw: Arc::new(ClaimLooksFirst),
            caught_by: &["races::one_of_many_claimers_wins", "races::two_nodes_are_never_granted_the_same_slot"],
        },
        Control {
            flaw: Arc::new(OrderByNumberAlone),
            caught_by: &[
                "renew::a_lease_followed_by_a_smaller_number_that_ended_is_lost",
                "settle::whoever_was_followed_by_a_smaller_number_hears_of_it",
            ],
        },
        Control { flaw: Arc::new(ClaimShortens), caught_by: &["claim::a_claim_of_the_same_token_never_shortens"] },
        Control {
            flaw: Arc::<ClaimRepeatsItsLength>::default(),
            caught_by: &["claim::a_brief_claim_of_the_same_token_lasts_no_longer_than_it_asks"],
        },
        Control { flaw: Arc::new(RenewalOfAnybody), caught_by: &["renew::a_lease_that_was_followed_is_lost"] },
        Control { flaw: Arc::new(RenewalRestoresAnything), caught_by: &["renew::a_settled_lease_is_not_restored"] },
        Control { flaw: Arc::new(RenewalShortens), caught_by: &["renew::a_renewal_never_shortens"] },
        Control {
            flaw: Arc::new(RenewalNeverRestores),
            caught_by: &["renew::a_lease_is_restored_in_a_store_that_restarted_empty"],
        },
        Control {
            flaw: Arc::new(LeaseForEver),
            caught_by: &[
                "expiry::a_lapsed_lease_lets_the_next_one_in",
                "expiry::a_lease_lapses_by_the_stores_own_clock",
            ],
        },
        Control {
            flaw: Arc::new(AnyHour),
            caught_by: &["window::a_slot_that_has_not_begun_is_early", "window::a_slot_that_is_over_is_closed"],
        },
        Control {
            flaw: Arc::new(PastIsRefused),
            caught_by: &["past::a_slot_that_is_over_is_granted_to_who_asks_for_the_past"],
        },
        Control {
            flaw: Arc::new(PastKnowsNoLimit),
            caught_by: &["past::the_attempts_of_a_slot_that_is_over_are_counted_and_limited"],
        },
        Control { flaw: Arc::new(PastTakesTheLease), caught_by: &["past::a_slot_that_is_over_is_held_like_any_other"] },
        Control { flaw: Arc::new(PauseIsIgnored), caught_by: &["claim::a_paused_job_is_not_granted"] },
        Control {
            flaw: Arc::new(OtherRunsAreIgnored),
            caught_by: &["claim::an_exclusive_claim_is_blocked_while_an_older_slot_runs"],
        },
        Control {
            flaw: Arc::new(NewerRunsAreIgnored),
            caught_by: &["beside::a_newer_slot_blocks_an_exclusive_claim_too"],
        },
        Control {
            flaw: Arc::new(ClosedBeforeItsOwnToken),
            caught_by: &["beside::a_grant_that_is_heard_of_after_the_slots_end_is_given_back"],
        },
        Control {
            flaw: Arc::new(OneNamespace),
            caught_by: &[
                "namespaces::a_slot_held_in_one_is_free_in_another",
                "namespaces::hints_stay_in_their_namespace",
            ],
        },
        Control {
            flaw: Arc::new(Silent),
            caught_by: &["wake::a_failure_wakes_the_others", "changes::what_a_run_comes_to_is_told"],
        },
    ]
}

/// `DEL key` on failure, whoever holds it: ShedLock's Redis default.
#[derive(Debug)]
struct PlainDelete;

impl Flaw for PlainDelete {
    fn fail(
        &self,
        ledger: &mut Ledger,
        (lease, run): (&Lease, &RunRecord),
        retry_after: Duration,
        now: DateTime<Utc>,
    ) -> Release {
        let answer = ledger.fail(lease, run, retry_after, now);
        if let Release::Overtaken { .. } = answer {
            ledger.expire_mark(&lease.slot, now);
        }
        answer
    }
}

/// `SET NX` alone: a claim whose reply was lost is answered with another attempt.
#[derive(Debug)]
struct ClaimForgetsItsToken;

impl Flaw for ClaimForgetsItsToken {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        let own = |mark: &Mark| matches!(mark, Mark::Leased { token, .. } if *token == request.token);
        let records = ledger.inspect(std::slice::from_ref(&request.slot), now);
        if records.iter().any(|record| own(&record.mark)) {
            ledger.expire_mark(&request.slot, now);
            return ledger.claim(&ClaimRequest { token: request.token.next(), ..request.clone() }, now);
        }
        ledger.claim(request, now)
    }
}

/// SET with the TTL of the request, also where its own token stands.
#[derive(Debug)]
struct ClaimShortens;

impl Flaw for ClaimShortens {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        let answer = ledger.claim(request, now);
        if let Claim::Claimed { .. } = answer {
            ledger.set_mark_ttl(&request.slot, request.lease_ttl, now);
        }
        answer
    }
}

/// A lease that is made once and kept alive: asked for again, it lasts as long as the first time.
#[derive(Default)]
struct ClaimRepeatsItsLength(Mutex<Duration>);

impl Debug for ClaimRepeatsItsLength {
    /// Its name alone: flaws are listed by it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClaimRepeatsItsLength")
    }
}

impl Flaw for ClaimRepeatsItsLength {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ledger.mark_ttl(&request.slot, now).is_none() {
            *made = request.lease_ttl;
        }
        ledger.claim(&ClaimRequest { lease_ttl: request.lease_ttl.max(*made), ..request.clone() }, now)
    }
}

/// GET, then SET: two steps where the contract has one.
#[derive(Debug)]
struct ClaimLooksFirst;

impl Flaw for ClaimLooksFirst {
    fn looks_before_it_writes(&self) -> bool {
        true
    }
}

/// Who came later is asked of attempt numbers alone, which begin anew when the data was lost.
#[derive(Debug)]
struct OrderByNumberAlone;

impl Flaw for OrderByNumberAlone {
    fn complete(
        &self,
        ledger: &mut Ledger,
        (lease, run): (&Lease, &RunRecord),
        done_ttl: Duration,
        now: DateTime<Utc>,
    ) -> Settlement {
        match ledger.complete(lease, run, done_ttl, now) {
            Settlement::Overtaken { by } if by.attempt < lease.attempt => Settlement::Recorded,
            other => other,
        }
    }

    fn renew(&self, ledger: &mut Ledger, lease: &Lease, now: DateTime<Utc>) -> Renewal {
        ledger.renew(&Lease { claimed_at: DateTime::<Utc>::MAX_UTC, ..lease.clone() }, now)
    }
}

/// PEXPIRE without a look at whose lease it is.
#[derive(Debug)]
struct RenewalOfAnybody;

impl Flaw for RenewalOfAnybody {
    fn renew(&self, ledger: &mut Ledger, lease: &Lease, now: DateTime<Utc>) -> Renewal {
        match ledger.renew(lease, now) {
            Renewal::Lost { to: Some(_) } => Renewal::Renewed,
            other => other,
        }
    }
}

/// `SET NX` on renewal without a look at the records: a run that ended holds its slot again.
#[derive(Debug)]
struct RenewalRestoresAnything;

impl Flaw for RenewalRestoresAnything {
    fn renew(&self, ledger: &mut Ledger, lease: &Lease, now: DateTime<Utc>) -> Renewal {
        if ledger.mark_ttl(&lease.slot, now).is_none() {
            ledger.forget_log(&lease.slot);
        }
        ledger.renew(lease, now)
    }
}

/// PEXPIRE without GT.
#[derive(Debug)]
struct RenewalShortens;

impl Flaw for RenewalShortens {
    fn renew(&self, ledger: &mut Ledger, lease: &Lease, now: DateTime<Utc>) -> Renewal {
        let answer = ledger.renew(lease, now);
        if answer == Renewal::Renewed {
            ledger.set_mark_ttl(&lease.slot, lease.ttl, now);
        }
        answer
    }
}

/// PEXPIRE on a key that is gone: the run goes on and its slot is free.
#[derive(Debug)]
struct RenewalNeverRestores;

impl Flaw for RenewalNeverRestores {
    fn renew(&self, ledger: &mut Ledger, lease: &Lease, now: DateTime<Utc>) -> Renewal {
        match ledger.mark_ttl(&lease.slot, now) {
            Some(_) => ledger.renew(lease, now),
            None => Renewal::Lost { to: None },
        }
    }
}

/// SET without a TTL: a crashed node keeps its slot for ever.
#[derive(Debug)]
struct LeaseForEver;

impl Flaw for LeaseForEver {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        if ledger.mark_ttl(&request.slot, now).is_none() {
            ledger.set_mark_ttl(&request.slot, request.lease_ttl, now);
        }
        ledger.claim(request, now)
    }
}

/// The node's clock decides: whenever it asks, the slot is open.
#[derive(Debug)]
struct AnyHour;

impl Flaw for AnyHour {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        let last = request.slot.end() - TimeDelta::milliseconds(1);
        ledger.claim(request, now.clamp(request.slot.start(), last))
    }
}

/// What is over stays over, whoever asks.
#[derive(Debug)]
struct PastIsRefused;

impl Flaw for PastIsRefused {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        ledger.claim(&ClaimRequest { past: false, ..request.clone() }, now)
    }
}

/// A person may do anything: the attempts are not asked for.
#[derive(Debug)]
struct PastKnowsNoLimit;

impl Flaw for PastKnowsNoLimit {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        let max_attempts = if request.past { 999 } else { request.max_attempts };
        ledger.claim(&ClaimRequest { max_attempts, ..request.clone() }, now)
    }
}

/// A person may do anything: whoever runs the slot already is not asked for.
#[derive(Debug)]
struct PastTakesTheLease;

impl Flaw for PastTakesTheLease {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        if let (true, Claim::Held { .. }) = (request.past, ledger.claim(request, now)) {
            ledger.expire_mark(&request.slot, now);
        }
        ledger.claim(request, now)
    }
}

/// Pauses are kept, and not asked for.
#[derive(Debug)]
struct PauseIsIgnored;

impl Flaw for PauseIsIgnored {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        let mut copy = ledger.clone();
        let nobody = String::new;
        let audit =
            cronward::slot::Audit { verb: "resume".to_owned(), who: nobody(), host: nobody(), why: nobody(), at: now };
        copy.resume(request.slot.job(), &audit, now);
        drop(copy.take_wakes());
        match ledger.claim(request, now) {
            Claim::Paused { .. } => {
                *ledger = copy;
                ledger.claim(request, now)
            }
            other => other,
        }
    }
}

/// `concurrency = "forbid"` is not looked at.
#[derive(Debug)]
struct OtherRunsAreIgnored;

impl Flaw for OtherRunsAreIgnored {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        ledger.claim(&ClaimRequest { exclusive: false, ..request.clone() }, now)
    }
}

/// `concurrency = "forbid"` looks at older slots alone.
#[derive(Debug)]
struct NewerRunsAreIgnored;

impl Flaw for NewerRunsAreIgnored {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        match ledger.claim(request, now) {
            Claim::Blocked { key, .. } if key > request.slot.key() => {
                ledger.claim(&ClaimRequest { exclusive: false, ..request.clone() }, now)
            }
            other => other,
        }
    }
}

/// A slot that is over is closed to everybody, before anything is asked of the token.
#[derive(Debug)]
struct ClosedBeforeItsOwnToken;

impl Flaw for ClosedBeforeItsOwnToken {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        let over = now >= request.slot.end() && !request.past;
        match ledger.clone().claim(request, now) {
            Claim::Claimed { .. } if over => Claim::Closed,
            _ => ledger.claim(request, now),
        }
    }
}

/// The namespace is no part of the key.
#[derive(Debug)]
struct OneNamespace;

impl Flaw for OneNamespace {
    fn namespace(&self, _namespace: &Namespace) -> Namespace {
        Namespace::default()
    }
}

/// Says that it pushes, and does not.
#[derive(Debug)]
struct Silent;

impl Flaw for Silent {
    fn is_silent(&self) -> bool {
        true
    }
}
