//! The ticks of cron expressions against a slow oracle that walks the time line minute by minute, in zones whose clock
//! changes in every way there is.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test says what it expects"
)]

use chrono::{DateTime, NaiveDateTime, TimeDelta, TimeZone, Timelike, Utc};
use croner::Cron;
use cronward::Zone;
use cronward::schedule::Schedule;
use proptest::prelude::*;

const MINUTE: TimeDelta = TimeDelta::minutes(1);

fn utc(text: &str) -> DateTime<Utc> {
    format!("{text}Z").parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn schedule(expression: &str, zone: &str) -> Schedule {
    Schedule::parse(expression, zone.parse().unwrap()).unwrap_or_else(|error| panic!("{error}"))
}

/// What the clock of a zone shows, by its rules alone.
fn shown(zone: &Zone, instant: DateTime<Utc>) -> NaiveDateTime {
    zone.local(instant).naive_local()
}

/// Ticks of an interval in `(from, to]`: each minute whose wall-clock time fits.
fn interval_by_walking(cron: &Cron, zone: &Zone, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<DateTime<Utc>> {
    let minutes = std::iter::successors(Some(from + MINUTE), |at| Some(*at + MINUTE)).take_while(|at| *at <= to);
    minutes.filter(|at| cron.is_time_matching(&shown(zone, *at)).unwrap()).collect()
}

/// Ticks of fixed times in `(from, to]`: each wall-clock minute that fits, at the first instant that shows it or a later one.
fn fixed_by_walking(cron: &Cron, zone: &Zone, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<DateTime<Utc>> {
    let margin = TimeDelta::days(2);
    let mut latest = NaiveDateTime::MIN;
    let mut ticks = Vec::new();
    let mut at = from - margin;
    while at <= to {
        let now = shown(zone, at);
        if latest != NaiveDateTime::MIN && now > latest {
            let mut wall = latest + MINUTE;
            while wall <= now {
                if cron.is_time_matching(&wall).unwrap() {
                    ticks.push(at);
                }
                wall += MINUTE;
            }
        }
        latest = latest.max(now);
        at += MINUTE;
    }
    ticks.dedup();
    ticks.retain(|tick| from < *tick && *tick <= to);
    ticks
}

/// Zones with all kinds of changes, each with an instant near one.
const CHANGES: [(&str, &str); 14] = [
    ("Europe/Berlin", "2026-03-29T01:00:00"),
    ("Europe/Berlin", "2026-10-25T01:00:00"),
    ("Europe/London", "2026-10-25T01:00:00"),
    ("America/New_York", "2026-03-08T07:00:00"),
    ("America/New_York", "2026-11-01T06:00:00"),
    ("Australia/Lord_Howe", "2026-04-04T15:00:00"),
    ("Australia/Lord_Howe", "2026-10-03T15:30:00"),
    ("America/Sao_Paulo", "2018-02-18T02:00:00"),
    ("America/Sao_Paulo", "2018-11-04T03:00:00"),
    ("Africa/Cairo", "2026-10-29T21:00:00"),
    ("Asia/Beirut", "2026-03-28T22:00:00"),
    ("America/St_Johns", "2010-11-07T02:31:00"),
    ("Pacific/Apia", "2011-12-30T10:00:00"),
    ("Asia/Kathmandu", "1985-12-31T18:30:00"),
];

const SECONDS: [&str; 4] = ["0", "*/13", "7,59", "*"];
const DATES: [&str; 16] = [
    "* * *",
    "L * *",
    "LW * *",
    "15W 2,3 *",
    "1W,31W * *",
    "29 2 *",
    "29 2 +MON",
    "13 * FRI",
    "13 * +FRI",
    "* * FRI#L",
    "* * MON#1,THU#3",
    "* * 5L",
    "*/2 * MON",
    "L 6-9 SUN#5",
    "31 */2 ?",
    "? 12 SUN-TUE",
];

const MINUTES: [&str; 6] = ["0", "30", "*/20", "*", "5,35", "0-59/15"];
const HOURS: [&str; 8] = ["*", "0", "2", "*/2", "1,2,3", "0-3", "23", "0-23"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn ticks_are_those_of_an_oracle_that_walks_the_time_line(
        change in prop::sample::select(&CHANGES[..]),
        minute in prop::sample::select(&MINUTES[..]),
        hour in prop::sample::select(&HOURS[..]),
        before in 0_i64..1_500,
        near in -90_i64..150,
    ) {
        let (zone, at) = change;
        let expression = format!("{minute} {hour} * * *");
        let schedule = schedule(&expression, zone);
        let zone: Zone = zone.parse().unwrap();
        let cron: Cron = expression.parse().unwrap();
        let from = utc(at) - TimeDelta::minutes(before);
        let to = from + TimeDelta::hours(30);
        let fixed = !expression.starts_with("* ") && !minute.contains('*') && !hour.contains('*') && hour != "0-23";
        let walk = if fixed { fixed_by_walking } else { interval_by_walking };
        let expected = walk(&cron, &zone, from, to);
        let ticks: Vec<_> = schedule.ticks_after(from).take_while(|tick| *tick <= to).collect();
        prop_assert_eq!(&ticks, &expected, "{} in {} after {}", expression, zone, from);
        let mut back: Vec<_> = std::iter::successors(schedule.last_until(to), |tick| {
            schedule.last_until(*tick - TimeDelta::nanoseconds(1))
        }).take_while(|tick| *tick > from).collect();
        back.reverse();
        prop_assert_eq!(&back, &expected, "{} in {} until {}", expression, zone, to);
        // From between the ticks, too: above all while the clock shows times for the second time.
        let near = utc(at) + TimeDelta::minutes(near);
        if let Some(expected) = expected.iter().rfind(|tick| **tick <= near) {
            prop_assert_eq!(schedule.last_until(near), Some(*expected), "{} in {} until {}", expression, zone, near);
        }
        if let Some(expected) = expected.iter().find(|tick| **tick > near).filter(|_| from < near) {
            prop_assert_eq!(schedule.next_after(near), Some(*expected), "{} in {} after {}", expression, zone, near);
        }
    }

    #[test]
    fn the_calendar_is_searched_as_croner_searches_it(
        second in prop::sample::select(&SECONDS[..]),
        minute in prop::sample::select(&MINUTES[..]),
        hour in prop::sample::select(&HOURS[..]),
        date in prop::sample::select(&DATES[..]),
        seconds in 0_i64..9_000_000_000,
    ) {
        let expression = format!("{second} {minute} {hour} {date}");
        let (cron, ours) = (expression.parse::<Cron>().unwrap(), schedule(&expression, "UTC"));
        let at = Utc.timestamp_opt(seconds, 0).unwrap();
        let wall = at.naive_utc();
        let next = cron.find_next_occurrence(&wall, false).unwrap().and_utc();
        prop_assert_eq!(ours.next_after(at), Some(next), "{} after {}", expression, at);
        let last = cron.find_previous_occurrence(&wall, true).ok().map(|last| last.and_utc());
        let last = last.filter(|last| *last >= DateTime::UNIX_EPOCH);
        prop_assert_eq!(ours.last_until(at), last, "{} until {}", expression, at);
    }

    #[test]
    fn the_next_tick_is_after_and_the_last_one_is_not(
        zone in prop::sample::select(cronward::zone::known_names().collect::<Vec<_>>()),
        minute in prop::sample::select(&MINUTES[..]),
        hour in prop::sample::select(&HOURS[..]),
        day in prop::sample::select(&["* * *", "1 * *", "* * SUN", "L * *", "13 * FRI", "* 3,10 *"][..]),
        seconds in 0_i64..4_000_000_000,
        nanos in 0_u32..2,
    ) {
        let schedule = schedule(&format!("{minute} {hour} {day}"), zone);
        let instant = Utc.timestamp_opt(seconds, nanos * 500_000_000).unwrap();
        let next = schedule.next_after(instant).unwrap();
        prop_assert!(next > instant);
        prop_assert_eq!(next.nanosecond(), 0);
        prop_assert_eq!(schedule.last_until(next), Some(next));
        prop_assert!(schedule.next_after(next).unwrap() > next);
        if let Some(last) = schedule.last_until(instant) {
            prop_assert!(last <= instant);
            // Nothing lies between the two, from either side.
            prop_assert_eq!(schedule.next_after(last), Some(next));
            prop_assert_eq!(schedule.last_until(next - TimeDelta::nanoseconds(1)), Some(last));
        }
    }
}
