//! What is promised of locks between nodes: that commands whose locks exclude each other do not run at once (K1), that the store lets hold
//! whoever starts, and that nothing is kept from others that nobody needs. And what the laws on slots need to know of those who wait.
//!
//! A command may run beside another one of which it was told: the node has said that its locks were lost, in doubt, set again or had by another.
//! With `on_lost = "kill"` that excuses nothing: the command has to be dead by then. Both may overlap in silence where the store has
//! lost data since they were let in, and where their node stood still and could not act, or did not live to tell.

use std::collections::BTreeMap;
use std::time::Duration;

use cronward::job::{LockName, OnLost};
use cronward::resource::{Acquired, Demand, LockRelease, LockRenewal};
use cronward::slot::{Slot, Token};

use crate::backend::SlotId;
use crate::checks::Check;
use crate::engine::Time;
use crate::history::{SimulatedRun, SlotHistory};
use crate::judge::LOOK;
use crate::lock_needs::{LockNeed, after_queue};
use crate::message::{Answer, Ask, Request};
use crate::task::Task;
use crate::world::World;

/// From the end of a command to when its node notices, and a step of its machine.
const NOTICED: Duration = Duration::from_millis(20);

/// One run's use of one lock.
struct LockUse<'a> {
    slot: &'a Slot,
    run: &'a SimulatedRun,
    demand: &'a Demand,
    /// From then on it may overlap others.
    excused_from: Time,
}

impl World {
    /// The store has answered a request about locks.
    pub(super) fn look_at_queues(&mut self, request: &Request, answer: Option<&Answer>) {
        let now = self.nature.now;
        match (&request.ask, answer) {
            (Ask::Acquire(acquire), Some(Answer::Acquired(answer))) => {
                let need = self.nature.needs.get_mut(&acquire.token);
                if let Some(need) = need.filter(|_| !matches!(answer, Acquired::Refused(_))) {
                    need.set_at = now;
                    if matches!(answer, Acquired::Held { .. }) {
                        need.held_at.get_or_insert(now);
                    }
                }
                if matches!(answer, Acquired::Waiting { .. }) {
                    self.look_at_kept(&acquire.demands.names(), Some(acquire.token));
                }
            }
            (Ask::RenewLock(hold), Some(Answer::LockRenewal(LockRenewal::Renewed | LockRenewal::Restored))) => {
                self.nature.needs.get_mut(&hold.token).into_iter().for_each(|need| need.set_at = now);
            }
            (Ask::Release(exit), Some(Answer::LockRelease(LockRelease::Released))) if !exit.unsure => {
                let need = self.nature.needs.get_mut(&exit.token);
                need.into_iter().for_each(|need| need.released_at = Some(now));
            }
            _ => {}
        }
    }

    /// No entry stands in a queue that nobody needs, where its node was well and has had the time to release it.
    fn look_at_kept(&mut self, locks: &[LockName], asking: Option<Token>) {
        let records = self.backend.kept.ledger.lock_records(locks, self.nature.instant());
        for record in records {
            let others = record.entries.iter().filter(|entry| Some(entry.token) != asking);
            let kept = others.filter_map(|entry| self.nature.needs.get(&entry.token)).find(|need| self.is_kept(need));
            if let Some((by, over)) = kept.map(|need| (need.by.node + 1, need.over.unwrap_or_default())) {
                let late = (self.nature.now - over).as_millis();
                let text =
                    format!("n{by} has not needed {} for {late} ms, and it still stands in its queue", record.lock);
                return self.nature.break_off(Check::Kept, text);
            }
        }
    }

    fn is_kept(&self, need: &LockNeed) -> bool {
        let Some(over) = need.over else { return false };
        let bound = over + self.nature.scenario.network.most * 4 + NOTICED;
        let host = self.hosts.get(need.by.node);
        let lives = host.is_some_and(|host| host.start == need.by.start && host.daemon.is_some());
        let well = self.nature.good_since.get(need.by.node).is_some_and(|good| *good <= over);
        // A copy that came late may have set it again, and a replica may have it still.
        let again = need.set_at > bound || need.released_at.is_some_and(|released| need.set_at > released);
        let again = again || self.nature.losses.iter().any(|lost| *lost >= over);
        lives && well && !again && self.nature.now > bound
    }

    /// A command is being started: the store lets it hold what it names, unless it has lost data.
    pub(super) fn look_at_locks_of(&mut self, slot: &Slot, asked: Option<Token>) {
        let now = self.nature.instant();
        let need = asked.and_then(|token| Some((token, self.nature.needs.get(&token)?)));
        let Some((token, need)) = need.filter(|(_, need)| !self.has_lost_since(need)) else { return };
        let lacks = need.demands.iter().find(|demand| !self.backend.lets_hold(demand.lock(), token, now));
        if let Some(text) = lacks.map(|demand| format!("{slot} is started and {demand} is not its own")) {
            self.nature.break_off(Check::Unlocked, text);
        }
    }

    fn has_lost_since(&self, need: &LockNeed) -> bool {
        need.held_at.is_none_or(|held| self.nature.losses.iter().any(|lost| *lost >= held))
    }

    /// At the end of the world.
    pub(super) fn look_at_locks(&mut self) {
        self.look_at_kept(&[], None);
        let overlap = self.overlap();
        overlap.into_iter().for_each(|text| self.nature.break_off(Check::K1, text));
    }

    /// The first commands that ran at once though their locks exclude each other, and nothing excuses it.
    fn overlap(&self) -> Option<String> {
        let mut uses: BTreeMap<&LockName, Vec<LockUse<'_>>> = BTreeMap::new();
        for story in self.nature.stories.values() {
            for run in story.runs.iter().filter_map(|run| self.nature.runs.get(*run)) {
                let Some(need) = run.locks.and_then(|token| self.nature.needs.get(&token)) else { continue };
                let excused_from = self.excused_from(story, run, need);
                for demand in &need.demands {
                    let one = LockUse { slot: &story.slot, run, demand, excused_from };
                    uses.entry(demand.lock()).or_default().push(one);
                }
            }
        }
        uses.into_values().find_map(first_overlap)
    }

    /// From when on a run may overlap others that it excludes.
    fn excused_from(&self, story: &SlotHistory, run: &SimulatedRun, need: &LockNeed) -> Time {
        let policy = self.nature.scenario.job(story.slot.job()).map(|(_, job)| job.spec.policy.on_lost);
        let kills = policy == Some(OnLost::Kill);
        let told = !kills && story.lock_alarms.contains(&(run.by, run.attempt));
        let stood_still = run.paused && (kills || !run.settled);
        if told || stood_still {
            return Time::ZERO;
        }
        let lost = self.nature.losses.iter().find(|lost| need.held_at.is_none_or(|held| **lost >= held));
        lost.copied().unwrap_or(Time::MAX)
    }

    /// Until when somebody of the job waited for its locks, or paused after it had waited in vain.
    pub(super) fn queued_until(&self, id: SlotId) -> Option<Time> {
        let job = self.nature.scenario.jobs.get(id.0)?;
        let policy = &job.spec.policy;
        policy.locks.as_ref()?;
        let tasks = self.hosts.iter().filter_map(|host| host.daemon.as_ref()).flat_map(|daemon| daemon.tasks());
        // Its command may be about to be started, or its attempt be given back.
        let waits = |task: &Task| task.machine.is_holding() && task.run.is_none();
        if tasks.filter(|task| *task.machine.slot().job() == job.spec.name).any(waits) {
            return Some(self.nature.now);
        }
        let pause =
            |times: usize| after_queue(times) + self.handicap(policy) + policy.retry.max_delay.max(policy.retry.delay);
        let in_vain = self.nature.of_job(id).flat_map(|(_, story)| {
            story.in_vain.iter().enumerate().map(|(before, (_, at))| *at + pause(before + 1) + LOOK)
        });
        in_vain.max()
    }
}

/// What runs at once is looked at whenever one more begins.
fn first_overlap(mut uses: Vec<LockUse<'_>>) -> Option<String> {
    uses.sort_by_key(|one| one.run.started);
    let mut open: Vec<&LockUse<'_>> = Vec::new();
    for newest in &uses {
        let at = newest.run.started;
        open.retain(|one| one.run.overlaps(newest.run));
        open.push(newest);
        let silent: Vec<&LockUse<'_>> = open.iter().copied().filter(|one| at < one.excused_from).collect();
        if at < newest.excused_from && !fits(&silent) {
            let of =
                |one: &&LockUse<'_>| format!("attempt {} of {} on n{}", one.run.attempt, one.slot, one.run.by.node + 1);
            let all: Vec<String> = silent.iter().map(of).collect();
            return Some(format!("{} ran at once with {}", all.join(", "), newest.demand));
        }
    }
    None
}

/// Those of one slot are of one owner, and weigh once.
fn fits(uses: &[&LockUse<'_>]) -> bool {
    let mut weights: BTreeMap<&Slot, u32> = BTreeMap::new();
    for one in uses {
        let weight = weights.entry(one.slot).or_default();
        *weight = one.demand.weight().max(*weight);
    }
    let least = uses.iter().map(|one| one.demand.of()).min().unwrap_or(u32::MAX);
    weights.into_values().map(u64::from).sum::<u64>() <= u64::from(least)
}
