//! Flaws of what is written down: attempts, ends, done markers, verdicts.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::broken::{Control, Flaw};
use cronward::job::{JobName, NodeName};
use cronward::slot::{Audit, Lease, NotePage, RunRecord, Slot};
use cronward::store::memory::Ledger;
use cronward::store::{Claim, ClaimRequest, Closing, Intervention, JobEntry, Release, Settlement};

pub(super) fn controls() -> Vec<Control> {
    vec![
        Control {
            flaw: Arc::new(APageTakesThePlaceOfAll),
            caught_by: &[
                "notes::pages_are_read_by_all_in_the_order_in_which_they_were_begun",
                "notes::two_nodes_that_note_at_the_same_time_keep_both_their_pages",
            ],
        },
        Control { flaw: Arc::new(CountsBeforeItGrants), caught_by: &["claim::a_refused_claim_changes_nothing"] },
        Control { flaw: Arc::new(CountStartsAgain), caught_by: &["attempts::a_lost_counter_goes_on_from_the_records"] },
        Control {
            flaw: Arc::new(DoneIsOverwritten),
            caught_by: &[
                "settle::success_is_written_over_another_ones_lease",
                "races::of_many_finishers_one_sets_the_marker",
            ],
        },
        Control {
            flaw: Arc::new(DoneIsRenewed),
            caught_by: &[
                "settle::a_second_success_leaves_the_marker_as_it_is",
                "idempotence::a_lost_reply_to_a_completion_leaves_it_recorded",
            ],
        },
        Control {
            flaw: Arc::new(SuccessNeedsALease),
            caught_by: &["settle::success_is_written_even_when_the_lease_had_lapsed"],
        },
        Control {
            flaw: Arc::new(SuccessOfAnEmptyStoreCountsNothing),
            caught_by: &["settle::success_is_written_to_a_store_that_restarted_empty"],
        },
        Control {
            flaw: Arc::new(WaitBeginsAnew),
            caught_by: &["idempotence::a_lost_reply_to_a_failure_begins_one_wait"],
        },
        Control {
            flaw: Arc::new(StaleFailureIsLost),
            caught_by: &["settle::a_stale_failure_is_recorded_all_the_same"],
        },
        Control {
            flaw: Arc::new(RefundsTwice),
            caught_by: &[
                "settle::an_attempt_given_back_is_refunded_once",
                "idempotence::a_lost_reply_to_a_give_back_refunds_once",
            ],
        },
        Control {
            flaw: Arc::new(RefundsByCountingDown),
            caught_by: &["settle::an_attempt_given_back_is_refunded_once"],
        },
        Control { flaw: Arc::new(RefundsTheLapsed), caught_by: &["settle::a_lapsed_attempt_is_not_refunded"] },
        Control {
            flaw: Arc::new(EverybodyIsFirst),
            caught_by: &["close::the_verdict_is_told_by_one_node_alone", "close::a_done_slot_is_done_already"],
        },
        Control {
            flaw: Arc::new(WhoAsksIsForgotten),
            caught_by: &["operator::who_asks_for_a_slot_is_recorded_with_the_grant_and_once"],
        },
        Control {
            flaw: Arc::new(WhoAsksIsRecordedFirst),
            caught_by: &[
                "operator::who_asks_for_a_slot_is_recorded_with_the_grant_and_once",
                "operator::who_asks_in_vain_is_not_recorded",
            ],
        },
        Control {
            flaw: Arc::new(TheLastWordOnAJobCounts),
            caught_by: &["registry::what_a_file_said_of_a_job_is_replaced_by_a_file_alone"],
        },
        Control {
            flaw: Arc::new(OnlyTheStoreSeesJobs),
            caught_by: &["registry::the_earliest_first_sight_of_a_job_is_kept"],
        },
        Control {
            flaw: Arc::new(WhoPausedIsOverwritten),
            caught_by: &["registry::a_resume_ends_the_pause_and_keeps_who_began_it"],
        },
        Control { flaw: Arc::new(ClosesUnderARun), caught_by: &["close::a_running_slot_is_asked_again_later"] },
    ]
}

/// INCR first, and the lease afterwards if it is free: every refused claim burns an attempt.
#[derive(Debug)]
struct CountsBeforeItGrants;

impl Flaw for CountsBeforeItGrants {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        let answer = ledger.claim(request, now);
        if let Claim::Held { .. } | Claim::Backoff { .. } = answer {
            let counter = ledger.counter(&request.slot).unwrap_or(0);
            ledger.set_counter(&request.slot, counter + 1);
        }
        answer
    }
}

/// A counter that was evicted starts at one again, whatever the records say.
#[derive(Debug)]
struct CountStartsAgain;

impl Flaw for CountStartsAgain {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        if ledger.counter(&request.slot).is_none() {
            ledger.forget_log(&request.slot);
        }
        ledger.claim(request, now)
    }
}

/// The last to finish sets the marker.
#[derive(Debug)]
struct DoneIsOverwritten;

impl Flaw for DoneIsOverwritten {
    fn complete(
        &self,
        ledger: &mut Ledger,
        (lease, run): (&Lease, &RunRecord),
        done_ttl: Duration,
        now: DateTime<Utc>,
    ) -> Settlement {
        ledger.expire_mark(&lease.slot, now);
        ledger.complete(lease, run, done_ttl, now)
    }
}

/// A repeated completion sets the marker's TTL again.
#[derive(Debug)]
struct DoneIsRenewed;

impl Flaw for DoneIsRenewed {
    fn complete(
        &self,
        ledger: &mut Ledger,
        (lease, run): (&Lease, &RunRecord),
        done_ttl: Duration,
        now: DateTime<Utc>,
    ) -> Settlement {
        let answer = ledger.complete(lease, run, done_ttl, now);
        ledger.set_mark_ttl(&lease.slot, done_ttl, now);
        answer
    }
}

/// Success is recorded only by whoever still holds the lease: the work is done and will be done again.
#[derive(Debug)]
struct SuccessNeedsALease;

impl Flaw for SuccessNeedsALease {
    fn complete(
        &self,
        ledger: &mut Ledger,
        (lease, run): (&Lease, &RunRecord),
        done_ttl: Duration,
        now: DateTime<Utc>,
    ) -> Settlement {
        match ledger.mark_ttl(&lease.slot, now) {
            Some(_) => ledger.complete(lease, run, done_ttl, now),
            None => Settlement::Recorded,
        }
    }
}

/// The counter of a store that restarted empty stays empty.
#[derive(Debug)]
struct SuccessOfAnEmptyStoreCountsNothing;

impl Flaw for SuccessOfAnEmptyStoreCountsNothing {
    fn complete(
        &self,
        ledger: &mut Ledger,
        (lease, run): (&Lease, &RunRecord),
        done_ttl: Duration,
        now: DateTime<Utc>,
    ) -> Settlement {
        let counter = ledger.counter(&lease.slot).unwrap_or(0);
        let answer = ledger.complete(lease, run, done_ttl, now);
        ledger.set_counter(&lease.slot, counter);
        answer
    }
}

/// Each repetition of a failure waits from then on.
#[derive(Debug)]
struct WaitBeginsAnew;

impl Flaw for WaitBeginsAnew {
    fn fail(
        &self,
        ledger: &mut Ledger,
        (lease, run): (&Lease, &RunRecord),
        retry_after: Duration,
        now: DateTime<Utc>,
    ) -> Release {
        let answer = ledger.fail(lease, run, retry_after, now);
        if answer == Release::Released {
            ledger.set_mark_ttl(&lease.slot, retry_after, now);
        }
        answer
    }
}

/// Whoever lost its lease is not listened to.
#[derive(Debug)]
struct StaleFailureIsLost;

impl Flaw for StaleFailureIsLost {
    fn fail(
        &self,
        ledger: &mut Ledger,
        (lease, run): (&Lease, &RunRecord),
        retry_after: Duration,
        now: DateTime<Utc>,
    ) -> Release {
        let before = ledger.clone();
        let answer = ledger.fail(lease, run, retry_after, now);
        if let Release::Overtaken { .. } = answer {
            *ledger = before;
        }
        answer
    }
}

/// Each repetition of a refund refunds.
#[derive(Debug)]
struct RefundsTwice;

impl Flaw for RefundsTwice {
    fn give_back(&self, ledger: &mut Ledger, lease: &Lease, run: &RunRecord, now: DateTime<Utc>) -> Release {
        let forgiven = forgiven(ledger, &lease.slot, now);
        let answer = ledger.give_back(lease, run, now);
        if answer == Release::Released {
            ledger.set_forgiven(&lease.slot, forgiven + 1);
        }
        answer
    }
}

/// DECR: the number is granted a second time.
#[derive(Debug)]
struct RefundsByCountingDown;

impl Flaw for RefundsByCountingDown {
    fn give_back(&self, ledger: &mut Ledger, lease: &Lease, run: &RunRecord, now: DateTime<Utc>) -> Release {
        let before = forgiven(ledger, &lease.slot, now);
        let answer = ledger.give_back(lease, run, now);
        if forgiven(ledger, &lease.slot, now) > before {
            let counter = ledger.counter(&lease.slot).unwrap_or(0);
            ledger.set_forgiven(&lease.slot, before);
            ledger.set_counter(&lease.slot, counter.saturating_sub(1));
        }
        answer
    }
}

/// An attempt whose lease had lapsed is refunded, though somebody may have run in between.
#[derive(Debug)]
struct RefundsTheLapsed;

impl Flaw for RefundsTheLapsed {
    fn give_back(&self, ledger: &mut Ledger, lease: &Lease, run: &RunRecord, now: DateTime<Utc>) -> Release {
        let answer = ledger.give_back(lease, run, now);
        if answer == Release::Expired {
            let forgiven = forgiven(ledger, &lease.slot, now);
            ledger.set_forgiven(&lease.slot, forgiven + 1);
        }
        answer
    }
}

/// Every node that closes a slot tells of it.
#[derive(Debug)]
struct EverybodyIsFirst;

impl Flaw for EverybodyIsFirst {
    fn close(
        &self,
        ledger: &mut Ledger,
        (slot, max_attempts): (&Slot, u32),
        by: &NodeName,
        now: DateTime<Utc>,
    ) -> Closing {
        match ledger.close(slot, max_attempts, by, now) {
            Closing::Already(verdict) => Closing::First(verdict),
            other => other,
        }
    }
}

/// The verdict does not wait for a run that is still going on.
#[derive(Debug)]
struct ClosesUnderARun;

impl Flaw for ClosesUnderARun {
    fn close(
        &self,
        ledger: &mut Ledger,
        (slot, max_attempts): (&Slot, u32),
        by: &NodeName,
        now: DateTime<Utc>,
    ) -> Closing {
        let answer = ledger.close(slot, max_attempts, by, now);
        if let Closing::Running { .. } = answer {
            ledger.expire_mark(slot, now);
            return ledger.close(slot, max_attempts, by, now);
        }
        answer
    }
}

/// A person's claim is granted like a schedule's: nobody knows later who it was.
#[derive(Debug)]
struct WhoAsksIsForgotten;

impl Flaw for WhoAsksIsForgotten {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        ledger.claim(&ClaimRequest { audit: None, ..request.clone() }, now)
    }
}

/// The audit in a step of its own before the claim: whoever is refused is recorded, and whoever asks twice twice.
#[derive(Debug)]
struct WhoAsksIsRecordedFirst;

impl Flaw for WhoAsksIsRecordedFirst {
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        if let Some(audit) = &request.audit {
            ledger.add_audit(&request.slot, audit, now);
        }
        ledger.claim(&ClaimRequest { audit: None, ..request.clone() }, now)
    }
}

/// A crontab's `exec` that looked before the daemon spoke takes the place of what the daemon said.
#[derive(Debug)]
struct TheLastWordOnAJobCounts;

impl Flaw for TheLastWordOnAJobCounts {
    fn register(&self, ledger: &mut Ledger, jobs: &[JobEntry], now: DateTime<Utc>) -> Vec<JobEntry> {
        let yields = |job: &&JobEntry| ledger.jobs().iter().any(|known| known.name == job.name && job.yields_to(known));
        for job in jobs.iter().filter(yields).collect::<Vec<_>>() {
            ledger.forget_job(&job.name);
        }
        ledger.register(jobs, now)
    }
}

/// What a node knows of when a job was first seen is not taken.
#[derive(Debug)]
struct OnlyTheStoreSeesJobs;

impl Flaw for OnlyTheStoreSeesJobs {
    fn register(&self, ledger: &mut Ledger, jobs: &[JobEntry], now: DateTime<Utc>) -> Vec<JobEntry> {
        let unseen: Vec<JobEntry> = jobs.iter().map(|job| job.clone().unseen()).collect();
        ledger.register(&unseen, now)
    }
}

/// Who ended a pause takes the place of who began it.
#[derive(Debug)]
struct WhoPausedIsOverwritten;

impl Flaw for WhoPausedIsOverwritten {
    fn resume(&self, ledger: &mut Ledger, job: &JobName, audit: &Audit, now: DateTime<Utc>) -> Intervention {
        let answer = ledger.resume(job, audit, now);
        if answer == Intervention::Applied {
            ledger.pause(job, Some(now), audit, now);
        }
        answer
    }
}

/// Notes of one writer wipe out what others noted on the slot.
#[derive(Debug)]
struct APageTakesThePlaceOfAll;

impl Flaw for APageTakesThePlaceOfAll {
    fn note(&self, ledger: &mut Ledger, pages: &[(Slot, NotePage)], now: DateTime<Utc>) {
        for page in pages {
            ledger.age_notes(&page.0);
            ledger.note(std::slice::from_ref(page), now);
        }
    }
}

fn forgiven(ledger: &Ledger, slot: &Slot, now: DateTime<Utc>) -> u32 {
    ledger.inspect(std::slice::from_ref(slot), now).first().map_or(0, |record| record.forgiven)
}
