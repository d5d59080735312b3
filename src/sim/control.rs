//! Negative controls: how soon each bug must be found, and by which check.

use crate::schedule::ScheduleError;
use crate::sim::bug::Bug;
use crate::sim::finding::{Check, Finding};
use crate::sim::jobs::SHORT_FROM;
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
    /// The first world whose journals show it to the checker, and as what; none within [`JUDGED`] worlds.
    pub judged: Option<(u64, String)>,
}

/// Worlds whose journals the checker judges for each bug, besides the one that shows it to the simulator's judge.
pub const JUDGED: u64 = 40;

impl Bug {
    /// The checks of which one must find it; others may, too.
    pub const fn checks(self) -> &'static [Check] {
        match self {
            Self::HeldIgnored => &[Check::I1],
            Self::CounterForgotten => &[Check::I2],
            Self::TokenIgnored => &[Check::I2, Check::I5, Check::Answer],
            Self::DoneIsNotAbsorbing => &[Check::I3],
            Self::RenewsAnybodys => &[Check::I4],
            Self::PlainDelete => &[Check::I3, Check::I4],
            Self::LimitIgnored => &[Check::I5],
            Self::WindowByNodesClock => &[Check::I6],
            Self::FailureIsDone | Self::FailureDoneAgain => &[Check::I7],
            Self::ErrorIsGrant => &[Check::I8],
            Self::OneNamespace => &[Check::I9],
            Self::NeverLooksAgain => &[Check::L1],
            Self::ClosesOnce => &[Check::L2],
            Self::ClosedBeforeItsOwnToken => &[Check::L3],
            Self::NeverDoneAgain => &[Check::Loss],
            Self::ClosedAgain => &[Check::Answer],
            Self::RenewsAtTheTtl => &[Check::Lapse],
            Self::ClockStops => &[Check::Trust],
            Self::Mute => &[Check::Silence],
            Self::KillIgnored => &[Check::Outlived],
            Self::OthersIgnored => &[Check::Beside],
            Self::LooksLate => &[Check::Retry],
            Self::WatchdogOutlivesTheRun => &[Check::Afterwards],
            Self::CounterWithoutTtl => &[Check::Leak],
            Self::TimersFireAtOnce => &[Check::Stuck],
        }
    }
}

impl Bug {
    /// From which seed on it is looked for: among worlds that have what it takes.
    const fn first_seed(self) -> u64 {
        if matches!(self, Self::ClosedBeforeItsOwnToken) { SHORT_FROM } else { 0 }
    }
}

/// Looks for a bug in the worlds of the first seeds, `within` at the most; none when none of them shows it as it should.
pub fn control(bug: Bug, within: u64) -> Result<Option<Control>, ScheduleError> {
    let options = Options { bug: Some(bug), ..Options::default() };
    let first = bug.first_seed();
    for seed in first..first.saturating_add(within) {
        let finding = run(seed, &options)?.finding.filter(|finding| bug.checks().contains(&finding.check));
        if let Some(finding) = finding {
            return Ok(Some(Control { bug, seed, finding, judged: by_journals(bug, seed)? }));
        }
    }
    Ok(None)
}

/// Looks for it in what the nodes write. Without it nothing is wrong by their journals in these worlds, so whatever is
/// wrong comes of it.
fn by_journals(bug: Bug, found: u64) -> Result<Option<(u64, String)>, ScheduleError> {
    let options = Options { bug: Some(bug), journals: true, ..Options::default() };
    let first = bug.first_seed();
    for seed in (first..first.saturating_add(JUDGED)).chain([found]) {
        if let Some(text) = run(seed, &options)?.judged.and_then(|judged| judged.text) {
            return Ok(Some((seed, text)));
        }
    }
    Ok(None)
}
