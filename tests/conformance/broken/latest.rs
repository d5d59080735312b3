//! Flaws of what a job has come to lately.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::broken::{Control, Flaw};
use cronward::job::NodeName;
use cronward::slot::{Audit, JobLatest, LastSuccess, Lease, RunRecord, Slot};
use cronward::store::memory::Ledger;
use cronward::store::{Closing, Intervention, Release, Settlement};

pub(super) fn controls() -> Vec<Control> {
    vec![
        Control {
            flaw: Arc::new(WhatItCameToIsForgotten),
            caught_by: &[
                "latest::a_success_is_told_with_its_slot_and_its_end",
                "latest::the_last_end_of_a_run_is_told_whatever_came_of_it",
                "latest::slots_that_failed_or_were_missed_are_counted",
                "latest::slots_of_one_job_that_end_at_the_same_time_lose_nothing",
            ],
        },
        Control {
            flaw: Arc::new(TheLastSuccessToldIsTheNewest),
            caught_by: &["latest::an_older_success_is_not_the_last_one"],
        },
        Control {
            flaw: Arc::new(EachTellerCounts),
            caught_by: &["latest::a_verdict_is_counted_by_whoever_tells_it_and_never_under_a_run"],
        },
        Control {
            flaw: Arc::new(SkippedInAdvanceIsSuccess),
            caught_by: &["latest::a_slot_that_is_skipped_in_advance_hides_no_failure_before_it"],
        },
    ]
}

fn latest(ledger: &Ledger, slot: &Slot) -> JobLatest {
    ledger.latest(std::slice::from_ref(slot.job())).pop().unwrap_or_default()
}

/// The slot is written, and the job is not.
#[derive(Debug)]
struct WhatItCameToIsForgotten;

impl Flaw for WhatItCameToIsForgotten {
    fn complete(
        &self,
        ledger: &mut Ledger,
        (lease, run): (&Lease, &RunRecord),
        done_ttl: Duration,
        now: DateTime<Utc>,
    ) -> Settlement {
        let before = latest(ledger, &lease.slot);
        let answer = ledger.complete(lease, run, done_ttl, now);
        ledger.set_latest(lease.slot.job(), before, now);
        answer
    }

    fn fail(
        &self,
        ledger: &mut Ledger,
        (lease, run): (&Lease, &RunRecord),
        retry_after: Duration,
        now: DateTime<Utc>,
    ) -> Release {
        let before = latest(ledger, &lease.slot);
        let answer = ledger.fail(lease, run, retry_after, now);
        ledger.set_latest(lease.slot.job(), before, now);
        answer
    }

    fn close(
        &self,
        ledger: &mut Ledger,
        (slot, max_attempts): (&Slot, u32),
        by: &NodeName,
        now: DateTime<Utc>,
    ) -> Closing {
        let before = latest(ledger, slot);
        let answer = ledger.close(slot, max_attempts, by, now);
        ledger.set_latest(slot.job(), before, now);
        answer
    }
}

/// A backfill of last month ends the alarm about today.
#[derive(Debug)]
struct TheLastSuccessToldIsTheNewest;

impl Flaw for TheLastSuccessToldIsTheNewest {
    fn complete(
        &self,
        ledger: &mut Ledger,
        (lease, run): (&Lease, &RunRecord),
        done_ttl: Duration,
        now: DateTime<Utc>,
    ) -> Settlement {
        let answer = ledger.complete(lease, run, done_ttl, now);
        let success = Some(LastSuccess { slot: lease.slot.key(), at: now });
        let told = JobLatest { success, end: latest(ledger, &lease.slot).end, failing: None };
        ledger.set_latest(lease.slot.job(), told, now);
        answer
    }
}

/// A mistyped year silences the job until then.
#[derive(Debug)]
struct SkippedInAdvanceIsSuccess;

impl Flaw for SkippedInAdvanceIsSuccess {
    fn mark_done(
        &self,
        ledger: &mut Ledger,
        (slot, audit): (&Slot, &Audit),
        done_ttl: Duration,
        now: DateTime<Utc>,
    ) -> Intervention {
        let answer = ledger.mark_done(slot, audit, done_ttl, now);
        if now < slot.start() {
            let success = Some(LastSuccess { slot: slot.key(), at: now });
            ledger.set_latest(slot.job(), JobLatest { success, failing: None, ..latest(ledger, slot) }, now);
        }
        answer
    }
}

/// Each node that asks for a verdict counts the slot once more.
#[derive(Debug)]
struct EachTellerCounts;

impl Flaw for EachTellerCounts {
    fn close(
        &self,
        ledger: &mut Ledger,
        (slot, max_attempts): (&Slot, u32),
        by: &NodeName,
        now: DateTime<Utc>,
    ) -> Closing {
        let answer = ledger.close(slot, max_attempts, by, now);
        let mut told = latest(ledger, slot);
        if let (Closing::Already(_), Some(failing)) = (&answer, told.failing.as_mut()) {
            failing.slots += 1;
            ledger.set_latest(slot.job(), told, now);
        }
        answer
    }
}
