//! An oracle: what vixie cron does with a crontab, after its manual page and the shape of its main loop. Shares nothing with
//! the importer: it reads bit by bit, and walks the time line minute by minute.

use chrono::{DateTime, Datelike, NaiveDateTime, TimeDelta, Timelike, Utc};
use cronward::Zone;

/// The five fields of an entry.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    minute: u64,
    hour: u64,
    day: u64,
    month: u64,
    weekday: u64,
    day_star: bool,
    weekday_star: bool,
    /// A star before minute or hour.
    wild: bool,
}

/// Reads what stands before the command; panics at what cron would refuse.
pub(crate) fn entry(text: &str) -> Entry {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    match words[0] {
        "@yearly" | "@annually" => return entry("0 0 1 1 *"),
        "@monthly" => return entry("0 0 1 * *"),
        "@weekly" => return entry("0 0 * * 0"),
        "@daily" | "@midnight" => return entry("0 0 * * *"),
        "@hourly" => return entry("0 * * * *"),
        _ => {}
    }
    let star = |index: usize| words[index].starts_with('*');
    let days = bits(words[4], 0, 7);
    // Either Sunday is both.
    let sunday = if days & 0b1000_0001 == 0 { 0 } else { 0b1000_0001 };
    Entry {
        minute: bits(words[0], 0, 59),
        hour: bits(words[1], 0, 23),
        day: bits(words[2], 1, 31),
        month: bits(words[3], 1, 12),
        weekday: days | sunday,
        day_star: star(2),
        weekday_star: star(4),
        wild: star(0) || star(1),
    }
}

fn bits(field: &str, low: u64, high: u64) -> u64 {
    let mut bits = 0;
    for item in field.split(',') {
        let (range, step) = item.split_once('/').map_or((item, 1), |(range, step)| (range, step.parse().unwrap()));
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (low, high),
            Some((from, to)) => (number(from), number(to)),
            None => (number(range), number(range)),
        };
        assert!(low <= from && from <= to && to <= high, "{field}");
        let mut value = from;
        while value <= to {
            bits |= 1 << value;
            value += step;
        }
    }
    bits
}

fn number(text: &str) -> u64 {
    let names = ["sun", "mon", "tue", "wed", "thu", "fri", "sat", "jan", "feb", "mar", "apr", "may", "jun"];
    let later = ["jul", "aug", "sep", "oct", "nov", "dec"];
    let lower = text.to_ascii_lowercase();
    match names.iter().chain(&later).position(|name| *name == lower) {
        Some(index @ 0..=6) => index as u64,
        Some(index) => index as u64 - 6,
        None => text.parse().unwrap(),
    }
}

/// One look of cron at its entries: at an instant, for a minute of the clock, at entries of one kind or both.
struct Look {
    at: DateTime<Utc>,
    minute: NaiveDateTime,
    wild: bool,
    fixed: bool,
}

/// All its looks in a span of time.
pub(crate) struct Timeline(Vec<Look>);

impl Timeline {
    /// Walks through `(from, to]` in a zone. A jump of up to three hours is a change of the clock: entries with a star follow
    /// the clock, the others are made up for after a gap and not repeated.
    pub(crate) fn walk(zone: &Zone, from: DateTime<Utc>, to: DateTime<Utc>) -> Self {
        let shown = |at: DateTime<Utc>| zone.local(at).naive_local();
        let mut looks = Vec::new();
        let mut done = shown(from);
        let mut at = from + TimeDelta::minutes(1);
        while at <= to {
            let now = shown(at);
            let behind = (now - done).num_minutes();
            let mut look = |minute, wild, fixed| looks.push(Look { at, minute, wild, fixed });
            match behind {
                6..=180 => {
                    look(now, true, false);
                    while done < now {
                        done += TimeDelta::minutes(1);
                        look(done, false, true);
                    }
                }
                1..=5 => {
                    while done < now {
                        done += TimeDelta::minutes(1);
                        look(done, true, true);
                    }
                }
                -180..=0 => look(now, true, false),
                _ => panic!("the clock of {zone} jumps by {behind} minutes"),
            }
            at += TimeDelta::minutes(1);
        }
        Self(looks)
    }

    /// When cron runs an entry.
    pub(crate) fn runs(&self, entry: &Entry) -> Vec<DateTime<Utc>> {
        let due = |look: &&Look| (if entry.wild { look.wild } else { look.fixed }) && entry.fits(look.minute);
        let mut runs: Vec<_> = self.0.iter().filter(due).map(|look| look.at).collect();
        runs.dedup();
        runs
    }
}

impl Entry {
    fn fits(&self, minute: NaiveDateTime) -> bool {
        let has = |bits: u64, value: u32| bits & (1 << value) != 0;
        let (day, weekday) = (has(self.day, minute.day()), has(self.weekday, minute.weekday().num_days_from_sunday()));
        let days = if self.day_star || self.weekday_star { day && weekday } else { day || weekday };
        days && has(self.minute, minute.minute()) && has(self.hour, minute.hour()) && has(self.month, minute.month())
    }
}
