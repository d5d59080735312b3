//! One start of one node: from when to when it was there, whether it reached its store, and what its clock showed.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

use crate::job::{JobName, NodeName};
use crate::observe::journal::{Fact, Plan};
use crate::verify::inputs::Told;

/// A difference of clocks below this is latency.
const LATENCY: TimeDelta = TimeDelta::milliseconds(50);

/// From a start or a reload to the beat that looks at every current slot.
const FIRST_LOOK: TimeDelta = TimeDelta::seconds(2);

/// One start of one node. All instants are set right to the store's clock.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) node: NodeName,
    pub(super) id: String,
    pub(super) first: DateTime<Utc>,
    pub(super) last: DateTime<Utc>,
    /// From then on it began nothing more: it said so.
    pub(super) left: Option<DateTime<Utc>>,
    /// It left as it should, all of it.
    pub(super) stopped: bool,
    /// It went without a word; the last instant at which it can have been alive, as far as anybody knows.
    pub(super) died: Option<DateTime<Utc>>,
    /// An injected fault says when it died; otherwise only its last line does.
    pub(super) death_is_known: bool,
    /// When it could not use its store, or stood still; one that has not ended is open.
    pub(super) away: Vec<(DateTime<Utc>, Option<DateTime<Utc>>)>,
    /// When it found that time had jumped or that it had stood still.
    pub(super) gaps: Vec<DateTime<Utc>>,
    /// When it last began with a file: its look at every current slot that follows is a gap in its words only.
    planned_anew: Option<DateTime<Utc>>,
    /// Lines of its journal are missing.
    pub(super) dropped: bool,
    /// What it planned, and from when on; none for a job that a reload took away.
    pub(super) plans: Vec<(DateTime<Utc>, JobName, Plan)>,
}

impl Instance {
    pub(super) fn new(node: NodeName, id: String, at: DateTime<Utc>) -> Self {
        Self {
            node,
            id,
            first: at,
            last: at,
            left: None,
            stopped: false,
            died: None,
            death_is_known: false,
            away: Vec::new(),
            gaps: Vec::new(),
            planned_anew: None,
            dropped: false,
            plans: Vec::new(),
        }
    }

    /// Takes over what a line says of the node.
    pub(super) fn hear(&mut self, at: DateTime<Utc>, told: &Told) {
        let before = self.last;
        self.first = self.first.min(at);
        self.last = self.last.max(at);
        match &told.line.fact {
            Fact::Draining { .. } | Fact::Stopped => {
                self.left = Some(self.left.map_or(at, |left| left.min(at)));
                self.stopped |= told.line.fact == Fact::Stopped;
            }
            Fact::StoreLost { .. } => self.away.push((at, None)),
            Fact::StoreReached { .. } => {
                if let Some((_, until)) = self.away.iter_mut().rev().find(|(_, until)| until.is_none()) {
                    *until = Some(at);
                }
            }
            Fact::Started { .. } | Fact::Reloaded { .. } => self.planned_anew = Some(at),
            Fact::Gap { .. } if self.planned_anew.take().is_some_and(|since| at < since + FIRST_LOOK) => {}
            Fact::Gap { .. } => {
                self.gaps.push(at);
                // It stood still, or its time jumped, at some instant since it was last heard of.
                self.away.push((before, Some(at)));
            }
            Fact::Dropped { .. } => self.dropped = true,
            Fact::Planned(plan) => {
                if let Some(job) = &told.line.job {
                    self.plans.push((at, job.clone(), plan.clone()));
                }
            }
            _ => {}
        }
    }

    /// Until when it took part; `horizon` is where all journals end.
    pub(super) fn until(&self, horizon: DateTime<Utc>) -> DateTime<Utc> {
        [self.left, self.died].into_iter().flatten().min().unwrap_or(horizon)
    }

    /// Whether it took part, and was not out of touch with its store, through all of a span.
    pub(super) fn serves(&self, from: DateTime<Utc>, to: DateTime<Utc>, horizon: DateTime<Utc>) -> bool {
        let away = self.away.iter().any(|(lost, back)| *lost <= to && back.is_none_or(|back| back >= from));
        self.first <= from && self.until(horizon) >= to && !away
    }
}

/// How far each instance's clock is ahead of the store's: the smallest difference between telling of a grant and the
/// store's instant of it, which is that and the fastest answer.
pub(super) fn offsets(told: &[Told]) -> BTreeMap<String, TimeDelta> {
    let mut offsets: BTreeMap<String, TimeDelta> = BTreeMap::new();
    for Told { line, .. } in told {
        if let Fact::Granted { granted_at, .. } = &line.fact {
            let ahead = line.at - *granted_at;
            offsets.entry(line.instance.clone()).and_modify(|least| *least = ahead.min(*least)).or_insert(ahead);
        }
    }
    offsets.retain(|_, ahead| ahead.abs() > LATENCY);
    offsets
}
