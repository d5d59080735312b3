//! The ticks of cron expressions around changes of the clock, against vectors made by hand from the tz database and the
//! rule of vixie cron.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test says what it expects"
)]

use chrono::{DateTime, FixedOffset, MappedLocalTime, NaiveDate, NaiveDateTime, Offset, TimeDelta, TimeZone, Utc};
use croner::Cron;
use cronward::Zone;
use cronward::schedule::Schedule;

fn utc(text: &str) -> DateTime<Utc> {
    format!("{text}Z").parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn schedule(expression: &str, zone: &str) -> Schedule {
    Schedule::parse(expression, zone.parse().unwrap()).unwrap_or_else(|error| panic!("{error}"))
}

/// Zone, expression, an instant, and the ticks after it, all in UTC.
type Vector = (&'static str, &'static str, &'static str, &'static [&'static str]);

/// Checks the ticks forwards, and that the way back meets the same.
fn check(vectors: &[Vector]) {
    for &(zone, expression, from, expected) in vectors {
        let schedule = schedule(expression, zone);
        let ticks: Vec<_> = schedule.ticks_after(utc(from)).take(expected.len()).collect();
        let expected: Vec<_> = expected.iter().map(|text| utc(text)).collect();
        assert_eq!(ticks, expected, "{expression} in {zone} after {from}");
        for pair in ticks.windows(2) {
            let just_before = pair[1] - TimeDelta::nanoseconds(1);
            assert_eq!(schedule.last_until(just_before), Some(pair[0]), "{expression} in {zone} until {just_before}");
            assert_eq!(schedule.last_until(pair[1]), Some(pair[1]), "{expression} in {zone}");
        }
    }
}

#[test]
fn a_fixed_time_in_the_gap_ticks_once_right_after_it() {
    check(&[
        // 29 March 2026, 02:00 CET → 03:00 CEST at 01:00Z.
        (
            "Europe/Berlin",
            "30 2 * * *",
            "2026-03-28T00:00:00",
            &["2026-03-28T01:30:00", "2026-03-29T01:00:00", "2026-03-30T00:30:00"],
        ),
        ("Europe/Berlin", "0 2 * * *", "2026-03-28T12:00:00", &["2026-03-29T01:00:00", "2026-03-30T00:00:00"]),
        // Several times in one gap, and one at its end, are one tick.
        (
            "Europe/Berlin",
            "0,30 2,3 * * *",
            "2026-03-28T12:00:00",
            &["2026-03-29T01:00:00", "2026-03-29T01:30:00", "2026-03-30T00:00:00"],
        ),
        // A list of hours is not an interval.
        (
            "Europe/Berlin",
            "15 2,14 * * *",
            "2026-03-28T13:15:00",
            &["2026-03-29T01:00:00", "2026-03-29T12:15:00", "2026-03-30T00:15:00"],
        ),
        ("Europe/Berlin", "15 30 2 * * *", "2026-03-28T12:00:00", &["2026-03-29T01:00:00", "2026-03-30T00:30:15"]),
        // 29 March 2026, 01:00 GMT → 02:00 BST at 01:00Z.
        ("Europe/London", "30 1 * * *", "2026-03-28T12:00:00", &["2026-03-29T01:00:00", "2026-03-30T00:30:00"]),
        // 8 March 2026, 02:00 EST → 03:00 EDT at 07:00Z.
        ("America/New_York", "30 2 * * *", "2026-03-07T12:00:00", &["2026-03-08T07:00:00", "2026-03-09T06:30:00"]),
        // 4 October 2026, 02:00 (+10:30) → 02:30 (+11) at 15:30Z of the day before.
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03T00:00:00", &["2026-10-03T15:30:00", "2026-10-04T15:15:00"]),
        // Midnight in the gap. Sao Paulo, 4 November 2018, 00:00 (-3) → 01:00 (-2) at 03:00Z.
        (
            "America/Sao_Paulo",
            "0 0 * * *",
            "2018-11-03T00:00:00",
            &["2018-11-03T03:00:00", "2018-11-04T03:00:00", "2018-11-05T02:00:00"],
        ),
        // Cairo, 24 April 2026, 00:00 (+2) → 01:00 (+3) at 22:00Z of the day before.
        ("Africa/Cairo", "0 0 * * *", "2026-04-23T00:00:00", &["2026-04-23T22:00:00", "2026-04-24T21:00:00"]),
        ("Africa/Cairo", "30 0 24 4 *", "2026-04-01T00:00:00", &["2026-04-23T22:00:00"]),
        // Beirut, 29 March 2026, 00:00 (+2) → 01:00 (+3) at 22:00Z of the day before.
        ("Asia/Beirut", "0 0 * * *", "2026-03-28T00:00:00", &["2026-03-28T22:00:00", "2026-03-29T21:00:00"]),
        // Apia left out 30 December 2011: from -10 to +14 at 10:00Z.
        (
            "Pacific/Apia",
            "0 12 * * *",
            "2011-12-29T00:00:00",
            &["2011-12-29T22:00:00", "2011-12-30T10:00:00", "2011-12-30T22:00:00"],
        ),
        // No change at all.
        ("UTC", "30 2 * * *", "2026-03-28T12:00:00", &["2026-03-29T02:30:00", "2026-03-30T02:30:00"]),
    ]);
}

#[test]
fn a_fixed_time_beside_the_gap_does_not_notice_it() {
    check(&[
        ("Europe/London", "0 0 * * *", "2026-03-28T12:00:00", &["2026-03-29T00:00:00", "2026-03-29T23:00:00"]),
        ("Europe/Berlin", "59 1 * * *", "2026-03-28T12:00:00", &["2026-03-29T00:59:00", "2026-03-29T23:59:00"]),
        ("Europe/Berlin", "0 3 * * *", "2026-03-28T12:00:00", &["2026-03-29T01:00:00", "2026-03-30T01:00:00"]),
        ("Europe/Berlin", "0 0 * * *", "2026-03-28T12:00:00", &["2026-03-28T23:00:00", "2026-03-29T22:00:00"]),
    ]);
}

#[test]
fn a_fixed_time_that_comes_twice_ticks_the_first_time() {
    check(&[
        // 25 October 2026, 03:00 CEST → 02:00 CET at 01:00Z.
        (
            "Europe/Berlin",
            "30 2 * * *",
            "2026-10-24T12:00:00",
            &["2026-10-25T00:30:00", "2026-10-26T01:30:00", "2026-10-27T01:30:00"],
        ),
        ("Europe/Berlin", "30 2 * * *", "2026-10-25T00:30:00", &["2026-10-26T01:30:00"]),
        ("Europe/Berlin", "30 2 * * *", "2026-10-25T01:15:00", &["2026-10-26T01:30:00"]),
        (
            "Europe/Berlin",
            "0,30 1-3 * * *",
            "2026-10-24T23:00:00",
            &[
                "2026-10-24T23:30:00",
                "2026-10-25T00:00:00",
                "2026-10-25T00:30:00",
                "2026-10-25T02:00:00",
                "2026-10-25T02:30:00",
            ],
        ),
        // 25 October 2026, 02:00 BST → 01:00 GMT at 01:00Z.
        ("Europe/London", "0 1 * * *", "2026-10-24T12:00:00", &["2026-10-25T00:00:00", "2026-10-26T01:00:00"]),
        // 1 November 2026, 02:00 EDT → 01:00 EST at 06:00Z.
        ("America/New_York", "30 1 * * *", "2026-10-31T12:00:00", &["2026-11-01T05:30:00", "2026-11-02T06:30:00"]),
        // 5 April 2026, 02:00 (+11) → 01:30 (+10:30) at 15:00Z of the day before.
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-04T00:00:00", &["2026-04-04T14:45:00", "2026-04-05T15:15:00"]),
        // Midnight comes twice: Cairo, 29 October 2026, 24:00 (+3) → 23:00 (+2) at 21:00Z: 23:30 twice, midnight once.
        ("Africa/Cairo", "30 23 * * *", "2026-10-29T00:00:00", &["2026-10-29T20:30:00", "2026-10-30T21:30:00"]),
        ("Africa/Cairo", "0 0 * * *", "2026-10-29T00:00:00", &["2026-10-29T22:00:00", "2026-10-30T22:00:00"]),
    ]);
}

#[test]
fn an_interval_goes_on_in_order_through_gap_and_fold() {
    check(&[
        (
            "America/New_York",
            "*/30 * * * *",
            "2026-11-01T04:45:00",
            &[
                "2026-11-01T05:00:00",
                "2026-11-01T05:30:00",
                "2026-11-01T06:00:00",
                "2026-11-01T06:30:00",
                "2026-11-01T07:00:00",
            ],
        ),
        (
            "Europe/Berlin",
            "0 * * * *",
            "2026-10-24T23:30:00",
            &["2026-10-25T00:00:00", "2026-10-25T01:00:00", "2026-10-25T02:00:00"],
        ),
        (
            "Europe/Berlin",
            "0 * * * *",
            "2026-03-28T23:30:00",
            &["2026-03-29T00:00:00", "2026-03-29T01:00:00", "2026-03-29T02:00:00"],
        ),
        // Inside of the hour that comes twice, and nowhere else.
        (
            "Europe/Berlin",
            "*/30 2 * * *",
            "2026-10-24T12:00:00",
            &[
                "2026-10-25T00:00:00",
                "2026-10-25T00:30:00",
                "2026-10-25T01:00:00",
                "2026-10-25T01:30:00",
                "2026-10-26T01:00:00",
            ],
        ),
        // In the gap, an interval has no tick.
        (
            "Europe/Berlin",
            "*/30 2 * * *",
            "2026-03-28T01:00:00",
            &["2026-03-28T01:30:00", "2026-03-30T00:00:00", "2026-03-30T00:30:00"],
        ),
        ("Europe/London", "0 */1 * * *", "2026-03-29T00:00:00", &["2026-03-29T01:00:00", "2026-03-29T02:00:00"]),
        // Half an hour back: 01:30 to 02:00 twice, and 02:00 after 90 minutes.
        (
            "Australia/Lord_Howe",
            "*/15 * * * *",
            "2026-04-04T14:29:00",
            &[
                "2026-04-04T14:30:00",
                "2026-04-04T14:45:00",
                "2026-04-04T15:00:00",
                "2026-04-04T15:15:00",
                "2026-04-04T15:30:00",
            ],
        ),
        (
            "Australia/Lord_Howe",
            "0 * * * *",
            "2026-04-04T13:00:00",
            &["2026-04-04T14:00:00", "2026-04-04T15:30:00", "2026-04-04T16:30:00"],
        ),
        // Half an hour forward: 02:00 does not exist.
        (
            "Australia/Lord_Howe",
            "0 * * * *",
            "2026-10-03T13:30:00",
            &["2026-10-03T14:30:00", "2026-10-03T16:00:00", "2026-10-03T17:00:00"],
        ),
        (
            "Africa/Cairo",
            "*/30 * * * *",
            "2026-04-23T21:15:00",
            &["2026-04-23T21:30:00", "2026-04-23T22:00:00", "2026-04-23T22:30:00"],
        ),
        (
            "America/New_York",
            "*/20 * * * * *",
            "2026-03-08T06:59:20",
            &["2026-03-08T06:59:40", "2026-03-08T07:00:00", "2026-03-08T07:00:20"],
        ),
    ]);
}

#[test]
fn either_day_is_enough_when_both_are_restricted() {
    check(&[
        (
            "UTC",
            "0 0 13 * FRI",
            "2026-11-01T00:00:00",
            // The 13th is a Friday itself.
            &["2026-11-06T00:00:00", "2026-11-13T00:00:00", "2026-11-20T00:00:00", "2026-11-27T00:00:00"],
        ),
        (
            "UTC",
            "0 0 13 12 FRI",
            "2026-12-01T00:00:00",
            &["2026-12-04T00:00:00", "2026-12-11T00:00:00", "2026-12-13T00:00:00"],
        ),
        ("UTC", "0 0 13 * +FRI", "2026-01-01T00:00:00", &["2026-02-13T00:00:00", "2026-03-13T00:00:00"]),
        ("UTC", "0 0 ? * FRI", "2026-12-01T00:00:00", &["2026-12-04T00:00:00", "2026-12-11T00:00:00"]),
        ("UTC", "0 0 13 * *", "2026-12-01T00:00:00", &["2026-12-13T00:00:00", "2027-01-13T00:00:00"]),
        // The day that the week begins with, and not the whole week.
        ("UTC", "0 0 * * SUN-SUN", "2026-12-01T00:00:00", &["2026-12-06T00:00:00", "2026-12-13T00:00:00"]),
        ("UTC", "0 0 * * 0-SUN", "2026-12-01T00:00:00", &["2026-12-06T00:00:00", "2026-12-13T00:00:00"]),
        ("UTC", "0 0 * * SAT-SUN", "2026-12-01T00:00:00", &["2026-12-05T00:00:00", "2026-12-06T00:00:00"]),
    ]);
}

#[test]
fn rare_dates_are_found_and_the_search_ends() {
    check(&[
        ("UTC", "0 0 29 2 *", "2096-03-01T00:00:00", &["2104-02-29T00:00:00"]),
        ("UTC", "0 0 29 2 +MON", "2072-03-01T00:00:00", &["2112-02-29T00:00:00"]),
        ("UTC", "0 0 1 1 *", "1969-06-01T00:00:00", &["1970-01-01T00:00:00"]),
    ]);
    let schedule = schedule("0 0 * * *", "Europe/Berlin");
    for instant in [DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC, utc("2400-01-01T00:00:00")] {
        let (next, last) = (schedule.next_after(instant), schedule.last_until(instant));
        assert!(next.is_none_or(|tick| tick > instant));
        assert!(last.is_none_or(|tick| tick <= instant));
    }
    assert_eq!(schedule.last_until(utc("1969-12-31T00:00:00")), None);
}

#[test]
fn an_interval_that_lies_in_the_gap_each_year_has_no_tick_and_says_so_soon() {
    // Cairo's clock has gone forward at midnight of the last Friday of April since 2023; by the rules of today.
    let schedule = schedule("*/15 0 * 4 FRI#L", "Africa/Cairo");
    let next = schedule.next_after(utc("2026-01-01T00:00:00"));
    assert!(next.is_none_or(|tick| tick > utc("2090-01-01T00:00:00")), "{next:?}");
}

#[test]
fn an_expression_is_told_in_words() {
    for (expression, words) in [
        ("30 2 * * *", "At 02:30."),
        ("*/15 * * * *", "At every 15 minutes."),
        ("@hourly", "At minute 0 past every hour."),
        ("0 0 13 * FRI", "At 00:00, on day 13 or Friday."),
        // A step that does not divide its range is no "every".
        ("*/7 * * * *", "At minute 0, 7, 14, 21, 28, 35, 42, 49, and 56 past every hour."),
        ("*/59 * * * *", "At minute 0 and 59 past every hour."),
        ("*/90 * * * *", "At minute 0 past every hour."),
        ("0-20/2 * * * *", "At minute 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, and 20 past every hour."),
        ("0-59/20 * * * *", "At every 20 minutes."),
        ("0 0 1 */5 *", "At 00:00, on day 1, in January, June, and November."),
        ("0 0 * * SUN-SUN", "At 00:00, on Sunday."),
    ] {
        assert_eq!(schedule(expression, "UTC").describe(), words);
    }
}

/// A zone as croner takes it.
#[derive(Clone, Debug)]
struct Chrono(Zone);

/// An offset that knows its zone.
#[derive(Clone, Debug)]
struct ChronoOffset(Zone, FixedOffset);

impl Offset for ChronoOffset {
    fn fix(&self) -> FixedOffset {
        self.1
    }
}

impl TimeZone for Chrono {
    type Offset = ChronoOffset;

    fn from_offset(offset: &ChronoOffset) -> Self {
        Self(offset.0.clone())
    }

    fn offset_from_local_date(&self, _: &NaiveDate) -> MappedLocalTime<ChronoOffset> {
        MappedLocalTime::None
    }

    fn offset_from_local_datetime(&self, wall: &NaiveDateTime) -> MappedLocalTime<ChronoOffset> {
        let offset = |days| self.offset_from_utc_datetime(&(*wall + TimeDelta::days(days)));
        let shows = |offset: &ChronoOffset| self.offset_from_utc_datetime(&(*wall - offset.1)).1 == offset.1;
        let (before, after) = (offset(-1), offset(1));
        match (shows(&before), shows(&after)) {
            (true, true) if before.1 != after.1 => MappedLocalTime::Ambiguous(before, after),
            (true, _) => MappedLocalTime::Single(before),
            (false, true) => MappedLocalTime::Single(after),
            (false, false) => MappedLocalTime::None,
        }
    }

    fn offset_from_utc_date(&self, date: &NaiveDate) -> ChronoOffset {
        self.offset_from_utc_datetime(&date.and_hms_opt(0, 0, 0).unwrap())
    }

    fn offset_from_utc_datetime(&self, utc: &NaiveDateTime) -> ChronoOffset {
        ChronoOffset(self.0.clone(), *self.0.local(utc.and_utc()).offset())
    }
}

#[test]
fn croner_s_own_search_in_a_zone_still_differs_where_ours_says_so() {
    // When this fails, croner has changed: see `src/schedule/expression.rs`.
    let next = |expression: &str, zone: &str, from: &str| {
        let zone = Chrono(zone.parse().unwrap());
        let cron: Cron = expression.parse().unwrap();
        cron.find_next_occurrence(&utc(from).with_timezone(&zone), false).map(|tick| tick.to_utc()).ok()
    };
    // A list of hours is skipped in the gap, and repeated in the fold.
    let berlin = "Europe/Berlin";
    assert_eq!(next("15 2,14 * * *", berlin, "2026-03-28T14:00:00"), Some(utc("2026-03-29T12:15:00")));
    assert_eq!(next("15 2,14 * * *", berlin, "2026-10-25T00:15:00"), Some(utc("2026-10-25T01:15:00")));
    // A gap of a day ends the search.
    assert_eq!(next("0 12 * * *", "Pacific/Apia", "2011-12-29T22:00:00"), None);
}
