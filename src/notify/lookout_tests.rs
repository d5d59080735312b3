//! What is worth a message: from what a node hears, and from what the store knows.

use super::*;
use crate::job::Program;
use crate::slot::{LastSuccess, Outcome};

fn key(hour: u32) -> SlotKey {
    format!("2026-11-21T{hour:02}Z").parse().unwrap()
}

/// So many minutes after the hour.
fn at(hour: u32, minute: i64) -> DateTime<Utc> {
    key(hour).start() + chrono::TimeDelta::minutes(minute)
}

fn job() -> JobName {
    JobName::new("billing").unwrap()
}

fn lookout(change: impl FnOnce(&mut JobSpec)) -> Lookout {
    let mut spec = JobSpec::new(job(), "0 * * * *", Program::Direct(vec!["true".to_owned()]));
    spec.notify = vec!["ops".to_owned()];
    change(&mut spec);
    let mut lookout = Lookout::default();
    lookout.set_jobs(&[Arc::new(spec)], at(10, 0));
    lookout
}

fn hear(lookout: &mut Lookout, hour: u32, heard: SlotNews) -> Vec<String> {
    subjects(lookout.hear(&job(), key(hour), heard, at(hour, 5)))
}

fn subjects(notices: Vec<Notice>) -> Vec<String> {
    notices.iter().map(Notice::subject).collect()
}

fn failing(since: u32, last: u32, verdict: Verdict) -> JobLatest {
    JobLatest {
        failing: Some(Failing { since: key(since), last: key(last), verdict, slots: last - since + 1 }),
        ..JobLatest::default()
    }
}

fn succeeded(hour: u32) -> JobLatest {
    JobLatest { success: Some(LastSuccess { slot: key(hour), at: at(hour, 1) }), ..JobLatest::default() }
}

#[test]
fn a_slot_without_attempts_left_has_failed_whoever_made_the_last_one() {
    let mut lookout = lookout(|_| {});
    assert_eq!(hear(&mut lookout, 12, SlotNews::UsedUp), ["2026-11-21T12Z failed"]);
    assert_eq!(
        hear(&mut lookout, 12, SlotNews::Closed(Verdict::Failed)),
        ["2026-11-21T12Z failed"],
        "the same message"
    );
}

#[test]
fn two_runs_of_a_slot_that_may_have_overlapped_are_told_with_the_node_of_the_other() {
    let mut lookout = lookout(|_| {});
    let other = Some(crate::job::NodeName::new("b").unwrap());
    let told = lookout.hear(&job(), key(12), SlotNews::Overlapped(other.clone()), at(12, 5));
    assert_eq!(told.first().map(|notice| (notice.kind, notice.beside.clone())), Some((NoticeKind::Overlap, other)));
    let unknown = hear(&mut lookout, 12, SlotNews::Overlapped(None));
    assert_eq!(unknown, subjects(told), "one message, whichever of the two nodes tells it");
}

#[test]
fn the_first_success_after_failures_is_a_recovery_since_the_first_of_them() {
    let mut lookout = lookout(|_| {});
    assert!(hear(&mut lookout, 11, SlotNews::Done { ours: false }).is_empty());
    hear(&mut lookout, 12, SlotNews::UsedUp);
    hear(&mut lookout, 13, SlotNews::UsedUp);
    assert!(hear(&mut lookout, 12, SlotNews::Done { ours: false }).is_empty(), "the newer one still has failed");
    let told = hear(&mut lookout, 14, SlotNews::Done { ours: true });
    assert_eq!(told, ["2026-11-21T12Z recovered", "2026-11-21T14Z succeeded"]);
    assert_eq!(hear(&mut lookout, 15, SlotNews::Done { ours: true }), ["2026-11-21T15Z succeeded"], "once");
}

#[test]
fn a_node_that_heard_nothing_learns_of_failure_and_recovery_from_the_store() {
    let mut lookout = lookout(|_| {});
    let failed = failing(12, 13, Verdict::Failed);
    assert_eq!(subjects(lookout.know(&job(), &failed, at(14, 1))), ["2026-11-21T13Z failed"]);
    assert_eq!(subjects(lookout.know(&job(), &succeeded(14), at(14, 2))), ["2026-11-21T12Z recovered"]);
    assert!(lookout.know(&job(), &succeeded(14), at(14, 3)).is_empty());
}

#[test]
fn slots_that_nobody_ran_while_all_nodes_were_down_are_told_once_their_sum_stands_still() {
    let mut lookout = lookout(|_| {});
    assert!(lookout.know(&job(), &failing(10, 11, Verdict::Missed), at(14, 0)).is_empty());
    assert!(lookout.know(&job(), &failing(10, 13, Verdict::Missed), at(14, 1)).is_empty(), "more were recorded");
    let told = lookout.know(&job(), &failing(10, 13, Verdict::Missed), at(14, 2));
    assert_eq!(
        (told[0].subject(), told[0].slots, told[0].first),
        ("2026-11-21T13Z missed".to_owned(), 4, Some(key(10)))
    );
    let by_who_recorded = lookout.missed(&job(), 4, key(10), key(13));
    assert_eq!(by_who_recorded[0].subject(), told[0].subject(), "the same message on both nodes");
}

#[test]
fn a_node_that_starts_does_not_tell_of_what_failed_days_ago() {
    let mut old = lookout(|_| {});
    let days_later = at(13, 0) + chrono::TimeDelta::days(3);
    for _ in 0..3 {
        assert!(old.know(&job(), &failing(12, 13, Verdict::Failed), days_later).is_empty());
    }
    let mut fresh = lookout(|_| {});
    assert_eq!(fresh.know(&job(), &failing(12, 13, Verdict::Failed), at(15, 0)).len(), 1);
}

#[test]
fn a_job_is_late_once_its_last_success_is_older_than_alert_after_unless_it_is_paused() {
    let mut lookout = lookout(|spec| spec.alert_after = Some(Duration::from_secs(2 * 3_600)));
    lookout.know(&job(), &succeeded(12), at(12, 10));
    assert!(!lookout.is_any_late(at(14, 1)) && lookout.late(&[], at(14, 1)).is_empty());
    assert!(lookout.is_any_late(at(14, 2)));
    assert_eq!(subjects(lookout.late(&[], at(14, 2))), ["2026-11-21T12Z late"]);
    assert!(lookout.late(&[job()], at(14, 2)).is_empty());
}

#[test]
fn a_job_that_was_never_done_is_late_from_its_first_plan_on_and_not_before_the_store_was_asked() {
    let mut lookout = lookout(|spec| spec.alert_after = Some(Duration::from_secs(3_600)));
    assert!(lookout.late(&[], at(14, 0)).is_empty());
    lookout.know(&job(), &JobLatest::default(), at(14, 0));
    assert_eq!(subjects(lookout.late(&[], at(14, 0))), ["never late"]);
}

#[test]
fn a_job_that_goes_on_failing_is_told_of_again_once_in_each_span() {
    let mut lookout = lookout(|_| {});
    hear(&mut lookout, 10, SlotNews::UsedUp);
    let every = Duration::from_secs(4 * 3_600);
    assert!(lookout.reminders(every, "ops", at(13, 59)).is_empty());
    for (hour, number) in [(14, 1), (15, 1), (18, 2)] {
        assert_eq!(
            subjects(lookout.reminders(every, "ops", at(hour, 1))),
            [format!("2026-11-21T10Z reminder {number}")]
        );
    }
    assert!(lookout.reminders(every, "other", at(18, 1)).is_empty());
    hear(&mut lookout, 18, SlotNews::Done { ours: true });
    assert!(lookout.reminders(every, "ops", at(19, 1)).is_empty());
}

#[test]
fn the_last_attempt_that_fails_is_the_failure_of_the_slot_and_no_message_of_its_own() {
    let mut lookout = lookout(|_| {});
    assert_eq!(hear(&mut lookout, 12, SlotNews::AttemptFailed(2)), ["2026-11-21T12Z attempt_failed 2"]);
    assert!(hear(&mut lookout, 12, SlotNews::AttemptFailed(3)).is_empty());
}

#[test]
fn of_jobs_that_name_no_sink_or_are_disabled_nothing_is_watched() {
    for change in [|spec: &mut JobSpec| spec.notify.clear(), |spec: &mut JobSpec| spec.enabled = false] {
        let mut lookout = lookout(change);
        assert!(lookout.names().is_empty() && hear(&mut lookout, 12, SlotNews::UsedUp).is_empty());
    }
}

#[test]
fn the_end_of_a_run_alone_says_nothing() {
    let mut lookout = lookout(|_| {});
    let end = crate::slot::LastEnd { slot: key(12), at: at(12, 1), outcome: Outcome::Failure };
    assert!(lookout.know(&job(), &JobLatest { end: Some(end), ..JobLatest::default() }, at(12, 2)).is_empty());
}
