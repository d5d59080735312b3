//! What a run of `make report` left in `target/reliability`, read and checked: nothing is missing, and all of it belongs to
//! the commit that is checked out. Never runs anything.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::names;
use crate::simulated::{Simulation, Speed};

/// What the tree is like now.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) commit: String,
    /// What `git status` lists, the page itself left out; empty for a clean tree.
    pub(crate) changed: String,
}

/// Everything that the page is made of.
#[derive(Debug)]
pub(crate) struct Evidence {
    pub(crate) run: Run,
    pub(crate) worlds: Vec<World>,
    pub(crate) controls: Vec<Control>,
    pub(crate) speed: Speed,
    pub(crate) simulation: Simulation,
    /// One for each store, by its name.
    pub(crate) chaos: Vec<Chaos>,
}

/// `run.json`: written before anything else is run.
#[derive(Debug, Deserialize)]
pub(crate) struct Run {
    pub(crate) commit: String,
    pub(crate) date: String,
    pub(crate) machine: String,
}

/// A line of `model.jsonl`: a world that was searched.
#[derive(Debug, Deserialize)]
pub(crate) struct World {
    pub(crate) world: String,
    pub(crate) states: u64,
    pub(crate) unique: u64,
    pub(crate) depth: u64,
    pub(crate) seconds: f64,
    #[serde(default)]
    pub(crate) reached: Vec<String>,
}

impl World {
    /// Searched again, with the same outcome.
    fn is_the_same_as(&self, other: &Self) -> bool {
        let of = |world: &Self| (world.states, world.unique, world.depth);
        self.world == other.world && of(self) == of(other)
    }
}

/// A line of `model.jsonl`: a bug that was put in.
#[derive(Debug, Deserialize)]
pub(crate) struct Control {
    pub(crate) control: String,
    pub(crate) breaks: Vec<String>,
    pub(crate) expected: Vec<String>,
    #[serde(default)]
    pub(crate) steps: Option<u64>,
}

/// `chaos-<store>.json`.
#[derive(Debug, Deserialize)]
pub(crate) struct Chaos {
    pub(crate) store: String,
    pub(crate) seed: u64,
    pub(crate) nodes: u64,
    pub(crate) seconds: f64,
    pub(crate) faults: BTreeMap<String, u64>,
    /// How often another server led after a fault, or the same one had begun anew, by the servers' own account.
    #[serde(default)]
    pub(crate) other_lives: Option<u64>,
    pub(crate) slots: u64,
    pub(crate) once: u64,
    pub(crate) repeat: u64,
    pub(crate) overlap: u64,
    pub(crate) lost: u64,
    pub(crate) explained: u64,
    /// Of the explained ones, those that nothing would explain if the store had lost no data.
    #[serde(default)]
    pub(crate) by_lost_data: Option<u64>,
    pub(crate) unexplained: u64,
    pub(crate) runs: u64,
    /// Slots that fell due by the clock and had to be judged.
    pub(crate) due: u64,
    /// Slots of quick jobs, by the clock, that no fault came near.
    pub(crate) left_alone: u64,
    /// On top of each bound, in seconds.
    pub(crate) allowance_s: f64,
    pub(crate) without_allowance: Plain,
    pub(crate) report: Verified,
    /// Why an earlier run of the same plan told nothing.
    #[serde(default)]
    pub(crate) inconclusive_before: Vec<String>,
    #[serde(default)]
    commit: Option<String>,
}

/// The same evidence without an allowance: how many slots nothing explains then, and how many rules are violated.
#[derive(Debug, Deserialize)]
pub(crate) struct Plain {
    pub(crate) unexplained: u64,
    pub(crate) violations: u64,
    pub(crate) recovery: Recovery,
}

/// What is used of `cronward verify --json`.
#[derive(Debug, Deserialize)]
pub(crate) struct Verified {
    pub(crate) classes: BTreeMap<String, Class>,
    /// Slots that no fault came near, whomever it struck.
    pub(crate) undisturbed: u64,
    pub(crate) recovery: Recovery,
    pub(crate) unexplained: Vec<Value>,
    pub(crate) violations: Vec<Value>,
}

/// Slots of one class.
#[derive(Debug, Deserialize)]
pub(crate) struct Class {
    pub(crate) slots: u64,
    pub(crate) explained: u64,
    pub(crate) unexplained: u64,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Recovery {
    #[serde(default)]
    pub(crate) crash: Latency,
    #[serde(default)]
    pub(crate) failure: Latency,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Latency {
    pub(crate) count: u64,
    pub(crate) p50_s: Option<f64>,
    pub(crate) p99_s: Option<f64>,
    pub(crate) max_s: Option<f64>,
    #[serde(default)]
    pub(crate) worst_ratio: Option<f64>,
    #[serde(default)]
    samples: Vec<Sample>,
}

/// One recovery: what part of its bound it took.
#[derive(Debug, Deserialize)]
struct Sample {
    ratio: f64,
}

impl Latency {
    /// How many took longer than their bound.
    pub(crate) fn beyond(&self) -> u64 {
        u64::try_from(self.samples.iter().filter(|sample| sample.ratio > 1.0).count()).unwrap_or(u64::MAX)
    }
}

impl Chaos {
    /// Slots that nothing explains, and violations.
    pub(crate) fn wrong(&self) -> u64 {
        self.unexplained.saturating_add(u64::try_from(self.report.violations.len()).unwrap_or(u64::MAX))
    }

    /// Where figures that are the same thing, or its parts, differ.
    fn mismatches(&self) -> Vec<String> {
        let of =
            |class: &str| self.report.classes.get(class).map_or((0, 0), |c| (c.slots, c.explained + c.unexplained));
        let listed = u64::try_from(self.report.unexplained.len()).unwrap_or(u64::MAX);
        let counted: u64 = self.report.classes.values().map(|class| class.unexplained).sum();
        let mut pairs = vec![
            ("unexplained slots", self.unexplained, "counted by class", counted),
            ("unexplained slots", self.unexplained, "listed", listed),
            ("slots", self.slots, "in all classes", self.report.classes.values().map(|class| class.slots).sum()),
            ("once", self.once, "counted by class", of("once").0),
        ];
        for (class, own) in [("repeat", self.repeat), ("overlap", self.overlap), ("lost", self.lost)] {
            let (slots, told) = of(class);
            pairs.push((class, own, "counted by class", slots));
            pairs.push((class, own, "explained or unexplained", told));
        }
        let differ = pairs.into_iter().filter(|(_, one, _, other)| one != other);
        differ.map(|(what, one, how, other)| format!("{}: {one} {what}, {other} {how}", self.store)).collect()
    }
}

impl Evidence {
    /// Reads all of it. The error names the file and the way out.
    pub(crate) fn read(folder: &Path, tree: &Tree) -> Result<Self, String> {
        if !tree.changed.is_empty() {
            let first = tree.changed.lines().next().unwrap_or_default().trim();
            return Err(format!(
                "the tree has changes that are not committed ({first}): commit them, then run make report"
            ));
        }
        let run: Run = file(&folder.join("run.json"))?;
        same_commit("run.json", Some(&run.commit), tree)?;
        let (worlds, controls) = model(&folder.join("model.jsonl"), tree)?;
        let simulation: Simulation = file(&folder.join("simulation.json"))?;
        same_commit("simulation.json", simulation.commit.as_deref(), tree)?;
        let speed: Speed = file(&folder.join("speed.json"))?;
        same_commit("speed.json", speed.commit.as_deref(), tree)?;
        Ok(Self { run, worlds, controls, speed, simulation, chaos: chaos(folder, tree)? })
    }

    /// All that went wrong, in words; empty when nothing did.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = self.simulation.faults();
        for chaos in &self.chaos {
            let (store, unexplained, violations) = (&chaos.store, chaos.unexplained, chaos.report.violations.len());
            faults.extend((unexplained > 0).then(|| format!("{store}: {unexplained} slots unexplained")));
            faults.extend((violations > 0).then(|| format!("{store}: {violations} violations")));
            faults.extend(chaos.mismatches());
        }
        let missed = self.controls.iter().filter(|control| !control.is_caught());
        faults.extend(missed.map(|control| format!("model: {} was not caught", control.control)));
        faults.extend(self.shortfalls());
        faults
    }

    /// Where less was tried than what the project holds itself to.
    fn shortfalls(&self) -> Vec<String> {
        let slots = self.chaos.iter().map(|chaos| chaos.slots).sum();
        let injected = self.chaos.iter().flat_map(|chaos| chaos.faults.values()).sum();
        let controls = u64::try_from(self.simulation.controls.len()).unwrap_or(u64::MAX);
        let least = [
            (self.simulation.slots, 10_000_000, "simulated slots"),
            (slots, 2_000, "slots of real nodes"),
            (injected, 200, "faults of real nodes and servers"),
            (controls, 9, "bugs put in on purpose"),
        ];
        let short = least.into_iter().filter(|(tried, least, _)| tried < least);
        let mut said: Vec<String> =
            short.map(|(tried, least, what)| format!("too little was tried: {tried} of {least} {what}")).collect();
        said.extend(self.speed.shortfalls());
        said
    }
}

impl Control {
    /// What was expected to break did, or something did where nothing was named.
    pub(crate) fn is_caught(&self) -> bool {
        let expected = |broken| self.expected.is_empty() || self.expected.contains(broken);
        self.breaks.iter().any(expected)
    }
}

/// A part says of which commit it is, or lies in a folder that was emptied for this one.
fn same_commit(name: &str, commit: Option<&str>, tree: &Tree) -> Result<(), String> {
    match commit {
        Some(commit) if commit != tree.commit => {
            Err(format!("{name} is of commit {commit}, and {} is checked out: run make report again", tree.commit))
        }
        _ => Ok(()),
    }
}

fn text(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}: run make report", path.display()))
}

fn file<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    serde_json::from_str(&text(path)?).map_err(|error| format!("{}: {error}", path.display()))
}

fn model(path: &Path, tree: &Tree) -> Result<(Vec<World>, Vec<Control>), String> {
    let (mut worlds, mut controls) = (Vec::new(), Vec::new());
    for (index, line) in text(path)?.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |error: serde_json::Error| format!("{}:{}: {error}", path.display(), index + 1);
        let value: Value = serde_json::from_str(line).map_err(wrong)?;
        same_commit("model.jsonl", value.get("commit").and_then(Value::as_str), tree)?;
        if value.get("control").is_some() {
            controls.push(serde_json::from_value(value).map_err(wrong)?);
        } else {
            let world: World = serde_json::from_value(value).map_err(wrong)?;
            if !worlds.iter().any(|other: &World| other.is_the_same_as(&world)) {
                worlds.push(world);
            }
        }
    }
    if worlds.is_empty() || controls.is_empty() {
        return Err(format!("{}: it has no worlds or no controls: run make report again", path.display()));
    }
    Ok((worlds, controls))
}

/// One part for each store that is tried: none may be missing without a word, as when its trial has failed before the end.
fn chaos(folder: &Path, tree: &Tree) -> Result<Vec<Chaos>, String> {
    let mut found = Vec::new();
    for store in names::EVERY {
        let name = format!("chaos-{store}.json");
        let chaos: Chaos = file(&folder.join(&name))?;
        same_commit(&name, chaos.commit.as_deref(), tree)?;
        found.push(chaos);
    }
    found.sort_by(|a, b| a.store.cmp(&b.store));
    Ok(found)
}
