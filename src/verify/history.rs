//! The whole of what happened, put in order: one time line, the nodes' starts, the slots.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::clock::later;
use crate::job::{JobName, NodeName};
use crate::slot::Slot;
use crate::verify::InjectedFault;
use crate::verify::inputs::{Inputs, RecordedRun, Told};
use crate::verify::node_run::{Assignment, NodeRun, assignments, dropped, offsets};
use crate::verify::run::JournalRun;
use crate::verify::slot_locks::QueuedAttempt;
use crate::verify::story::Story;

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
    pub(super) instances: Vec<NodeRun>,
    /// Who planned what, from when to when.
    pub(super) assignments: Vec<Assignment>,
    pub(super) stories: BTreeMap<(JobName, DateTime<Utc>), Story>,
    /// Runs that were recorded of slots that no journal knows.
    pub(super) strays: Vec<RecordedRun>,
    pub(super) faults: Vec<InjectedFault>,
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
pub(super) const LATENESS: Duration = Duration::from_millis(500);

impl History {
    pub(super) fn of(inputs: Inputs) -> Self {
        let Inputs { told, recorded, faults, notes, allowance, most_planned } = inputs;
        let (instances, heard) = time_line(told);
        let horizon = heard.last().map_or(DateTime::UNIX_EPOCH, |last| last.at);
        let (stories, strays) = (BTreeMap::new(), Vec::new());
        let assignments = assignments(&instances, horizon);
        let mut history =
            Self { heard, instances, assignments, stories, strays, faults, allowance, notes, horizon, unjudged: None };
        history.tell_stories();
        history.add_planned(most_planned);
        for run in recorded {
            history.add_recorded(run);
        }
        history.stories.values_mut().for_each(Story::sort);
        history.stories.values_mut().for_each(Story::settle_by_others);
        history.faults.retain(|fault| !fault.is_harmless());
        history.tell_pauses();
        history.tell_leases();
        history.find_deaths();
        history.find_first_sights();
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
        let passed_over = self.note_who_never_reached_its_store();
        let counts = |assignment: &&Assignment| assignment.plan.ours && !passed_over.contains(&assignment.instance);
        for Assignment { from, to, table, .. } in self.assignments.iter().filter(counts) {
            let left = (most + 1).saturating_sub(planned.len());
            let slots = table.slots(*from, *to).filter(|(_, tick)| tick < to);
            planned.extend(slots.map(|(slot, _)| slot).take(left));
        }
        if planned.len() > most {
            planned.truncate(most);
            self.unjudged = Some(most);
        }
        for slot in planned {
            let key = (slot.job().clone(), slot.start());
            self.stories.entry(key).or_insert_with(|| Story::new(slot)).planned = true;
        }
    }

    /// What a node planned that never reached its store is planned at instants that nobody knows; others did reach it, or
    /// nothing would be judged.
    fn note_who_never_reached_its_store(&mut self) -> BTreeSet<usize> {
        let (never, reached): (Vec<_>, Vec<_>) =
            self.instances.iter().enumerate().partition(|(_, instance)| instance.never_reached_its_store());
        if reached.is_empty() {
            return BTreeSet::new();
        }
        let plans = never.into_iter().filter(|(_, instance)| !instance.plans.is_empty());
        let (numbers, notes): (BTreeSet<usize>, Vec<String>) = plans
            .map(|(number, NodeRun { node, id, .. })| {
                (number, format!("{node} ({id}) never reached its store: no slot is judged for its plan alone"))
            })
            .unzip();
        self.notes.extend(notes);
        numbers
    }

    /// Who pauses a job keeps it from being done until somebody resumes it.
    fn tell_pauses(&mut self) {
        let resumed: Vec<(DateTime<Utc>, String)> = self
            .faults
            .iter()
            .filter(|fault| fault.kind == "resume")
            .map(|fault| (fault.at, fault.target.clone()))
            .collect();
        let open = self.faults.iter_mut().filter(|fault| fault.kind == "pause" && fault.until.is_none());
        for pause in open {
            let after = resumed.iter().filter(|(at, target)| *target == pause.target && *at >= pause.at);
            pause.until = after.map(|(at, _)| *at).min().or(Some(self.horizon.max(pause.at)));
        }
    }

    /// A slot that nobody was granted has the lease that its nodes planned with.
    fn tell_leases(&mut self) {
        let mut leases: BTreeMap<&JobName, Duration> = BTreeMap::new();
        for (_, job, plan) in self.instances.iter().flat_map(|instance| &instance.plans) {
            let ttl = plan.lease_ttl;
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
            let killed = |fault: &&InjectedFault| {
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

    /// Whether a node gives a journal.
    pub(super) fn knows(&self, node: &NodeName) -> bool {
        self.instances.iter().any(|instance| instance.node == *node)
    }

    /// When a node of this name started after this instance.
    fn next_start(&self, of: &NodeRun) -> Option<DateTime<Utc>> {
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

    /// When the node of a run died, if it died under it, or when it had ended and there was no time to tell the store.
    pub(super) fn death_of(&self, story: &Story, run: &JournalRun) -> Option<DateTime<Utc>> {
        let died = self.instances.get(run.instance?)?.died?;
        self.is_unsettled_at(story, run, died).then_some(died)
    }

    /// When a run ended, as far as can be said: a node that dies takes its command along.
    pub(super) fn end_of(&self, story: &Story, run: &JournalRun) -> Option<DateTime<Utc>> {
        run.end.or_else(|| self.death_of(story, run).map(|died| died.max(run.start)))
    }

    /// The first fault that concerns a slot in a span, with what follows from it, and fits.
    pub(super) fn blame(
        &self,
        story: &Story,
        (from, to): (DateTime<Utc>, DateTime<Utc>),
        fits: impl Fn(&InjectedFault) -> bool,
    ) -> Option<&InjectedFault> {
        self.blame_on(story, &story.nodes(), (from, to), fits)
    }

    /// The same, of faults that concern these nodes.
    pub(super) fn blame_on(
        &self,
        story: &Story,
        nodes: &[&NodeName],
        (from, to): (DateTime<Utc>, DateTime<Utc>),
        fits: impl Fn(&InjectedFault) -> bool,
    ) -> Option<&InjectedFault> {
        // Asked for every pair of runs: nothing is gathered for nothing.
        if self.faults.is_empty() {
            return None;
        }
        let everybody: Vec<&NodeName> = self.instances.iter().map(|instance| &instance.node).collect();
        let aftermath = self.aftermath(story);
        self.faults.iter().find(|fault| {
            fault.strikes(from, to, aftermath) && fault.concerns(&story.slot, nodes, &everybody) && fits(fault)
        })
    }

    /// The same, whichever node it struck.
    pub(super) fn blame_anybody(
        &self,
        story: &Story,
        span: (DateTime<Utc>, DateTime<Utc>),
        fits: impl Fn(&InjectedFault) -> bool,
    ) -> Option<&InjectedFault> {
        let everybody: Vec<&NodeName> = self.instances.iter().map(|instance| &instance.node).collect();
        self.blame_on(story, &everybody, span, fits)
    }

    /// The first fault that took back what the store had acknowledged at the beginning of a span: it struck after that.
    pub(super) fn taken_back(
        &self,
        story: &Story,
        (from, to): (DateTime<Utc>, DateTime<Utc>),
    ) -> Option<&InjectedFault> {
        let takes_back = |fault: &InjectedFault| fault.loses_data() || fault.kind == "reset";
        self.blame(story, (from, to), |fault| takes_back(fault) && fault.strikes(from, to, LATENESS))
    }

    /// No fault that excuses anything was near a slot, whomever it struck.
    pub(super) fn is_undisturbed(&self, story: &Story) -> bool {
        let aftermath = self.aftermath(story);
        !self.faults.iter().any(|fault| fault.strikes(story.slot.start(), story.slot.end(), aftermath))
    }

    /// How often the store may have lost what it knew of a slot, up to an instant.
    pub(super) fn losses(&self, story: &Story, until: DateTime<Utc>) -> usize {
        let aftermath = self.aftermath(story);
        let struck = self.faults.iter().filter(|fault| fault.strikes(story.slot.start(), until, aftermath));
        struck.map(InjectedFault::times_data_is_lost).sum()
    }

    /// How long a fault goes on to have consequences: a lease that has to lapse, the wait after it, and noticing.
    pub(super) fn aftermath(&self, story: &Story) -> Duration {
        let wait = story.grants.iter().map(|grant| grant.retry_delay + grant.poll).max().unwrap_or_default();
        let ttl = story.lease_ttl();
        ttl + ttl / 3 + wait + NOTICING + self.allowance
    }

    /// Whether the journals go on long enough after a slot for its verdict to be in them.
    pub(super) fn is_over(&self, story: &Story) -> bool {
        self.horizon >= later(self.closable(story), story.lease_ttl() + TO_CLOSE)
    }

    /// Whether the nodes' plans are known, and none of them had the job while the slot lasted.
    pub(super) fn nobody_planned(&self, story: &Story) -> bool {
        let (start, end) = (story.slot.start(), story.slot.end());
        let of_job = || self.assignments.iter().filter(|assignment| assignment.table.job() == story.slot.job());
        let silent = |instance: &NodeRun| {
            instance.keeps_its_plan_to_itself() && instance.first < end && start <= instance.until(self.horizon)
        };
        of_job().next().is_some()
            && !of_job().any(|assignment| assignment.from < end && start <= assignment.to)
            && !self.instances.iter().any(silent)
    }

    /// From when on a slot can be closed: it is over, and so are its runs, as far as anybody said.
    pub(super) fn closable(&self, story: &Story) -> DateTime<Utc> {
        let over = |run: &JournalRun| {
            let spoke = || run.instance.and_then(|instance| story.last_word_of(instance));
            run.settled.or_else(|| self.end_of(story, run)).or_else(spoke)
        };
        let runs = story.runs.iter().filter(|run| run.guarded).filter_map(over);
        let queued = story.locks.queued.iter().map(QueuedAttempt::until);
        runs.chain(queued).fold(story.slot.end(), DateTime::max)
    }

    /// How many attempts a slot had: the fewest and the most that it was granted under or that a node planned it with. Who has
    /// the fewest is the first to call it failed.
    pub(super) fn attempts_allowed(&self, story: &Story) -> Option<(usize, usize)> {
        let told = story.verdicts.first().map_or(story.slot.end(), |(at, _, _)| *at);
        let planned = self.attempts_planned(story, told);
        let allowed = || planned.clone().chain(story.max_attempts());
        let count = |attempts| usize::try_from(attempts).ok();
        Some((count(allowed().min()?)?, count(allowed().max()?)?))
    }

    /// How many attempts each plan of the job allowed that was in force between the slot's start and an instant.
    pub(super) fn attempts_planned(&self, story: &Story, until: DateTime<Utc>) -> impl Iterator<Item = u32> + Clone {
        let plans = self.assignments.iter().filter(|assignment| assignment.table.job() == story.slot.job());
        let near = plans.filter(move |assignment| assignment.from <= until && story.slot.start() <= assignment.to);
        near.map(|assignment| assignment.plan.max_attempts)
    }

    /// Whether lines of a span are known to be missing in some journal.
    pub(super) fn lines_are_missing(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> bool {
        self.instances.iter().any(|instance| instance.lacks_lines(from, to))
    }

    /// Whether lines of the run's own node are missing from a run's end on.
    pub(super) fn lines_are_missing_after(&self, run: &JournalRun) -> bool {
        let instance = run.instance.and_then(|index| self.instances.get(index));
        instance.is_some_and(|instance| instance.lacks_lines(run.end.unwrap_or(run.start), self.horizon))
    }
}

/// From a slot's end (or the lapse of its last lease) to its verdict: a heartbeat of grace, a beat, a busy store.
pub(super) const TO_CLOSE: Duration = Duration::from_secs(10);

/// Every line in its order, by the store's clock.
fn time_line(told: Vec<Told>) -> (Vec<NodeRun>, Vec<Heard>) {
    let (offsets, mut dropped) = (offsets(&told), dropped(&told));
    let mut instances: Vec<NodeRun> = Vec::new();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut heard: Vec<Heard> = Vec::with_capacity(told.len());
    for told in told {
        let ahead = offsets.get(&told.line.instance).copied().unwrap_or_default();
        let at = told.line.at - ahead;
        let instance = *numbers.entry(told.line.instance.clone()).or_insert_with(|| {
            let mut new = NodeRun::new(told.line.node.clone(), told.line.instance.clone(), at);
            new.ahead = ahead;
            new.dropped = dropped.remove(&told.line.instance).unwrap_or_default();
            new.dropped.iter_mut().for_each(|(from, to)| (*from, *to) = (*from - ahead, *to - ahead));
            instances.push(new);
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
