//! What a node does when it is told of something, without a runtime.

use super::*;
use chrono::TimeDelta;

use crate::job::{NodeName, Program};
use crate::node::plan::ZonesNow;
use crate::slot::Audit;
use crate::store::{Applied, ErrorKind, HeartbeatReply, Op};
use crate::wake::WakeKind;
use crate::zone::{Zone, ZoneRelease};

fn now() -> Now {
    Now { mono: Mono::default(), wall: "2026-11-21T14:00:00Z".parse().unwrap() }
}

fn plan(max_attempts: u32) -> Plan {
    let mut spec = JobSpec::new("a".parse().unwrap(), "0 * * * *", Program::Direct(vec!["true".to_owned()]));
    spec.policy.max_attempts = max_attempts;
    Plan { jobs: vec![Arc::new(spec)], ..Plan::default() }
}

fn machine() -> NodeMachine {
    with_hints(true)
}

fn with_hints(hints: bool) -> NodeMachine {
    let name = NodeName::new("n").unwrap();
    let identity = Identity { name, instance: String::new(), labels: BTreeMap::new(), started_at: now().wall };
    let upkeep = Upkeep { heartbeat: Duration::from_secs(10), purges: false, hints };
    NodeMachine::new(identity, upkeep, plan(3), now()).unwrap()
}

fn actions(machine: &mut NodeMachine) -> Vec<Action> {
    std::iter::from_fn(|| machine.poll_action()).collect()
}

/// A slot of the job that is driven.
fn driven(machine: &mut NodeMachine) -> Start {
    machine.handle_beat(now());
    let start = actions(machine).into_iter().find_map(|action| match action {
        Action::Start(start) => Some(start),
        _ => None,
    });
    start.unwrap()
}

#[test]
fn a_reload_in_a_drain_neither_begins_a_slot_again_nor_tells_runs_of_another_drain() {
    for end in [Some(End::Exhausted), None] {
        let mut machine = machine();
        let start = driven(&mut machine);
        if let Some(end) = end {
            machine.handle_end(now(), start.slot, start.id, start.scheduled_at, end);
        }
        machine.handle_shutdown(now(), Duration::from_secs(30));
        actions(&mut machine);
        machine.handle_reload(now(), plan(5));
        let wanted = actions(&mut machine);
        assert!(matches!(wanted.as_slice(), [Action::Emit(Event::ReloadRefused { .. })]), "{wanted:?}");
    }
}

/// The drive ends as done although its job is no longer this node's, so that the slot stays known.
#[test]
fn a_slot_that_an_operator_opens_is_not_driven_where_its_job_may_no_longer_run() {
    for elsewhere in [false, true] {
        let mut machine = machine();
        let start = driven(&mut machine);
        let mut plan = plan(5);
        if elsewhere {
            let spec = Arc::make_mut(&mut plan.jobs[0]);
            spec.only_on.insert("zone".to_owned(), "elsewhere".to_owned());
        }
        machine.handle_reload(now(), plan);
        machine.handle_end(now(), start.slot.clone(), start.id, start.scheduled_at, End::Done);
        actions(&mut machine);
        let (job, key) = (start.slot.job().clone(), start.slot.key());
        machine.handle_wake(now(), &Wake::Slot { job, key, what: WakeKind::Released });
        let again = actions(&mut machine).iter().any(|action| matches!(action, Action::Start(_)));
        assert_eq!(again, !elsewhere);
    }
}

/// The slots that the store is asked about, if it is.
fn looked_at(machine: &mut NodeMachine) -> Option<Vec<Slot>> {
    actions(machine).into_iter().find_map(|action| match action {
        Action::Ask(Question::Look(slots)) => Some(slots),
        _ => None,
    })
}

fn starts(machine: &mut NodeMachine) -> usize {
    actions(machine).iter().filter(|action| matches!(action, Action::Start(_))).count()
}

#[test]
fn a_reset_that_no_hint_tells_of_is_found() {
    for (hints, end) in [(false, End::Done), (true, End::Done), (true, End::Exhausted)] {
        let mut machine = with_hints(hints);
        let start = driven(&mut machine);
        machine.handle_end(now(), start.slot.clone(), start.id, start.scheduled_at, end);
        if hints {
            machine.handle_beat(now());
            assert_eq!(looked_at(&mut machine), None, "the store tells of it");
            machine.handle_wake(now(), &Wake::Resync);
        }
        machine.handle_beat(now().plus(Duration::from_secs(10)));
        assert_eq!(looked_at(&mut machine), Some(vec![start.slot.clone()]));
        // One that the store has merely forgotten is told of again by who did it.
        let forgotten = SlotRecord::untouched(start.slot.clone());
        machine.handle_report(now(), Report::Looked(Ok(vec![forgotten.clone()])));
        assert_eq!(starts(&mut machine), 0);
        machine.handle_wake(now(), &Wake::Resync);
        machine.handle_beat(now());
        assert_eq!(looked_at(&mut machine), Some(vec![start.slot.clone()]));
        let audit = Audit {
            verb: "reset".to_owned(),
            who: "alice".to_owned(),
            host: String::new(),
            why: String::new(),
            at: now().wall,
        };
        let reset = SlotRecord { audit: vec![audit], ..forgotten };
        machine.handle_report(now(), Report::Looked(Ok(vec![reset])));
        assert_eq!(starts(&mut machine), 1);
    }
}

/// Whether a heartbeat that goes out now looks at the registry.
fn looks(machine: &mut NodeMachine, now: Now) -> bool {
    machine.handle_beat(now);
    let asked = actions(machine).into_iter().find_map(|action| match action {
        Action::Ask(Question::Heartbeat { looks, .. }) => Some(looks),
        _ => None,
    });
    asked.unwrap()
}

#[test]
fn a_store_that_comes_back_empty_is_told_once_and_registered_with_again() {
    let mut machine = machine();
    machine.handle_beat(now());
    meet_store(&mut machine);
    actions(&mut machine);
    let heard = |machine: &mut NodeMachine, was_known: bool, at: Now| {
        let reply = Ok(HeartbeatReply { now: at.wall, was_known });
        machine.handle_report(at, Report::Heartbeat { sent: at, received: at, reply, looked: None });
        let wanted = actions(machine);
        let is_told = |action: &&Action| matches!(action, Action::Emit(Event::StoreForgot { .. }));
        let registers = |action: &Action| matches!(action, Action::Ask(Question::Register { .. }));
        (wanted.iter().filter(is_told).count(), wanted.iter().any(registers))
    };
    assert_eq!(heard(&mut machine, false, now()).0, 0, "a node that starts is in no registry");
    let later = now().plus(Duration::from_secs(10));
    machine.handle_wake(later, &Wake::Resync);
    assert!(looks(&mut machine, later), "hints were lost, and perhaps all that the store had");
    let refreshed = Ok(machine.plan().registry(later.wall, |_| later.wall));
    machine.handle_report(later, Report::Registered { plan: 0, reply: refreshed });
    actions(&mut machine);
    assert_eq!(heard(&mut machine, false, later), (1, true));
    let registered = Ok(machine.plan().registry(later.wall, |_| later.wall));
    machine.handle_report(later, Report::Registered { plan: 0, reply: registered });
    let next = later.plus(Duration::from_secs(10));
    assert!(!looks(&mut machine, next));
    assert_eq!(heard(&mut machine, true, next).0, 0);
}

fn reset_at(slot: &Slot, at: &str) -> SlotRecord {
    let text = |text: &str| text.to_owned();
    let audit =
        Audit { verb: text("reset"), who: text("alice"), host: text(""), why: text(""), at: at.parse().unwrap() };
    SlotRecord { audit: vec![audit], attempts: 2, forgiven: 1, ..SlotRecord::untouched(slot.clone()) }
}

/// The store answers for the first time, and has known the jobs for long.
fn meet_store(machine: &mut NodeMachine) {
    let (sent, received) = (now(), now());
    machine.handle_report(now(), Report::Nodes { sent, received, reply: Ok((now().wall, Vec::new())) });
    let long_ago = now().wall - TimeDelta::days(1);
    let reply = Ok(machine.plan().registry(now().wall, |_| long_ago));
    machine.handle_report(now(), Report::Registered { plan: 0, reply });
}

#[test]
fn a_slot_that_was_opened_without_a_hint_just_before_its_end_is_closed() {
    for (opened, closes) in [("2026-11-21T14:59:58Z", true), ("2026-11-21T15:00:04Z", false)] {
        let mut machine = with_hints(false);
        let start = driven(&mut machine);
        meet_store(&mut machine);
        machine.handle_end(now(), start.slot.clone(), start.id, start.scheduled_at, End::Done);
        let after = now().plus(Duration::from_secs(3_606));
        machine.handle_beat(after);
        assert_eq!(looked_at(&mut machine), Some(vec![start.slot.clone()]), "once more after its end");
        machine.handle_report(after, Report::Looked(Ok(vec![reset_at(&start.slot, opened)])));
        machine.handle_beat(after.plus(Duration::from_secs(11)));
        let wanted = actions(&mut machine);
        let is_close =
            |action: &&Action| matches!(action, Action::Ask(Question::Close { slot, .. }) if *slot == start.slot);
        assert_eq!(wanted.iter().filter(is_close).count(), usize::from(closes), "{opened}");
        assert!(!wanted.iter().any(|action| matches!(action, Action::Ask(Question::Look(_)))), "and then no more");
    }
}

/// Of a node where 250 slots have ended: how many it asks about in each second, when the store answers so.
fn asked_about(
    machine: &mut NodeMachine,
    mut answer: impl FnMut(u64) -> Result<Vec<SlotRecord>, StoreError>,
) -> [usize; 15] {
    for slot in 0..250 {
        let start = now().wall + TimeDelta::hours(slot);
        let slot = Slot::new("a".parse().unwrap(), start, start + TimeDelta::hours(1)).unwrap();
        let (id, _) = machine.active.enrol(slot.clone());
        machine.active.ended(&slot, id, End::Done, now().wall);
    }
    actions(machine);
    let mut second = 0;
    [0; 15].map(|_: usize| {
        machine.handle_beat(now().plus(Duration::from_secs(second)));
        let asked = looked_at(machine).map_or(0, |slots| slots.len());
        machine.handle_report(now(), Report::Looked(answer(second)));
        second += 1;
        asked
    })
}

const TWO_ROUNDS: [usize; 15] = [100, 100, 50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100, 100];

#[test]
fn a_store_that_tells_of_no_reset_is_asked_about_what_has_ended_a_hundred_slots_a_call_and_then_after_a_pause() {
    assert_eq!(asked_about(&mut with_hints(false), |_| Ok(Vec::new())), TWO_ROUNDS);
    // A right that is missing may be found out late.
    let mut machine = with_hints(true);
    machine.set_hints(false);
    assert_eq!(asked_about(&mut machine, |_| Ok(Vec::new())), TWO_ROUNDS);
}

#[test]
fn slots_that_the_store_did_not_answer_for_keep_no_others_waiting_and_are_asked_about_after_a_pause() {
    let away = || StoreError::new(ErrorKind::Timeout, Applied::No, Op::Inspect, "s:", "no answer");
    for failing in [0, 2] {
        let mut machine = with_hints(true);
        machine.handle_wake(now(), &Wake::Resync);
        let asked = asked_about(&mut machine, |second| if second == failing { Err(away()) } else { Ok(Vec::new()) });
        assert_eq!(asked, TWO_ROUNDS, "{failing}");
    }
    let mut machine = with_hints(true);
    machine.handle_wake(now(), &Wake::Resync);
    assert_eq!(asked_about(&mut machine, |_| Ok(Vec::new()))[3..], [0; 12]);
}

#[test]
fn a_store_that_refuses_is_told_from_one_that_takes_no_writes_until_a_failover() {
    let told = |kind| {
        let mut machine = machine();
        let reply = Err(StoreError::new(kind, Applied::No, Op::Heartbeat, "s:", "no"));
        machine.handle_report(now(), Report::Heartbeat { sent: now(), received: now(), reply, looked: None });
        let health = machine.health();
        (health.store_up, health.store_refuses)
    };
    assert_eq!(told(ErrorKind::Denied), (false, true));
    assert_eq!([ErrorKind::ReadOnly, ErrorKind::Timeout].map(told), [(false, false); 2]);
}

#[test]
fn a_slot_whose_drive_is_gone_without_a_word_is_driven_again_at_its_next_tick() {
    let mut machine = machine();
    let start = driven(&mut machine);
    machine.handle_lost(&start.slot, start.id);
    machine.handle_reload(now(), plan(5));
    assert!(
        actions(&mut machine).iter().any(|action| matches!(action, Action::Start(again) if again.slot == start.slot))
    );
}

#[test]
fn a_job_whose_zone_has_other_rules_is_planned_anew_and_the_report_has_the_new_release() {
    let zone = |name: &str, rules: &str| crate::zone::Database::bundled().zone(rules).unwrap().renamed(name);
    let release = |version: &str| ZoneRelease { folder: None, version: Some(version.to_owned()) };
    let job = |name: &str, zone: Zone| {
        let spec = JobSpec::new(name.parse().unwrap(), "0 9 * * *", Program::Direct(vec!["true".to_owned()]));
        Arc::new(JobSpec { timezone: zone, ..spec })
    };
    let mut machine = machine();
    let jobs = vec![job("a", zone("Mars/Base", "Asia/Tokyo")), job("b", zone("Europe/Berlin", "Europe/Berlin"))];
    machine.handle_reload(now(), Plan { jobs, zones: Some(release("2025b")), ..Plan::default() });
    actions(&mut machine);
    let mut zones = ZonesNow {
        release: release("2025b"),
        zones: vec![zone("Mars/Base", "Asia/Tokyo"), zone("Asia/Dubai", "Asia/Dubai")],
    };
    machine.handle_zones(now(), &zones);
    assert!(actions(&mut machine).is_empty(), "nothing is different");

    zones.release = release("2026f");
    zones.zones[0] = zone("Mars/Base", "Asia/Dubai");
    machine.handle_zones(now(), &zones);
    let reloaded = actions(&mut machine).into_iter().find_map(|action| match action {
        Action::Emit(Event::Reloaded { changed, .. }) => Some(changed),
        _ => None,
    });
    assert_eq!(reloaded, Some(vec!["a".parse().unwrap()]));
    assert_eq!(machine.plan().report(&machine.identity).zones, Some(release("2026f")));
    let next = machine.entries[&"a".parse().unwrap()].timetable.schedule().next_after(now().wall).unwrap();
    assert_eq!(next.to_rfc3339(), "2026-11-22T05:00:00+00:00");
}
