//! The sentences, over records and notes made by hand; and the command, over a store in memory.

use chrono::{DateTime, TimeDelta, Utc};

use super::*;
use crate::admin::fixture::{self, NOON, Scene, at, node};
use crate::job::Namespace;
use crate::observe::view::NoStart;
use crate::slot::{Decision, Fence, Mark, Note, NotePage, Outcome, RunRecord, SlotRecord, Verdict, VerdictRecord};
use crate::store::{JobEntry, JobOrigin, NodeReport, Pause};

const OVER: &str = "2026-11-21T15:00:00Z";

pub(crate) fn page(name: &str, decisions: &[Decision]) -> NotePage {
    let begun = at("2026-11-21T12:00:00Z");
    let mut page = NotePage::new(format!("{name}.1"), node(name), Some("same".to_owned()), begun);
    for (second, decision) in decisions.iter().enumerate() {
        page.add(begun + TimeDelta::seconds(second.try_into().unwrap()), decision.clone());
    }
    page
}

pub(crate) fn about(record: SlotRecord, now: &str, pages: Vec<NotePage>) -> Facts {
    Facts {
        tick: Some(record.slot.start()),
        record,
        pages,
        unreadable: Vec::new(),
        queued: Queued::Nowhere,
        ring: Vec::new(),
        blocker: None,
        pause: None,
        job: fixture::entry("billing"),
        has_command: true,
        store: CommandLine::default(),
        known_since: Some(at("2026-11-01T00:00:00Z")),
        not_owed: None,
        orphaned: false,
        no_start: None,
        alive: vec![node("a")],
        silence: None,
        now: at(now),
        retention: fixture::KEPT,
        zone: None,
    }
}

/// The sentence, and below it the command.
fn said(facts: &Facts) -> String {
    let told = explain(facts);
    told.fix.map_or(told.sentence.clone(), |fix| format!("{}\n{fix}", told.sentence))
}

fn missed(record: SlotRecord) -> SlotRecord {
    let at: DateTime<Utc> = at("2026-11-21T13:00:00Z");
    SlotRecord { verdict: Some(VerdictRecord { verdict: Verdict::Missed, by: node("c"), at, attempt: 0 }), ..record }
}

const PAST: &str = "cronward trigger billing@2026-11-21T12Z --past";

#[test]
fn a_slot_that_is_done_says_who_did_it() {
    assert_eq!(
        said(&about(fixture::done(), OVER, vec![])),
        "the slot ran: node a completed it at 12:00:02 with attempt 1"
    );
    let marked = VerdictRecord { attempt: 0, by: node("alice"), ..fixture::done().verdict.unwrap() };
    let marked = SlotRecord { verdict: Some(marked), mark: Mark::Free, runs: vec![], attempts: 0, ..fixture::done() };
    assert_eq!(
        said(&about(marked, OVER, vec![])),
        "the slot counts as done: alice marked it as done at 12:00:02, without a run"
    );
}

fn queued(attempt: u32) -> Decision {
    let since = Some(at("2026-11-21T11:58:02Z"));
    let (locks, label) = ("db-heavy, gpu:1/4".to_owned(), "export@2026-11-21T11Z#1".to_owned());
    Decision::LockWaiting { attempt, locks, ahead: 2, by: node("c"), label, since }
}

#[test]
fn a_slot_that_waits_for_locks_says_for_which_and_who_holds_them() {
    let by = crate::slot::Holder { node: node("b"), attempt: 1 };
    let mark = Mark::Leased { by, token: fixture::token(1), remaining: std::time::Duration::from_secs(40) };
    let run = RunRecord { outcome: None, ended_at: None, started_at: None, ..fixture::done().runs.remove(0) };
    let record = SlotRecord { mark, runs: vec![run], verdict: None, ..fixture::done() };
    let pages = || vec![page("b", &[Decision::Claimed { attempt: 1 }, queued(1)])];
    let waits = about(record, "2026-11-21T12:10:00Z", pages());
    let told = said(&waits);
    assert!(
        told.starts_with(
            "the slot waits for db-heavy, gpu:1/4: 2 ahead, held by export@2026-11-21T11Z#1 on node c since 11:58:02; node b \
             has held the lease since "
        ),
        "{told}"
    );
    let mut held = pages();
    held[0].add(
        at("2026-11-21T12:09:00Z"),
        Decision::LockHeld { attempt: 1, locks: "db-heavy".to_owned(), fence: Fence(7) },
    );
    assert!(said(&Facts { pages: held, ..waits }).starts_with("the slot is running: "));
}

fn only_waited() -> SlotRecord {
    let why = "the slot ended while it waited for db-heavy".to_owned();
    let ended_at = Some(at("2026-11-21T13:00:00Z"));
    let run = RunRecord { attempt: 1, started_at: None, ended_at, ..fixture::done().runs.remove(0) };
    let run = RunRecord { outcome: Some(Outcome::GivenBack), message: Some(why), exit_code: None, ..run };
    SlotRecord { attempts: 1, forgiven: 1, mark: Mark::Free, runs: vec![run], ..fixture::done() }
}

#[test]
fn a_slot_that_only_waited_says_what_for() {
    let told =
        said(&about(missed(only_waited()), OVER, vec![page("a", &[Decision::Claimed { attempt: 1 }, queued(1)])]));
    let expected = "the slot did not run: attempt 1 on node a was given back at 13:00:00: the slot ended while it waited for \
                    db-heavy";
    assert_eq!(told, format!("{expected}\n{PAST}"));
    let pages = vec![page("a", &[queued(1)]), page("b", &[Decision::store_away("x")])];
    let told = said(&about(missed(only_waited()), OVER, pages));
    assert_eq!(told, format!("{expected}; then node b could not use the store (x)\n{PAST}"), "who came later");
}

#[test]
fn an_attempt_that_was_given_back_is_told_with_its_reason_and_was_none_without_success() {
    let open = SlotRecord { verdict: None, ..only_waited() };
    let told = said(&about(open.clone(), NOON, vec![]));
    let expected = "the slot is not done yet: attempt 1 on node a was given back: the slot ended while it waited for db-heavy; 0 of 3";
    assert!(told.starts_with(expected), "{told}");
    let second = RunRecord { attempt: 2, token: fixture::token(2), ..fixture::done().runs.remove(0) };
    let runs = vec![open.runs[0].clone(), second];
    let told = said(&about(SlotRecord { runs, attempts: 2, ..fixture::done() }, OVER, vec![]));
    assert!(!told.contains("without success"), "{told}");
}

#[test]
fn a_slot_that_succeeded_twice_is_not_silent_about_it() {
    let twice: Vec<RunRecord> = [1, 2]
        .map(|attempt| RunRecord { attempt, token: fixture::token(attempt), ..fixture::done().runs.remove(0) })
        .into();
    let record = SlotRecord { runs: twice, attempts: 2, ..fixture::done() };
    assert!(said(&about(record, OVER, vec![])).contains("2 attempts succeeded"));
}

#[test]
fn a_slot_that_runs_says_where() {
    assert_eq!(
        said(&about(fixture::running(), NOON, vec![])),
        "the slot is running: node b has held the lease since 12:01:00 with attempt 2; the lease expires in 41s unless renewed"
    );
}

#[test]
fn a_lease_that_outlasts_its_slot_is_not_called_a_run_of_the_slot() {
    assert_eq!(
        said(&about(fixture::running(), OVER, vec![])),
        "the slot ended at 13:00:00 and is not done: node b has held the lease since 12:01:00 with attempt 2; it still runs the command, \
         or it died: unless renewed, the lease expires in 41s"
    );
}

#[test]
fn a_slot_whose_node_was_lost_says_so_and_how_to_mend_it() {
    let lost = missed(SlotRecord { attempts: 1, runs: vec![fixture::begun(1, "a")], ..fixture::untouched() });
    assert_eq!(
        said(&about(lost.clone(), OVER, vec![])),
        format!(
            "the slot was missed: attempt 1 of 3 did not succeed, no retry before the slot ended at 13:00:00; node a claimed attempt 1 at 12:00:00 and \
             did not report a result\n{PAST}"
        )
    );
    let away = page("b", &[Decision::store_away("redis://h: claim: no answer within 500ms")]);
    let told = said(&about(lost, OVER, vec![away]));
    assert!(
        told.contains(
            "did not report a result; then node b could not use the store (redis://h: claim: no answer within 500ms)\n"
        ),
        "{told}"
    );
}

#[test]
fn a_slot_whose_attempts_are_used_up_says_how_the_last_one_ended() {
    let sentence = "the slot failed: all 3 attempts are exhausted; attempt 3 on node c ended with timeout";
    let reset = "cronward reset billing@2026-11-21T12Z";
    let opened = format!("{sentence}\n{reset} && {PAST}");
    assert_eq!(said(&about(fixture::failed(), OVER, vec![])), opened, "without the reset it would be refused");
    assert_eq!(said(&about(fixture::failed(), NOON, vec![])), format!("{sentence}\n{reset}"));
}

#[test]
fn a_slot_that_waits_says_for_how_long() {
    assert_eq!(
        said(&about(fixture::waiting(), NOON, vec![])),
        "the slot is not done yet: attempt 1 on node a ended with exit 1; the next attempt may start in 8s"
    );
    let nobody = Facts { alive: vec![], ..about(SlotRecord { mark: Mark::Free, ..fixture::waiting() }, NOON, vec![]) };
    assert_eq!(
        said(&nobody),
        "the slot is not done: attempt 1 on node a ended with exit 1, and no node is alive to retry\n\
         cronward trigger billing@2026-11-21T12Z"
    );
}

#[test]
fn a_pause_is_named_with_who_and_how_to_end_it() {
    for record in [fixture::untouched(), fixture::waiting()] {
        let paused = Facts { pause: Some(fixture::pause()), ..about(record, NOON, vec![]) };
        assert_eq!(
            said(&paused),
            "the slot does not run: alice on ops-1 paused the job at 11:00:00 (node b is\ngone), until the job is resumed\n\
             cronward resume billing"
        );
    }
    let skipped = VerdictRecord { verdict: Verdict::Skipped, ..missed(fixture::untouched()).verdict.unwrap() };
    let skipped = SlotRecord { verdict: Some(skipped), ..fixture::untouched() };
    let ended = Pause { ended: Some(fixture::audit("resume")), ..fixture::pause() };
    let skipped = Facts { pause: Some(fixture::pause()), ..about(skipped, OVER, vec![]) };
    // A paused job does not run what is asked for.
    assert!(said(&skipped).ends_with("\ncronward resume billing && cronward trigger billing@2026-11-21T12Z --past"));
    let skipped = Facts { pause: Some(ended), ..skipped };
    assert!(
        said(&skipped).starts_with("the slot was skipped: alice on ops-1 paused the job at 11:00:00: "),
        "{}",
        said(&skipped)
    );
    assert!(said(&skipped).ends_with(PAST));
}

#[test]
fn a_slot_that_nobody_claimed_says_what_kept_each_node_from_it() {
    let other = || Some(node("z"));
    for (decision, reason) in [
        (Decision::store_away("x"), "nodes a and b could not use the store (x)"),
        (Decision::Blocked { by: other() }, "nodes a and b found another slot of the job still running"),
        (Decision::TooLate, "nodes a and b came too late: the start deadline had passed"),
        (Decision::Shed, "nodes a and b had no capacity: the slot ended before the command could start"),
        (Decision::Early, "nodes a and b claimed the slot before its start by the store's clock"),
        (Decision::Closed, "nodes a and b claimed the slot after its end by the store's clock"),
        (
            Decision::NotSelected { wanted: "zone=eu-1".to_owned() },
            "only_on requires zone=eu-1, and nodes a and b do not have that label",
        ),
    ] {
        let pages = vec![page("a", std::slice::from_ref(&decision)), page("b", &[decision])];
        let told = said(&about(missed(fixture::untouched()), OVER, pages));
        assert_eq!(told, format!("the slot did not run: {reason}\n{PAST}"));
    }
}

#[test]
fn no_other_attempt_is_announced_where_no_node_makes_one() {
    let waits = about(fixture::waiting(), NOON, vec![]);
    assert!(said(&waits).contains("the next attempt may start in"), "{}", said(&waits));
    let late = Facts { no_start: Some(NoStart::TooLate), ..waits };
    let told = "the slot is not done: attempt 1 on node a ended with exit 1; no node tries again by itself: the start deadline has passed\n\
                cronward trigger billing@2026-11-21T12Z";
    assert!(said(&late).starts_with(told), "{}", said(&late));
}

#[test]
fn runs_that_lie_apart_are_not_said_to_have_overlapped() {
    let run = |attempt: u32, from: &str, to: &str| RunRecord {
        claimed_at: at(from),
        ended_at: Some(at(to)),
        outcome: Some(Outcome::Success),
        ..fixture::begun(attempt, "a")
    };
    let twice = |second: &str| {
        let runs = vec![run(1, "2026-11-21T12:00:00Z", "2026-11-21T12:00:05Z"), run(2, second, "2026-11-21T12:00:40Z")];
        said(&about(SlotRecord { attempts: 2, runs, ..fixture::done() }, NOON, vec![]))
    };
    assert!(twice("2026-11-21T12:00:06Z").ends_with("; 2 attempts succeeded, one after the other"));
    assert!(twice("2026-11-21T12:00:05Z").ends_with("; 2 attempts succeeded: the runs may have overlapped"));
}

#[test]
fn an_end_that_a_node_did_not_see_is_told_by_its_bounds_and_so_is_an_overlap() {
    let said_of = |by: &str| {
        let first = RunRecord {
            claimed_at: at("2026-11-21T12:00:00Z"),
            started_at: Some(at("2026-11-21T12:00:00Z")),
            ended_after: Some(at("2026-11-21T12:00:01Z")),
            ended_at: Some(at(by)),
            cpu_ms: Some(20),
            outcome: Some(Outcome::Success),
            ..fixture::begun(1, "a")
        };
        let second = RunRecord {
            claimed_at: at("2026-11-21T12:00:04Z"),
            started_at: Some(at("2026-11-21T12:00:04Z")),
            ended_at: Some(at("2026-11-21T12:00:05Z")),
            outcome: Some(Outcome::Success),
            ..fixture::begun(2, "b")
        };
        let record = SlotRecord { attempts: 2, runs: vec![first, second], ..fixture::done() };
        let overtaken = Decision::Overtaken { attempt: 1, by: node("b") };
        let facts = about(record, NOON, vec![page("a", &[overtaken])]);
        let texts: Vec<String> = timeline(&facts).into_iter().map(|entry| entry.text).collect();
        (said(&facts), texts)
    };
    let (sentence, texts) = said_of("2026-11-21T12:00:08Z");
    let still = "attempt 1 ended between 12:00:01 and 12:00:08: node a stood still";
    assert!(sentence.ends_with(&format!("the runs may have overlapped; {still}")), "{sentence}");
    let ended = "attempt 1 ended between 12:00:01 and 12:00:08 (this node stood still; it used 20 ms of processor time): success";
    assert!(texts.iter().any(|text| text == ended), "{texts:#?}");
    assert!(
        texts.iter().any(|text| text == "may have run concurrently with b: the slot ran more than once"),
        "{texts:#?}"
    );
    let (sentence, texts) = said_of("2026-11-21T12:00:03Z");
    assert!(sentence.contains("2 attempts succeeded, one after the other; attempt 1 ended between"), "{sentence}");
    let apart = "the slot ran more than once: b ran it too, one run after the other";
    assert!(texts.iter().any(|text| text == apart), "{texts:#?}");
}

#[test]
fn without_any_note_the_record_alone_explains() {
    let told = said(&about(missed(fixture::untouched()), OVER, vec![]));
    assert_eq!(
        told,
        format!(
            "the slot did not run: {}; node c recorded the slot as missed at 13:00:00\n{PAST}",
            super::english::UNKNOWN_REASON
        )
    );
    let young = Facts { known_since: Some(at(OVER)), ..about(fixture::untouched(), OVER, vec![]) };
    assert_eq!(said(&young), "the slot did not run: the job was first registered at 15:00:00");
    let in_it = Facts { not_owed: Some(at("2026-11-21T12:06:00Z")), ..about(fixture::untouched(), OVER, vec![]) };
    let owed = "the job is not due before 12:06:00, when the cluster first knew it";
    assert_eq!(said(&in_it), format!("the slot did not run: {owed}\n{PAST}"));
    let lasts = Facts { not_owed: Some(at("2026-11-21T12:06:00Z")), ..about(fixture::untouched(), NOON, vec![]) };
    assert_eq!(said(&lasts), format!("the slot does not run: {owed}\ncronward trigger billing@2026-11-21T12Z"));
    let old = about(fixture::untouched(), "2026-11-28T13:00:01Z", vec![]);
    assert_eq!(said(&old), "nothing is known of the slot any more: records are kept for 7d");
    let kept = about(fixture::untouched(), "2026-11-28T13:00:00Z", vec![]);
    assert!(said(&kept).starts_with("the slot did not run: no node was alive"), "{}", said(&kept));
    let idle = Facts { tick: None, ..about(fixture::untouched(), OVER, vec![]) };
    assert_eq!(said(&idle), "the slot did not run: the schedule 0 * * * * does not fire in it");
    let unknown = Facts { known_since: None, ..about(fixture::untouched(), OVER, vec![]) };
    assert_eq!(said(&unknown), "the slot did not run: no node has ever run this job\ncronward run");
}

/// The same of a job that no daemon plans.
fn unplanned(origin: JobOrigin, record: SlotRecord, now: &str) -> Facts {
    let job = JobEntry { enabled: false, origin, ..fixture::entry("billing") };
    Facts { job, has_command: false, alive: vec![], ..about(record, now, vec![]) }
}

#[test]
fn a_job_that_only_a_crontab_knows_is_fixed_by_its_own_line() {
    let said = |record: SlotRecord, now: &str| said(&unplanned(JobOrigin::Crontab, record, now));
    let line = "run the crontab's line manually, on any of its machines";
    let nobody = "the job runs only from a crontab, and no crontab has started it in this slot";
    assert_eq!(said(fixture::untouched(), NOON), format!("the slot has not run yet: {nobody}\n{line}"));
    assert_eq!(
        said(SlotRecord { mark: Mark::Free, ..fixture::waiting() }, NOON),
        format!(
            "the slot is not done yet: attempt 1 on node a ended with exit 1; 1 of 3 attempts are used, the next attempt starts when its \
             crontab starts it again\n{line}"
        )
    );
    assert_eq!(
        said(fixture::waiting(), NOON),
        "the slot is not done yet: attempt 1 on node a ended with exit 1; the next attempt may start in 8s, when its crontab \
         starts it again"
    );
    assert_eq!(
        said(fixture::failed(), NOON),
        "the slot failed: all 3 attempts are exhausted; attempt 3 on node c ended with timeout; after a reset the slot runs when its \
         crontab starts it again\ncronward reset billing@2026-11-21T12Z"
    );
}

#[test]
fn of_a_slot_that_is_over_no_command_is_told_that_ends_with_a_refusal() {
    let by_hand = "if the work is still needed, do it manually, then `cronward mark-done billing@2026-11-21T12Z`";
    for origin in [JobOrigin::Crontab, JobOrigin::Service] {
        for record in [fixture::untouched(), fixture::failed(), SlotRecord { mark: Mark::Free, ..fixture::waiting() }] {
            let told = explain(&unplanned(origin, record, OVER));
            assert_eq!(told.fix.as_deref(), Some(by_hand), "{}", told.sentence);
            assert!(!told.sentence.contains("file") && !told.sentence.contains("alive"), "{}", told.sentence);
        }
    }
    let young = Facts { known_since: Some(at(OVER)), ..unplanned(JobOrigin::Crontab, fixture::untouched(), OVER) };
    assert_eq!(said(&young), "the slot did not run: the job was first registered at 15:00:00");
}

#[test]
fn a_job_that_only_a_service_knows_waits_for_its_next_call() {
    let said = |record: SlotRecord| said(&unplanned(JobOrigin::Service, record, NOON));
    let call = "\nlet the service call for the slot: the next call runs it";
    let nobody = "the job runs only in a service, and no process of the service has called for this slot";
    assert_eq!(said(fixture::untouched()), format!("the slot has not run yet: {nobody}{call}"));
    let retrying = said(SlotRecord { mark: Mark::Free, ..fixture::waiting() });
    assert!(retrying.contains("the next attempt starts when its service calls for it again"), "{retrying}");
    assert!(retrying.ends_with(call), "{retrying}");
    assert!(said(fixture::failed()).ends_with("again\ncronward reset billing@2026-11-21T12Z"));
}

#[test]
fn what_kept_a_crontab_from_it_and_a_slot_to_come_are_told_of_it_too() {
    let pages = vec![page("a", &[Decision::store_away("x")])];
    let away = Facts { pages, ..unplanned(JobOrigin::Crontab, fixture::untouched(), NOON) };
    assert!(
        said(&away).starts_with("the slot has not run yet: node a could not use the store (x)\nrun the crontab"),
        "{}",
        said(&away)
    );
    let soon = unplanned(JobOrigin::Crontab, fixture::untouched(), "2026-11-21T11:55:00Z");
    assert_eq!(said(&soon), "the slot has not started: it starts at 12:00:00, in 5m");
}

#[test]
fn what_is_told_to_be_pasted_goes_to_the_same_store_and_asks_for_a_file_that_has_the_command() {
    let typed = CommandLine {
        config: Some("my jobs.toml".to_owned()),
        store: Some("redis://:secret@h/".to_owned()),
        namespace: Some(Namespace::new("prod").unwrap()),
    };
    let told = |facts: Facts| explain(&Facts { store: typed.clone(), ..facts }).fix.unwrap();
    let rest = "--store 'redis://:***@h/' --namespace prod";
    assert_eq!(
        told(about(fixture::failed(), NOON, vec![])),
        format!("cronward reset billing@2026-11-21T12Z --config 'my jobs.toml' {rest}")
    );
    let reset = format!("cronward reset billing@2026-11-21T12Z --config 'my jobs.toml' {rest}");
    let over = || about(fixture::failed(), OVER, vec![]);
    assert_eq!(told(over()), format!("{reset} && {PAST} --config 'my jobs.toml' {rest}"));
    assert_eq!(told(Facts { has_command: false, ..over() }), format!("{reset} && {PAST} --config FILE {rest}"));
    let paused = Facts { pause: Some(fixture::pause()), ..about(fixture::untouched(), NOON, vec![]) };
    assert_eq!(told(paused), format!("cronward resume billing --config 'my jobs.toml' {rest}"));
}

#[test]
fn a_slot_that_may_still_run_says_what_it_waits_for() {
    let soon = Facts { tick: Some(at("2026-11-21T12:30:00Z")), ..about(fixture::untouched(), NOON, vec![]) };
    assert_eq!(said(&soon), "the slot has not run yet: it is scheduled for 12:30:00, in 18m");
    let late = about(fixture::untouched(), NOON, vec![]);
    assert!(
        said(&late).starts_with("the slot has not run yet: it was scheduled 12m ago, and no node has claimed it\n")
    );
    let nobody = Facts { alive: vec![], ..late };
    assert_eq!(said(&nobody), "the slot has not run: it was scheduled 12m ago, and no node is alive\ncronward run");
    let mut off = about(fixture::untouched(), NOON, vec![]);
    off.job.enabled = false;
    assert!(said(&off).contains("not enabled"));
    // Nobody is advised to run what was switched off.
    let over = Facts { now: at("2026-11-21T14:00:00Z"), ..off };
    assert_eq!(said(&over), "the slot did not run: the job was not enabled in the file that was registered last");
}

#[test]
fn what_happened_at_one_instant_is_told_in_the_order_of_cause() {
    let began = fixture::at("2026-11-21T12:00:00Z");
    let run = |attempt, outcome| RunRecord {
        claimed_at: began,
        ended_at: Some(began),
        outcome: Some(outcome),
        exit_code: Some(1),
        ..fixture::begun(attempt, "a")
    };
    let record = SlotRecord {
        attempts: 2,
        runs: vec![run(1, Outcome::Failure), run(2, Outcome::Failure)],
        ..fixture::untouched()
    };
    let note = |decision| Note { at: began, times: 1, until: None, decision };
    let mut looked = page("b", &[]);
    looked.notes = vec![note(Decision::Held { by: Some(node("a")) }), note(Decision::Ticked { tick: began })];
    let told = timeline(&about(record, NOON, vec![looked]));
    let told: Vec<_> = told.iter().map(|entry| (entry.what, entry.attempt)).collect();
    assert_eq!(
        told,
        [
            ("ticked", None),
            ("claimed", Some(1)),
            ("ended", Some(1)),
            ("claimed", Some(2)),
            ("ended", Some(2)),
            ("held", None)
        ]
    );
}

#[test]
fn a_job_that_left_the_file_of_every_live_node_is_named_as_the_reason() {
    for (record, now, word) in [(fixture::untouched(), NOON, "does"), (missed(fixture::untouched()), OVER, "did")] {
        let mut facts = Facts { orphaned: true, ..about(record, now, vec![]) };
        facts.job.planned = Some(at("2026-11-21T11:30:00Z"));
        assert_eq!(
            said(&facts),
            format!(
                "the slot {word} not run: the job is not in any live node's file; a node last had it there at 11:30:00, or within the hour after\ncronward forget billing"
            )
        );
    }
}

#[tokio::test]
async fn the_store_is_asked_for_record_notes_pause_and_who_is_alive() {
    let mut scene = Scene::at("2026-11-21T12:00:00Z");
    scene.register("billing", "0 * * * *").await;
    scene.fail("billing", "a").await;
    let slot = scene.request("billing", "a").slot;
    scene.store.note(&[(slot, page("b", &[Decision::Backoff]))]).await.unwrap();
    let session = scene.session().await;
    let found = facts(&session, &"billing".parse().unwrap(), CommandLine::default()).await.unwrap();
    assert_eq!((found.pages.len(), found.record.attempts, found.alive.len()), (1, 1, 0));
    assert_eq!(found.tick, Some(at("2026-11-21T12:00:00Z")));
    let unknown = facts(&session, &"biling".parse().unwrap(), CommandLine::default()).await.err().unwrap();
    assert_eq!(unknown.to_string(), "no job biling: did you mean billing?");
}

#[tokio::test]
async fn of_a_slot_in_which_no_node_was_alive_exactly_that_is_said() {
    let mut scene = Scene::at("2026-11-21T11:50:00Z");
    scene.register("billing", "0 * * * *").await;
    scene.node("a", &["billing"]).await;
    scene.pass(5);
    scene.node("b", &["billing"]).await;
    scene.pass(115);
    let told = async |scene: &Scene, slot: &str| {
        let wanted = format!("billing@{slot}").parse().unwrap();
        explain(&facts(&scene.session().await, &wanted, CommandLine::default()).await.unwrap()).sentence
    };
    assert_eq!(
        told(&scene, "2026-11-21T12Z").await,
        "the slot did not run: no node reached the store from its scheduled time to its end (last heartbeat at 11:55:00)"
    );
    // When it was due nodes were alive.
    assert!(told(&scene, "2026-11-21T11Z").await.contains(english::UNKNOWN_REASON));
    // A node begins, and knows since when there was none; the name of the node that was alive until then is its own.
    let since = at("2026-11-21T11:55:00Z");
    let job_hashes = [(fixture::entry("billing").name, String::new())].into();
    let report =
        NodeReport { silent_since: Some(since), job_hashes, ..fixture::report("b", at("2026-11-21T13:50:00Z")) };
    scene.store.heartbeat(&report).await.unwrap();
    let closing = told(&scene, "2026-11-21T12Z").await;
    assert_eq!(
        closing,
        "the slot did not run: no node reached the store from its scheduled time to its end (last heartbeat at 11:55:00, next node started at \
         13:50:00)"
    );
    // Without that, nobody knows what the instances before did.
    scene.store.heartbeat(&NodeReport { silent_since: None, ..report }).await.unwrap();
    assert!(told(&scene, "2026-11-21T12Z").await.contains(english::UNKNOWN_REASON));
}

#[tokio::test]
async fn a_slot_that_an_older_one_blocks_names_it_and_when_its_lease_expires() {
    let mut scene = Scene::at("2026-11-21T12:59:30Z");
    scene.register("billing", "0 * * * *").await;
    scene.claim("billing", "b").await;
    scene.clock.advance(std::time::Duration::from_secs(40));
    let slot = scene.request("billing", "a").slot;
    scene.store.note(&[(slot, page("a", &[Decision::Blocked { by: Some(node("b")) }]))]).await.unwrap();
    let read = async |scene: &Scene| {
        let session = scene.session().await;
        said(&facts(&session, &"billing".parse().unwrap(), CommandLine::default()).await.unwrap())
    };
    assert_eq!(
        read(&scene).await,
        "the slot has not run yet: node a found another slot of the job still running: billing@2026-11-21T12Z is held by \
         node b; its lease expires at 13:00:30, in 20s, unless renewed"
    );
    scene.clock.advance(std::time::Duration::from_secs(30));
    let told = read(&scene).await;
    assert!(told.contains("another slot of the job still running\ncronward trigger "), "{told}");
}

#[test]
fn a_slot_that_was_marked_after_a_reset_counts_as_done_by_that_person() {
    let marked = VerdictRecord { attempt: 0, by: node("alice"), ..fixture::done().verdict.unwrap() };
    let record = SlotRecord { verdict: Some(marked), mark: Mark::Free, ..fixture::done() };
    assert_eq!(
        said(&about(record, OVER, vec![])),
        "the slot counts as done: alice marked it as done at 12:00:02; an attempt had succeeded before a reset"
    );
}

#[test]
fn the_recorded_cause_stands_beside_the_exit_code() {
    let run = RunRecord {
        ended_at: Some(at("2026-11-21T12:00:05Z")),
        outcome: Some(Outcome::Failure),
        exit_code: Some(126),
        message: Some("no such user: deploy".to_owned()),
        ..fixture::begun(3, "a")
    };
    let facts = about(SlotRecord { runs: vec![run], ..fixture::failed() }, NOON, vec![]);
    assert!(said(&facts).contains("attempt 3 on node a ended with exit 126: no such user: deploy"), "{}", said(&facts));
    assert!(timeline(&facts).iter().any(|entry| entry.text == "attempt 3 ended: exit 126: no such user: deploy"));
}
