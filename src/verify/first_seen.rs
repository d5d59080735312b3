//! Since when the cluster is known to have had each job, as far as the journals tell: an earlier tick need not have been owed. A store
//! that has lost its data knows a job again from a node that lived through the loss; a job that none had is new to it.

use chrono::{DateTime, TimeDelta, Utc};

use crate::slot::Slot;
use crate::verify::history::History;
use crate::verify::inputs::InjectedFault;
use crate::verify::node_run::Assignment;

/// After a loss, time for a node to register its jobs again.
const REGISTERED_AGAIN: TimeDelta = TimeDelta::seconds(2);

impl History {
    /// Sets since when the job of each plan is known. Asked once deaths and faults are known.
    pub(super) fn find_first_sights(&mut self) {
        let known: Vec<DateTime<Utc>> =
            self.assignments.iter().map(|assignment| self.first_sight(assignment)).collect();
        for (assignment, known) in self.assignments.iter_mut().zip(known) {
            assignment.known = known;
        }
    }

    fn first_sight(&self, of: &Assignment) -> DateTime<Utc> {
        let lost = |fault: &&InjectedFault| fault.loses_data() && fault.at <= of.from;
        let lost = self.faults.iter().filter(lost).map(|fault| fault.at + REGISTERED_AGAIN).max();
        let told = |other: &&Assignment| {
            let died = self.instances.get(other.instance).map_or(other.to, |instance| instance.until(self.horizon));
            other.table.job() == of.table.job() && lost.is_none_or(|lost| other.to.min(died) >= lost)
        };
        self.assignments.iter().filter(told).map(|other| other.from).min().unwrap_or(of.from)
    }
}

impl Assignment {
    /// When its node fires the slot's first tick that is known to be owed; the slot's end where there is none.
    pub(super) fn owes(&self, slot: &Slot) -> Option<DateTime<Utc>> {
        let first = self.fires(slot)?;
        let owed = self.table.tick_from(self.known.max(slot.start())).filter(|tick| *tick < slot.end());
        Some(owed.map_or(slot.end(), |tick| self.table.fire_at(tick, slot).max(first)))
    }
}
