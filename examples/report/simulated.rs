//! The simulation's part of the evidence, as `simulate --json` writes it. Never runs it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// Simulated slots that one core does in a second, at the least, when nothing else runs.
pub(crate) const LEAST_PER_SECOND: u32 = 5_000;
/// Fewer slots tell nothing of the rate.
const LEAST_SLICE: u64 = 200_000;
/// Worlds whose journals are judged, at the least.
const LEAST_JUDGED: u64 = 200;

/// `simulation.json`. The seeds are the first, and the one after the last.
#[derive(Debug, Deserialize)]
pub(crate) struct Simulation {
    pub(crate) seeds: (u64, u64),
    /// The same of those that were drawn anew for this run.
    #[serde(default)]
    pub(crate) fresh: Option<(u64, u64)>,
    pub(crate) worlds: u64,
    pub(crate) slots: u64,
    pub(crate) faults: BTreeMap<String, u64>,
    pub(crate) classes: BTreeMap<String, u64>,
    /// Worlds in which a promise was broken: a number, or a list.
    pub(crate) broken: Value,
    pub(crate) slots_per_second: f64,
    pub(crate) seconds: f64,
    #[serde(default)]
    pub(crate) recovery_s: Option<Spans>,
    /// What the checker of journals made of the first worlds.
    pub(crate) judged: JudgedWorlds,
    #[serde(default)]
    pub(crate) controls: Vec<Caught>,
    #[serde(default)]
    pub(crate) commit: Option<String>,
}

/// Spans in seconds, and what they may be.
#[derive(Debug, Deserialize)]
pub(crate) struct Spans {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
    pub(crate) bound: f64,
    /// From when to when.
    #[serde(default)]
    pub(crate) of: Option<String>,
}

/// A bug that was put in, and the check of the simulator that caught it; an empty check is none.
#[derive(Debug, Deserialize)]
pub(crate) struct Caught {
    pub(crate) bug: String,
    #[serde(default)]
    pub(crate) check: Option<String>,
    #[serde(default)]
    pub(crate) seed: Option<u64>,
    /// What the checker of journals says of it, where it does.
    #[serde(default)]
    pub(crate) journals: Option<ByJournals>,
}

/// What the checker of journals says of a bug, and in which world.
#[derive(Debug, Deserialize)]
pub(crate) struct ByJournals {
    pub(crate) seed: u64,
    text: String,
}

/// Worlds whose journals were judged as well.
#[derive(Debug, Deserialize)]
pub(crate) struct JudgedWorlds {
    pub(crate) worlds: u64,
    pub(crate) slots: u64,
    /// Worlds of which the checker and the simulator's own judge say different things.
    pub(crate) disagreements: u64,
}

/// `speed.json`: a slice of the simulation that ran while nothing else did.
#[derive(Debug, Deserialize)]
pub(crate) struct Speed {
    pub(crate) slots: u64,
    pub(crate) seconds: f64,
    pub(crate) slots_per_second: f64,
    #[serde(default)]
    pub(crate) commit: Option<String>,
}

impl Simulation {
    pub(crate) fn broken(&self) -> u64 {
        let counted = |list: &Vec<Value>| u64::try_from(list.len()).unwrap_or(u64::MAX);
        self.broken.as_array().map(counted).or(self.broken.as_u64()).unwrap_or(u64::MAX)
    }

    /// Whatever is wrong of it.
    pub(crate) fn faults(&self) -> Vec<String> {
        let (broken, judged) = (self.broken(), &self.judged);
        let mut said = Vec::new();
        said.extend((broken > 0).then(|| format!("simulation: {broken} worlds broken")));
        let differ = judged.disagreements;
        said.extend((differ > 0).then(|| format!("simulation: the checker of journals disagrees on {differ} worlds")));
        let missed = self.controls.iter().filter(|control| control.check().is_none());
        said.extend(missed.map(|control| format!("simulation: {} was not caught", control.bug)));
        let late = self.recovery_s.as_ref().filter(|spans| spans.max > spans.bound);
        said.extend(late.map(|spans| format!("simulation: a recovery took {} s of {} s", spans.max, spans.bound)));
        said.extend(self.fresh.is_none().then(|| "too little was tried: no world was of a fresh seed".to_owned()));
        said.extend((judged.worlds < LEAST_JUDGED).then(|| {
            format!("too little was tried: {} of {LEAST_JUDGED} worlds judged by their journals", judged.worlds)
        }));
        said
    }
}

impl Speed {
    /// Where it is slower than the project holds itself to, or too short to tell.
    pub(crate) fn shortfalls(&self) -> Vec<String> {
        let Self { slots, slots_per_second: rate, .. } = self;
        let mut said = Vec::new();
        said.extend(
            (*slots < LEAST_SLICE).then(|| format!("too little was timed: {slots} of {LEAST_SLICE} simulated slots")),
        );
        // Not `<`: what is no number is too slow as well.
        let fast = *rate >= f64::from(LEAST_PER_SECOND);
        said.extend((!fast).then(|| format!("simulation: {rate:.0} of {LEAST_PER_SECOND} slots a second on one core")));
        said
    }
}

impl Caught {
    pub(crate) fn check(&self) -> Option<&str> {
        self.check.as_deref().filter(|check| !check.is_empty())
    }
}

impl ByJournals {
    /// The rule that was broken: the text goes on with the slot.
    pub(crate) fn rule(&self) -> &str {
        self.text.split(" of ").next().unwrap_or_default()
    }
}
