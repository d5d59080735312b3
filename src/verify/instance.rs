//! One start of one node: from when to when it was there, whether it reached its store, and what its clock showed.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::job::{JobName, NodeName};
use crate::observe::journal::{Fact, Plan};
use crate::verify::clocks::measured;
use crate::verify::inputs::Told;
use crate::verify::obstacle::is_an_answer;

/// From a start or a reload to the beat that looks at every current slot.
pub(super) const FIRST_LOOK: TimeDelta = TimeDelta::seconds(2);

/// What a node's clock may be off by, as the node reads it: two seconds are borne, and what is put right follows in steps of
/// one.
const MOST_OFF: Duration = Duration::from_secs(3);

/// A call that failed says no more than this of the store: a heartbeat is due by then, and one that fails is told.
const UNTIL_A_HEARTBEAT: TimeDelta = TimeDelta::seconds(10);

/// One start of one node. All instants are set right to the store's clock.
#[derive(Debug)]
pub(super) struct Instance {
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
    pub(super) reloads: Vec<DateTime<Utc>>,
    /// What it planned, and from when on.
    pub(super) plans: Vec<(DateTime<Utc>, JobName, Plan)>,
}

impl Instance {
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
        self.hear_of_calls(at, &told.line.fact);
        match &told.line.fact {
            Fact::Draining { .. } | Fact::Stopped => {
                self.left = Some(self.left.map_or(at, |left| left.min(at)));
                self.stopped |= told.line.fact == Fact::Stopped;
            }
            Fact::StoreLost { .. } => self.away.push((at, None)),
            Fact::StoreReached { .. } => {
                self.reached = true;
                self.away.iter_mut().filter(|(_, until)| until.is_none()).for_each(|(_, until)| *until = Some(at));
            }
            Fact::Started { jobs } => {
                self.begun = true;
                self.began_without_jobs = *jobs == 0;
                self.planned_anew = Some(at);
                // Until it tells that it has reached its store.
                self.away.push((at, None));
            }
            Fact::Reloaded { .. } => {
                self.planned_anew = Some(at);
                self.reloads.push(at);
            }
            Fact::ClockOff { offset_ms } => {
                let offset = measured(*offset_ms).unwrap_or(self.ahead);
                self.clock_off.push(offset - self.ahead);
            }
            Fact::Gap { .. } if self.planned_anew.take().is_some_and(|since| at < since + FIRST_LOOK) => {}
            Fact::Gap { .. } => {
                self.gaps.push(at);
                // It stood still, or its time jumped, at some instant since it was last heard of.
                self.away.push((before, Some(at)));
            }
            Fact::Planned(plan) => {
                if let Some(job) = &told.line.job {
                    self.plans.push((at, job.clone(), plan.clone()));
                }
            }
            _ => {}
        }
    }

    fn hear_of_calls(&mut self, at: DateTime<Utc>, fact: &Fact) {
        if let Some((_, until)) = self.failing.last_mut()
            && (is_an_answer(fact) || matches!(fact, Fact::StoreReached { .. } | Fact::StoreFailed { .. }))
        {
            *until = at.min(*until);
        }
        if let Fact::StoreFailed { .. } = fact {
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
        !self.failing.iter().any(|(first, last)| *first <= to && *last >= from)
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
        if matches!(line.fact, Fact::Dropped { .. }) {
            // The first line of a file that is given before the one it goes on from.
            let from = before.filter(|before| *before <= line.at).unwrap_or(DateTime::UNIX_EPOCH);
            dropped.entry(line.instance.clone()).or_default().push((from, line.at));
        }
    }
    dropped
}
