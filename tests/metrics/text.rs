//! What the text says of what was heard.

use cronward::clock::{Mono, Now};
use cronward::event::{ClaimAnswer, Event, LockLeave, LockLoss, RenewalAnswer};
use cronward::job::JobSelection;
use cronward::node::Health;
use cronward::observe::Observer;
use cronward::resource::LockRelease;
use cronward::slot::{Outcome, Trigger, Verdict};
use cronward::store::memory::MemoryStore;
use cronward::store::{Store, StoreOptions};
use std::sync::Arc;
use std::time::Duration;

use crate::bench::{self, Bench, claimed, ended, everything, granted, started};
use crate::promtool;

#[tokio::test]
async fn promtool_has_no_objection_to_the_text() {
    let bench = Bench::of(&["a", "b"]);
    assert_eq!(promtool::on_metrics(&bench.text()), None);
    everything(&bench, "a");
    bench.metrics.around(store(&bench)).jobs().await.unwrap();
    let text = bench.text();
    assert_eq!(promtool::on_metrics(&text), None, "{text}");
    assert!(text.contains(r#"owner="team \"x\"\\y",origin="file""#), "{text}");
}

fn store(bench: &Bench) -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(StoreOptions::default(), Arc::new(bench.clock.clone())))
}

#[test]
fn every_job_is_told_of_from_the_start() {
    let bench = Bench::of(&["a", "b"]);
    for job in ["a", "b"] {
        for result in ["success", "failure", "timeout", "killed", "lost_lease", "given_back"] {
            let series = format!(r#"cronward_runs_total{{namespace="prod",job_name="{job}",result="{result}"}}"#);
            assert_eq!(bench.value(&series).as_deref(), Some("0"), "{series}");
        }
        for verdict in ["done", "failed", "missed", "skipped"] {
            let series = format!(r#"cronward_slots_total{{namespace="prod",job_name="{job}",verdict="{verdict}"}}"#);
            assert_eq!(bench.value(&series).as_deref(), Some("0"), "{series}");
        }
        let timeout = format!(r#"cronward_job_timeout_seconds{{namespace="prod",job_name="{job}"}}"#);
        assert_eq!(bench.value(&timeout).as_deref(), Some("1800"));
    }
    assert!(!bench.text().contains("cronward_run_duration_seconds_bucket"), "made at the first run");
}

/// A series of the job `a` without further labels.
fn of_a(bench: &Bench, name: &str) -> Option<String> {
    bench.value(&format!(r#"cronward_{name}{{namespace="prod",job_name="a"}}"#))
}

fn runs_of_a(bench: &Bench, result: Outcome) -> Option<String> {
    bench.value(&format!(r#"cronward_runs_total{{namespace="prod",job_name="a",result="{}"}}"#, result.as_str()))
}

#[test]
fn runs_are_counted_by_their_end_and_while_they_last() {
    let bench = Bench::of(&["a"]);
    bench.hear("a", &granted(2));
    bench.hear("a", &started(2, 0));
    assert_eq!(of_a(&bench, "job_running").as_deref(), Some("1"));
    assert_eq!(of_a(&bench, "job_attempts").as_deref(), Some("2"));
    for outcome in [Outcome::Success, Outcome::Failure, Outcome::Failure, Outcome::LostLease] {
        bench.hear("a", &ended(outcome, 12));
    }
    assert_eq!(of_a(&bench, "job_running").as_deref(), Some("0"), "it does not fall below 0");
    assert_eq!(runs_of_a(&bench, Outcome::Failure).as_deref(), Some("2"));
    assert_eq!(runs_of_a(&bench, Outcome::LostLease).as_deref(), Some("1"));
    let bucket = |le| {
        bench.value(&format!(r#"cronward_run_duration_seconds_bucket{{namespace="prod",job_name="a",le="{le}"}}"#))
    };
    assert_eq!(
        (bucket("5").as_deref(), bucket("15").as_deref(), bucket("+Inf").as_deref()),
        (Some("0"), Some("4"), Some("4"))
    );
    assert_eq!(of_a(&bench, "run_duration_seconds_sum").as_deref(), Some("48"));
    bench.clock.advance(Duration::from_secs(3_600));
    assert_eq!(of_a(&bench, "job_attempts").as_deref(), Some("0"), "its slot is over");
}

#[test]
fn only_the_first_attempt_at_a_tick_tells_how_late_starts_are() {
    let bench = Bench::of(&["a"]);
    bench.hear("a", &started(1, 20));
    bench.hear("a", &started(2, 90_000));
    let (fence, late) = (bench::slot("a").fence(1), Duration::from_secs(90));
    bench.hear("a", &Event::RunStarted { attempt: 1, fence, trigger: Trigger::Manual, guarded: true, late });
    let series = |name: &str| bench.value(&format!("cronward_start_delay_seconds_{name}"));
    assert_eq!(series(r#"count{namespace="prod"}"#).as_deref(), Some("1"));
    assert_eq!(series(r#"bucket{namespace="prod",le="0.01"}"#).as_deref(), Some("0"));
    assert_eq!(series(r#"bucket{namespace="prod",le="0.025"}"#).as_deref(), Some("1"));
}

/// The figures of the node about locks: waiting, then count and sum of waits and of holds.
fn of_locks(bench: &Bench) -> [String; 5] {
    ["waiting_runs", "wait_seconds_count", "wait_seconds_sum", "held_seconds_count", "held_seconds_sum"]
        .map(|name| bench.value(&format!(r#"cronward_lock_{name}{{namespace="prod"}}"#)).unwrap())
}

#[test]
fn an_attempt_waits_for_its_locks_until_it_holds_or_leaves_and_holds_them_until_it_leaves() {
    let bench = Bench::of_lockers(&["a"]);
    bench.hear("a", &bench::lock_waiting(1));
    bench.hear("b", &bench::lock_waiting(1));
    bench.hear("a", &bench::lock_waiting(1));
    assert_eq!(of_locks(&bench), ["2", "0", "0", "0", "0"], "told again it is the same wait");
    bench.hear("a", &bench::lock_held(1, 40, false));
    assert_eq!(of_locks(&bench), ["1", "1", "40", "0", "0"]);
    bench.clock.advance(Duration::from_secs(90));
    bench.hear("a", &bench::lock_held(1, 70, true));
    bench.hear("b", &bench::lock_left(1, LockRelease::Released));
    assert_eq!(of_locks(&bench), ["0", "1", "40", "0", "0"], "held again is no wait, and one in vain neither");
    bench.clock.advance(Duration::from_secs(30));
    bench.hear("a", &bench::lock_left(1, LockRelease::Released));
    bench.hear("a", &bench::lock_left(1, LockRelease::Released));
    assert_eq!(of_locks(&bench), ["0", "1", "40", "1", "120"]);
    bench.hear("a", &bench::lock_waiting(2));
    bench.hear("a", &Event::SettlementGivenUp { attempt: 2, outcome: Outcome::GivenBack });
    assert_eq!(of_locks(&bench)[0], "0", "who does not wait for the store is not told of leaving");
}

#[test]
fn a_run_that_lost_its_locks_is_counted_once_and_a_doubt_or_a_loss_before_the_start_is_not() {
    let bench = Bench::of_lockers(&["a"]);
    let lost = || LockLoss::to(1, None, false);
    assert_eq!(of_a(&bench, "locks_lost_total").as_deref(), Some("0"));
    bench.hear("a", &Event::LockLost(lost().before_the_start(true)));
    bench.hear("a", &Event::LockLost(LockLoss::in_doubt(1, false)));
    assert_eq!(of_a(&bench, "locks_lost_total").as_deref(), Some("0"));
    bench.hear("a", &Event::LockLost(lost()));
    bench.hear("a", &bench::lock_left(1, LockRelease::Overtaken { by: None }));
    assert_eq!(of_a(&bench, "locks_lost_total").as_deref(), Some("1"));
    bench.hear("a", &bench::lock_left(2, LockRelease::Overtaken { by: None }));
    assert_eq!(of_a(&bench, "locks_lost_total").as_deref(), Some("2"), "found out by the release alone");
    let overtaken = Some(LockRelease::Overtaken { by: None });
    let why = Some("the slot's end came first".to_owned());
    bench.hear("a", &Event::LockLeft(LockLeave::answered(3, overtaken, why)));
    assert_eq!(of_a(&bench, "locks_lost_total").as_deref(), Some("2"), "no command was started");
    // Two at once, as concurrency = "allow" lets them: each loses them, and then leaves.
    for attempt in [4, 5] {
        bench.hear("a", &Event::LockLost(LockLoss::to(attempt, None, false)));
    }
    for attempt in [4, 5] {
        bench.hear("a", &bench::lock_left(attempt, LockRelease::Overtaken { by: None }));
    }
    assert_eq!(of_a(&bench, "locks_lost_total").as_deref(), Some("4"));
}

#[test]
fn a_job_without_locks_has_no_series_about_them() {
    let bench = Bench::of(&["a"]);
    let series =
        bench.text().lines().filter(|line| line.starts_with("cronward_lock") && line.contains("job_name")).count();
    assert_eq!(series, 0);
}

#[test]
fn a_slot_is_done_by_its_record_or_by_its_verdict() {
    let bench = Bench::of(&["a"]);
    bench.hear("a", &Event::Settled { attempt: 1, outcome: Outcome::Failure });
    bench.hear("a", &Event::Settled { attempt: 2, outcome: Outcome::Success });
    bench.hear("a", &Event::Closed { verdict: Verdict::Missed });
    let slots =
        |verdict| bench.value(&format!(r#"cronward_slots_total{{namespace="prod",job_name="a",verdict="{verdict}"}}"#));
    assert_eq!((slots("done").as_deref(), slots("missed").as_deref()), (Some("1"), Some("1")));
}

#[test]
fn a_run_that_lost_its_lease_and_was_overtaken_overlapped_once_and_one_that_never_began_did_not() {
    let bench = Bench::of(&["a"]);
    let lost = |attempt, unstarted| Event::LeaseLost { attempt, to: None, to_attempt: None, killing: false, unstarted };
    bench.hear("a", &lost(1, true));
    assert_eq!(of_a(&bench, "overlaps_total").as_deref(), Some("0"));
    bench.hear("a", &lost(1, false));
    let by = cronward::NodeName::new("b").unwrap();
    bench.hear(
        "a",
        &Event::Overtaken { attempt: 1, by, by_attempt: 2, unstarted: false, overlap: cronward::slot::Overlap::Sure },
    );
    assert_eq!(of_a(&bench, "overlaps_total").as_deref(), Some("1"));
    bench.hear("a", &lost(3, false));
    assert_eq!(of_a(&bench, "overlaps_total").as_deref(), Some("2"));
}

#[test]
fn answers_are_counted_by_their_words() {
    let bench = Bench::of(&[]);
    for answer in [ClaimAnswer::Held, ClaimAnswer::Held, ClaimAnswer::Early] {
        bench.hear("unknown", &claimed(answer));
    }
    bench.hear("a", &Event::RenewalAnswered { answer: RenewalAnswer::Lost });
    let value = |series: &str| bench.value(&format!(r#"cronward_{series}"}}"#));
    assert_eq!(value(r#"claims_total{namespace="prod",result="held"#).as_deref(), Some("2"));
    assert_eq!(value(r#"claims_total{namespace="prod",result="early"#).as_deref(), Some("1"));
    assert_eq!(value(r#"claims_total{namespace="prod",result="claimed"#).as_deref(), Some("0"));
    assert_eq!(value(r#"renewals_total{namespace="prod",result="lost"#).as_deref(), Some("1"));
}

#[test]
fn a_reload_drops_jobs_that_left_and_keeps_what_was_counted_of_the_others() {
    let bench = Bench::of(&["a", "gone"]);
    bench.hear("a", &ended(Outcome::Failure, 1));
    bench.hear("gone", &ended(Outcome::Failure, 1));
    bench.plan(&["a", "new"]);
    bench.hear("gone", &ended(Outcome::Failure, 1));
    assert_eq!(runs_of_a(&bench, Outcome::Failure).as_deref(), Some("1"));
    let text = bench.text();
    assert!(!text.contains("gone") && text.contains(r#"job_name="new""#), "{text}");
}

#[test]
fn jobs_that_are_not_meant_or_disabled_have_no_series() {
    let [mut tagged, mut disabled] = ["tagged", "disabled"].map(bench::job);
    tagged.tags = vec!["erp".to_owned()];
    disabled.enabled = false;
    let jobs = [tagged, disabled, bench::job("other")].map(Arc::new);
    for (selection, listed) in [
        (JobSelection::All, vec!["other", "tagged"]),
        (JobSelection::None, vec![]),
        (JobSelection::Tagged("erp".to_owned()), vec!["tagged"]),
    ] {
        let bench = Bench::telling_of(selection.clone());
        bench.metrics.plan(&jobs, "c0ffee");
        let text = bench.text();
        let told = text.lines().filter(|line| line.starts_with("cronward_job_info{"));
        let names: Vec<_> = told.map(|line| line.split('"').nth(3).unwrap()).collect();
        assert_eq!(names, listed, "{selection:?}");
        let any = text.lines().any(|line| !line.starts_with('#') && line.contains("job_name="));
        assert_eq!(any, !listed.is_empty(), "{text}");
    }
}

#[test]
fn a_refused_reload_is_told_until_one_is_taken() {
    let bench = Bench::of(&["a"]);
    let value = |name: &str| bench.value(&format!(r#"cronward_{name}{{namespace="prod"}}"#)).unwrap();
    let taken = value("config_last_reload_success_timestamp_seconds");
    bench.clock.advance(Duration::from_secs(60));
    bench.metrics.event(None, &Event::ReloadRefused { error: "x".to_owned() });
    assert_eq!(value("config_last_reload_successful"), "0");
    assert_eq!(value("config_last_reload_success_timestamp_seconds"), taken);
    bench.plan(&["b"]);
    assert_eq!(value("config_last_reload_successful"), "1");
    assert_ne!(value("config_last_reload_success_timestamp_seconds"), taken);
}

#[test]
fn the_health_of_the_node_is_told_as_it_is() {
    let bench = Bench::of(&[]);
    let value = |name: &str| bench.value(&format!(r#"cronward_{name}{{namespace="prod"}}"#));
    assert_eq!((value("store_up").as_deref(), value("planner_beat_timestamp_seconds")), (Some("0"), None));
    let last_beat = Some(Now { mono: Mono::default(), wall: "2026-11-21T14:10:00.250Z".parse().unwrap() });
    let mut health = Health::default();
    (health.store_up, health.clock_offset_ms, health.draining) = (true, -2_500, true);
    (health.last_beat, health.notes_refused) = (last_beat, true);
    bench.health.send_replace(health);
    assert_eq!(value("store_up").as_deref(), Some("1"));
    assert_eq!(value("clock_offset_seconds").as_deref(), Some("-2.500"));
    assert_eq!(value("planner_beat_timestamp_seconds").as_deref(), Some("1795270200.250"));
    assert_eq!((value("draining").as_deref(), value("notes_refused").as_deref()), (Some("1"), Some("1")));
}
