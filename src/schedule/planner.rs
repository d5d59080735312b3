//! Which ticks to arm next. A beat comes about once a second; each hands out the ticks of the coming few seconds, so that
//! a late or lost beat costs nothing while the horizon is longer than it. Never waits, never reads a clock.
//!
//! **Ticks.** Each tick of a job is handed out once, in order, never one at or before the last: whatever the wall clock
//! does, `Beat::ticks` of a job strictly rises.
//!
//! **A gap** is more than one horizon between two beats: a suspend, a SIGSTOP, a step of the wall clock forward. Ticks in
//! slots that are over are not handed out; the current slot of each job is looked at once, if its last tick is due and was
//! not handed out. The same at the first beat, and for a job whose timetable is new.
//!
//! **The wall clock goes back** by at most a horizon: nothing comes until it has caught up. By more: it was wrong before,
//! or is now. What was handed out by the wrong time may be waited for (the store told a node that was ahead `Early`), and
//! may have been let go: its guard found the store away until long after an end that was none. And the ticks that a step
//! forward had passed over (a machine that boots with its clock hours ahead, until NTP sets it) were never handed out. So
//! each job's current slot is looked at once more, and each tick ahead when its time comes after all. That is harmless,
//! because the slot and not the tick is the identity of the work, and no slot is lost because a clock was wrong for a while.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::plan::{Beat, Look, Plan};
use crate::clock::{between, later};
use crate::job::JobName;
use crate::schedule::Timetable;

/// Plans the ticks of all jobs.
#[derive(Debug)]
pub struct Planner {
    horizon: Duration,
    plans: Vec<Plan>,
    /// The furthest that a beat has come since all current slots were looked at; what lies a horizon ahead of it is done.
    reached: Option<DateTime<Utc>>,
    /// No horizon that ends before this instant reaches anything; none means that no tick is left. An idle beat costs one
    /// comparison.
    idle_until: Option<DateTime<Utc>>,
}

impl Planner {
    /// A planner that arms ticks up to `horizon` ahead.
    pub const fn new(horizon: Duration) -> Self {
        Self { horizon, plans: Vec::new(), reached: None, idle_until: None }
    }

    /// Takes the jobs of a (re)loaded file. Jobs whose timetable is unchanged keep their place; new and changed ones are
    /// looked at by the next beat; those that are gone are forgotten. Of two with one name the later counts.
    pub fn set(&mut self, timetables: Vec<Timetable>) {
        let mut known: BTreeMap<JobName, Plan> =
            std::mem::take(&mut self.plans).into_iter().map(|plan| (plan.timetable().job().clone(), plan)).collect();
        let wanted: BTreeMap<JobName, Timetable> =
            timetables.into_iter().map(|timetable| (timetable.job().clone(), timetable)).collect();
        for (name, timetable) in wanted {
            let plan = match known.remove(&name) {
                Some(plan) if *plan.timetable() == timetable => plan,
                Some(mut plan) => {
                    plan.change_to(timetable);
                    plan
                }
                None => Plan::new(timetable),
            };
            self.plans.push(plan);
        }
        self.idle_until = Some(DateTime::<Utc>::MIN_UTC);
    }

    /// The current slot of a job is looked at by the next beat, also when its tick was handed out: what was made of the tick
    /// is gone, because the job's other settings changed.
    pub fn look_again(&mut self, job: &JobName) {
        // `set` leaves them in the order of their names.
        if let Ok(at) = self.plans.binary_search_by(|plan| plan.timetable().job().cmp(job)) {
            self.plans.get_mut(at).into_iter().for_each(Plan::look_again);
        }
        self.idle_until = Some(DateTime::<Utc>::MIN_UTC);
    }

    /// Plans ahead from `now`. `Beat::ticks` never has the same instant twice, nor one at or before the last that was armed,
    /// also when the wall clock goes back; the module says what happens then.
    pub fn beat(&mut self, now: DateTime<Utc>) -> Beat {
        let mut beat = Beat::default();
        let horizon_end = later(now, self.horizon);
        let look = self.look_due(now);
        self.reached = if look.is_some() { Some(now) } else { self.reached.max(Some(now)) };
        if look.is_none() && self.idle_until.is_none_or(|instant| instant > horizon_end) {
            return beat;
        }
        for plan in &mut self.plans {
            if let Some(why) = look.or(plan.wanted()) {
                plan.look(now, why, &mut beat);
            }
            plan.advance(now, horizon_end, &mut beat);
        }
        self.idle_until = self.plans.iter().filter_map(Plan::next).min();
        beat.ticks.sort_by(|a, b| (a.fire_at, &a.job).cmp(&(b.fire_at, &b.job)));
        beat
    }

    /// Whether every job's current slot is to be looked at, and why.
    fn look_due(&self, now: DateTime<Utc>) -> Option<Look> {
        let Some(reached) = self.reached else { return Some(Look::Gap) };
        if between(reached, now) > self.horizon {
            return Some(Look::Gap);
        }
        (between(now, reached) > self.horizon).then_some(Look::Back)
    }
}
