//! The wall-clock times that an expression names, as sets of bits: what of croner's reading is kept. A hundred bytes where
//! croner's own pattern has a table of ten thousand years, so that ten thousand expressions fit anywhere. Pure calendar:
//! never looks at a time zone.

use chrono::{Datelike, NaiveDate, NaiveDateTime, NaiveTime, Timelike};
use croner::{CronComponent, CronPattern};

/// No time is looked for outside of these years. The Gregorian calendar repeats after 400 years, so an expression with no
/// date in them has none at all.
const YEARS: std::ops::RangeInclusive<i32> = 1969..=2399;

// The marks of one value in croner 4, whose constants are not public; `tests/protocol/schedule/oracle.rs` holds this file to croner.
const PLAIN: u8 = 1;
const LAST: u8 = 1 << 6;
const NEAREST_WEEKDAY: u8 = 1 << 7;

/// Sets of numbers below 64, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Set(u64);

impl Set {
    fn of(component: &CronComponent, mark: u8) -> Self {
        Self(component.get_set_values(mark).into_iter().fold(0, |bits, value| bits | 1_u64.unbounded_shl(value.into())))
    }

    const fn has(self, value: u32) -> bool {
        self.0.unbounded_shr(value) & 1 == 1
    }

    pub(super) const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The least number in it that is not below `value`.
    fn from(self, value: u32) -> Option<u32> {
        let rest = self.0 & u64::MAX.unbounded_shl(value);
        (rest != 0).then(|| rest.trailing_zeros())
    }

    /// The greatest number in it that is not above `value`.
    fn until(self, value: u32) -> Option<u32> {
        let rest = self.0 & !u64::MAX.unbounded_shl(value + 1);
        (rest != 0).then(|| 63 - rest.leading_zeros())
    }

    fn least(self) -> u32 {
        self.from(0).unwrap_or(0)
    }

    fn greatest(self) -> u32 {
        self.until(63).unwrap_or(0)
    }

    pub(super) fn values(self) -> impl Iterator<Item = u32> {
        std::iter::successors(self.from(0), move |value| self.from(value + 1))
    }

    /// The least difference between two neighbours; none where there are not two.
    fn least_step(self) -> Option<u32> {
        self.values().zip(self.values().skip(1)).map(|(one, next)| next - one).min()
    }
}

/// The wall-clock times that an expression names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) seconds: Set,
    pub(super) minutes: Set,
    pub(super) hours: Set,
    pub(super) months: Set,
    days: Days,
}

/// The days of a pattern: of the month, of the week, and how the two go together.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Days {
    of_month: Set,
    /// `15W`: the weekday nearest to the 15th.
    nearest_weekday: Set,
    /// `L`, and with `weekday` also `LW`.
    last: bool,
    last_weekday: bool,
    of_week: Set,
    /// `MON#2`: by the number of the occurrence, from the first.
    nth: [Set; 5],
    /// `5L`.
    last_of_week: Set,
    any_of_month: bool,
    any_of_week: bool,
    both: bool,
}

impl Pattern {
    /// What croner read.
    pub(super) fn of(pattern: &CronPattern) -> Self {
        let (month, week) = (&pattern.days, &pattern.days_of_week);
        let (last, weekday) = (month.is_feature_enabled(LAST), month.is_feature_enabled(NEAREST_WEEKDAY));
        let days = Days {
            of_month: Set::of(month, PLAIN),
            nearest_weekday: Set::of(month, NEAREST_WEEKDAY),
            last: last && !weekday,
            last_weekday: last && weekday,
            of_week: Set::of(week, PLAIN),
            nth: [1, 2, 3, 4, 5].map(|nth: u8| Set::of(week, 1 << nth)),
            last_of_week: Set::of(week, LAST),
            any_of_month: pattern.is_dom_wildcard(),
            any_of_week: pattern.is_dow_wildcard(),
            both: pattern.matches_dom_and_dow(),
        };
        Self {
            seconds: Set::of(&pattern.seconds, PLAIN),
            minutes: Set::of(&pattern.minutes, PLAIN),
            hours: Set::of(&pattern.hours, PLAIN),
            months: Set::of(&pattern.months, PLAIN),
            days,
        }
    }

    /// The first time after another.
    pub(super) fn next(&self, after: NaiveDateTime) -> Option<NaiveDateTime> {
        let mut date = after.date();
        if date.year() < *YEARS.start() {
            date = NaiveDate::from_ymd_opt(*YEARS.start(), 1, 1)?;
        }
        if date == after.date()
            && self.is_day(date)
            && let Some(time) = second_of_day(after).checked_add(1).and_then(|second| self.time_from(second))
        {
            return at(date, time);
        }
        let first = if date == after.date() { date.succ_opt()? } else { date };
        at(self.day_from(first)?, self.time_from(0)?)
    }

    /// The last time at or before another.
    pub(super) fn last(&self, until: NaiveDateTime) -> Option<NaiveDateTime> {
        let mut date = until.date();
        if date.year() > *YEARS.end() {
            date = NaiveDate::from_ymd_opt(*YEARS.end(), 12, 31)?;
        }
        if date == until.date()
            && self.is_day(date)
            && let Some(time) = self.time_until(second_of_day(until))
        {
            return at(date, time);
        }
        let last = if date == until.date() { date.pred_opt()? } else { date };
        at(self.day_until(last)?, self.time_until(86_399)?)
    }

    /// The shortest span between two times that follow each other, in seconds, where no clock is changed; at most a day.
    pub(super) fn shortest_gap(&self) -> u32 {
        let seconds = self.seconds.greatest() - self.seconds.least();
        let minutes = 60 * (self.minutes.greatest() - self.minutes.least());
        let over_midnight = 24 + self.hours.least() - self.hours.greatest();
        let hours = self.hours.least_step().map_or(over_midnight, |step| step.min(over_midnight));
        let candidates = [
            self.seconds.least_step(),
            self.minutes.least_step().map(|step| 60 * step - seconds),
            Some(3_600 * hours - minutes - seconds),
        ];
        candidates.into_iter().flatten().min().unwrap_or(1).max(1)
    }

    /// The first second of a day that fits, from this one on.
    fn time_from(&self, second: u32) -> Option<u32> {
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        let later_minute = |hour, minute| Some(time(hour, self.minutes.from(minute)?, self.seconds.least()));
        let this_hour = || {
            let in_minute = self.seconds.from(second).filter(|_| self.minutes.has(minute));
            in_minute.map(|second| time(hour, minute, second)).or_else(|| later_minute(hour, minute + 1))
        };
        let this_hour = if self.hours.has(hour) { this_hour() } else { None };
        this_hour.or_else(|| later_minute(self.hours.from(hour + 1)?, 0))
    }

    /// The last second of a day that fits, up to this one.
    fn time_until(&self, second: u32) -> Option<u32> {
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        let earlier_minute = |hour, minute| Some(time(hour, self.minutes.until(minute)?, self.seconds.greatest()));
        let this_hour = || {
            let in_minute = self.seconds.until(second).filter(|_| self.minutes.has(minute));
            in_minute
                .map(|second| time(hour, minute, second))
                .or_else(|| minute.checked_sub(1).and_then(|minute| earlier_minute(hour, minute)))
        };
        let this_hour = if self.hours.has(hour) { this_hour() } else { None };
        this_hour.or_else(|| earlier_minute(self.hours.until(hour.checked_sub(1)?)?, 59))
    }

    fn day_from(&self, mut date: NaiveDate) -> Option<NaiveDate> {
        while date.year() <= *YEARS.end() {
            if !self.months.has(date.month()) {
                let (year, month) = (date.year(), date.month());
                date = NaiveDate::from_ymd_opt(year + i32::from(month == 12), month % 12 + 1, 1)?;
            } else if self.is_day(date) {
                return Some(date);
            } else {
                date = date.succ_opt()?;
            }
        }
        None
    }

    fn day_until(&self, mut date: NaiveDate) -> Option<NaiveDate> {
        while date.year() >= *YEARS.start() {
            if !self.months.has(date.month()) {
                date = date.with_day(1)?.pred_opt()?;
            } else if self.is_day(date) {
                return Some(date);
            } else {
                date = date.pred_opt()?;
            }
        }
        None
    }

    fn is_day(&self, date: NaiveDate) -> bool {
        self.months.has(date.month()) && self.days.fit(date)
    }
}

impl Days {
    /// Whether a date fits: where both days are restricted either is enough, unless both are asked for.
    fn fit(&self, date: NaiveDate) -> bool {
        match (self.any_of_month, self.any_of_week) {
            (true, true) => true,
            (true, false) => self.fits_week(date),
            (false, true) => self.fits_month(date),
            (false, false) if self.both => self.fits_month(date) && self.fits_week(date),
            (false, false) => self.fits_month(date) || self.fits_week(date),
        }
    }

    fn fits_month(&self, date: NaiveDate) -> bool {
        let (day, length) = (date.day(), u32::from(date.num_days_in_month()));
        self.of_month.has(day)
            || self.last && day == length
            || self.last_weekday && day == nearest_weekday(date, length)
            || self.nearest_weekday.values().any(|wanted| wanted <= length && day == nearest_weekday(date, wanted))
    }

    fn fits_week(&self, date: NaiveDate) -> bool {
        let weekday = date.weekday().num_days_from_sunday();
        let nth = usize::try_from((date.day() - 1) / 7).ok().and_then(|nth| self.nth.get(nth));
        let is_last = date.day() + 7 > u32::from(date.num_days_in_month());
        self.of_week.has(weekday)
            || nth.is_some_and(|set| set.has(weekday))
            || is_last && self.last_of_week.has(weekday)
    }
}

/// The day from Monday to Friday that is nearest to a day of the date's month, within that month.
fn nearest_weekday(date: NaiveDate, day: u32) -> u32 {
    let length = u32::from(date.num_days_in_month());
    let weekday = (date.weekday().num_days_from_sunday() + 35 + day - date.day()) % 7;
    match weekday {
        6 if day > 1 => day - 1,
        6 => day + 2,
        0 if day < length => day + 1,
        0 => day - 2,
        _ => day,
    }
}

const fn time(hour: u32, minute: u32, second: u32) -> u32 {
    hour * 3_600 + minute * 60 + second
}

fn second_of_day(at: NaiveDateTime) -> u32 {
    at.num_seconds_from_midnight()
}

fn at(date: NaiveDate, second: u32) -> Option<NaiveDateTime> {
    Some(date.and_time(NaiveTime::from_num_seconds_from_midnight_opt(second, 0)?))
}
