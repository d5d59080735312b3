//! One start of one node: from when to when it was there, which jobs it planned and when it fires their ticks, whether it reached its
//! store, and how far its clock is ahead of the store's, as far as its own lines show it. Nothing is set right here.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::clock::later;
use crate::event::{Event, Plan};
use crate::job::{JobName, NodeName};
use crate::observe::journal::Line;
use crate::reply::ClaimAnswer;
use crate::schedule::Timetable;
use crate::slot::Slot;
use crate::verify::availability::is_an_answer;
use crate::verify::inputs::Told;

/// From a start or a reload to the beat that looks at every current slot.
pub(super) const FIRST_LOOK: TimeDelta = TimeDelta::seconds(2);

/// What a node's clock may be off by, as the node reads it: two seconds are borne, and what is put right follows in steps of
/// one.
const MOST_OFF: Duration = Duration::from_secs(3);

/// A call that failed says no more than this of the store: a heartbeat is due by then, and one that fails is told.
const UNTIL_A_HEARTBEAT: TimeDelta = TimeDelta::seconds(10);

/// One start of one node. All instants are set right to the store's clock.
#[derive(Debug)]
pub(super) struct NodeRun {
    pub(super) node: NodeName,
    pub(super) id: String,
    pub(super) first: DateTime<Utc>,
    pub(super) last: DateTime<Utc>,
    /// How far its clock was ahead of the store's.
    pub(super) ahead: TimeDelta,
    /// From then on it began nothing more: it said so.
    pub(super) left: Option<DateTime<Utc>>,
    /// It left as it should, all of it.
    pub(super) stopped: bool,
    /// It went without a word; the last instant at which it can have been alive, as far as anybody knows.
    pub(super) died: Option<DateTime<Utc>>,
    /// An injected fault says when it died; otherwise only its last line does.
    pub(super) death_is_known: bool,
    /// Its journal begins with its start, and tells whether it ever reached its store.
    begun: bool,
    reached: bool,
    /// It said that it plans nothing.
    began_without_jobs: bool,
    /// When it could not use its store, or stood still; one that has not ended is open.
    pub(super) away: Vec<(DateTime<Utc>, Option<DateTime<Utc>>)>,
    /// From a call that failed, of whichever slot, to the next one that was answered.
    pub(super) failing: Vec<(DateTime<Utc>, DateTime<Utc>)>,
    /// When it found that time had jumped or that it had stood still.
    pub(super) gaps: Vec<DateTime<Utc>>,
    /// When it last began with a file: its look at every current slot that follows is a gap in its words only.
    planned_anew: Option<DateTime<Utc>>,
    /// From when to when lines of its journal are missing.
    pub(super) dropped: Vec<(DateTime<Utc>, DateTime<Utc>)>,
    /// How much more its clock and the store's differed, as it told, than it is set right by: unless it was granted something,
    /// nobody knows when it did what.
    clock_off: Vec<TimeDelta>,
    /// When it began with another file.
    reloads: Vec<DateTime<Utc>>,
    /// What it planned, and from when on.
    pub(super) plans: Vec<(DateTime<Utc>, JobName, Plan)>,
}

impl NodeRun {
    pub(super) fn new(node: NodeName, id: String, at: DateTime<Utc>) -> Self {
        Self {
            node,
            id,
            first: at,
            last: at,
            ahead: TimeDelta::zero(),
            left: None,
            stopped: false,
            died: None,
            death_is_known: false,
            begun: false,
            reached: false,
            began_without_jobs: false,
            away: Vec::new(),
            failing: Vec::new(),
            gaps: Vec::new(),
            planned_anew: None,
            dropped: Vec::new(),
            clock_off: Vec::new(),
            reloads: Vec::new(),
            plans: Vec::new(),
        }
    }

    /// Takes over what a line says of the node.
    pub(super) fn hear(&mut self, at: DateTime<Utc>, told: &Told) {
        let before = self.last;
        self.first = self.first.min(at);
        self.last = self.last.max(at);
        self.hear_of_calls(at, &told.line.event);
        match &told.line.event {
            Event::Draining { .. } | Event::Stopped => {
                self.left = Some(self.left.map_or(at, |left| left.min(at)));
                self.stopped |= told.line.event == Event::Stopped;
            }
            Event::StoreLost { .. } => self.away.push((at, None)),
            Event::StoreReached { .. } => {
                self.reached = true;
                self.away.iter_mut().filter(|(_, until)| until.is_none()).for_each(|(_, until)| *until = Some(at));
            }
            Event::Started { jobs } => {
                self.begun = true;
                self.began_without_jobs = *jobs == 0;
                self.planned_anew = Some(at);
                // Until it tells that it has reached its store.
                self.away.push((at, None));
            }
            Event::Reloaded { .. } => {
                self.planned_anew = Some(at);
                self.reloads.push(at);
            }
            Event::ClockOff { offset_ms } => {
                let offset = measured(*offset_ms).unwrap_or(self.ahead);
                self.clock_off.push(offset - self.ahead);
            }
            Event::Gap { .. } if self.planned_anew.take().is_some_and(|since| at < since + FIRST_LOOK) => {}
            Event::Gap { .. } => {
                self.gaps.push(at);
                // It stood still, or its time jumped, at some instant since it was last heard of.
                self.away.push((before, Some(at)));
            }
            Event::Planned(plan) => {
                if let Some(job) = &told.line.job {
                    self.plans.push((at, job.clone(), plan.clone()));
                }
            }
            _ => {}
        }
    }

    fn hear_of_calls(&mut self, at: DateTime<Utc>, event: &Event) {
        if let Some((_, until)) = self.failing.last_mut()
            && (is_an_answer(event) || matches!(event, Event::StoreReached { .. } | Event::StoreFailed { .. }))
        {
            *until = at.min(*until);
        }
        if let Event::StoreFailed { .. } = event {
            self.failing.push((at, at + UNTIL_A_HEARTBEAT));
        }
    }

    /// Until when it took part; `horizon` is where all journals end.
    pub(super) fn until(&self, horizon: DateTime<Utc>) -> DateTime<Utc> {
        [self.left, self.died].into_iter().flatten().min().unwrap_or(horizon)
    }

    /// It was started and never reached its store: nobody knows what its clock showed.
    pub(super) const fn never_reached_its_store(&self) -> bool {
        self.begun && !self.reached
    }

    /// How far its clock was ahead as it planned something: once it has reached its store it is put right when it is far off.
    pub(super) fn ahead_at(&self, at: DateTime<Utc>) -> TimeDelta {
        let first = self.away.first().filter(|_| self.begun);
        if first.is_some_and(|(_, reached)| reached.is_none_or(|reached| at < reached)) {
            return self.ahead;
        }
        let most = TimeDelta::from_std(MOST_OFF).unwrap_or_default();
        self.ahead.clamp(-most, most)
    }

    /// Whether it ever told that its clock and the store's differ.
    pub(super) const fn clock_was_off(&self) -> bool {
        !self.clock_off.is_empty()
    }

    /// How far its clock may have been ahead of what it is set right by at one time or another, where it told of it: by what it
    /// told, and when it was right. A clock that is set while the node runs makes lines of before and after change places, so
    /// nothing is said of when.
    pub(super) fn leads(&self) -> impl Iterator<Item = TimeDelta> + '_ {
        let right = self.clock_was_off().then_some(-self.ahead);
        self.clock_off.iter().copied().chain(right)
    }

    /// How late it may fire a tick, by the store's clock.
    pub(super) fn may_be_late(&self) -> Duration {
        (-self.ahead).to_std().unwrap_or_default().min(MOST_OFF)
    }

    /// Whether it does not say what it plans: an old journal, or one that does not begin with the node's start.
    pub(super) const fn keeps_its_plan_to_itself(&self) -> bool {
        self.plans.is_empty() && !self.began_without_jobs
    }

    /// Whether its lines from its start to an instant are there.
    pub(super) fn is_whole_until(&self, at: DateTime<Utc>) -> bool {
        self.begun && !self.lacks_lines(self.first, at)
    }

    /// Whether lines of a span are missing in its journal.
    pub(super) fn lacks_lines(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> bool {
        self.dropped.iter().any(|(first, last)| *first <= to && *last >= from)
    }

    /// Whether it was not out of touch with its store in a span.
    pub(super) fn in_touch(&self, (from, to): Span) -> bool {
        !self.away.iter().any(|(lost, back)| *lost <= to && back.is_none_or(|back| back >= from))
    }

    /// Whether no call of it failed in a span, as far as it told.
    pub(super) fn is_answered(&self, (from, to): Span) -> bool {
        // Lines are heard in the order of time, and each such span ends where the next one begins, or before.
        let begun = self.failing.partition_point(|(first, _)| *first <= to);
        self.failing.iter().take(begun).next_back().is_none_or(|(_, last)| *last < from)
    }

    /// Whether it took part, and was not out of touch with its store, through all of a span.
    pub(super) fn serves(&self, from: DateTime<Utc>, to: DateTime<Utc>, horizon: DateTime<Utc>) -> bool {
        self.first <= from && self.until(horizon) >= to && self.in_touch((from, to))
    }
}

/// From when to when.
pub(super) type Span = (DateTime<Utc>, DateTime<Utc>);

/// From when to when lines of each instance's journal are missing: between a line that tells so and the one before it in
/// its file. Lines are queued with their instants, so those after it may be of earlier ones.
pub(super) fn dropped(told: &[Told]) -> BTreeMap<String, Vec<Span>> {
    let mut dropped: BTreeMap<String, Vec<Span>> = BTreeMap::new();
    let mut last: BTreeMap<&str, DateTime<Utc>> = BTreeMap::new();
    for Told { line, .. } in told {
        let before = last.insert(&line.instance, line.at);
        if matches!(line.event, Event::Dropped { .. }) {
            // The first line of a file that is given before the one it goes on from.
            let from = before.filter(|before| *before <= line.at).unwrap_or(DateTime::UNIX_EPOCH);
            dropped.entry(line.instance.clone()).or_default().push((from, line.at));
        }
    }
    dropped
}

/// A job in the plan of one start of one node.
#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) instance: usize,
    pub(super) plan: Plan,
    pub(super) from: DateTime<Utc>,
    /// Since when its node has had the job without a break; none from its start on.
    gained: Option<DateTime<Utc>>,
    /// When a reload replaced it or took the job away, or the node was gone.
    pub(super) to: DateTime<Utc>,
    /// With the jitter, where the journal tells it.
    pub(super) table: Timetable,
    /// When some node first planned the job, as far as the journals tell: an earlier tick need not have been owed.
    pub(super) known: DateTime<Utc>,
}

/// Every plan of every node that can be read.
pub(super) fn assignments(instances: &[NodeRun], horizon: DateTime<Utc>) -> Vec<Assignment> {
    let mut assignments: Vec<Assignment> = Vec::new();
    for (index, instance) in instances.iter().enumerate() {
        for (number, (from, job, plan)) in instance.plans.iter().enumerate() {
            let Ok(table) = Timetable::parse(job.clone(), &plan.schedule, &plan.timezone, &plan.period) else {
                continue;
            };
            let table = table.with_jitter(plan.jitter.unwrap_or_default());
            let to = end(instance, number, job).unwrap_or_else(|| instance.until(horizon));
            let before = assignments.iter().rev().find(|other| other.instance == index && other.table.job() == job);
            let kept = before.filter(|before| before.to >= *from).map(|before| before.gained);
            let gained = kept.unwrap_or_else(|| instance.reloads.iter().any(|at| at <= from).then_some(*from));
            let known = *from;
            assignments.push(Assignment { instance: index, plan: plan.clone(), from: *from, gained, to, table, known });
        }
    }
    assignments
}

/// When a plan is replaced by a later one of the same job, or taken away by a reload that has no such job.
fn end(instance: &NodeRun, number: usize, job: &JobName) -> Option<DateTime<Utc>> {
    let (from, _, _) = instance.plans.get(number)?;
    let mut reloads = instance.reloads.iter().filter(|at| *at > from);
    let next = instance.plans.iter().skip(number + 1).find(|(_, other, _)| other == job).map(|(at, _, _)| *at);
    let Some(reload) = reloads.next() else { return next };
    let following = reloads.next();
    // The plan is told right after the reload.
    let again = next.filter(|at| following.is_none_or(|following| at < following));
    Some(again.unwrap_or(*reload))
}

impl Assignment {
    /// Whether its node claims the job's slots.
    pub(super) fn is_of(&self, job: &JobName) -> bool {
        self.plan.ours && self.table.job() == job
    }

    /// Whether its node sees to it that the slot gets its verdict: who takes a job from a new file begins with the slots that
    /// last, who starts goes on where others have left off.
    pub(super) fn closes(&self, slot: &Slot) -> bool {
        self.gained.is_none_or(|gained| gained < slot.end())
    }

    /// When its node fires the slot's first tick; none where it has other slots, or does not tell its jitter.
    pub(super) fn fires(&self, slot: &Slot) -> Option<DateTime<Utc>> {
        self.plan.jitter?;
        let (own, tick) = self.table.slots(slot.start(), slot.start() + TimeDelta::milliseconds(1)).next()?;
        (own == *slot).then(|| self.table.fire_at(tick, slot))
    }

    /// Until when its node may start what it fired then.
    pub(super) fn may_start_until(&self, fired: DateTime<Utc>) -> DateTime<Utc> {
        let deadline = self.plan.start_deadline.map(|deadline| later(fired, deadline));
        deadline.map_or(self.to, |deadline| deadline.min(self.to))
    }
}

/// A difference of clocks below this is latency.
const LATENCY: TimeDelta = TimeDelta::milliseconds(50);

/// What a node says of its clock beyond this is nonsense: lines are of the years 1970 to 9999.
const LARGEST: TimeDelta = TimeDelta::days(8_030 * 366);

/// What the lines of one instance show of its clock.
#[derive(Default)]
struct Signs<'a> {
    node: Option<&'a NodeName>,
    /// It told that it reached its store: had its clock been far off, it would have told that too.
    reached: bool,
    /// The smallest difference between telling of a grant and the store's instant of it: that is the clock's lead and the
    /// fastest answer, so that one answer on a slow link shifts nothing where another was quicker.
    granted: Option<TimeDelta>,
    /// What the node itself measured when it began.
    measured: Option<TimeDelta>,
    /// The store said of slots that they were over, so long before they were by the node's clock.
    behind: Option<TimeDelta>,
}

/// Clocks of one machine at different times that differ by no more were not set in between; by less nothing is set right.
const DRIFT: TimeDelta = TimeDelta::milliseconds(500);

/// How far each instance's clock is ahead of the store's, for those whose clock is off. A grant tells it best; an instance
/// that was granted nothing may have measured it, or have been told that a slot is over that by its clock was not. Whoever died
/// before it reached its store had the clock of its machine, as its other instances show it.
pub(super) fn offsets(told: &[Told]) -> BTreeMap<String, TimeDelta> {
    let mut signs: BTreeMap<&str, Signs<'_>> = BTreeMap::new();
    for Told { line, .. } in told {
        signs.entry(&line.instance).or_default().take(line);
    }
    let known: Vec<_> = signs.values().filter_map(|signs| Some((signs.node?, signs.ahead()?))).collect();
    let of_machine = |signs: &Signs<'_>| {
        let own = || known.iter().filter(|(node, _)| Some(*node) == signs.node).map(|(_, ahead)| *ahead);
        let same = |least: &TimeDelta| least.abs() > DRIFT && own().all(|ahead| ahead - *least <= DRIFT);
        own().min().filter(|least| !signs.reached && same(least))
    };
    let ahead = signs
        .iter()
        .filter_map(|(instance, signs)| Some(((*instance).to_owned(), signs.ahead().or_else(|| of_machine(signs))?)));
    ahead.filter(|(_, ahead)| ahead.abs() > LATENCY).collect()
}

/// What a node measured of its clock.
pub(super) fn measured(offset_ms: i64) -> Option<TimeDelta> {
    TimeDelta::try_milliseconds(offset_ms).filter(|offset| offset.abs() <= LARGEST)
}

impl<'a> Signs<'a> {
    fn take(&mut self, line: &'a Line) {
        self.node = Some(&line.node);
        match &line.event {
            Event::StoreReached { .. } => self.reached = true,
            Event::Granted { granted_at, .. } => {
                let ahead = line.at - *granted_at;
                self.granted = Some(self.granted.map_or(ahead, |least| least.min(ahead)));
            }
            Event::ClockOff { offset_ms } => {
                self.measured = self.measured.or_else(|| measured(*offset_ms));
            }
            Event::ClaimAnswered { answer: ClaimAnswer::Closed, .. } => {
                let behind = line.slot().map(|slot| slot.end() - line.at).filter(|behind| *behind > TimeDelta::zero());
                self.behind = behind.max(self.behind);
            }
            _ => {}
        }
    }

    fn ahead(&self) -> Option<TimeDelta> {
        self.granted.or(self.measured).or_else(|| self.behind.map(|behind| -behind))
    }
}
