//! The slots of a job: which instants they span in each zone, on ordinary days and where the clock changes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test says what it expects"
)]

use std::time::Duration;

use chrono::{DateTime, TimeDelta, TimeZone, Utc};
use cronward::Zone;
use cronward::job::{JobName, JobSpec, Program};
use cronward::schedule::{DstEffect, Timetable};
use cronward::slot::{Period, Slot, SlotKey};
use proptest::prelude::*;

fn utc(text: &str) -> DateTime<Utc> {
    format!("{text}Z").parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn timetable(schedule: &str, zone: &str, period: &str) -> Timetable {
    Timetable::parse(JobName::new("job").unwrap(), schedule, zone, period).unwrap_or_else(|error| panic!("{error}"))
}

fn slot(start: &str, end: &str) -> Slot {
    Slot::new(JobName::new("job").unwrap(), utc(start), utc(end)).unwrap()
}

/// Consecutive slots, given by their borders, in a zone.
fn check_borders(zone: &str, period: &str, borders: &[&str]) {
    let timetable = timetable("* * * * *", zone, period);
    for pair in borders.windows(2) {
        let expected = slot(pair[0], pair[1]);
        let middle = expected.start() + (expected.end() - expected.start()) / 2;
        for instant in [expected.start(), middle, expected.end() - TimeDelta::nanoseconds(1)] {
            assert_eq!(timetable.slot_at(instant), Some(expected.clone()), "{period} in {zone} at {instant}");
        }
    }
}

#[test]
fn a_part_of_a_day_begins_with_the_day_of_the_zone() {
    check_borders("UTC", "15m", &["2026-11-21T14:00:00", "2026-11-21T14:15:00", "2026-11-21T14:30:00"]);
    check_borders("Asia/Kathmandu", "30m", &["2026-11-21T14:15:00", "2026-11-21T14:45:00", "2026-11-21T15:15:00"]);
    check_borders("Asia/Kathmandu", "6h", &["2026-11-20T18:15:00", "2026-11-21T00:15:00", "2026-11-21T06:15:00"]);
    check_borders("UTC", "90m", &["2026-11-21T00:00:00", "2026-11-21T01:30:00", "2026-11-21T03:00:00"]);
    // A length that divides no day is counted from the epoch, in any zone.
    check_borders("Asia/Kathmandu", "7m", &["2026-11-21T13:57:00", "2026-11-21T14:04:00"]);
}

#[test]
fn a_part_of_a_day_that_is_longer_than_an_hour_keeps_its_wall_clock_times_where_the_clock_changes() {
    // Berlin goes forward at 01:00Z, and back at 01:00Z.
    check_borders(
        "Europe/Berlin",
        "6h",
        &[
            "2026-03-28T23:00:00",
            "2026-03-29T04:00:00",
            "2026-03-29T10:00:00",
            "2026-03-29T16:00:00",
            "2026-03-29T22:00:00",
        ],
    );
    check_borders(
        "Europe/Berlin",
        "6h",
        &[
            "2026-10-24T22:00:00",
            "2026-10-25T05:00:00",
            "2026-10-25T11:00:00",
            "2026-10-25T17:00:00",
            "2026-10-25T23:00:00",
        ],
    );
    // A border within the hour that is left out, and within the one that comes twice.
    check_borders("Europe/Berlin", "2h", &["2026-03-28T23:00:00", "2026-03-29T01:00:00", "2026-03-29T02:00:00"]);
    check_borders("Europe/Berlin", "2h", &["2026-10-24T22:00:00", "2026-10-25T00:00:00", "2026-10-25T03:00:00"]);
    check_borders("Europe/Berlin", "15m", &["2026-03-29T00:45:00", "2026-03-29T01:00:00", "2026-03-29T01:15:00"]);
}

#[test]
fn an_hour_is_that_of_the_zone_and_is_cut_where_the_clock_moves_by_half_an_hour() {
    check_borders("UTC", "hour", &["2026-11-21T14:00:00", "2026-11-21T15:00:00"]);
    check_borders("Asia/Kathmandu", "hour", &["2026-11-21T14:15:00", "2026-11-21T15:15:00"]);
    // Whole hours forward and back: the hours of UTC go on.
    check_borders("Europe/Berlin", "hour", &["2026-03-29T00:00:00", "2026-03-29T01:00:00", "2026-03-29T02:00:00"]);
    check_borders(
        "Europe/Berlin",
        "hour",
        &["2026-10-25T00:00:00", "2026-10-25T01:00:00", "2026-10-25T02:00:00", "2026-10-25T03:00:00"],
    );
    // A change by an hour in the middle of an hour does not cut it: St. John's, 00:01 (-2:30) → 23:01 (-3:30).
    check_borders("America/St_Johns", "hour", &["2010-11-07T01:30:00", "2010-11-07T02:30:00", "2010-11-07T03:30:00"]);
    // Lord Howe, back by half an hour at 15:00Z.
    check_borders(
        "Australia/Lord_Howe",
        "hour",
        &[
            "2026-04-04T13:00:00",
            "2026-04-04T14:00:00",
            "2026-04-04T15:00:00",
            "2026-04-04T15:30:00",
            "2026-04-04T16:30:00",
        ],
    );
    // And forward at 15:30Z.
    check_borders(
        "Australia/Lord_Howe",
        "hour",
        &["2026-10-03T14:30:00", "2026-10-03T15:30:00", "2026-10-03T16:00:00", "2026-10-03T17:00:00"],
    );
    // Caracas, forward by half an hour in the middle of an hour, at 07:00Z: the hour is cut short.
    check_borders(
        "America/Caracas",
        "hour",
        &["2016-05-01T05:30:00", "2016-05-01T06:30:00", "2016-05-01T07:00:00", "2016-05-01T08:00:00"],
    );
    // Kathmandu moved by 15 minutes at its midnight, which lay at half past in UTC.
    check_borders(
        "Asia/Kathmandu",
        "hour",
        &["1985-12-31T17:30:00", "1985-12-31T18:30:00", "1985-12-31T19:15:00", "1985-12-31T20:15:00"],
    );
}

#[test]
fn a_day_is_that_of_the_zone_with_as_many_hours_as_it_has() {
    check_borders("UTC", "day", &["2026-11-21T00:00:00", "2026-11-22T00:00:00"]);
    // 24, 23, 24 hours; 24, 25, 24 hours.
    check_borders(
        "Europe/Berlin",
        "day",
        &["2026-03-27T23:00:00", "2026-03-28T23:00:00", "2026-03-29T22:00:00", "2026-03-30T22:00:00"],
    );
    check_borders(
        "Europe/Berlin",
        "day",
        &["2026-10-23T22:00:00", "2026-10-24T22:00:00", "2026-10-25T23:00:00", "2026-10-26T23:00:00"],
    );
    // Midnight in the gap: the day begins at 01:00.
    check_borders("America/Sao_Paulo", "day", &["2018-11-03T03:00:00", "2018-11-04T03:00:00", "2018-11-05T02:00:00"]);
    // Back from midnight to 23:00: the evening is longer.
    check_borders("Africa/Cairo", "day", &["2026-10-28T21:00:00", "2026-10-29T22:00:00", "2026-10-30T22:00:00"]);
    // Back from 00:01 to 23:01: the day has begun, and goes on though the clock shows the old date again.
    check_borders("America/St_Johns", "day", &["2010-11-06T02:30:00", "2010-11-07T02:30:00", "2010-11-08T03:30:00"]);
    let (st_johns, again) = (timetable("0 0 * * *", "America/St_Johns", "day"), utc("2010-11-07T02:45:00"));
    assert_eq!(st_johns.slot_at(again), Some(slot("2010-11-07T02:30:00", "2010-11-08T03:30:00")));
    // 30 December 2011 does not exist.
    check_borders("Pacific/Apia", "day", &["2011-12-29T10:00:00", "2011-12-30T10:00:00", "2011-12-31T10:00:00"]);
}

#[test]
fn minutes_and_fixed_spans_are_what_they_say() {
    check_borders("Europe/Berlin", "minute", &["2026-03-29T00:59:00", "2026-03-29T01:00:00", "2026-03-29T01:01:00"]);
    // Monrovia was 44 minutes and 30 seconds behind until 7 January 1972.
    check_borders("Africa/Monrovia", "minute", &["1971-06-01T12:00:30", "1971-06-01T12:01:30"]);
    check_borders("Europe/Berlin", "5s", &["2026-11-21T14:00:00", "2026-11-21T14:00:05", "2026-11-21T14:00:10"]);
}

#[test]
fn a_tick_slot_lasts_until_the_next_tick() {
    let timetable = timetable("30 2 * * *", "Europe/Berlin", "tick");
    let before_gap = slot("2026-03-28T01:30:00", "2026-03-29T01:00:00");
    assert_eq!(timetable.slot_of(utc("2026-03-28T01:30:00")), Some(before_gap.clone()));
    assert_eq!(timetable.slot_at(utc("2026-03-29T00:59:59")), Some(before_gap));
    assert_eq!(timetable.slot_with_key("2026-03-29T02Z".parse().unwrap()), None);
    assert!(timetable.slot_with_key("2026-03-29T01Z".parse().unwrap()).is_some());
}

#[test]
fn a_key_at_which_no_slot_starts_has_no_slot() {
    for (period, key) in [("hour", "2026-11-21T14:30Z"), ("day", "2026-11-21T14Z"), ("5s", "2026-11-21T14:00:03Z")] {
        assert_eq!(timetable("0 * * * *", "UTC", period).slot_with_key(key.parse().unwrap()), None, "{period}");
    }
}

#[test]
fn slots_are_listed_once_with_their_first_tick_from_the_first_that_starts_within() {
    let timetable = timetable("*/20 9-10 * * *", "UTC", "hour");
    let listed: Vec<_> = timetable.slots(utc("2026-11-21T08:00:00"), utc("2026-11-22T10:00:00")).collect();
    assert_eq!(
        listed,
        [
            (slot("2026-11-21T09:00:00", "2026-11-21T10:00:00"), utc("2026-11-21T09:00:00")),
            (slot("2026-11-21T10:00:00", "2026-11-21T11:00:00"), utc("2026-11-21T10:00:00")),
            (slot("2026-11-22T09:00:00", "2026-11-22T10:00:00"), utc("2026-11-22T09:00:00")),
        ]
    );
    let late: Vec<_> = timetable.slots(utc("2026-11-21T09:00:01"), utc("2026-11-21T10:00:01")).collect();
    assert_eq!(late.len(), 1);
    assert_eq!(late[0].0.start(), utc("2026-11-21T10:00:00"));
    assert_eq!(timetable.slots(DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC).take(3).count(), 3);
    let berlin = self::timetable("0 * * * *", "Europe/Berlin", "day");
    let first = berlin.slots(DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC).next().unwrap();
    assert_eq!(first.0.key().to_string(), "1970-01-01T23Z");
    assert_eq!(timetable.slots(utc("2026-11-22T00:00:00"), utc("2026-11-21T00:00:00")).count(), 0);
}

#[test]
fn older_slots_are_those_with_a_tick_whose_run_may_have_lasted_until_now_newest_first() {
    let timetable = timetable("0 9-11 * * *", "UTC", "hour");
    let slot = timetable.slot_of(utc("2026-11-21T10:00:00")).unwrap();
    let starts = |hours: u64, most| -> Vec<String> {
        let older = timetable.older(&slot, Duration::from_secs(hours * 3_600), most);
        older.iter().map(|slot| slot.key().to_string()).collect()
    };
    assert_eq!(starts(23, 9), ["2026-11-21T09Z", "2026-11-20T11Z"]);
    assert_eq!(starts(24, 9), ["2026-11-21T09Z", "2026-11-20T11Z", "2026-11-20T10Z"]);
    assert_eq!(starts(24, 1), ["2026-11-21T09Z"]);
    assert_eq!(starts(0, 9), Vec::<String>::new());
}

#[test]
fn a_run_of_half_an_hour_that_began_at_the_end_of_the_hour_before_is_found() {
    let timetable = timetable("0 * * * *", "UTC", "hour");
    let slot = timetable.slot_of(utc("2026-11-21T14:00:00")).unwrap();
    let older = timetable.older(&slot, Duration::from_secs(31 * 60), 9);
    assert_eq!(older.iter().map(ToString::to_string).collect::<Vec<_>>(), ["job@2026-11-21T13Z"]);
}

fn with_jitter(name: &str, jitter: u64) -> Timetable {
    let mut spec = JobSpec::new(JobName::new(name).unwrap(), "55 * * * *", Program::Shell("true".to_owned()));
    spec.jitter = Duration::from_secs(jitter);
    Timetable::of(&spec).unwrap()
}

#[test]
fn the_delay_is_fixed_per_job_below_the_jitter_and_never_leaves_the_slot() {
    let tick = utc("2026-11-21T14:55:00");
    for number in 0..200 {
        let name = format!("job-{number}");
        let timetable = with_jitter(&name, 120);
        assert!(timetable.delay() < Duration::from_secs(120));
        assert_eq!(timetable.delay(), with_jitter(&name, 120).delay());
        let slot = timetable.slot_of(tick).unwrap();
        assert_eq!(timetable.fire_at(tick, &slot), tick + timetable.delay());
        let hasty = with_jitter(&name, 7_200);
        assert!((tick..slot.end()).contains(&hasty.fire_at(tick, &slot)), "{name}");
    }
    assert_eq!(with_jitter("job", 0).delay(), Duration::ZERO);
}

#[test]
fn words_that_are_no_timetable_are_refused_with_what_they_should_be() {
    let parse = |schedule, zone, period| Timetable::parse(JobName::new("job").unwrap(), schedule, zone, period);
    assert!(parse("0 * * *", "UTC", "hour").unwrap_err().to_string().contains("has 4 fields"));
    assert!(
        parse("0 * * * *", "Mars/Base", "hour").unwrap_err().to_string().contains("\"Mars/Base\" is not a time zone")
    );
    assert!(parse("0 * * * *", "UTC", "7m").is_ok(), "a service may have one, counted from the epoch");
    assert!(parse("0 * * * *", "UTC", "week").unwrap_err().to_string().contains("hour, minute, day or tick"));
    let mut spec = JobSpec::new(JobName::new("job").unwrap(), "@hourly", Program::Shell("true".to_owned()));
    for length in [Duration::ZERO, Duration::from_millis(1_500)] {
        spec.period = Period::Fixed(length);
        assert!(Timetable::of(&spec).unwrap_err().to_string().contains("whole number of seconds"));
    }
    spec.period = Period::Fixed(Duration::from_secs(u64::MAX));
    assert_eq!(Timetable::of(&spec).unwrap().slot_at(utc("2026-11-21T14:00:00")), None);
}

#[test]
fn a_change_of_the_clock_is_noted_where_the_job_notices_it() {
    let year = (utc("2026-01-01T00:00:00"), utc("2027-01-01T00:00:00"));
    let notes = |schedule, zone| {
        let notes = timetable(schedule, zone, "hour").dst_notes(year.0, year.1);
        notes.into_iter().map(|note| (note.effect, note.at)).collect::<Vec<_>>()
    };
    use DstEffect::{Repeated, Shifted, Skipped};
    let (spring, autumn) = (utc("2026-03-29T01:00:00"), utc("2026-10-25T01:00:00"));
    assert_eq!(notes("30 2 * * *", "Europe/Berlin"), [(Shifted, spring)]);
    assert_eq!(notes("*/30 2 * * *", "Europe/Berlin"), [(Skipped, spring), (Repeated, autumn)]);
    assert_eq!(notes("0 * * * *", "Europe/Berlin"), []);
    assert_eq!(notes("0 4 * * *", "Europe/Berlin"), []);
    assert_eq!(notes("*/30 2 * * *", "UTC"), []);
    let lord_howe = [(Repeated, utc("2026-04-04T15:00:00")), (Skipped, utc("2026-10-03T15:30:00"))];
    assert_eq!(notes("45 * * * *", "Australia/Lord_Howe"), lord_howe[..1]);
    assert_eq!(notes("15 * * * *", "Australia/Lord_Howe"), lord_howe[1..]);
    assert_eq!(notes("*/30 * * * *", "Australia/Lord_Howe"), []);
    let note = &timetable("30 2 * * *", "Europe/Berlin", "hour").dst_notes(year.0, year.1)[0];
    assert_eq!(
        note.to_string(),
        "2026-03-29 02:30:00 does not exist (the clock goes forward): fires at 03:00:00 instead"
    );
    let ends =
        timetable("30 2 * * *", "Europe/Berlin", "hour").dst_notes(DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC);
    assert!(ends.len() < 12, "at most ten years are looked at");
}

#[test]
fn a_check_can_ask_for_crowded_and_long_slots() {
    let from = utc("2026-01-01T00:00:00");
    assert!(timetable("*/20 * * * *", "UTC", "hour").ticks_per_slot_more_than_one());
    assert!(timetable("0,30 4 * * SUN", "UTC", "hour").ticks_per_slot_more_than_one());
    assert!(!timetable("0 * * * *", "Europe/Berlin", "hour").ticks_per_slot_more_than_one());
    assert!(!timetable("*/20 * * * *", "UTC", "tick").ticks_per_slot_more_than_one());
    let day = timetable("0 3 * * *", "Europe/Berlin", "day");
    assert_eq!(day.longest_slot(from, 365), Some(Duration::from_secs(25 * 3_600)));
    assert_eq!(day.longest_slot(from, 10), Some(Duration::from_secs(24 * 3_600)));
    assert!(day.ticks_in_some_slot(from));
}

/// An instant at a change of the zone's clock soon after `from`, if there is one; else `from`.
fn near_change(zone: &Zone, from: DateTime<Utc>) -> DateTime<Utc> {
    let offset = |at: DateTime<Utc>| *zone.local(at).offset();
    let hours = (0..9_000).map(|hour| from + TimeDelta::hours(hour));
    hours.into_iter().find(|at| offset(*at) != offset(*at + TimeDelta::hours(1))).unwrap_or(from)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn slots_cover_the_time_line_without_overlap_in_every_zone(
        zone in prop::sample::select(cronward::zone::known_names().collect::<Vec<_>>()),
        period in prop::sample::select(&["minute", "hour", "day", "tick", "7s", "5m", "45m", "90m", "2h", "6h"][..]),
        seconds in 200_000_i64..2_500_000_000,
        minutes in -1_500_i64..1_500,
        nanos in 0_i64..2,
    ) {
        let zone: Zone = zone.parse().unwrap();
        let timetable = timetable("*/20 2,5 * * *", zone.name(), period);
        let change = near_change(&zone, Utc.timestamp_opt(seconds, 0).unwrap());
        let at = change + TimeDelta::minutes(minutes) + TimeDelta::nanoseconds(nanos);
        let slot = timetable.slot_at(at).unwrap();
        prop_assert!(slot.start() <= at && at < slot.end(), "{zone} {slot} {at}");
        let just_before_end = slot.end() - TimeDelta::nanoseconds(1);
        prop_assert_eq!(timetable.slot_at(slot.start()), Some(slot.clone()), "{}", zone);
        prop_assert_eq!(timetable.slot_at(just_before_end), Some(slot.clone()), "{}", zone);
        prop_assert_eq!(timetable.slot_at(slot.end()).unwrap().start(), slot.end(), "{}", zone);
        let before = timetable.slot_at(slot.start() - TimeDelta::nanoseconds(1)).unwrap();
        prop_assert_eq!(before.end(), slot.start(), "{}", zone);
        let key: SlotKey = slot.key().to_string().parse().unwrap();
        prop_assert_eq!(timetable.slot_with_key(key), Some(slot), "{}", zone);
    }
}
