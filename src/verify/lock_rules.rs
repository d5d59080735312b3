//! What may never be of the locks that jobs hold: two that exclude each other at once, a number that goes back, a run without its own.
//! Who takes a lock with a program of its own writes no journal, and is not judged.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

use crate::clock::{between, later};
use crate::event::lock_names;
use crate::job::LockName;
use crate::resource::Demand;
use crate::slot::Slot;
use crate::verify::explain::seconds;
use crate::verify::history::{History, LATENESS, name};
use crate::verify::inputs::InjectedFault;
use crate::verify::node_run::{Assignment, NodeRun};
use crate::verify::report::{Finding, finding};
use crate::verify::run::{CLOCKS, JournalRun};
use crate::verify::slot_locks::{HeldLocks, ToldLoss};
use crate::verify::story::Story;

/// What one attempt held of one lock.
struct Part<'a> {
    story: &'a Story,
    held: &'a HeldLocks,
    demand: &'a Demand,
    /// What its node's clock may be off by besides what all clocks may.
    doubt: TimeDelta,
}

/// The same, while its command ran.
struct Use<'a> {
    part: Part<'a>,
    run: &'a JournalRun,
    to: DateTime<Utc>,
}

/// Every rule over the locks of all slots.
pub(super) fn of_all(history: &History) -> Vec<Finding> {
    let mut parts: BTreeMap<&LockName, Vec<Part<'_>>> = BTreeMap::new();
    for story in history.stories.values() {
        for held in &story.locks.held {
            let doubt = history.instances.get(held.instance).map_or(TimeDelta::zero(), doubt);
            for demand in &held.locks {
                parts.entry(demand.lock()).or_default().push(Part { story, held, demand, doubt });
            }
        }
    }
    let mut found = Vec::new();
    for (lock, parts) in parts {
        found.extend(fences(history, lock, &parts));
        found.extend(overlaps(history, lock, parts));
    }
    found
}

/// What a node's clock may have been off by at one time or another, besides the one difference that it is set right by; and all of that
/// difference: where each answer of a slow store took long, it is the quickest of them and not the clock.
fn doubt(instance: &NodeRun) -> TimeDelta {
    instance.leads().chain([instance.ahead]).map(|lead| lead.abs()).max().unwrap_or_default()
}

fn clocks() -> TimeDelta {
    TimeDelta::from_std(CLOCKS).unwrap_or_default()
}

impl<'a> Part<'a> {
    fn slot(&self) -> &'a Slot {
        &self.story.slot
    }

    /// Whether the two may not be held at once. A slot's attempts are one owner.
    fn excludes(&self, other: &Part<'_>) -> bool {
        let weight = u64::from(self.demand.weight()) + u64::from(other.demand.weight());
        self.slot() != other.slot() && weight > u64::from(self.demand.of().min(other.demand.of()))
    }

    /// The earliest instant at which it was held, for sure.
    fn from(&self) -> DateTime<Utc> {
        self.held.from + self.doubt
    }
}

impl<'a> Use<'a> {
    /// Nothing, where no command ran with it: then nobody had any use of it.
    fn of(history: &History, part: Part<'a>) -> Option<Self> {
        let held = part.held;
        let own = |run: &&JournalRun| {
            run.instance == Some(held.instance) && run.attempt == held.attempt && Some(run.ordered) == held.started
        };
        let run = part.story.runs.iter().find(own)?;
        // Of a run whose end nobody told all that is known is that it went on while it was spoken of.
        let end = run.surely_ran_until().or_else(|| history.end_of(part.story, run));
        let end = end.or_else(|| part.story.last_word_of(held.instance))?;
        let to = held.until.map_or(end, |until| until.min(end));
        Some(Self { part, run, to })
    }

    /// The latest instant at which it was held, for sure, less what clocks may differ by.
    fn to(&self) -> DateTime<Utc> {
        self.to - self.part.doubt - clocks()
    }

    fn words(&self) -> String {
        format!("{} ({})", name(self.part.slot()), self.run.words())
    }

    /// Whether its node told of a loss, or could not; or a fault explains that it did not. A command that is to be dead before others may
    /// hold goes on only where its node stood still, or nobody could know that others would be let in.
    fn is_excused(&self, history: &History, at: DateTime<Utc>) -> bool {
        let Part { story, held, .. } = self.part;
        let aftermath = history.aftermath(story);
        let near = |fits: &dyn Fn(&InjectedFault) -> bool| history.blame(story, (held.from, at), fits).is_some();
        let instance = history.instances.get(held.instance);
        let lacks_lines = instance.is_some_and(|instance| instance.lacks_lines(held.from, later(at, aftermath)));
        if held.loss == Some(ToldLoss::Taken) || lacks_lines {
            return true;
        }
        if self.run.is_killed_when_lost() {
            let until = later(at, aftermath);
            let mut gaps = instance.into_iter().flat_map(|instance| &instance.gaps);
            return gaps.any(|gap| (held.from..=until).contains(gap))
                || near(&|fault| fault.allows_overlap_with_a_kill(&self.run.node));
        }
        held.loss.is_some() || self.run.was_in_doubt() || near(&InjectedFault::allows_overlap)
    }
}

/// K1, as far as commands are concerned: at each instant they weigh no more than the smallest limit among them.
fn overlaps(history: &History, lock: &LockName, parts: Vec<Part<'_>>) -> Vec<Finding> {
    let mut uses: Vec<Use<'_>> = parts.into_iter().filter_map(|part| Use::of(history, part)).collect();
    uses.sort_by_key(|one| (one.part.from(), one.part.held.fence));
    let mut found = Vec::new();
    let mut open: Vec<&Use<'_>> = Vec::new();
    for newest in &uses {
        let at = newest.part.from();
        open.retain(|one| one.to() > at);
        // Most fit, and nothing is asked about them.
        if newest.to() > at && !fits(newest, &open) && !newest.is_excused(history, newest.part.held.from) {
            let silent = |one: &&Use<'_>| !one.is_excused(history, newest.part.held.from);
            let beside: Vec<&Use<'_>> = open.iter().copied().filter(silent).collect();
            if !fits(newest, &beside) {
                found.push(overlap(lock, newest, &beside));
            }
        }
        open.push(newest);
    }
    found
}

/// What is held in all, each slot once, and the smallest limit.
fn load(newest: &Use<'_>, beside: &[&Use<'_>]) -> (u64, u32) {
    let mut least = newest.part.demand.of();
    let mut weights = BTreeMap::from([(newest.part.slot(), newest.part.demand.weight())]);
    for one in beside {
        least = least.min(one.part.demand.of());
        let weight = weights.entry(one.part.slot()).or_default();
        *weight = one.part.demand.weight().max(*weight);
    }
    (weights.values().map(|weight| u64::from(*weight)).sum(), least)
}

fn fits(newest: &Use<'_>, beside: &[&Use<'_>]) -> bool {
    let (weight, least) = load(newest, beside);
    weight <= u64::from(least)
}

/// Holders that are named; nobody reads more.
const MOST_NAMED: usize = 4;

fn overlap(lock: &LockName, newest: &Use<'_>, beside: &[&Use<'_>]) -> Finding {
    let (weight, least) = load(newest, beside);
    let end = beside.iter().map(|one| one.to).fold(newest.to, DateTime::min);
    let named: Vec<String> = beside.iter().rev().take(MOST_NAMED).rev().map(|one| one.words()).collect();
    let (others, newer) = (named.join(", "), newest.words());
    let how_long = seconds(between(newest.part.held.from, end));
    let message = format!("{others} and {newer} held {lock} at the same time for {how_long}: {weight} of {least}");
    let held = beside.iter().map(|one| one.part.held).chain([newest.part.held]);
    finding("lock-overlap", newest.part.story, message, held.flat_map(|held| &held.lines))
}

/// K6: of two that exclude each other the later one has the larger number.
fn fences(history: &History, lock: &LockName, parts: &[Part<'_>]) -> Vec<Finding> {
    let mut by_start: Vec<&Part<'_>> = parts.iter().filter(|part| !part.held.again).collect();
    by_start.sort_by_key(|part| part.held.from - part.doubt);
    let mut ripening = by_start.clone();
    ripening.sort_by_key(|part| part.from() + clocks());
    let mut ripening = ripening.into_iter().peekable();
    // Of each way to ask for it the largest numbers so far, of two slots.
    let mut largest: BTreeMap<(u32, u32), Vec<&Part<'_>>> = BTreeMap::new();
    let mut found = Vec::new();
    for part in by_start {
        while let Some(earlier) = ripening.next_if(|other| other.from() + clocks() < part.held.from - part.doubt) {
            let own = largest.entry((earlier.demand.weight(), earlier.demand.of())).or_default();
            own.retain(|other| other.slot() != earlier.slot() || other.held.fence > earlier.held.fence);
            if !own.iter().any(|other| other.slot() == earlier.slot()) {
                own.push(earlier);
            }
            own.sort_by_key(|other| std::cmp::Reverse(other.held.fence));
            own.truncate(2);
        }
        let forgets = |earlier: &Part<'_>| {
            let span = (earlier.held.from, part.held.from);
            history.blame(part.story, span, InjectedFault::loses_data).is_some()
        };
        let is_back = |earlier: &&&Part<'_>| earlier.excludes(part) && earlier.held.fence >= part.held.fence;
        let Some(earlier) = largest.values().flatten().filter(is_back).max_by_key(|other| other.held.fence).copied()
        else {
            continue;
        };
        if !forgets(earlier) {
            let (old, new) = (earlier.held.fence, part.held.fence);
            let message = format!("the number of {lock} went from {old} in {} to {new}", name(earlier.slot()));
            let lines = earlier.held.lines.iter().chain(&part.held.lines);
            found.push(finding("lock-fence-back", part.story, message, lines));
        }
        // It is told once, and not of all that follow.
        largest.values_mut().for_each(|own| own.retain(|other| other.held.fence < part.held.fence));
    }
    found
}

/// A run of a job that its node planned with locks, which it did not tell that it held.
pub(super) fn run_without_locks(history: &History, story: &Story) -> Vec<Finding> {
    let mut found = Vec::new();
    let of_job = history.assignments.iter().filter(|assignment| assignment.table.job() == story.slot.job());
    let plans: Vec<&Assignment> = of_job.collect();
    if plans.iter().all(|assignment| assignment.plan.locks.is_empty()) {
        return found;
    }
    for run in &story.runs {
        let Some((index, instance)) = run.instance.and_then(|index| Some((index, history.instances.get(index)?)))
        else {
            continue;
        };
        let since = run.grant.as_ref().map_or(run.ordered, |grant| grant.at.min(run.ordered));
        let locks = planned(&plans, index, (since, run.ordered));
        let held =
            story.locks.held.iter().filter(|held| held.is_of(index, run.attempt) && held.started == Some(run.ordered));
        let held: Vec<&Demand> = held.flat_map(|held| &held.locks).collect();
        let missing: Vec<Demand> = locks.into_iter().filter(|lock| !held.contains(&lock)).collect();
        if !missing.is_empty() && !instance.lacks_lines(since, run.ordered) {
            let message = format!("{} began without {}", run.words(), lock_names(&missing));
            found.push(finding("run-without-locks", story, message, &run.lines));
        }
    }
    found
}

/// What an instance held for each run of the job by every plan that it had then.
fn planned(plans: &[&Assignment], instance: usize, (from, to): (DateTime<Utc>, DateTime<Utc>)) -> Vec<Demand> {
    let before = |first: DateTime<Utc>, second: DateTime<Utc>| first <= later(second, LATENESS);
    let mut plans = plans.iter().filter(|assignment| {
        assignment.instance == instance && before(assignment.from, to) && before(from, assignment.to)
    });
    let Some(first) = plans.next() else { return Vec::new() };
    let mut locks = first.plan.locks.clone();
    plans.for_each(|assignment| locks.retain(|lock| assignment.plan.locks.contains(lock)));
    locks
}
