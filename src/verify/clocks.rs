//! How far each node's clock is ahead of the store's, as far as its own lines show it. Nothing is set right here.

use std::collections::BTreeMap;

use chrono::TimeDelta;

use crate::observe::journal::{Fact, Line};
use crate::verify::inputs::Told;

/// A difference of clocks below this is latency.
const LATENCY: TimeDelta = TimeDelta::milliseconds(50);

/// What a node says of its clock beyond this is nonsense: lines are of the years 1970 to 9999.
const LARGEST: TimeDelta = TimeDelta::days(8_030 * 366);

/// What the lines of one instance show of its clock.
#[derive(Default)]
struct Signs {
    /// The smallest difference between telling of a grant and the store's instant of it: that is the clock's lead and the
    /// fastest answer, so that one answer on a slow link shifts nothing where another was quicker.
    granted: Option<TimeDelta>,
    /// What the node itself measured when it began.
    measured: Option<TimeDelta>,
    /// The store said of slots that they were over, so long before they were by the node's clock.
    behind: Option<TimeDelta>,
}

/// How far each instance's clock is ahead of the store's, for those whose clock is off. A grant tells it best; an instance
/// that was granted nothing may have measured it, or have been told that a slot is over that by its clock was not.
pub(super) fn offsets(told: &[Told]) -> BTreeMap<String, TimeDelta> {
    let mut signs: BTreeMap<&str, Signs> = BTreeMap::new();
    for Told { line, .. } in told {
        signs.entry(&line.instance).or_default().take(line);
    }
    let known = signs.into_iter().filter_map(|(instance, signs)| Some((instance.to_owned(), signs.ahead()?)));
    known.filter(|(_, ahead)| ahead.abs() > LATENCY).collect()
}

/// What a node measured of its clock.
pub(super) fn measured(offset_ms: i64) -> Option<TimeDelta> {
    TimeDelta::try_milliseconds(offset_ms).filter(|offset| offset.abs() <= LARGEST)
}

impl Signs {
    fn take(&mut self, line: &Line) {
        match &line.fact {
            Fact::Granted { granted_at, .. } => {
                let ahead = line.at - *granted_at;
                self.granted = Some(self.granted.map_or(ahead, |least| least.min(ahead)));
            }
            Fact::ClockOff { offset_ms } => {
                self.measured = self.measured.or_else(|| measured(*offset_ms));
            }
            Fact::ClaimAnswered { answer, .. } if answer == "closed" => {
                let behind = line.slot().map(|slot| slot.end() - line.at).filter(|behind| *behind > TimeDelta::zero());
                self.behind = behind.max(self.behind);
            }
            _ => {}
        }
    }

    fn ahead(self) -> Option<TimeDelta> {
        self.granted.or(self.measured).or_else(|| self.behind.map(|behind| -behind))
    }
}
