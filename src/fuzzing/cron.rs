//! Cron expressions, and the search for their ticks.

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::{NOON, is_one_line};
use crate::schedule::Schedule;

/// Zones whose clocks do odd things: none, an hour, half an hour, at midnight, a whole day.
const ZONES: [Tz; 6] = [
    Tz::UTC,
    Tz::Europe__Berlin,
    Tz::Australia__Lord_Howe,
    Tz::America__Sao_Paulo,
    Tz::Pacific__Apia,
    Tz::Asia__Tehran,
];

/// Where the search begins: far outside of the calendar, at its ends, at changes of clocks.
fn starts() -> [DateTime<Utc>; 6] {
    let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap_or(NOON);
    [NOON, DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC, at(-1), at(1_325_239_200), at(13_569_292_799)]
}

/// The first byte chooses the zone, the rest is the expression.
pub fn cron(bytes: &[u8]) -> bool {
    let (choice, text) = bytes.split_first().map_or((0, bytes), |(first, rest)| (*first, rest));
    let zone = ZONES.get(usize::from(choice) % ZONES.len()).copied().unwrap_or(Tz::UTC);
    let text = String::from_utf8_lossy(text);
    match Schedule::parse(&text, zone) {
        Ok(schedule) => {
            assert_eq!(Schedule::parse(schedule.text(), zone).as_ref(), Ok(&schedule));
            is_one_line(&schedule.describe());
            starts().into_iter().for_each(|start| ticks_are_in_order(&schedule, start));
            true
        }
        Err(error) => {
            is_one_line(&error.to_string());
            error.hint.iter().for_each(|hint| is_one_line(hint));
            false
        }
    }
}

/// Forwards they rise, and backwards each is found from itself.
fn ticks_are_in_order(schedule: &Schedule, start: DateTime<Utc>) {
    let mut before = start;
    for tick in schedule.ticks_after(start).take(4) {
        assert!(tick > before, "{tick} after {before}");
        assert_eq!(schedule.last_until(tick), Some(tick), "backwards from {tick}");
        before = tick;
    }
    if let Some(last) = schedule.last_until(start) {
        assert!(last <= start);
        let next = schedule.next_after(last - TimeDelta::seconds(1));
        assert_eq!(next, Some(last), "forwards to {last}");
    }
}
