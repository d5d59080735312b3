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

use chrono::{DateTime, TimeDelta, Utc};

use crate::clock::{between, later};
use crate::job::JobName;
use crate::schedule::{Schedule, Timetable};
use crate::slot::Slot;

/// Plans the ticks of all jobs.
#[derive(Debug)]
pub struct Planner {
    horizon: Duration,
    plans: Vec<JobPlan>,
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
        let mut known: BTreeMap<JobName, JobPlan> =
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
                None => JobPlan::new(timetable),
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
            self.plans.get_mut(at).into_iter().for_each(JobPlan::look_again);
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
        self.idle_until = self.plans.iter().filter_map(JobPlan::next).min();
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

/// Spans kept. What is forgotten beyond them is at worst looked at again after the clock has gone back.
const MOST_SPANS: usize = 8;

/// One scheduled instant, to be fired at `fire_at`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tick {
    /// The job.
    pub job: JobName,
    /// The scheduled instant.
    pub at: DateTime<Utc>,
    /// When to fire: `at` plus the job's fixed delay.
    pub fire_at: DateTime<Utc>,
    /// The slot that `at` belongs to.
    pub slot: Slot,
}

/// What a beat brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beat {
    /// Ticks to arm, in the order in which they fire.
    pub ticks: Vec<Tick>,
    /// Current slots to look at once, because nobody could have armed their tick: at the start, after a gap, and for jobs
    /// that are new since a reload; and a tick that a clock which has gone back had reached, once its time has come after all.
    /// `fire_at` is not after the beat. At most one per job.
    pub look_back: Vec<Tick>,
}

/// What brought a look at the current slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// A start, a gap, or a new timetable: a tick that was handed out is not handed out again.
    Gap,
    /// The job's other settings changed: the current slot is looked at in any case.
    Again,
    /// The clock went back by more than the horizon: as `Again`, and what lies ahead is looked at once more when its time
    /// comes, for a guard may have let it go by the wrong time.
    Back,
}

/// One job's place.
#[derive(Debug)]
struct JobPlan {
    timetable: Timetable,
    /// The latest tick that was handed out.
    mark: Option<DateTime<Utc>>,
    /// From the first to the last tick decided on between two looks, both included; the current span is the last. Ticks
    /// that a gap passed over lie in none of them, though they may lie before the mark.
    decided: Vec<(DateTime<Utc>, DateTime<Utc>)>,
    /// The next tick to decide on.
    next: Option<DateTime<Utc>>,
    /// What the next beat looks at the current slot for, if it is to.
    wanted: Option<Look>,
    /// The timetable that `decided` is about, where a reload has brought another since.
    replaced: Option<Timetable>,
}

impl JobPlan {
    pub(super) const fn new(timetable: Timetable) -> Self {
        Self { timetable, mark: None, decided: Vec::new(), next: None, wanted: Some(Look::Gap), replaced: None }
    }

    pub(super) const fn timetable(&self) -> &Timetable {
        &self.timetable
    }

    /// A changed timetable is looked at as if it were new, but what was handed out for the same slot does not come again.
    fn change_to(&mut self, timetable: Timetable) {
        let old = std::mem::replace(&mut self.timetable, timetable);
        self.replaced.get_or_insert(old);
        self.wanted = Some(Look::Gap);
    }

    /// The current slot is looked at once more, also when its tick was handed out.
    const fn look_again(&mut self) {
        self.wanted = Some(Look::Again);
    }

    pub(super) const fn wanted(&self) -> Option<Look> {
        self.wanted
    }

    /// When a beat's horizon next reaches something to do.
    pub(super) const fn next(&self) -> Option<DateTime<Utc>> {
        self.next
    }

    /// Looks at the current slot and goes on from there.
    fn look(&mut self, now: DateTime<Utc>, why: Look, beat: &mut Beat) {
        self.wanted = None;
        let slot = self.timetable.slot_at(now);
        let due = slot.as_ref().and_then(|slot| self.latest_due(slot, now));
        // With nothing due, ticks of the slot may have passed whose delay has not.
        self.next = match (due, &slot) {
            (Some(due), _) => self.schedule().next_after(due),
            (None, Some(slot)) => self.timetable.tick_from(slot.start()),
            (None, None) => self.schedule().next_after(now),
        };
        let fired = due.zip(slot).filter(|(at, _)| why != Look::Gap || !self.was_handed_out(*at));
        if why == Look::Back {
            self.decided.clear();
        }
        self.begin_span(now, due);
        if let Some((at, slot)) = fired {
            self.mark = self.mark.max(Some(at));
            beat.look_back.push(self.tick(at, slot));
        }
    }

    /// Hands out what the horizon reaches.
    pub(super) fn advance(&mut self, now: DateTime<Utc>, horizon_end: DateTime<Utc>, beat: &mut Beat) {
        let mut passed_over = None;
        while let Some(at) = self.next.filter(|at| *at <= horizon_end) {
            let tick = self.timetable.slot_of(at).map(|slot| self.tick(at, slot));
            if self.mark.is_none_or(|mark| at > mark) {
                self.mark = Some(at);
                beat.ticks.extend(tick);
            } else if !self.is_decided(at) {
                if tick.as_ref().is_some_and(|tick| tick.fire_at > now) {
                    break;
                }
                passed_over = tick.filter(|tick| tick.slot.end() > now);
            }
            if let Some((_, end)) = self.decided.last_mut() {
                *end = at;
            }
            self.next = self.schedule().next_after(at);
        }
        beat.look_back.extend(passed_over);
    }

    fn begin_span(&mut self, now: DateTime<Utc>, due: Option<DateTime<Utc>>) {
        if let Some(old) = self.replaced.take() {
            let ahead = old.schedule().ticks_after(now).take_while(|at| self.mark.is_some_and(|mark| *at <= mark));
            // A horizon's worth; bounded, because the clock may have gone back by years.
            let same = ahead.take(1_000).filter(|at| self.is_decided(*at) && self.is_same_work(&old, *at));
            self.decided = same.take(MOST_SPANS - 1).map(|at| (at, at)).collect();
        }
        if self.decided.len() >= MOST_SPANS {
            self.decided.remove(0);
        }
        // Empty while the first tick lies ahead: it is not decided on yet.
        let empty = |first: DateTime<Utc>| (first, first - TimeDelta::nanoseconds(1));
        self.decided.extend(due.map(|at| (at, at)).or(self.next.map(empty)));
    }

    /// The latest tick of the current slot that is due. The latest and not the first, because it is the one that a node
    /// which was there all the time has fired last: `start_deadline` and the start delay count from it, and the ticks
    /// before it were retries of the same slot.
    fn latest_due(&self, slot: &Slot, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let is_due = |at: &DateTime<Utc>| self.timetable.fire_at(*at, slot) <= now;
        // The order of ticks is the order of firing, so none before this one is due later.
        let long_ago = crate::clock::earlier(now, self.timetable.delay());
        let surely = self.schedule().last_until(long_ago).filter(|at| *at >= slot.start());
        let first = surely.or_else(|| self.timetable.tick_from(slot.start()))?;
        let onwards = std::iter::successors(Some(first), |at| self.schedule().next_after(*at));
        onwards.take_while(|at| *at < slot.end() && is_due(at)).last()
    }

    fn is_decided(&self, at: DateTime<Utc>) -> bool {
        self.decided.iter().any(|(first, last)| (*first..=*last).contains(&at))
    }

    fn was_handed_out(&self, at: DateTime<Utc>) -> bool {
        self.is_decided(at) && self.replaced.as_ref().is_none_or(|old| self.is_same_work(old, at))
    }

    /// Whether an instant was a tick of another timetable, too, and of the same slot up to its end.
    fn is_same_work(&self, old: &Timetable, at: DateTime<Utc>) -> bool {
        old.schedule().last_until(at) == Some(at) && old.slot_of(at) == self.timetable.slot_of(at)
    }

    const fn schedule(&self) -> &Schedule {
        self.timetable.schedule()
    }

    fn tick(&self, at: DateTime<Utc>, slot: Slot) -> Tick {
        let fire_at = self.timetable.fire_at(at, &slot);
        Tick { job: self.timetable.job().clone(), at, fire_at, slot }
    }
}
