//! Which ticks a planner hands out, over beats that are late, missing, or read from a clock that jumps.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test says what it expects"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use cronward::job::{JobName, JobSpec, Program};
use cronward::schedule::{Beat, Planner, Tick, Timetable};
use proptest::prelude::*;

const HORIZON: Duration = Duration::from_secs(5);

fn utc(text: &str) -> DateTime<Utc> {
    format!("2026-11-21T{text}Z").parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn timetable(name: &str, schedule: &str, period: &str) -> Timetable {
    Timetable::parse(JobName::new(name).unwrap(), schedule, "UTC", period).unwrap()
}

fn with_jitter(name: &str, schedule: &str, jitter: u64) -> Timetable {
    let mut spec = JobSpec::new(JobName::new(name).unwrap(), schedule, Program::Shell("true".to_owned()));
    spec.jitter = Duration::from_secs(jitter);
    Timetable::of(&spec).unwrap()
}

fn planner(timetables: Vec<Timetable>) -> Planner {
    let mut planner = Planner::new(HORIZON);
    planner.set(timetables);
    planner
}

fn instants(ticks: &[Tick]) -> Vec<String> {
    ticks.iter().map(|tick| tick.at.format("%H:%M:%S").to_string()).collect()
}

/// What a beat brings: ticks, then looks back.
fn told(beat: &Beat) -> (Vec<String>, Vec<String>) {
    (instants(&beat.ticks), instants(&beat.look_back))
}

fn expect(planner: &mut Planner, now: &str, ticks: &[&str], look_back: &[&str]) {
    let beat = planner.beat(utc(now));
    let expected =
        (ticks.iter().map(|at| (*at).to_owned()).collect(), look_back.iter().map(|at| (*at).to_owned()).collect());
    assert_eq!(told(&beat), expected, "at {now}");
    for tick in &beat.look_back {
        assert!(tick.fire_at <= utc(now) && utc(now) < tick.slot.end(), "{tick:?}");
    }
}

#[test]
fn a_tick_is_handed_out_once_before_it_is_due() {
    let mut planner = planner(vec![timetable("a", "0 * * * *", "hour")]);
    planner.beat(utc("14:59:50"));
    expect(&mut planner, "14:59:54", &[], &[]);
    expect(&mut planner, "14:59:55", &["15:00:00"], &[]);
    for now in ["14:59:56", "14:59:59.999", "15:00:00", "15:00:01", "15:00:02"] {
        expect(&mut planner, now, &[], &[]);
    }
}

#[test]
fn a_tick_is_handed_out_even_when_it_is_due_in_a_millisecond_or_a_beat_comes_late() {
    let mut planner = planner(vec![timetable("a", "0 * * * *", "hour")]);
    planner.beat(utc("14:59:54.998"));
    expect(&mut planner, "14:59:59.998", &["15:00:00"], &[]);
}

#[test]
fn the_first_beat_looks_at_the_current_slot_of_each_job() {
    let jobs = vec![
        timetable("begun", "10 * * * *", "hour"),
        timetable("not-yet", "40 * * * *", "hour"),
        timetable("day", "0 3 * * *", "day"),
        timetable("often", "*/15 * * * *", "hour"),
        timetable("rare", "0 0 1 1 *", "tick"),
        timetable("over", "0 3 * * *", "hour"),
    ];
    let beat = planner(jobs).beat(utc("14:32:00"));
    let looked: Vec<_> = beat.look_back.iter().map(|tick| (tick.job.as_str(), tick.slot.key().to_string())).collect();
    assert_eq!(instants(&beat.look_back), ["14:10:00", "03:00:00", "14:30:00", "00:00:00"]);
    assert_eq!(looked[0], ("begun", "2026-11-21T14Z".to_owned()));
    assert_eq!(looked[1], ("day", "2026-11-21T00Z".to_owned()));
    assert_eq!(looked[2], ("often", "2026-11-21T14Z".to_owned()));
    assert_eq!(looked[3], ("rare", "2026-01-01T00Z".to_owned()));
    assert_eq!(beat.ticks, []);
}

#[test]
fn a_start_at_the_very_tick_hands_it_out_once() {
    let mut planner = planner(vec![timetable("a", "0 * * * *", "hour")]);
    expect(&mut planner, "15:00:00", &[], &["15:00:00"]);
    expect(&mut planner, "15:00:01", &[], &[]);
}

#[test]
fn after_a_gap_slots_that_are_over_stay_over_and_the_current_one_is_looked_at() {
    let mut planner = planner(vec![timetable("a", "0 * * * *", "hour")]);
    planner.beat(utc("10:59:00"));
    // Asleep from 10:59 to 14:30.
    expect(&mut planner, "14:30:00", &[], &["14:00:00"]);
    expect(&mut planner, "14:30:01", &[], &[]);
    expect(&mut planner, "14:59:58", &["15:00:00"], &[]);
}

#[test]
fn a_gap_within_a_slot_whose_tick_was_handed_out_brings_nothing() {
    let mut planner = planner(vec![timetable("a", "0 * * * *", "hour")]);
    planner.beat(utc("13:59:50"));
    expect(&mut planner, "13:59:55", &["14:00:00"], &[]);
    expect(&mut planner, "14:30:00", &[], &[]);
}

#[test]
fn a_tick_that_a_late_beat_has_just_passed_is_looked_at_at_once() {
    let mut planner = planner(vec![timetable("a", "0 * * * *", "hour")]);
    planner.beat(utc("14:59:54"));
    // Six seconds later: beyond the horizon, and the tick has passed.
    expect(&mut planner, "15:00:00.200", &[], &["15:00:00"]);
}

#[test]
fn a_small_step_back_of_the_clock_repeats_nothing() {
    let mut planner = planner(vec![timetable("a", "* * * * * *", "tick")]);
    planner.beat(utc("14:00:00"));
    let before = planner.beat(utc("14:00:01"));
    assert_eq!(instants(&before.ticks), ["14:00:06"]);
    expect(&mut planner, "13:59:58", &[], &[]);
    expect(&mut planner, "14:00:01", &[], &[]);
    expect(&mut planner, "14:00:02", &["14:00:07"], &[]);
}

#[test]
fn a_small_step_back_is_no_gap_once_the_clock_has_caught_up() {
    let mut planner = planner(vec![timetable("a", "* * * * * *", "tick")]);
    planner.beat(utc("14:00:00"));
    planner.beat(utc("13:59:56"));
    // Six seconds after the last beat, two after the furthest: 14:00:05 was the last handed out.
    expect(&mut planner, "14:00:02", &["14:00:06", "14:00:07"], &[]);
}

#[test]
fn many_small_steps_back_are_a_large_one() {
    let mut planner = planner(vec![timetable("a", "0 * * * *", "hour")]);
    planner.beat(utc("15:00:02"));
    expect(&mut planner, "14:59:58", &[], &[]);
    expect(&mut planner, "14:59:55", &[], &["14:00:00"]);
}

#[test]
fn a_reload_without_a_change_looks_at_nothing_again() {
    let jobs = vec![timetable("a", "0 * * * *", "hour"), with_jitter("b", "0 * * * *", 60)];
    let mut planner = planner(jobs.clone());
    planner.beat(utc("14:00:30"));
    planner.beat(utc("14:00:31"));
    planner.set(jobs);
    // Both were handed out, one by a look and one ahead of its delay.
    expect(&mut planner, "14:00:32", &[], &[]);
}

#[test]
fn a_large_step_back_looks_at_the_current_slot_and_again_at_what_comes_after_it() {
    let mut planner = planner(vec![timetable("a", "0,30 * * * *", "hour")]);
    for now in ["13:59:50", "13:59:55"] {
        planner.beat(utc(now));
    }
    for minute in ["14:00:00", "14:29:57"] {
        planner.beat(utc(minute));
    }
    // Handed out: 14:00 and 14:30. An administrator sets the clock back by an hour.
    expect(&mut planner, "13:30:10", &[], &["13:30:00"]);
    let mut now = utc("13:30:10");
    while now < utc("14:59:54") {
        now += TimeDelta::seconds(1);
        let beat = planner.beat(now);
        // Their guards may have given up by the wrong time.
        let again = [utc("14:00:00"), utc("14:30:00")].into_iter().find(|at| *at == now);
        assert_eq!((beat.ticks, beat.look_back.first().map(|tick| tick.at)), (vec![], again), "{now}");
    }
    expect(&mut planner, "14:59:55", &["15:00:00"], &[]);
}

#[test]
fn ticks_that_a_wrong_clock_had_passed_over_are_looked_at_when_their_time_comes() {
    // A machine boots with its clock two hours ahead, until it is set right.
    let mut planner = planner(vec![timetable("a", "15 * * * *", "hour")]);
    expect(&mut planner, "16:20:00", &[], &["16:15:00"]);
    expect(&mut planner, "14:20:03", &[], &["14:15:00"]);
    let mut now = utc("14:20:03");
    let mut looked = Vec::new();
    let mut armed = Vec::new();
    while now < utc("17:30:00") {
        now += TimeDelta::seconds(1);
        let beat = planner.beat(now);
        looked.extend(beat.look_back.into_iter().map(|tick| (tick.at, now)));
        armed.extend(instants(&beat.ticks));
    }
    // 15:15 was passed over; 16:15 was handed out, and its guard may have given up by the wrong time.
    assert_eq!(looked, [(utc("15:15:00"), utc("15:15:00")), (utc("16:15:00"), utc("16:15:00"))]);
    assert_eq!(armed, ["17:15:00"]);
}

#[test]
fn a_new_job_is_looked_at_and_the_others_keep_their_place() {
    let (old, changed) = (timetable("old", "0 * * * *", "hour"), timetable("changed", "0 * * * *", "hour"));
    let mut planner = planner(vec![old.clone(), changed]);
    expect(&mut planner, "14:30:00", &[], &["14:00:00", "14:00:00"]);
    let sooner = timetable("changed", "20 * * * *", "hour");
    planner.set(vec![old.clone(), sooner, timetable("new", "10 * * * *", "hour")]);
    let beat = planner.beat(utc("14:30:01"));
    let looked: Vec<_> =
        beat.look_back.iter().map(|tick| (tick.job.as_str(), instants(std::slice::from_ref(tick)))).collect();
    assert_eq!(looked, [("changed", vec!["14:20:00".to_owned()]), ("new", vec!["14:10:00".to_owned()])]);
    assert_eq!(planner.beat(utc("14:30:02")), Beat::default());
    planner.set(vec![old]);
    let last: Vec<_> = (3..).map(|second| utc("14:30:00") + TimeDelta::seconds(second)).take(5_400).collect();
    let jobs: BTreeSet<_> = last.into_iter().flat_map(|now| planner.beat(now).ticks).map(|tick| tick.job).collect();
    assert_eq!(jobs, BTreeSet::from([JobName::new("old").unwrap()]));
}

#[test]
fn a_changed_schedule_hands_out_no_instant_again() {
    let mut planner = planner(vec![timetable("a", "0 * * * *", "hour")]);
    expect(&mut planner, "14:59:58", &["15:00:00"], &["14:00:00"]);
    planner.set(vec![timetable("a", "0,30 * * * *", "hour")]);
    // By the new schedule 14:30 is the last tick of the hour.
    expect(&mut planner, "14:59:59", &[], &["14:30:00"]);
    planner.set(vec![timetable("a", "0,30 * * * *", "hour")]);
    expect(&mut planner, "15:00:00", &[], &[]);
    planner.set(vec![timetable("a", "0,40 * * * *", "hour")]);
    expect(&mut planner, "15:00:01", &[], &[]);
}

#[test]
fn a_slot_that_a_new_schedule_makes_is_not_lost_behind_ticks_that_were_armed_ahead() {
    let mut planner = planner(vec![timetable("a", "* * * * * *", "tick")]);
    planner.beat(utc("14:59:58"));
    planner.set(vec![timetable("a", "0 * * * *", "hour")]);
    expect(&mut planner, "14:59:59", &[], &["14:00:00"]);
    expect(&mut planner, "15:00:00", &[], &["15:00:00"]);
}

#[test]
fn a_job_whose_slots_become_other_slots_is_looked_at_though_the_instant_has_passed() {
    let mut planner = planner(vec![timetable("a", "0 * * * *", "hour")]);
    for second in 0..7_300 {
        planner.beat(utc("02:30:00") + TimeDelta::seconds(second));
    }
    planner.set(vec![timetable("a", "0 3 * * *", "day")]);
    expect(&mut planner, "04:31:41", &[], &["03:00:00"]);
}

#[test]
fn ticks_fire_in_order_after_their_delay_and_within_their_slot() {
    let jobs: Vec<_> = (0..50).map(|number| with_jitter(&format!("job-{number}"), "0 * * * *", 60)).collect();
    let mut planner = planner(jobs);
    planner.beat(utc("14:59:50"));
    let ticks = planner.beat(utc("14:59:55")).ticks;
    assert_eq!(ticks.len(), 50);
    assert!(ticks.is_sorted_by_key(|tick| tick.fire_at));
    assert!(ticks.iter().all(|tick| tick.at <= tick.fire_at && tick.fire_at < utc("15:01:00")));
    let places: BTreeSet<_> = ticks.iter().map(|tick| tick.fire_at).collect();
    assert!(places.len() > 45, "the jobs are spread");
}

#[test]
fn a_start_between_tick_and_delay_arms_the_tick_and_looks_no_further() {
    let job = with_jitter("a", "0 * * * *", 3_000);
    let delay = TimeDelta::from_std(job.delay()).unwrap();
    assert!(delay > TimeDelta::seconds(60));
    let beat = planner(vec![job.clone()]).beat(utc("15:00:00") + delay - TimeDelta::milliseconds(1));
    assert_eq!(told(&beat), (vec!["15:00:00".to_owned()], vec![]));
    assert_eq!(beat.ticks[0].fire_at, utc("15:00:00") + delay);
    let beat = planner(vec![job]).beat(utc("15:00:00") + delay);
    assert_eq!(told(&beat), (vec![], vec!["15:00:00".to_owned()]));
}

#[test]
fn of_several_ticks_in_the_current_slot_the_last_due_is_looked_at_and_the_rest_armed() {
    let job = with_jitter("a", "*/5 * * * *", 3_000);
    let delay = TimeDelta::from_std(job.delay()).unwrap();
    // 15:10 is due; those after it are not, but have passed.
    let now = utc("15:10:30") + delay;
    let beat = planner(vec![job]).beat(now);
    assert_eq!(instants(&beat.look_back), ["15:10:00"]);
    assert!(beat.ticks.iter().all(|tick| tick.fire_at > now && tick.at > utc("15:10:00")));
    assert_eq!(beat.ticks.first().unwrap().at, utc("15:15:00"));
}

/// How a clock goes on until the next beat, in milliseconds.
fn steps() -> impl Strategy<Value = Vec<i64>> {
    let step = prop_oneof![6 => 0_i64..5_001, 1 => 5_001_i64..400_000, 1 => -4_000_i64..0];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn each_tick_of_a_covered_span_is_handed_out_exactly_once(
        schedule in prop::sample::select(&["*/7 * * * * *", "0 * * * * *", "30 */2 * * * *", "0 0 * * * *"][..]),
        period in prop::sample::select(&["tick", "minute", "hour"][..]),
        steps in steps(),
        reload_at in 0_usize..60,
    ) {
        let timetable = timetable("a", schedule, period);
        let mut planner = planner(vec![timetable.clone()]);
        let start = utc("14:00:00.300");
        let (mut now, mut highest) = (start, start);
        let mut armed: Vec<DateTime<Utc>> = Vec::new();
        let mut seen: BTreeMap<DateTime<Utc>, usize> = BTreeMap::new();
        let (mut steps_back, mut caught_up) = (0, start);
        let mut covered: Vec<(DateTime<Utc>, DateTime<Utc>)> = Vec::new();
        let mut reached: Option<DateTime<Utc>> = None;
        for (index, step) in steps.into_iter().enumerate() {
            if index == reload_at {
                planner.set(vec![timetable.clone()]);
            }
            let beat = planner.beat(now);
            let goes_on = reached.filter(|reached| (now - *reached).abs() <= TimeDelta::seconds(5));
            if reached.is_some_and(|reached| reached - now > TimeDelta::seconds(5)) {
                steps_back += 1;
                caught_up = highest + HORIZON;
            }
            for tick in &beat.ticks {
                prop_assert!(armed.last().is_none_or(|last| tick.at > *last), "in order");
                prop_assert!(tick.at <= now + HORIZON);
                armed.push(tick.at);
            }
            prop_assert!(beat.look_back.len() <= 1);
            for tick in beat.ticks.iter().chain(&beat.look_back) {
                // What a step back makes current or future again comes once more.
                let times = seen.entry(tick.at).or_default();
                *times += 1;
                prop_assert!(*times <= 1 + steps_back, "{} came {times} times", tick.at);
                prop_assert!(now < tick.slot.end());
                prop_assert!(tick.slot.start() <= tick.at && tick.at < tick.slot.end());
            }
            // After a step back, what was handed out or passed over comes when its time comes, and until then nothing that
            // lies behind it.
            if now >= highest.max(caught_up) {
                covered.push((goes_on.unwrap_or(now), now + HORIZON));
            }
            highest = highest.max(now);
            reached = Some(goes_on.map_or(now, |reached| reached.max(now)));
            now += TimeDelta::milliseconds(step);
        }
        for (from, to) in covered {
            for tick in timetable.schedule().ticks_after(from).take_while(|tick| *tick <= to) {
                prop_assert!(seen.contains_key(&tick), "{} was lost", tick);
            }
        }
    }

    #[test]
    fn no_slot_of_a_covered_span_is_lost_whatever_the_clock_does(
        steps in prop::collection::vec(prop_oneof![8 => 0_i64..5_000, 1 => -9_000_000_i64..9_000_000], 1..80),
        jitter in 0_u64..100,
    ) {
        let job = with_jitter("a", "*/10 * * * *", jitter);
        let mut planner = planner(vec![job.clone()]);
        let mut now = utc("14:00:00.300");
        let mut slots = BTreeSet::new();
        let mut latest = None;
        for step in steps {
            let beat = planner.beat(now);
            for tick in &beat.ticks {
                prop_assert!(latest.is_none_or(|latest| tick.at > latest), "ticks only rise");
                latest = Some(tick.at);
            }
            slots.extend(beat.ticks.into_iter().chain(beat.look_back).map(|tick| tick.slot.key()));
            let slot = job.slot_at(now).unwrap();
            let due = job.schedule().ticks_after(slot.start() - TimeDelta::seconds(1)).next();
            if due.is_some_and(|tick| job.fire_at(tick, &slot) <= now) {
                prop_assert!(slots.contains(&slot.key()), "{slot} is current at {now} and was never handed out");
            }
            now += TimeDelta::milliseconds(step);
        }
    }
}
