//! Worlds run one after the other in search of one: the negative controls, which are how soon each bug must be found and by which
//! check; and shrinking, from a world that breaks a promise to the smallest one of the same seed that still does, with fewer kinds of
//! faults, nodes, jobs, and less time.

use cronward::schedule::ScheduleError;

use crate::checks::Bug;
use crate::checks::{BrokenPromise, Check};
use crate::faults::{Fault, OUTPUTS_FROM};
use crate::lock_mix::LOCKS_FROM;
use crate::scenario::{Limits, SHORT_FROM};
use crate::world::{Options, run};

/// A bug that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// Which one.
    pub bug: Bug,
    /// The first world that shows it.
    pub seed: u64,
    /// Slots of the worlds before it, in which nothing showed it as it should.
    pub slots: u64,
    /// How it was found.
    pub finding: BrokenPromise,
    /// The first world whose journals show it to the checker, and as what; none within [`JUDGED`] worlds.
    pub judged: Option<(u64, String)>,
}

/// Worlds whose journals the checker judges for each bug, besides the one that shows it to the simulator's judge.
pub const JUDGED: u64 = 50;

impl Bug {
    /// Worlds within which it must be found.
    pub const fn within(self) -> u64 {
        match self {
            // Of 1,500 worlds 12 show it.
            Self::ClosedBeforeItsOwnToken => 500,
            _ => 200,
        }
    }

    /// From which seed on it is looked for: among worlds that have what it takes.
    const fn first_seed(self) -> u64 {
        match self {
            Self::ClosedBeforeItsOwnToken => SHORT_FROM,
            Self::OutputInsistedOn => OUTPUTS_FROM,
            bug if bug.is_of_locks() => LOCKS_FROM,
            _ => 0,
        }
    }
}

/// Looks for a bug in the worlds of the first seeds, `within` at the most; none when none of them shows it as it should.
pub fn control(bug: Bug, within: u64) -> Result<Option<Control>, ScheduleError> {
    let options = Options { bug: Some(bug), ..Options::default() };
    let first = bug.first_seed();
    let mut slots = 0;
    for seed in first..first.saturating_add(within) {
        let outcome = run(seed, &options)?;
        let finding = outcome.finding.filter(|finding| bug.checks().contains(&finding.check));
        if let Some(finding) = finding {
            return Ok(Some(Control { bug, seed, slots, finding, judged: by_journals(bug, seed)? }));
        }
        slots += outcome.summary.classes.slots;
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

/// A world that breaks a promise, as small as could be found.
#[derive(Clone, Copy, Debug)]
pub struct Shrunk {
    /// What it has.
    pub options: Options,
    /// Worlds that were run to find it.
    pub tried: u32,
}

/// Cuts down a world that breaks this promise, as long as it breaks it.
pub fn shrink(seed: u64, options: Options, check: Check) -> Shrunk {
    let mut shrunk = Shrunk { options, tried: 0 };
    loop {
        let before = shrunk.options.limits;
        for limits in smaller(before) {
            shrunk.attempt(seed, limits, check);
        }
        if shrunk.options.limits == before {
            return shrunk;
        }
    }
}

impl Shrunk {
    /// Takes these limits, less what has been cut already, if the world still breaks a promise with them.
    fn attempt(&mut self, seed: u64, limits: Limits, check: Check) {
        let now = self.options.limits;
        let limits = Limits {
            nodes: limits.nodes.min(now.nodes),
            jobs: limits.jobs.min(now.jobs),
            periods: limits.periods.min(now.periods),
            faults: limits.faults.and(now.faults),
        };
        if limits == now {
            return;
        }
        self.tried += 1;
        let options = Options { limits, ..self.options };
        if run(seed, &options).is_ok_and(|outcome| outcome.finding.is_some_and(|finding| finding.check == check)) {
            self.options = options;
        }
    }
}

/// Each way to make a world a little smaller, the largest cuts first.
fn smaller(now: Limits) -> Vec<Limits> {
    let mut all = Vec::new();
    all.extend([1, 2, 3].map(|nodes| Limits { nodes, ..now }));
    all.extend([1, 2].map(|jobs| Limits { jobs, ..now }));
    all.extend(Fault::ALL.iter().map(|fault| Limits { faults: now.faults.without(*fault), ..now }));
    all.extend([1, 2, 3, 5, 8, 12, 18, 24].map(|periods| Limits { periods, ..now }));
    all
}
