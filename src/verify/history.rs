//! The whole of what happened, put in order: one time line, the nodes' starts, the slots.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::clock::later;
use crate::job::{JobName, NodeName};
use crate::schedule::Timetable;
use crate::slot::Slot;
use crate::verify::Fault;
use crate::verify::inputs::{Inputs, RecordedRun, Told};
use crate::verify::instance::{Instance, offsets};
use crate::verify::run::Run;
use crate::verify::story::{Story, span};

/// A line on the one time line.
#[derive(Debug)]
pub(super) struct Heard {
    /// Set right to the store's clock.
    pub(super) at: DateTime<Utc>,
    pub(super) instance: usize,
    /// Its place on the time line.
    pub(super) number: usize,
    pub(super) told: Told,
}

/// The whole of what happened.
#[derive(Debug)]
pub(super) struct History {
    pub(super) heard: Vec<Heard>,
    pub(super) instances: Vec<Instance>,
    pub(super) stories: BTreeMap<(JobName, DateTime<Utc>), Story>,
    /// Runs that were recorded of slots that no journal knows.
    pub(super) strays: Vec<RecordedRun>,
    pub(super) faults: Vec<Fault>,
    pub(super) allowance: Duration,
    pub(super) notes: Vec<String>,
    /// Where the journals end.
    pub(super) horizon: DateTime<Utc>,
    /// More slots than so many were planned: the others are judged only where a line mentions them.
    pub(super) unjudged: Option<usize>,
}

/// What a fault of an instant goes on to cause, besides one lease, its retry and a third of it: noticing.
const NOTICING: Duration = Duration::from_secs(1);

/// What is told of an instant may come so much later: an answer on its way, clocks that differ.
const LATENESS: Duration = Duration::from_millis(500);

impl History {
    pub(super) fn of(inputs: Inputs) -> Self {
        let Inputs { told, recorded, faults, notes, allowance, most_planned } = inputs;
        let (instances, heard) = time_line(told);
        let horizon = heard.last().map_or(DateTime::UNIX_EPOCH, |last| last.at);
        let stories = BTreeMap::new();
        let mut history =
            Self { heard, instances, stories, strays: Vec::new(), faults, allowance, notes, horizon, unjudged: None };
        history.tell_stories();
        history.add_planned(most_planned);
        for run in recorded {
            history.add_recorded(run);
        }
        history.stories.values_mut().for_each(Story::sort);
        history.faults.retain(|fault| !fault.is_harmless());
        history.tell_leases();
        history.find_deaths();
        history
    }

    fn tell_stories(&mut self) {
        for heard in &self.heard {
            if let Some(slot) = heard.told.line.slot() {
                let key = (slot.job().clone(), slot.start());
                self.stories.entry(key).or_insert_with(|| Story::new(slot)).hear(heard);
            }
        }
    }

    /// Slots that a node planned to do and that no line may mention.
    fn add_planned(&mut self, most: usize) {
        let mut planned = Vec::new();
        for instance in &self.instances {
            // A later plan of the same instance takes a plan's place.
            let mut replaced = BTreeMap::new();
            for (from, job, plan) in instance.plans.iter().rev() {
                let to = replaced.insert(job, *from).unwrap_or_else(|| instance.until(self.horizon));
                let table = Timetable::parse(job.clone(), &plan.schedule, &plan.timezone, &plan.period);
                let slots = table.iter().filter(|_| plan.ours).flat_map(|table| table.slots(*from, to));
                let left = (most + 1).saturating_sub(planned.len());
                planned.extend(slots.filter(|(_, tick)| *tick < to).map(|(slot, _)| slot).take(left));
            }
        }
        if planned.len() > most {
            planned.truncate(most);
            self.unjudged = Some(most);
        }
        for slot in planned {
            self.stories.entry((slot.job().clone(), slot.start())).or_insert_with(|| Story::new(slot));
        }
    }

    /// A slot that nobody was granted has the lease that its nodes planned with.
    fn tell_leases(&mut self) {
        let mut leases: BTreeMap<&JobName, Duration> = BTreeMap::new();
        for (_, job, plan) in self.instances.iter().flat_map(|instance| &instance.plans) {
            let ttl = span(plan.lease_ttl_s);
            leases.entry(job).and_modify(|most| *most = ttl.max(*most)).or_insert(ttl);
        }
        for story in self.stories.values_mut() {
            story.planned_ttl = leases.get(story.slot.job()).copied();
        }
    }

    fn add_recorded(&mut self, run: RecordedRun) {
        match self.stories.get_mut(&(run.job.clone(), run.slot.start())) {
            Some(story) => story.record(&run),
            None => self.strays.push(run),
        }
    }

    /// A node died where a fault says so, where it started anew without having left, and where it never spoke again
    /// though another node had taken its slot.
    fn find_deaths(&mut self) {
        let silent: BTreeSet<usize> = self.stories.values().flat_map(|story| self.fell_silent(story)).collect();
        for index in 0..self.instances.len() {
            let Some(instance) = self.instances.get(index) else { continue };
            let next = self.next_start(instance);
            let killed = |fault: &&Fault| {
                fault.is_death()
                    && fault.target == instance.node.as_str()
                    && fault.at + TimeDelta::milliseconds(500) >= instance.last
                    && next.is_none_or(|next| fault.at <= next)
            };
            let fault = self.faults.iter().find(killed).map(|fault| fault.at);
            let died = fault.or_else(|| (next.is_some() || silent.contains(&index)).then_some(instance.last));
            if let Some(instance) = self.instances.get_mut(index)
                && !instance.stopped
            {
                (instance.died, instance.death_is_known) = (died, fault.is_some());
            }
        }
    }

    /// When a node of this name started after this instance.
    fn next_start(&self, of: &Instance) -> Option<DateTime<Utc>> {
        let later = self.instances.iter().filter(|other| other.node == of.node && other.first > of.last);
        later.map(|other| other.first).min()
    }

    fn fell_silent<'a>(&'a self, story: &'a Story) -> impl Iterator<Item = usize> + 'a {
        story.runs.iter().filter(|run| run.end.is_none() || run.settled.is_none()).filter_map(|run| {
            let index = run.instance?;
            let last = self.instances.get(index)?.last;
            story.runs.iter().any(|other| other.instance != run.instance && other.start > last).then_some(index)
        })
    }

    /// When the node of a run died, if it died under it or before what came of it was known to the store.
    pub(super) fn death_of(&self, run: &Run) -> Option<DateTime<Utc>> {
        let instance = self.instances.get(run.instance?)?;
        instance.died.filter(|_| run.settled.is_none())
    }

    /// When a run ended, as far as can be said: a node that dies takes its command along.
    pub(super) fn end_of(&self, run: &Run) -> Option<DateTime<Utc>> {
        run.end.or_else(|| self.death_of(run).map(|died| died.max(run.start)))
    }

    /// The first fault that concerns a slot in a span, with what follows from it, and fits.
    pub(super) fn blame(
        &self,
        story: &Story,
        (from, to): (DateTime<Utc>, DateTime<Utc>),
        fits: impl Fn(&Fault) -> bool,
    ) -> Option<&Fault> {
        // Asked for every pair of runs: nothing is gathered for nothing.
        if self.faults.is_empty() {
            return None;
        }
        let nodes = story.nodes();
        let everybody: Vec<&NodeName> = self.instances.iter().map(|instance| &instance.node).collect();
        let aftermath = self.aftermath(story);
        self.faults.iter().find(|fault| {
            fault.strikes(from, to, aftermath) && fault.concerns(&story.slot, &nodes, &everybody) && fits(fault)
        })
    }

    /// The first fault that took back what the store had acknowledged at the beginning of a span: it struck after that.
    pub(super) fn taken_back(&self, story: &Story, (from, to): (DateTime<Utc>, DateTime<Utc>)) -> Option<&Fault> {
        let takes_back = |fault: &Fault| fault.loses_data() || fault.kind == "reset";
        self.blame(story, (from, to), |fault| takes_back(fault) && fault.strikes(from, to, LATENESS))
    }

    /// How long a fault goes on to have consequences: a lease that has to lapse, the wait after it, and noticing.
    pub(super) fn aftermath(&self, story: &Story) -> Duration {
        let wait = story.grants.iter().map(|grant| grant.retry_delay + grant.poll).max().unwrap_or_default();
        let ttl = story.lease_ttl();
        ttl + ttl / 3 + wait + NOTICING + self.allowance
    }

    /// Whether some node could have taken the slot through all of a span.
    pub(super) fn somebody_serves(&self, from: DateTime<Utc>, to: DateTime<Utc>, but: Option<usize>) -> bool {
        let struck = |instance: &Instance| {
            let of_it = |fault: &&Fault| fault.target == instance.node.as_str() && !fault.is_death();
            self.faults.iter().filter(of_it).any(|fault| fault.strikes(from, to, Duration::ZERO))
        };
        let serves = |(index, instance): (usize, &Instance)| {
            but != Some(index) && instance.serves(from, to, self.horizon) && !struck(instance)
        };
        self.instances.iter().enumerate().any(serves)
    }

    /// The longest time within a span through which some one node could have taken the slot.
    pub(super) fn longest_service(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Duration {
        let mut cuts: Vec<DateTime<Utc>> = vec![from, to];
        for instance in &self.instances {
            let away = instance.away.iter().flat_map(|(lost, back)| [Some(*lost), *back]).flatten();
            cuts.extend(away.chain([instance.first, instance.until(self.horizon)]));
        }
        cuts.extend(self.faults.iter().flat_map(|fault| [Some(fault.at), fault.until]).flatten());
        cuts.retain(|cut| (from..=to).contains(cut));
        cuts.sort();
        cuts.dedup();
        let edge = TimeDelta::milliseconds(1);
        // Whoever serves a span serves every part of it: the end of the longest one never goes back.
        let (mut longest, mut end) = (Duration::ZERO, 0);
        for (index, a) in cuts.iter().enumerate() {
            end = end.max(index);
            while let Some(b) = cuts.get(end + 1).filter(|b| self.somebody_serves(*a + edge, **b - edge, None)) {
                longest = longest.max(crate::clock::between(*a, *b));
                end += 1;
            }
        }
        longest
    }

    /// Whether the journals go on long enough after a slot for its verdict to be in them.
    pub(super) fn is_over(&self, story: &Story) -> bool {
        self.horizon >= later(story.slot.end(), story.lease_ttl() + TO_CLOSE)
    }

    /// Whether lines of a run's node, or of any of them, are known to be missing.
    pub(super) fn lines_are_missing(&self) -> bool {
        self.instances.iter().any(|instance| instance.dropped)
    }
}

/// From a slot's end (or the lapse of its last lease) to its verdict: a heartbeat of grace, a beat, a busy store.
const TO_CLOSE: Duration = Duration::from_secs(10);

/// Every line in its order, by the store's clock.
fn time_line(told: Vec<Told>) -> (Vec<Instance>, Vec<Heard>) {
    let offsets = offsets(&told);
    let mut instances: Vec<Instance> = Vec::new();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut heard: Vec<Heard> = Vec::with_capacity(told.len());
    for told in told {
        let at = told.line.at - offsets.get(&told.line.instance).copied().unwrap_or_default();
        let instance = *numbers.entry(told.line.instance.clone()).or_insert_with(|| {
            instances.push(Instance::new(told.line.node.clone(), told.line.instance.clone(), at));
            instances.len() - 1
        });
        heard.push(Heard { at, instance, number: 0, told });
    }
    // Stable: lines of one instant stay in the order of their file.
    heard.sort_by_key(|heard| heard.at);
    let mut heard = without_copies(heard);
    for (number, heard) in heard.iter_mut().enumerate() {
        heard.number = number;
        if let Some(instance) = instances.get_mut(heard.instance) {
            instance.hear(heard.at, &heard.told);
        }
    }
    (instances, heard)
}

/// A line that stands in two files is one: rotated journals are copied, and files are given twice.
fn without_copies(heard: Vec<Heard>) -> Vec<Heard> {
    let mut kept: Vec<Heard> = Vec::with_capacity(heard.len());
    for heard in heard {
        let same_instant = kept.iter().rev().take_while(|other| other.at == heard.at);
        if !same_instant.into_iter().any(|other| other.told.line == heard.told.line) {
            kept.push(heard);
        }
    }
    kept
}

/// A slot by its name, for reports.
pub(super) fn name(slot: &Slot) -> String {
    slot.to_string()
}
