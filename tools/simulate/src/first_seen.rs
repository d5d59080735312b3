//! Which scheduled times a job owes: those since the cluster first knew it. Every law that asks for a run or a verdict needs it. The
//! rule has two laws of its own:
//!
//! - no slot is granted for ticks from before any node had the job;
//! - no node registers a job as younger than the store has told the node.

use std::time::Duration;

use chrono::{DateTime, Utc};
use cronward::clock::{earlier, later};
use cronward::slot::Slot;

use crate::backend::SlotId;
use crate::checks::Check;
use crate::faults::Fault;
use crate::history::SlotHistory;
use crate::message::{Ask, Request};
use crate::nature::Nature;
use crate::world::World;

/// How far apart clocks may be that are left alone, and a little more.
const APART: Duration = Duration::from_secs(3);

impl World {
    /// When the slot's first tick that is owed fires, by the registry; none where no tick is owed, or where the registry was lost.
    pub(super) fn owed_tick(&self, id: SlotId, story: &SlotHistory) -> Option<DateTime<Utc>> {
        let timetable = &self.nature.scenario.jobs.get(id.0)?.timetable;
        let jobs = self.backend.kept.ledger.jobs();
        let first_seen = jobs.iter().find(|entry| entry.name == *story.slot.job())?.first_seen;
        let tick = timetable.tick_from(first_seen.max(story.slot.start())).filter(|tick| *tick < story.slot.end())?;
        Some(timetable.fire_at(tick, &story.slot))
    }

    /// Whether a node may take the job for a new one: it has started since the store lost its registry, and the tick is from before.
    pub(super) fn may_not_know(&self, node: usize, tick: DateTime<Utc>) -> bool {
        let started = self.hosts.get(node).map(|host| host.started).unwrap_or_default();
        let lost = self.nature.losses.last().is_some_and(|lost| *lost <= started);
        lost && self.nature.scenario.time(tick) <= started + APART
    }

    /// A slot was granted: one of its ticks has to lie after the instant at which a node first had the job.
    pub(super) fn look_at_debt(&mut self, id: SlotId, slot: &Slot) {
        let scenario = &self.nature.scenario;
        let wrong = [Fault::ClockOff, Fault::ClockJump, Fault::ClockDrift].iter().any(|fault| scenario.mix.has(*fault));
        let Some((job, first)) = scenario.jobs.get(id.0).zip(self.nature.first_known.get(slot.job())) else { return };
        let last = job.timetable.schedule().last_until(later(self.nature.instant(), APART));
        if !wrong && last.is_some_and(|tick| slot.start() <= tick && tick < earlier(*first, APART)) {
            self.nature.break_off(Check::Owed, format!("{slot} was granted though the job was not known at its tick"));
        }
    }
}

impl Nature {
    /// A node registers its jobs.
    pub(super) fn look_at_registration(&mut self, request: &Request) {
        let Ask::Register(jobs) = &request.ask else { return };
        let by = (request.from.node, request.from.start);
        let told = |entry: &&cronward::store::JobEntry| {
            self.told_first_seen.get(&(by, entry.name.clone())).is_some_and(|told| *told < entry.first_seen)
        };
        if let Some(entry) = jobs.iter().find(told) {
            let text = format!("n{} registers {} as younger than it was told", by.0 + 1, entry.name);
            self.break_off(Check::Owed, text);
        }
    }
}
