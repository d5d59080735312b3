//! What a schedule does that may not be meant: told by `check` and `next`. Looks at the text of its fields, at a bounded number of
//! its ticks, and at what the changes of the clock do to them; never changes anything.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};

use crate::clock::between;
use crate::schedule::fields::{FIELDS, Field};
use crate::schedule::zone::{changes, wall_clock};
use crate::schedule::{Schedule, Timetable};
use crate::slot::Period;
use crate::zone::Zone;

/// Ticks looked at: more than a year of a daily job.
const SAMPLE: usize = 400;

impl Timetable {
    /// Whether some slot has more than one tick: those after the first are only retries. Changes of the clock, which can bring
    /// two ticks together once a year, do not count.
    pub fn ticks_per_slot_more_than_one(&self) -> bool {
        let pattern = &self.schedule().compiled().pattern;
        let in_minute = pattern.seconds.len();
        let in_hour = in_minute * pattern.minutes.len();
        match self.period() {
            Period::Tick => false,
            Period::Minute => in_minute > 1,
            Period::Hour => in_hour > 1,
            Period::Day => in_hour * pattern.hours.len() > 1,
            Period::Fixed(length) => self.shortest_gap() < length,
        }
    }

    /// The shortest slot, but for changes of the clock: of `tick` the shortest time between two ticks, at most a day. It does
    /// not depend on the date, so that all nodes say the same.
    pub fn shortest_slot(&self) -> Duration {
        match self.period() {
            Period::Minute => Duration::from_secs(60),
            Period::Hour => Duration::from_secs(3_600),
            Period::Day => Duration::from_secs(86_400),
            Period::Tick => self.shortest_gap(),
            Period::Fixed(length) => length,
        }
    }

    fn shortest_gap(&self) -> Duration {
        Duration::from_secs(self.schedule().compiled().pattern.shortest_gap().into())
    }

    /// Whether any tick, and so any slot, comes after an instant. A time that lies in the gap each time (00:30 on the day
    /// the clock goes forward at midnight, as an interval) never comes although dates fit.
    pub fn ticks_in_some_slot(&self, from: DateTime<Utc>) -> bool {
        self.schedule().next_after(from).is_some()
    }

    /// The longest slot among those of the next `ticks` ticks (at most 400), for a done marker that must outlive it.
    pub fn longest_slot(&self, from: DateTime<Utc>, ticks: usize) -> Option<Duration> {
        let (next, ticks) = (self.schedule().ticks_after(from), ticks.min(SAMPLE));
        if self.period() == Period::Tick {
            let next: Vec<_> = next.take(ticks + 1).collect();
            return next.iter().zip(next.iter().skip(1)).map(|(tick, next)| between(*tick, *next)).max();
        }
        let slots = next.take(ticks).filter_map(|tick| self.slot_of(tick));
        slots.map(|slot| between(slot.start(), slot.end())).max()
    }
}

/// Something that may not be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// A stable word, like `long-step`.
    pub code: &'static str,
    /// What is so, a lowercase fragment.
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

impl Schedule {
    /// What may not be meant: a step that is longer than its range, and two days of which Debian's cron wants both.
    pub fn remarks(&self) -> Vec<Remark> {
        let fields = self.compiled().fields();
        let steps = FIELDS.iter().zip(fields).filter_map(|(field, text)| long_step(field, text));
        // Six fields are no cron's.
        let of_cron = self.text().split_ascii_whitespace().count() == 5;
        steps.chain(of_cron.then(|| star_day(fields)).flatten()).collect()
    }
}

/// The first item of a field whose step leaves nothing but its first value.
fn long_step(field: &Field, text: &str) -> Option<Remark> {
    let list = text.strip_prefix('+').unwrap_or(text);
    list.split(',').find_map(|item| {
        let (range, step) = item.split_once('/')?;
        // The second Sunday is no further day.
        let all = (field.least, field.most.min(if field.name == "day-of-week" { 6 } else { field.most }));
        let (from, to) = match range.split_once('-') {
            Some((from, to)) => (field.number(from)?, field.number(to)?),
            None => all,
        };
        if step.parse::<u32>().ok()? <= to.checked_sub(from)? || from == to && step == "1" {
            return None;
        }
        let name = field.name;
        Some(Remark {
            code: "long-step",
            message: format!(
                "{name} {item:?} means {name} {from} alone: the step is longer than the range {from}-{to}"
            ),
            hint: format!("write {from}, or a step of at most {}", to - from),
        })
    })
}

/// Two restricted days of which one begins with a star: a star to Debian's cron, which then wants both days to fit.
fn star_day([_, _, _, day, _, weekday]: [&str; 6]) -> Option<Remark> {
    let is_any = |text: &str| matches!(text, "*" | "?");
    let culprit = [day, weekday].into_iter().find(|text| text.starts_with('*'))?;
    if is_any(day) || is_any(weekday) || weekday.starts_with('+') {
        return None;
    }
    let all = if culprit == day { "1-31" } else { "0-6" };
    let range = culprit.replacen('*', all, 1);
    Some(Remark {
        code: "star-day",
        message: format!(
            "day-of-month {day} and day-of-week {weekday}: cronward runs the job when either day fits; Debian's cron runs it \
             only when both fit, because {culprit} begins with *"
        ),
        hint: format!("write +{weekday} if both must fit, or {range} instead of {culprit} if either is enough"),
    })
}

/// The longest span that is looked at, from its start.
const FURTHEST: TimeDelta = TimeDelta::days(10 * 366);

/// What a change of the clock does to ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DstEffect {
    /// The clock goes forward over times of a fixed expression: they become one tick, right after the gap.
    Shifted,
    /// The clock goes forward over times of an interval expression: they have no tick.
    Skipped,
    /// The clock goes back over times of an interval expression: they tick a second time.
    Repeated,
}

/// A change of the clock that a job notices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DstNote {
    /// When the clock changes; for `Shifted`, the tick.
    pub at: DateTime<Utc>,
    /// What it does.
    pub effect: DstEffect,
    /// The first wall-clock time of the expression that it does this to.
    pub wall: NaiveDateTime,
    /// What the clock shows right after the change.
    pub shown: NaiveDateTime,
}

impl fmt::Display for DstNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (wall, shown) = (self.wall.format("%Y-%m-%d %H:%M:%S"), self.shown.format("%H:%M:%S"));
        match self.effect {
            DstEffect::Shifted => write!(f, "{wall} does not exist (the clock goes forward): fires at {shown} instead"),
            DstEffect::Skipped => write!(f, "{wall} does not exist (the clock goes forward): does not fire"),
            DstEffect::Repeated => write!(f, "{wall} comes twice (the clock goes back to {shown}): fires twice"),
        }
    }
}

/// The changes of a zone's clock in `(from, to]`, in order; at most ten years are looked at.
pub fn clock_changes(zone: &Zone, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<DateTime<Utc>> {
    let from = from.max(DateTime::UNIX_EPOCH);
    let to = from.checked_add_signed(FURTHEST).map_or(from, |furthest| to.min(furthest));
    changes(zone, from, to).collect()
}

impl Timetable {
    /// The changes of the clock in `(from, to]` that move, swallow or double ticks, in order; at most ten years are looked
    /// at. An expression that ticks at the same times of every hour does not notice a change by whole hours, and a fixed
    /// time that comes twice ticks once, as if there were no change: neither is told.
    pub fn dst_notes(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<DstNote> {
        self.dst_notes_at(&clock_changes(self.schedule().zone(), from, to))
    }

    /// The same for changes of the zone's clock that are known: who has many jobs in one zone looks for them once.
    pub fn dst_notes_at(&self, changes: &[DateTime<Utc>]) -> Vec<DstNote> {
        changes.iter().filter_map(|change| self.note(*change)).collect()
    }

    fn note(&self, change: DateTime<Utc>) -> Option<DstNote> {
        let search = self.schedule().search();
        let moved = search.moved_by(change);
        let shown = wall_clock(search.zone, change);
        let untouched = shown - TimeDelta::seconds(moved);
        let effect = match (moved > 0, search.fixed) {
            (true, true) => DstEffect::Shifted,
            (true, false) => DstEffect::Skipped,
            (false, false) => DstEffect::Repeated,
            (false, true) => return None,
        };
        if !search.fixed && search.shifts_into_itself(moved) {
            return None;
        }
        // Wall-clock times between these two are jumped over, or come twice.
        let (first, end) = (untouched.min(shown), untouched.max(shown));
        let wall = search.wall_after(first - TimeDelta::seconds(1)).filter(|wall| *wall < end)?;
        Some(DstNote { at: change, effect, wall, shown })
    }
}
