//! The hours that are shown. Values only.

use chrono::{DateTime, DurationRound, TimeDelta, Utc};

/// The fewest hours that are shown, and the most.
pub(super) const FEWEST: usize = 24;
pub(super) const MOST: usize = 168;

/// So many hours up to that of now, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Window(Vec<DateTime<Utc>>);

/// The hour in which an instant lies.
pub(super) fn hour_of(instant: DateTime<Utc>) -> DateTime<Utc> {
    instant.duration_trunc(TimeDelta::hours(1)).unwrap_or(instant)
}

impl Window {
    pub(super) fn until(now: DateTime<Utc>, hours: usize) -> Self {
        let (last, hours) = (hour_of(now), hours.clamp(FEWEST, MOST));
        let back = |steps: usize| last - TimeDelta::hours(i64::try_from(steps).unwrap_or(0));
        Self((0..hours).rev().map(back).collect())
    }

    pub(super) fn hours(&self) -> &[DateTime<Utc>] {
        &self.0
    }

    pub(super) fn start(&self) -> DateTime<Utc> {
        self.0.first().copied().unwrap_or_default()
    }

    /// The end of the last hour.
    pub(super) fn end(&self) -> DateTime<Utc> {
        self.0.last().map_or_else(DateTime::default, |hour| *hour + TimeDelta::hours(1))
    }

    /// Where an hour stands.
    pub(super) fn place(&self, hour: DateTime<Utc>) -> Option<usize> {
        usize::try_from((hour - self.start()).num_hours()).ok().filter(|place| *place < self.0.len())
    }

    /// How many slots of a job are kept one by one.
    pub(super) fn kept(&self, least: usize) -> usize {
        least.max(self.0.len() + 1)
    }
}
