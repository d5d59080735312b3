//! Other jobs for a node that runs: a file that was read again, or time zones that have other rules now.

use std::collections::BTreeMap;

use super::{FOR_EVER, NodeMachine};
use crate::clock::Now;
use crate::drive::Message;
use crate::event::{self, Event};
use crate::job::JobName;
use crate::node::action::Action;
use crate::node::plan::{self, Entry, Plan, ZonesNow};

impl NodeMachine {
    /// Takes other jobs. A plan that cannot be used leaves the old one in force.
    pub fn handle_reload(&mut self, now: Now, plan: Plan) {
        if self.leave_by.is_some() {
            // What runs would be told of another drain, and what had ended would be begun again.
            let refused = Event::ReloadRefused { error: "the node is shutting down".to_owned() };
            return self.out.push_back(Action::Emit(refused));
        }
        let entries = match plan.compile(&self.identity) {
            Ok(entries) => entries,
            Err(error) => {
                let refused = Event::ReloadRefused { error: error.to_string() };
                return self.out.push_back(Action::Emit(refused));
            }
        };
        let changed = plan::changed(&self.entries, &entries);
        // The planner does not hand out an armed tick again.
        self.agenda.keep(|job| plan::still_ticks((self.entries.get(job), entries.get(job))));
        let mut reopened = Vec::new();
        for job in &changed {
            reopened.extend(self.active.retire(job, &Message::Leave(FOR_EVER), &mut self.out));
        }
        self.plan = plan;
        self.take(entries, now);
        // What waited was retired, its tick was handed out long ago: without another look the slot would be lost here.
        changed.iter().for_each(|job| self.agenda.look_again(job));
        let jobs = self.entries.values().filter(|entry| entry.ours).count();
        self.out.push_back(Action::Emit(Event::Reloaded { jobs, changed: changed.into_iter().collect() }));
        self.tell_plan();
        self.membership.plan_changed();
        for slot in reopened {
            self.start_again(now, slot, now.wall);
        }
        self.handle_beat(now);
    }

    /// Takes the rules that time zones have now: a job whose zone has other rules is planned anew. A node that leaves plans nothing.
    pub fn handle_zones(&mut self, now: Now, zones: &ZonesNow) {
        let plan = self.plan.in_zones(zones).filter(|_| self.leave_by.is_none());
        if let Some(plan) = plan {
            self.handle_reload(now, plan);
        }
    }

    /// Puts compiled jobs in force.
    pub(super) fn take(&mut self, entries: BTreeMap<JobName, Entry>, now: Now) {
        self.agenda.set(&self.plan.jobs, &entries, now);
        // Every node closes every job's slots: those who may claim a job may all be dead.
        self.membership.verdicts.set(&entries, now);
        self.entries = entries;
        self.out.push_back(Action::PlanTaken);
    }

    pub(super) fn tell_plan(&mut self) {
        let planned = |Entry { spec, ours, .. }: &Entry| Event::Planned(event::Plan::of(spec, *ours));
        self.out.extend(self.entries.values().map(planned).map(Action::Emit));
    }
}
