//! The page: evidence in, Markdown out. Every figure is one of the run's; the prose between them is fixed.

use std::collections::BTreeMap;

use crate::evidence::{Chaos, Evidence};
use crate::servers;
use crate::simulated::LEAST_PER_SECOND;

const OPENING: &str = "\
# Reliability

How the guard was tried, and what came of it. `make report` writes this page; every figure in it comes from the one run that is
named here. What is promised is in [PROTOCOL.md](PROTOCOL.md).
";

const READING: &str = "
## How to read it

- A slot is *once* (one run, and done), *repeat* (several runs, one after the other), *overlap* (two at the same time) or *lost*
  (nobody did it). Faults were injected all the while, so repeats, overlaps and losses are expected.
- What counts is whether each of them is *explained*: by a failure, a death or trouble that a node reported, or by a fault that was
  injected at that time and concerns that slot. [journal.md](journal.md) has the rules. What nothing explains is a failure of the guard.
- *By lost data*: how many of the explained slots nothing would explain if the store had lost no data. One Redis whose replica
  takes over, with or without sentinels, and a Redis Cluster may lose the last writes: there they are to be expected. A store
  that keeps what it acknowledged has none, whatever befalls its servers.
- *Other lives*: how often, after a fault of the server, another server led or the same one had begun anew, as they themselves
  report. A fault that should do so and does not fails the run.
- The rule of three: with nothing unexplained in *n* slots, the true rate under these faults is below 3/*n*, at 95 %. It says
  nothing of faults that were not injected.
- *Undisturbed* are slots that no injected fault came near, so that none excuses anything. Also, without asking the guard's
  journals or their checker: every slot that fell *due* by the clock was judged, and in every slot of a quick job that was *left
  alone*, by the clock and the list of faults, the job's own record begins once and ends once.
- Recovery is the time until another attempt begins: after a crash from the node's death, after a failure from when the store
  knew of it. Its bounds are those in [PROTOCOL.md](PROTOCOL.md), and on top of each an *allowance* for the machine: six times
  the longest that it let a ready process wait during that run; for servers that sync to a disk or agree with each other at
  least 0.4 s. It also lengthens the time for which a fault excuses things. What takes longer than both is a violation; what
  would be wrong without any allowance is reported too. A run whose allowance is above a lease of its jobs, 2 s, counts for nothing,
  and neither does one whose servers failed over though nobody struck them.
- The controls are bugs that were put in on purpose. A check that never fails shows nothing; these show that the checks do.
";

const REPEATING: &str = "
## How to repeat it

Check out the commit, then `make report`. It empties `target/reliability`, runs `make sim-speed` by itself, then `make sim-long`
and beside it `make chaos`, `make chaos-stores` and `make model-long`, and writes this page from what they leave there; it
refuses when a part is missing, that of any store among them, or the tree is not clean. The model and the simulation repeat
exactly from their seeds, also those that were drawn for the run (`simulate --seeds A..B`). The real servers do not: the seed
decides which faults come, the machine decides when.
";

/// The whole page.
pub(crate) fn render(evidence: &Evidence) -> String {
    let Evidence { run, .. } = evidence;
    let mut page = OPENING.to_owned();
    page += &format!("\nCommit `{}`, {}, on {}.\n", cell(&run.commit), cell(&run.date), cell(&run.machine));
    page += &conclusion(evidence);
    page += READING;
    page += &servers::section(&evidence.chaos);
    page += &simulation(evidence);
    page += &model(evidence);
    page += &controls(evidence);
    page + REPEATING
}

fn conclusion(evidence: &Evidence) -> String {
    let simulation = &evidence.simulation;
    let slots = evidence.chaos.iter().map(|chaos| chaos.slots).sum();
    let undisturbed = evidence.chaos.iter().map(|chaos| chaos.report.undisturbed).sum();
    let wrong = evidence.chaos.iter().map(Chaos::wrong).sum();
    let mut text = format!("\n- Real servers: {}.\n", rate(wrong, WRONG, slots, "slots"));
    text += &format!("- Of these, undisturbed: {}.\n", rate(wrong, WRONG, undisturbed, "slots"));
    // The slots of a world share its faults: worlds are what was drawn independently.
    let worlds = rate(simulation.broken(), "broken", simulation.worlds, "worlds");
    text += &format!("- Simulation, {} slots: {worlds}.\n", grouped(simulation.slots));
    let faults = evidence.faults();
    if !faults.is_empty() {
        text += &format!("\n**Something is wrong:** {}.\n", cell(&faults.join("; ")));
    }
    text
}

const WRONG: &str = "unexplained or in violation";

/// The rule of three, where nothing is wrong.
fn rate(wrong: u64, how: &str, all: u64, what: &str) -> String {
    match rule_of_three(all) {
        Some(rate) if wrong == 0 => format!("0 {how} in {} {what} ⇒ rate < 3/n = {rate:.1e} at 95 %", grouped(all)),
        _ => format!("**{}** {how} in {} {what}", grouped(wrong), grouped(all)),
    }
}

/// Below what the true rate is when nothing was found in so many.
pub(crate) fn rule_of_three(all: u64) -> Option<f64> {
    let n = u32::try_from(all).unwrap_or(u32::MAX);
    (n >= 3).then(|| 3.0 / f64::from(n))
}

fn simulation(evidence: &Evidence) -> String {
    let sim = &evidence.simulation;
    let mut text = format!(
        "\n## Simulation\n\nThe same state machine in virtual time, over the store that is the specification: {} worlds from the seeds {} to {}{},\n{} slots in {} ({} slots a second), {} worlds broken.\n\n",
        grouped(sim.worlds),
        sim.seeds.0,
        sim.seeds.1.saturating_sub(1),
        sim.fresh.map_or(String::new(), |(first, next)| format!(
            " and, drawn for this run, {first} to {}",
            next.saturating_sub(1)
        )),
        grouped(sim.slots),
        span(sim.seconds),
        grouped(whole(sim.slots_per_second)),
        grouped(sim.broken()),
    );
    let speed = &evidence.speed;
    text += &format!(
        "On one core in release, with nothing beside it and no journals: {} slots a second ({} slots in {}).\nFewer than {} are too few. The long run above goes at the lowest priority beside all other parts: its own rate is no measure.\n\n",
        grouped(whole(speed.slots_per_second)),
        grouped(speed.slots),
        span(speed.seconds),
        grouped(LEAST_PER_SECOND.into()),
    );
    text += &format!(
        "The checker of journals, `cronward verify`, judged {} of the worlds as well, with {} slots: {} disagreements with the\nsimulation's own judge.\n\n",
        grouped(sim.judged.worlds),
        grouped(sim.judged.slots),
        grouped(sim.judged.disagreements),
    );
    let counted =
        |map: &BTreeMap<String, u64>| map.iter().map(|(name, n)| vec![name.clone(), grouped(*n)]).collect::<Vec<_>>();
    text += &table(&["class", "slots"], counted(&sim.classes).into_iter());
    text.push('\n');
    text += &table(&["fault", "injected"], counted(&sim.faults).into_iter());
    if let Some(recovery) = &sim.recovery_s {
        let of = recovery.of.as_ref().map_or(String::new(), |of| format!(" ({})", cell(of)));
        let bound = format!("{:.0} %", recovery.max / recovery.bound * 100.0);
        text += &format!(
            "\nRecovery{of}: p50 {:.3} s, p99 {:.3} s, max {:.3} s; the bound is {:.3} s, of which the longest took {bound}.\n",
            recovery.p50, recovery.p99, recovery.max, recovery.bound
        );
    }
    text
}

fn model(evidence: &Evidence) -> String {
    let text =
        "\n## Model\n\nSmall worlds, in which every order of events was tried, down to the depth that is named.\n\n";
    let rows = evidence.worlds.iter().map(|world| {
        let counts = [world.states, world.unique, world.depth].map(grouped);
        let reached = if world.reached.is_empty() { "–".to_owned() } else { world.reached.join(", ") };
        [world.world.clone()].into_iter().chain(counts).chain([span(world.seconds), reached]).collect()
    });
    text.to_owned() + &table(&["world", "states", "of these different", "depth", "time", "reached"], rows)
}

fn controls(evidence: &Evidence) -> String {
    let mut rows: BTreeMap<&str, [String; 3]> = BTreeMap::new();
    let untried = || ["–", "–", "–"].map(str::to_owned);
    for control in &evidence.controls {
        let steps = control.steps.map_or(String::new(), |steps| format!(" in {steps} steps"));
        let said = if control.is_caught() { control.breaks.join(", ") + &steps } else { NOT_CAUGHT.to_owned() };
        let [model, ..] = rows.entry(&control.control).or_insert_with(untried);
        *model = said;
    }
    for control in &evidence.simulation.controls {
        let seed = control.seed.map_or(String::new(), |seed| format!(", seed {seed}"));
        let said = control.check().map_or(NOT_CAUGHT.to_owned(), |check| format!("{check}{seed}"));
        let read = control.journals.as_ref().map(|found| format!("{}, seed {}", found.rule(), found.seed));
        let [_, simulation, journals] = rows.entry(&control.bug).or_insert_with(untried);
        *journals = read.unwrap_or_else(|| if control.check().is_some() { "nothing" } else { "–" }.to_owned());
        *simulation = said;
    }
    let heads = ["bug", "caught by the model", "caught by the simulation", "caught by the checker of journals"];
    let rows = rows.into_iter().map(|(bug, caught)| [bug.to_owned()].into_iter().chain(caught).collect());
    CONTROLS.to_owned() + &table(&heads, rows)
}

const CONTROLS: &str = "
## Bugs that were put in, and who caught them

A dash: not tried there. The checker of journals sees what the simulated nodes wrote and nothing else. *Nothing*: of this bug no
line shows in the worlds that it judged, as of an answer that comes too soon, or of what is kept too long.

";

const NOT_CAUGHT: &str = "**not caught**";

pub(crate) fn table(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: &mut dyn Iterator<Item = String>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
    let mut text = line(&mut heads.iter().map(|head| cell(head)));
    text += &format!("|{}\n", "---|".repeat(heads.len()));
    rows.for_each(|row| text += &line(&mut row.iter().map(|part| cell(part))));
    text
}

/// A text that cannot end its cell or its line.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

/// Seconds for people.
pub(crate) fn span(seconds: f64) -> String {
    match whole(seconds) {
        0..=9 => format!("{seconds:.1} s"),
        whole @ 10..=599 => format!("{whole} s"),
        whole => format!("{} min", whole / 60),
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of a float saturates")]
fn whole(number: f64) -> u64 {
    number as u64
}

/// A dash where nothing was counted.
pub(crate) fn maybe(number: Option<u64>) -> String {
    number.map_or("–".to_owned(), grouped)
}

/// A number with its thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
