//! The end of a slot that another node had: `exec` waits for that node, says what became of the work, and records the verdict where no
//! daemon does.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::admin::words::ending;
use crate::cli::ExitCode;
use crate::cli::guarded::forward::Signals;
use crate::cli::guarded::task::Task;
use crate::cli::guarded::verdict::{Verdict, judge, of_silence, to_the_second};
use crate::clock::{Clock, SystemClock};
use crate::drive::{Account, HolderWait};
use crate::job::NodeName;
use crate::reply::ClaimAnswer;
use crate::slot::{Mark, Outcome, RunRecord, Slot, SlotRecord, SlotState};
use crate::store::{Store, StoreError, is_planned};

/// Whether another node's run was waited for, and the work was not seen to be done.
pub(super) fn is_open(account: &Account) -> bool {
    let ended = matches!(account.answer, Some(ClaimAnswer::Closed | ClaimAnswer::Exhausted));
    ended && account.waited && account.runs.is_empty() && account.store_error.is_none()
}

/// What it takes to find out how another node's run of a slot came out.
pub(super) struct Unfinished {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    node: NodeName,
    max_attempts: u32,
    wait: HolderWait,
    /// A program without cronward may have done the work: it holds the job's external lock meanwhile.
    has_foreign_key: bool,
}

impl Unfinished {
    /// For the caller whose task is guarded.
    pub(super) fn of(
        task: &Task,
        store: &Arc<dyn Store>,
        node: &NodeName,
        wait: HolderWait,
        has_foreign_key: bool,
    ) -> Self {
        Self {
            store: Arc::clone(store),
            clock: Arc::new(SystemClock),
            node: node.clone(),
            max_attempts: task.spec.policy.max_attempts,
            wait,
            has_foreign_key,
        }
    }

    /// As [`Unfinished::judge`], unless a signal ends the wait.
    pub(super) async fn judge_unless_ended(
        &self,
        account: Account,
        skipped: u8,
        signals: &Signals,
    ) -> (Account, Verdict) {
        let slot = account.slot.clone();
        tokio::select! {
            biased;
            () = signals.ended.cancelled() => {
                let account = Account::new(slot);
                let verdict = judge(&account, skipped, signals.ended_by());
                (account, verdict)
            }
            judged = self.judge(account, skipped) => judged,
        }
    }

    /// The account and the verdict of a caller whose slot is open still; `skipped` is the code for a command that was not started.
    async fn judge(&self, account: Account, skipped: u8) -> (Account, Verdict) {
        match self.outcome(&account.slot).await {
            Ok((now, record)) => self.verdict(account, now, &record, skipped),
            Err(error) => {
                let verdict = of_silence(error.kind, &error.to_string());
                (Account { store_error: Some((error.kind, error.to_string())), ..account }, verdict)
            }
        }
    }

    /// The record of the slot with its verdict, and the store's clock.
    async fn outcome(&self, slot: &Slot) -> Result<(DateTime<Utc>, SlotRecord), StoreError> {
        let (now, record) = self.wait.record(&*self.store, &*self.clock, slot).await?;
        let has_failed = matches!(record.state(now, self.max_attempts), SlotState::Failed | SlotState::Missed);
        let is_due =
            has_failed && now >= slot.end() && record.verdict.is_none() && !self.may_be_done_elsewhere(&record);
        // The daemons that plan a job send messages with its verdicts.
        if !is_due || is_planned(&*self.store, slot.job()).await? {
            return Ok((now, record));
        }
        self.store.close(slot, self.max_attempts, &self.node).await?;
        self.wait.record(&*self.store, &*self.clock, slot).await
    }

    const fn may_be_done_elsewhere(&self, record: &SlotRecord) -> bool {
        self.has_foreign_key && record.attempts == 0
    }

    fn verdict(&self, account: Account, now: DateTime<Utc>, record: &SlotRecord, skipped: u8) -> (Account, Verdict) {
        let quiet = |result| Verdict { code: skipped, result, told: Vec::new() };
        match record.state(now, self.max_attempts) {
            SlotState::Done => {
                let by = done_by(record);
                (Account { answer: Some(ClaimAnswer::Done), by, ..account }, quiet("done"))
            }
            // The time that was given for the wait is over.
            SlotState::Running => (account, quiet("held")),
            SlotState::Skipped => {
                let told = vec![format!("{} was skipped: the job was paused", account.slot)];
                (account, Verdict { told, ..quiet("skipped") })
            }
            _ if self.may_be_done_elsewhere(record) => (account, quiet("closed")),
            state => {
                let told = vec![self.words(record, now, state)];
                (account, Verdict { code: ExitCode::StoreRefuses as u8, result: state.as_str(), told })
            }
        }
    }

    fn words(&self, record: &SlotRecord, now: DateTime<Utc>, state: SlotState) -> String {
        let (slot, used, most) = (&record.slot, record.used(), self.max_attempts);
        let by_then = if now < slot.end() {
            "is not done".to_owned()
        } else {
            format!("was not done when it ended at {}", to_the_second(slot.end()))
        };
        format!("{slot} {by_then}: {}; {used} of {most} attempts used ({})", last_attempt(record), state.as_str())
    }
}

fn done_by(record: &SlotRecord) -> Option<NodeName> {
    match &record.mark {
        Mark::Done(mark) => Some(mark.by.node.clone()),
        _ => record.verdict.as_ref().map(|verdict| verdict.by.clone()),
    }
}

/// Which node made the last attempt, since when, and how it ended.
fn last_attempt(record: &SlotRecord) -> String {
    let Some(run) = record.runs.last() else { return "no attempt was made".to_owned() };
    let how = match record.outcome_of(run) {
        Some(Outcome::Crashed) => "reported no result".to_owned(),
        Some(Outcome::GivenBack) => "was given back".to_owned(),
        _ => format!("ended with {}", ending(record, run)),
    };
    let RunRecord { node, attempt, claimed_at, .. } = run;
    format!("node {node} held it since {} with attempt {attempt}, which {how}", to_the_second(*claimed_at))
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::collections::BTreeMap;
    use std::time::Duration;

    use crate::admin::fixture;
    use crate::clock::RuntimeClock;
    use crate::slot::{Lease, Verdict as SlotVerdict, VerdictRecord};
    use crate::store::memory::MemoryStore;
    use crate::store::{Claim, ClaimRequest, NodeReport, StoreOptions};

    const TTL: Duration = Duration::from_secs(60);

    fn ended() -> Account {
        let account = Account::new(fixture::untouched().slot);
        Account { answer: Some(ClaimAnswer::Closed), waited: true, ..account }
    }

    /// Node c, whose clock and store show this time.
    fn node_c(now: &str) -> Unfinished {
        let clock: Arc<dyn Clock> = Arc::new(RuntimeClock::at(fixture::at(now)));
        let store = Arc::new(MemoryStore::new(StoreOptions::default(), Arc::clone(&clock)));
        let wait = HolderWait { until: None, store: TTL };
        Unfinished { store, clock, node: fixture::node("c"), max_attempts: 3, wait, has_foreign_key: false }
    }

    #[allow(clippy::disallowed_methods, reason = "time is virtual")]
    async fn pass(span: Duration) {
        tokio::time::sleep(span).await;
    }

    /// Node a claims the slot half a minute before its end, and is not heard of again.
    async fn crash(unfinished: &Unfinished) -> Lease {
        let request = ClaimRequest::new(fixture::untouched().slot, fixture::token(1), fixture::node("a"), TTL, 3);
        let Claim::Claimed { attempt, at, .. } = unfinished.store.claim(&request).await.unwrap() else {
            panic!("the slot is free")
        };
        pass(Duration::from_secs(31)).await;
        request.granted(attempt, at)
    }

    async fn verdict_of(unfinished: &Unfinished) -> Option<(SlotVerdict, NodeName)> {
        let (_, records) = unfinished.store.inspect(&[fixture::untouched().slot]).await.unwrap();
        records[0].verdict.as_ref().map(|told| (told.verdict, told.by.clone()))
    }

    const CRASHED: &str = "billing@2026-11-21T12Z was not done when it ended at 2026-11-21 13:00:00 UTC: node a held it since \
                           2026-11-21 12:59:30 UTC with attempt 1, which reported no result; 1 of 3 attempts used (missed)";

    #[tokio::test(start_paused = true)]
    async fn a_crash_before_the_end_is_one_line_and_a_verdict_once_the_lease_has_lapsed() {
        let unfinished = node_c("2026-11-21T12:59:30Z");
        crash(&unfinished).await;
        let (_, verdict) = unfinished.judge(ended(), 0).await;
        assert_eq!(verdict, Verdict { code: 69, result: "missed", told: vec![CRASHED.to_owned()] });
        assert_eq!(verdict_of(&unfinished).await, Some((SlotVerdict::Missed, fixture::node("c"))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_succeeds_after_the_end_is_silent() {
        let unfinished = node_c("2026-11-21T12:59:30Z");
        let lease = crash(&unfinished).await;
        let run = fixture::ended(1, "a", Outcome::Success, 0);
        let run = RunRecord { token: lease.token, ..run };
        let complete = async {
            pass(Duration::from_secs(20)).await;
            unfinished.store.complete(&lease, &run, TTL).await.unwrap();
        };
        let ((account, verdict), ()) = tokio::join!(unfinished.judge(ended(), 7), complete);
        assert_eq!(verdict, Verdict { code: 7, result: "done", told: Vec::new() });
        assert_eq!((account.answer, account.by), (Some(ClaimAnswer::Done), Some(fixture::node("a"))));
    }

    #[tokio::test(start_paused = true)]
    async fn the_verdict_of_a_job_that_daemons_plan_is_left_to_them() {
        let unfinished = node_c("2026-11-21T12:59:30Z");
        let planned = fixture::entry("billing");
        unfinished.store.register(&[planned]).await.unwrap();
        let job_hashes = BTreeMap::from([("billing".parse().unwrap(), "c0ffee".to_owned())]);
        let daemon = NodeReport { job_hashes, ..fixture::report("d", unfinished.clock.now().wall) };
        let store = Arc::clone(&unfinished.store);
        tokio::spawn(async move {
            let mut beats = tokio::time::interval(Duration::from_secs(10));
            loop {
                beats.tick().await;
                store.heartbeat(&daemon).await.unwrap();
            }
        });
        crash(&unfinished).await;
        assert_eq!(unfinished.judge(ended(), 0).await.1.told, [CRASHED]);
        assert_eq!(verdict_of(&unfinished).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_is_over_leaves_the_run_alone() {
        let unfinished = node_c("2026-11-21T12:59:30Z");
        let until = unfinished.clock.now().mono + Duration::from_secs(40);
        let unfinished = Unfinished { wait: HolderWait { until: Some(until), store: TTL }, ..unfinished };
        crash(&unfinished).await;
        assert_eq!(unfinished.judge(ended(), 7).await.1, Verdict { code: 7, result: "held", told: Vec::new() });
        assert_eq!(unfinished.clock.now().mono, until);
    }

    fn judged(record: &SlotRecord, now: &str, has_foreign_key: bool) -> (u8, &'static str, Vec<String>) {
        let unfinished = Unfinished { has_foreign_key, ..node_c(now) };
        let (_, verdict) = unfinished.verdict(ended(), fixture::at(now), record, 7);
        (verdict.code, verdict.result, verdict.told)
    }

    #[tokio::test]
    async fn a_slot_whose_attempts_are_used_up_before_its_end_is_one_line() {
        let (code, result, told) = judged(&fixture::failed(), "2026-11-21T12:30:00Z", false);
        assert_eq!((code, result), (69, "failed"));
        assert!(told[0].starts_with("billing@2026-11-21T12Z is not done: node "), "{told:?}");
        assert!(told[0].ends_with("; 3 of 3 attempts used (failed)"), "{told:?}");
    }

    #[tokio::test]
    async fn a_slot_without_an_attempt_is_no_failure_where_another_program_may_have_done_the_work() {
        let untouched = fixture::untouched();
        assert_eq!(judged(&untouched, "2026-11-21T13:00:00Z", true), (7, "closed", vec![]));
        let (code, result, told) = judged(&untouched, "2026-11-21T13:00:00Z", false);
        assert_eq!((code, result), (69, "missed"));
        assert!(told[0].contains(": no attempt was made; 0 of 3 attempts used"), "{told:?}");
    }

    #[tokio::test]
    async fn a_slot_that_was_paused_is_skipped() {
        let at = fixture::at("2026-11-21T13:00:00Z");
        let verdict = VerdictRecord { verdict: SlotVerdict::Skipped, by: fixture::node("c"), at, attempt: 0 };
        let record = SlotRecord { verdict: Some(verdict), ..fixture::untouched() };
        let told = "billing@2026-11-21T12Z was skipped: the job was paused".to_owned();
        assert_eq!(judged(&record, "2026-11-21T13:00:00Z", false), (7, "skipped", vec![told]));
    }
}
