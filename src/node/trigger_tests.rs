//! What a node does when an operator asks it to run a slot now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;

use crate::clock::{Clock, ManualClock, Now, later};
use crate::job::{JobName, JobSpec, Program};
use crate::machine::End;
use crate::node::action::{Action, Looked, Question, Report, Start};
use crate::node::machine::NodeMachine;
use crate::node::plan::{Identity, Plan, Upkeep};
use crate::node::{TriggerRefusal, TriggerRequest};
use crate::slot::{Audit, Holder, Period, Slot, SlotKey, Trigger, Verdict};
use crate::store::{Applied, Closing, ErrorKind, HeartbeatReply, NodeEntry, NodeReport, Op, StoreError};
use crate::wake::{Wake, WakeKind};

fn now() -> Now {
    ManualClock::at("2026-11-21T14:10:00Z".parse().unwrap()).now()
}

/// An hourly job that was changed so.
fn job(name: &str, change: impl FnOnce(&mut JobSpec)) -> JobSpec {
    let mut spec = JobSpec::new(name.parse().unwrap(), "30 * * * *", Program::Direct(vec!["true".to_owned()]));
    change(&mut spec);
    spec
}

/// A node in zone x that has this job in its file.
fn node(spec: JobSpec) -> NodeMachine {
    let identity = Identity {
        name: "a".parse().unwrap(),
        instance: "i1".to_owned(),
        labels: BTreeMap::from([("zone".to_owned(), "x".to_owned())]),
        started_at: now().wall,
    };
    let upkeep = Upkeep { heartbeat: Duration::from_secs(10), purges: false, hints: true };
    let plan = Plan { jobs: vec![Arc::new(spec)], ..Plan::default() };
    let mut machine = NodeMachine::new(identity, upkeep, plan, now()).unwrap();
    starts(&mut machine);
    machine
}

fn hourly() -> NodeMachine {
    node(job("a", |_| ()))
}

fn in_zone(zone: &str) -> impl FnOnce(&mut JobSpec) {
    move |spec| drop(spec.only_on.insert("zone".to_owned(), zone.to_owned()))
}

fn slot(key: &str, end: &str) -> Slot {
    Slot::parse("a", key, end).unwrap()
}

fn current() -> Slot {
    slot("2026-11-21T14Z", "2026-11-21T15Z")
}

fn previous() -> Slot {
    slot("2026-11-21T13Z", "2026-11-21T14Z")
}

fn audit() -> Audit {
    let text = |text: &str| text.to_owned();
    Audit { verb: text("trigger"), who: text("ana"), host: text("a, http from ::1"), why: text("now"), at: now().wall }
}

fn starts(machine: &mut NodeMachine) -> Vec<Start> {
    let actions = std::iter::from_fn(|| machine.poll_action());
    actions.filter_map(|action| if let Action::Start(start) = action { Some(start) } else { None }).collect()
}

fn ask(machine: &mut NodeMachine, slot: Slot, past: bool) -> Result<Vec<Start>, TriggerRefusal> {
    machine.handle_trigger(now(), TriggerRequest { slot, past, audit: audit() })?;
    Ok(starts(machine))
}

#[test]
fn a_slot_that_is_asked_for_is_driven_at_once_with_who_asked() {
    let mut machine = hourly();
    let start = ask(&mut machine, current(), false).unwrap().pop().unwrap();
    assert_eq!((&start.slot, start.trigger, start.past), (&current(), Trigger::Manual, false));
    assert_eq!((start.scheduled_at, start.audit), (now().wall, Some(audit())));
}

#[test]
fn a_slot_that_has_ended_is_run_only_where_that_was_asked_for() {
    let mut machine = hourly();
    assert_eq!(ask(&mut machine, previous(), false).unwrap_err(), TriggerRefusal::Over);
    let start = ask(&mut machine, previous(), true).unwrap().pop().unwrap();
    assert_eq!((start.slot, start.past), (previous(), true));
    let next = slot("2026-11-21T15Z", "2026-11-21T16Z");
    assert_eq!(ask(&mut machine, next, true).unwrap_err(), TriggerRefusal::Early);
}

/// The store answers for the first time: it knows no other node, and this one's jobs since now.
fn meet_store(machine: &mut NodeMachine) {
    machine.handle_beat(now());
    machine.handle_report(now(), Report::Nodes { sent: now(), received: now(), reply: Ok((now().wall, Vec::new())) });
    let reply = Ok(machine.plan().registry(now().wall, |_| now().wall));
    machine.handle_report(now(), Report::Registered { plan: 0, reply });
}

/// The slots whose verdict the machine asks for at its next beat.
fn asks_to_close(machine: &mut NodeMachine) -> Vec<Slot> {
    asks_to_close_at(machine, now())
}

fn asks_to_close_at(machine: &mut NodeMachine, now: Now) -> Vec<Slot> {
    machine.handle_beat(now);
    let actions = std::iter::from_fn(|| machine.poll_action());
    let asked = |action| match action {
        // Of the three attempts that the job has nobody makes the others.
        Action::Ask(Question::Close { slot, max_attempts: 1 }) => Some(slot),
        _ => None,
    };
    actions.filter_map(asked).collect()
}

/// What the machine is told of a verdict that it has asked for.
fn closed(machine: &mut NodeMachine, slot: Slot, reply: Result<Closing, StoreError>) {
    machine.handle_report(now(), Report::Closed { slot, reply });
}

#[test]
fn a_past_slot_that_was_run_without_success_is_asked_about_once_more() {
    let wake = Wake::Slot { job: "a".parse().unwrap(), key: previous().key(), what: WakeKind::Released };
    for (end, is_heard, wanted) in [
        (End::Exhausted, false, vec![previous()]),
        // The node hears its own word that it has let go of the slot.
        (End::Exhausted, true, vec![previous()]),
        (End::Closed, false, vec![previous()]),
        (End::Left, false, vec![previous()]),
        (End::Done, false, vec![]),
    ] {
        for enabled in [true, false] {
            let mut machine = node(job("a", |spec| spec.enabled = enabled));
            meet_store(&mut machine);
            let start = ask(&mut machine, previous(), true).unwrap().pop().unwrap();
            assert_eq!(asks_to_close(&mut machine), []);
            if is_heard {
                machine.handle_wake(now(), &wake);
            }
            machine.handle_end(now(), start.slot, start.id, start.scheduled_at, end);
            assert_eq!(asks_to_close(&mut machine), wanted, "{end:?}, {is_heard}, {enabled}");
            assert_eq!(asks_to_close(&mut machine), [], "it is on its way");
            // One that lasts, too, may be asked for whether it is over or not.
            let start = ask(&mut machine, current(), true).unwrap().pop().unwrap();
            machine.handle_end(now(), start.slot, start.id, start.scheduled_at, end);
            assert_eq!(asks_to_close(&mut machine), [], "it is closed when it is over, or by nobody");
        }
    }
}

#[test]
fn a_past_slot_without_a_verdict_is_asked_about_until_it_has_one_and_is_nobody_elses() {
    let mut machine = hourly();
    meet_store(&mut machine);
    let start = ask(&mut machine, previous(), true).unwrap().pop().unwrap();
    machine.handle_lost(&start.slot, start.id);
    assert_eq!(asks_to_close(&mut machine), [previous()]);
    let running = Closing::Running { by: Holder { node: "b".parse().unwrap(), attempt: 1 }, remaining: Duration::ZERO };
    closed(&mut machine, previous(), Ok(running));
    assert_eq!(asks_to_close(&mut machine), [], "not before the lease is over");
    let then = Now { mono: now().mono + Duration::from_secs(2), wall: later(now().wall, Duration::from_secs(2)) };
    machine.handle_beat(then);
    let asked = std::iter::from_fn(|| machine.poll_action());
    let asked = asked.filter(|action| matches!(action, Action::Ask(Question::Close { max_attempts: 1, .. })));
    assert_eq!(asked.count(), 1);
    assert_eq!(machine.last_report(then).unwrap().behind, BTreeMap::new(), "who comes next need not go back that far");
    // No wait that was measured by a clock that has jumped since is kept.
    let running = Closing::Running {
        by: Holder { node: "b".parse().unwrap(), attempt: 1 },
        remaining: Duration::from_secs(86_400),
    };
    closed(&mut machine, previous(), Ok(running));
    machine.handle_beat(Now { wall: later(then.wall, Duration::from_secs(3_600)), ..then });
    let asked = std::iter::from_fn(|| machine.poll_action());
    let asked = asked.filter(|action| matches!(action, Action::Ask(Question::Close { max_attempts: 1, .. })));
    assert_eq!(asked.count(), 1);
    closed(&mut machine, previous(), Ok(Closing::First(Verdict::Failed)));
    let told = std::iter::from_fn(|| machine.poll_action());
    assert_eq!(told.filter(|action| matches!(action, Action::Announce(_, Verdict::Failed))).count(), 1);
}

#[test]
fn a_slot_that_is_over_and_that_nobody_asked_for_is_nobodys_to_close() {
    let mut machine = hourly();
    meet_store(&mut machine);
    // As of a node whose clock was an hour behind: it claimed the slot, and the store says that it is over.
    machine.handle_end(now(), previous(), 1, now().wall, End::Closed);
    assert_eq!(asks_to_close(&mut machine), []);
}

#[test]
fn a_node_that_may_not_run_the_slot_says_so_and_that_another_may() {
    for (spec, wanted) in [
        (job("b", |_| ()), TriggerRefusal::NotInFile),
        (job("a", in_zone("y")), TriggerRefusal::OtherNodes),
        (job("a", |spec| spec.period = Period::Day), TriggerRefusal::NoSuchSlot),
    ] {
        let refusal = ask(&mut node(spec), current(), false).unwrap_err();
        assert!(refusal == wanted && refusal.is_of_this_node(), "{refusal:?}");
    }
    assert!(ask(&mut node(job("a", in_zone("x"))), current(), false).is_ok());
}

#[test]
fn a_job_that_is_disabled_runs_when_it_is_asked_for() {
    let mut machine = node(job("a", |spec| spec.enabled = false));
    meet_store(&mut machine);
    let start = ask(&mut machine, current(), false).unwrap().pop().unwrap();
    machine.handle_end(now(), start.slot, start.id, start.scheduled_at, End::Closed);
    assert_eq!(asks_to_close(&mut machine), []);
    assert_eq!(asks_to_close_at(&mut machine, now().plus(Duration::from_secs(3_601))), [current()]);
}

/// The plan was refused for its content; the file is corrected, and read again.
#[test]
fn another_plan_is_registered_at_once_after_one_that_was_refused() {
    let mut machine = hourly();
    machine.handle_beat(now());
    machine.handle_report(now(), Report::Nodes { sent: now(), received: now(), reply: Ok((now().wall, Vec::new())) });
    let error = StoreError::new(ErrorKind::Content, Applied::No, Op::Register, "s:", "too large");
    machine.handle_report(now(), Report::Registered { plan: 0, reply: Err(error) });
    let registers = |machine: &mut NodeMachine| {
        let actions = std::iter::from_fn(|| machine.poll_action());
        actions.filter(|action| matches!(action, Action::Ask(Question::Register { .. }))).count()
    };
    registers(&mut machine);
    machine.handle_beat(now().plus(Duration::from_secs(2)));
    assert_eq!(registers(&mut machine), 0, "the same content would be refused again");
    machine.handle_reload(
        now().plus(Duration::from_secs(3)),
        Plan { jobs: vec![Arc::new(job("b", |_| ()))], ..Plan::default() },
    );
    assert_eq!(registers(&mut machine), 1);
}

#[test]
fn a_slot_that_is_driven_is_not_driven_twice_and_one_that_has_ended_here_is_driven_again() {
    let mut machine = hourly();
    let start = ask(&mut machine, current(), false).unwrap().pop().unwrap();
    assert_eq!(ask(&mut machine, current(), false).unwrap_err(), TriggerRefusal::Driven);
    machine.handle_end(now(), start.slot, start.id, start.scheduled_at, End::Exhausted);
    assert_eq!(ask(&mut machine, current(), false).unwrap().len(), 1);
}

#[test]
fn a_node_that_leaves_begins_nothing_that_is_asked_for() {
    let mut machine = hourly();
    machine.handle_shutdown(now(), Duration::from_secs(60));
    assert_eq!(ask(&mut machine, current(), false).unwrap_err(), TriggerRefusal::Leaving);
}

/// A run of the past that ends with its node: nobody else knows of it, and a reset may have taken the verdict.
#[test]
fn a_run_of_the_past_is_named_at_once_and_closed_by_another_node_when_its_own_is_dead() {
    let mut machine = hourly();
    meet_store(&mut machine);
    heard(&mut machine, BTreeSet::new());
    ask(&mut machine, current(), false).unwrap();
    machine.handle_trigger(now(), TriggerRequest { slot: previous(), past: true, audit: audit() }).unwrap();
    let reports: Vec<_> = std::iter::from_fn(|| machine.poll_action())
        .filter_map(|action| match action {
            Action::Ask(Question::Heartbeat { report, .. }) => Some(report.running),
            _ => None,
        })
        .collect();
    assert_eq!(reports, [[previous().to_string()]]);

    let mut other = hourly();
    meet_store(&mut other);
    let left = || BTreeSet::from([(previous().job().clone(), previous().key())]);
    assert_eq!(heard(&mut other, left()), [previous()]);
    closed(&mut other, previous(), Ok(Closing::First(Verdict::Failed)));
    assert_eq!(heard(&mut other, left()), [], "it is asked about once");
    let lasting = BTreeSet::from([(current().job().clone(), current().key())]);
    assert_eq!(heard(&mut other, lasting), [], "the closer comes to it");
    // A person had asked for it before any of its scheduled times.
    let mut weekly = node(job("a", |spec| spec.schedule = "0 3 * * MON".to_owned()));
    meet_store(&mut weekly);
    let left = BTreeSet::from([(current().job().clone(), current().key())]);
    assert_eq!(heard(&mut weekly, left), [], "it lasts");
    weekly.handle_beat(now().plus(Duration::from_secs(3_601)));
    let closes = std::iter::from_fn(|| weekly.poll_action())
        .filter(|action| matches!(action, Action::Ask(Question::Close { slot, .. }) if *slot == current()));
    assert_eq!(closes.count(), 1);
}

/// A heartbeat was answered that found these slots left behind by dead nodes. Answers which of them the machine wants to be closed.
fn heard(machine: &mut NodeMachine, left: BTreeSet<(JobName, SlotKey)>) -> Vec<Slot> {
    let reply = Ok(HeartbeatReply { now: now().wall, was_known: true });
    let looked = Some(Looked { left, ..Looked::default() });
    machine.handle_report(now(), Report::Heartbeat { sent: now(), received: now(), reply, looked });
    asks_to_close(machine)
}

/// The node's earlier instance died under an ordinary run that outlasted its slot: the closer comes to that slot, with the attempts of
/// the job, and not with the single one of a run of the past.
#[test]
fn a_slot_that_an_earlier_instance_left_running_is_closed_with_all_attempts_of_its_job() {
    for (behind, wanted) in [(Some(previous()), 3), (None, 1)] {
        let mut machine = hourly();
        machine.handle_beat(now());
        let earlier = NodeReport {
            job_hashes: BTreeMap::from([(previous().job().clone(), String::new())]),
            running: vec![previous().to_string()],
            behind: behind.into_iter().map(|slot| (slot.job().clone(), slot.start())).collect(),
            ..NodeReport::new("a".parse().unwrap(), "i0", now().wall)
        };
        let nodes = vec![NodeEntry { report: earlier, seen: now().wall + TimeDelta::minutes(5) }];
        machine.handle_report(now(), Report::Nodes { sent: now(), received: now(), reply: Ok((now().wall, nodes)) });
        let long_ago = now().wall - TimeDelta::days(1);
        let reply = Ok(machine.plan().registry(now().wall, |_| long_ago));
        machine.handle_report(now(), Report::Registered { plan: 0, reply });
        let soon = now().plus(Duration::from_secs(60));
        machine.handle_beat(soon);
        let mut asked = Vec::new();
        while let Some(action) = machine.poll_action() {
            let Action::Ask(Question::Close { slot, max_attempts }) = action else { continue };
            if slot == previous() {
                asked.push(max_attempts);
            }
            let reply = Ok(Closing::Already(Verdict::Done));
            machine.handle_report(soon, Report::Closed { slot, reply });
        }
        assert_eq!(asked, [wanted], "nobody else closes it: {}", wanted == 1);
    }
}
