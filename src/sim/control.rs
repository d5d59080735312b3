//! Negative controls: how soon each bug must be found, and by which check.

use crate::schedule::ScheduleError;
use crate::sim::bug::Bug;
use crate::sim::finding::{Check, Finding};
use crate::sim::world::{Options, run};

/// A bug that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// Which one.
    pub bug: Bug,
    /// The first world that shows it.
    pub seed: u64,
    /// How it was found.
    pub finding: Finding,
}

impl Bug {
    /// The checks of which one must find it; others may, too.
    pub const fn checks(self) -> &'static [Check] {
        match self {
            Self::RenewsAnybody => &[Check::I4],
            Self::ReleasesAnybody => &[Check::I3, Check::I4],
            Self::ClaimForgetsItsToken => &[Check::I2, Check::I5, Check::Answer],
            Self::CounterWithoutTtl => &[Check::Leak],
            Self::DoneIsNotAbsorbing => &[Check::I3],
            Self::WindowByNodesClock => &[Check::I6],
            Self::ErrorIsAGrant => &[Check::I8],
            Self::RenewsAtTheTtl => &[Check::Lapse],
            Self::WatchdogOutlivesTheRun => &[Check::Afterwards],
            Self::WaitsForHintsOnly => &[Check::L1],
            Self::ClosesOnce => &[Check::L2],
            Self::Mute => &[Check::Silence],
            Self::NeverStops => &[Check::Outlived],
            Self::OneNamespace => &[Check::I9],
        }
    }
}

/// Looks for a bug in the worlds of the first seeds, `within` at the most; none when none of them shows it as it should.
pub fn control(bug: Bug, within: u64) -> Result<Option<Control>, ScheduleError> {
    let options = Options { bug: Some(bug), ..Options::default() };
    for seed in 0..within {
        let finding = run(seed, &options)?.finding.filter(|finding| bug.checks().contains(&finding.check));
        if let Some(finding) = finding {
            return Ok(Some(Control { bug, seed, finding }));
        }
    }
    Ok(None)
}
