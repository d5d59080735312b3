//! The ticks and slots of one job: which slot a tick belongs to, which slots there were, when to fire. Never reads a clock.
//!
//! Slots of `hour`, `minute`, `day` and fixed periods cover the time line without a gap, whether or not a tick falls into
//! them; slots of `tick` begin at the ticks.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::zone::{day, day_part, grid_cell};
use crate::clock::{between, earlier, later};
use crate::job::{JobName, JobSpec};
use crate::schedule::{Schedule, ScheduleError};
use crate::slot::{Period, Slot, SlotKey, divides_day};
use crate::zone::Zone;

/// How long the slot of a tick lasts when no tick follows it, which is so only at the end of the search limit.
const LAST_TICK_LASTS: TimeDelta = TimeDelta::days(366);

/// The smallest step of time; ticks and slot starts are whole seconds.
const JUST_BEFORE: TimeDelta = TimeDelta::nanoseconds(1);

/// The ticks and slots of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timetable {
    job: JobName,
    schedule: Schedule,
    period: Period,
    jitter: Duration,
}

impl Timetable {
    /// Compiles a job's schedule.
    pub fn of(spec: &JobSpec) -> Result<Self, ScheduleError> {
        let schedule = Schedule::parse(&spec.schedule, spec.timezone.clone())?;
        if let Period::Fixed(length) = spec.period
            && (length.is_zero() || length.subsec_nanos() != 0)
        {
            return Err(ScheduleError::new(&spec.schedule, "its period is not a whole number of seconds", None));
        }
        Ok(Self { job: spec.name.clone(), schedule, period: spec.period, jitter: spec.jitter })
    }

    /// The same from the registry's words (`JobEntry`), where no file is at hand. The registry does not know the jitter;
    /// there is none here.
    pub fn parse(job: JobName, schedule: &str, timezone: &str, period: &str) -> Result<Self, ScheduleError> {
        let zone = Zone::named(timezone).map_err(|error| ScheduleError::new(schedule, error.to_string(), None))?;
        let period = period
            .parse()
            .map_err(|error: crate::slot::PeriodError| ScheduleError::new(schedule, error.to_string(), None))?;
        Ok(Self { job, schedule: Schedule::parse(schedule, zone)?, period, jitter: Duration::ZERO })
    }

    /// The same with a jitter that is known from elsewhere.
    #[must_use]
    pub const fn with_jitter(mut self, jitter: Duration) -> Self {
        self.jitter = jitter;
        self
    }

    /// Whose it is.
    pub const fn job(&self) -> &JobName {
        &self.job
    }

    /// Its cron expression.
    pub const fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// What one slot spans.
    pub const fn period(&self) -> Period {
        self.period
    }

    /// The slot that a tick belongs to.
    pub fn slot_of(&self, tick: DateTime<Utc>) -> Option<Slot> {
        self.slot_at(tick)
    }

    /// The slot that is current at an instant, whether or not it has a tick. For `tick`: the one of the last tick. None
    /// before 1970 and where a `tick` slot has not begun.
    pub fn slot_at(&self, instant: DateTime<Utc>) -> Option<Slot> {
        // Outside of these years no slot has a key, and arithmetic near the ends of the calendar would overflow.
        SlotKey::of(instant - TimeDelta::nanoseconds(i64::from(instant.timestamp_subsec_nanos())))?;
        let (start, end) = self.span_at(instant)?;
        Slot::new(self.job.clone(), start, end).ok()
    }

    /// The slot with this key; none when no slot of the job starts there.
    pub fn slot_with_key(&self, key: SlotKey) -> Option<Slot> {
        self.slot_at(key.start()).filter(|slot| slot.key() == key)
    }

    /// The slots that have at least one tick and start in `[from, to)`, each with its first tick; oldest first.
    pub fn slots(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> impl Iterator<Item = (Slot, DateTime<Utc>)> + '_ {
        let mut at = from.max(DateTime::UNIX_EPOCH);
        std::iter::from_fn(move || {
            loop {
                let tick = self.tick_from(at)?;
                let Some(slot) = self.slot_of(tick) else {
                    // On the first of January 1970 a day may have begun before there are keys; a later tick without a slot
                    // is one of a period that outlasts the calendar.
                    if tick > DateTime::UNIX_EPOCH + TimeDelta::days(2) {
                        return None;
                    }
                    at = tick + TimeDelta::seconds(1);
                    continue;
                };
                at = slot.end();
                // The first slot may have begun before `from`.
                if slot.start() >= from {
                    return (slot.start() < to).then_some((slot, tick));
                }
            }
        })
    }

    /// The last tick of a slot; none where it has none.
    pub fn last_tick(&self, slot: &Slot) -> Option<DateTime<Utc>> {
        self.schedule.last_until(slot.end() - JUST_BEFORE).filter(|tick| *tick >= slot.start())
    }

    /// Slots with a tick that are older than `slot` and end less than `back` before it begins: a run of theirs may have begun
    /// just before their end and lasted for `back`. Newest first, at most `most`.
    pub fn older(&self, slot: &Slot, back: Duration, most: usize) -> Vec<Slot> {
        let oldest = earlier(slot.start(), back);
        let mut start = slot.start();
        std::iter::from_fn(|| {
            let tick = self.schedule.last_until(start - JUST_BEFORE)?;
            let older = self.slot_of(tick)?;
            start = older.start();
            (older.end() > oldest).then_some(older)
        })
        .take(most)
        .collect()
    }

    /// The fixed delay of the job after each tick, from 0 up to its `jitter` in whole milliseconds; never changes the slot.
    /// Shorter after a tick that is closer to its slot's end than the jitter: see [`Timetable::fire_at`].
    pub fn delay(&self) -> Duration {
        self.delay_within(self.jitter)
    }

    /// When to fire a tick of a slot: the tick plus the job's delay. Where less than the jitter is left of the slot, the
    /// delay is taken from what is left, so that it stays before the slot's end and keeps the order of the ticks.
    pub fn fire_at(&self, tick: DateTime<Utc>, slot: &Slot) -> DateTime<Utc> {
        later(tick, self.delay_within(self.jitter.min(between(tick, slot.end()))))
    }

    fn delay_within(&self, span: Duration) -> Duration {
        let below = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(place(self.job.as_str(), below))
    }

    /// The first tick at or after an instant.
    pub fn tick_from(&self, instant: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.schedule.next_after(instant - JUST_BEFORE)
    }

    fn span_at(&self, instant: DateTime<Utc>) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        let zone = self.schedule.zone();
        match self.period {
            Period::Minute => grid_cell(zone, 60, instant),
            Period::Hour => grid_cell(zone, 3_600, instant),
            Period::Day => day(zone, instant),
            Period::Tick => {
                let start = self.schedule.last_until(instant)?;
                let end = self.schedule.next_after(start).or_else(|| start.checked_add_signed(LAST_TICK_LASTS))?;
                Some((start, end))
            }
            Period::Fixed(length) if divides_day(length) => {
                day_part(zone, i64::try_from(length.as_secs()).ok()?, instant)
            }
            // In UTC a grid of any length has no cuts.
            Period::Fixed(length) => grid_cell(&Zone::UTC, i64::try_from(length.as_secs()).ok()?, instant),
        }
    }
}

/// FNV-1a, 64 bits, of the job's name, with the final mix of MurmurHash3 (`fmix64`): FNV alone leaves the high bits of
/// names that differ in their last letter nearly equal, and the delay is scaled by the high bits.
///
/// Never to be changed: nodes of two versions side by side would fire at different times.
const fn fixed_hash(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut rest = bytes;
    while let [byte, tail @ ..] = rest {
        hash = (hash ^ *byte as u64).wrapping_mul(0x0000_0100_0000_01b3);
        rest = tail;
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// The name's place in `[0, below)`; 0 when `below` is 0.
pub(super) fn place(name: &str, below: u64) -> u64 {
    let scaled = (u128::from(fixed_hash(name)) * u128::from(below)) >> 64;
    u64::try_from(scaled).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_name_never_changes_between_versions() {
        // Computed apart from this code, with FNV-1a checked against its published vector for "foobar".
        for (name, place_of_a_million) in PINNED {
            assert_eq!(place(name, 1_000_000), place_of_a_million, "{name}");
        }
    }

    const PINNED: [(&str, u64); 4] =
        [("a", 510_294), ("foobar", 172_395), ("hourly-push", 201_014), ("billing", 20_328)];

    #[test]
    fn names_that_differ_in_one_letter_are_spread_over_the_whole_span() {
        let mut buckets = [0_u32; 10];
        for number in 0..1_000 {
            let bucket = usize::try_from(place(&format!("job-{number:03}"), 10)).unwrap();
            buckets[bucket] += 1;
        }
        assert!(buckets.iter().all(|count| (60..=140).contains(count)), "{buckets:?}");
    }

    #[test]
    fn a_place_is_always_below_the_bound() {
        for name in ["", "a", "zzzz"] {
            assert_eq!(place(name, 0), 0);
            assert_eq!(place(name, 1), 0);
            assert!(place(name, u64::MAX) < u64::MAX);
        }
    }
}
