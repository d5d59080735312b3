//! The promises that need more than the store's answers to check: looked at when a slot is granted, when it is over, and at
//! the end of the world.

use std::time::Duration;

use chrono::{DateTime, Utc};
use cronward::clock::later;
use cronward::drive::Facts;
use cronward::job::{Concurrency, OnLost, Policy};
use cronward::slot::{Slot, Verdict};
use cronward::store::{ClaimRequest, Closing};

use crate::backend::{NewGrant, SlotId};
use crate::checks::Check;
use crate::engine::Time;
use crate::faults::Fault;
use crate::history::SimulatedRun;
use crate::lock_needs::after_queue;
use crate::message::{Ask, Process, Request};
use crate::shadow::Standing;
use crate::world::World;

/// From the end of what stood there, or a tick, to the next grant: the protocol's second, and the ways there and back.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// The longest that a node pauses after a store error, with its spread, and the spread of a resync.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_millis(7_500);

/// From a loss to the hint that hints were lost, at the most.
const RESYNC: Duration = Duration::from_millis(500);

impl World {
    /// The store granted a slot.
    pub(super) fn granted(&mut self, to: Process, id: SlotId, claim: &ClaimRequest, grant: NewGrant) {
        let now = self.nature.instant();
        if let Some(lapsed) = grant.lapsed {
            self.look_at_lapse(id, &claim.slot, lapsed);
        }
        self.look_beside(id, &claim.slot);
        self.look_at_debt(id, &claim.slot);
        self.look_at_recovery(id, &claim.slot, grant);
        if let Some(free_since) = grant.free_since {
            self.look_at_waiting(id, free_since, now);
            self.look_at_retry(to, id, grant, free_since);
        }
        if let Some(story) = self.nature.stories.get_mut(&id) {
            story.grants += 1;
        }
    }

    /// A node died under its lease: how long the next one took, if it was there and well.
    fn look_at_recovery(&mut self, id: SlotId, slot: &Slot, grant: NewGrant) {
        // A file that was read since may allow attempts that nobody waited for.
        let reloads = self.nature.scenario.mix.has(Fault::Reload);
        let Some(lapsed) = grant.lapsed.filter(|_| !reloads) else { return };
        let died = self.nature.run_of(slot, lapsed.token).filter(|run| run.orphaned).map(|run| run.by);
        let Some(died) = died.filter(|_| self.blocked_until(id).is_none_or(|until| until <= lapsed.until)) else {
            return;
        };
        let mut others = (0..self.hosts.len()).filter(|node| *node != died.node);
        if others.any(|node| self.was_waiting(node, slot, lapsed.until)) {
            let took = (self.nature.instant() - lapsed.until).num_milliseconds();
            *self.nature.summary.recoveries_ms.entry(u64::try_from(took).unwrap_or(0)).or_default() += 1;
        }
    }

    /// A lease lapsed without being settled: its holder was kept from renewing it, or is gone. And with `kill` its command is.
    pub(super) fn look_at_lapse(&mut self, id: SlotId, slot: &Slot, lapsed: Standing) {
        let Some(run) = self.nature.run_of(slot, lapsed.token).filter(|run| run.guarded).cloned() else { return };
        let policy = self.nature.scenario.jobs.get(id.0).map(|job| job.spec.policy.clone()).unwrap_or_default();
        let node = run.by.node;
        let Some(host) = self.hosts.get(node).filter(|host| host.start == run.by.start) else { return };
        let Some(daemon) = &host.daemon else { return };
        let lost = self.nature.stories.get(&id).is_some_and(|story| story.lost);
        if run.ended.is_none() && policy.on_lost == OnLost::Kill && !run.paused && !run.orphaned && !lost {
            let text = format!("attempt {} of {slot} on n{} runs on after its lease", run.attempt, node + 1);
            return self.nature.break_off(Check::Outlived, text);
        }
        // A lease is renewed while the command runs, and after a success until that is recorded, or the slot is over. After a
        // failure it may lapse. Where it may, a late copy of a renewal can set it again.
        let renews = run.ended.is_none() || (run.succeeded() && lapsed.until < slot.end());
        // A late copy of a claim can be granted anew, under a number that its node has not heard of.
        let renews = renews && lapsed.attempt == run.attempt;
        let holds = renews && daemon.task(run.task).is_some_and(|task| task.machine.is_holding());
        let good = self.nature.good_since.get(node).copied().unwrap_or(Time::MAX);
        let renewed = self.nature.scenario.time(lapsed.until).saturating_sub(policy.lease_ttl);
        if holds && good < renewed && !lost {
            let text = format!("the lease of attempt {} of {slot} lapsed though n{} was well", run.attempt, node + 1);
            self.nature.break_off(Check::Lapse, text);
        }
    }

    /// With `forbid` no other slot of the job is leased.
    fn look_beside(&mut self, id: SlotId, slot: &Slot) {
        let Some(job) = self.nature.scenario.jobs.get(id.0) else { return };
        if job.spec.policy.concurrency == Concurrency::Allow {
            return;
        }
        let now = self.nature.instant();
        for (other, shadow) in self.backend.others(id) {
            let (Some(lease), Some(story)) = (shadow.lease_at(now), self.nature.stories.get(other)) else { continue };
            // A late copy of a request can set a lease under which nothing runs.
            let run = self.nature.run_of(&story.slot, lease.token).filter(|run| run.ended.is_none());
            if run.is_some() {
                let text = format!("{slot} was granted while attempt {} of {} ran", lease.attempt, story.slot);
                return self.nature.break_off(Check::Beside, text);
            }
        }
    }

    /// A slot that could be claimed since `free` had not been by `now`: nobody may have been there to do it for long.
    fn look_at_waiting(&mut self, id: SlotId, free: DateTime<Utc>, now: DateTime<Utc>) {
        let Some(story) = self.nature.stories.get(&id) else { return };
        let unguarded = story.runs.iter().filter_map(|run| self.nature.runs.get(*run)).any(|run| !run.guarded);
        if story.lost || story.given_up || unguarded {
            return;
        }
        let free = self.blocked_until(id).map_or(free, |until| free.max(until)).max(story.slot.start());
        let slot = story.slot.clone();
        for node in 0..self.hosts.len() {
            let Some(due) = self.due_at(node, &slot, free) else { continue };
            if now > due {
                let late = (now - due).num_milliseconds();
                let text = format!("{slot} was free and n{} did not start it: {late} ms late", node + 1);
                return self.nature.break_off(Check::L1, text);
            }
        }
    }

    /// Until when another slot's lease forbade a start.
    fn blocked_until(&self, id: SlotId) -> Option<DateTime<Utc>> {
        let job = self.nature.scenario.jobs.get(id.0)?;
        if job.spec.policy.concurrency == Concurrency::Allow {
            return None;
        }
        let others = self.backend.others(id);
        others.map(|(_, shadow)| shadow.lease.map_or(shadow.freed, |lease| lease.until.max(shadow.freed))).max()
    }

    /// When a node that is well must have claimed a slot that is free since then; none where it need not.
    fn due_at(&self, node: usize, slot: &Slot, free: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let host = self.hosts.get(node)?;
        let daemon = host.daemon.as_ref().filter(|daemon| !daemon.is_leaving())?;
        let policy = &daemon.job(slot.job())?.policy;
        let id = self.nature.id(slot)?;
        let used = self.backend.kept.shadows.get(&id).map_or(0, |shadow| shadow.used());
        let busy = daemon.tasks().any(|task| task.machine.slot() == slot && task.machine.is_holding());
        // A node whose clock is ahead may have come when the slot was over by it.
        let scenario = &self.nature.scenario;
        let clock = daemon.corrected(host.clock);
        let good = *self.nature.good_since.get(node)?;
        let shown = clock.now(scenario.epoch, good.min(scenario.end)).wall;
        let over = host.looked.max(shown) >= slot.end();
        if busy || over || used >= policy.max_attempts || policy.start_deadline.is_some() {
            return None;
        }
        let story = self.nature.stories.get(&id)?;
        let tick = self.owed_tick(id, story).filter(|tick| !self.may_not_know(node, *tick))?;
        let tick = clock.when_wall(scenario.epoch, tick);
        let (longest_delay, handicap) = (longest_delay(policy), self.handicap(policy));
        // A failure that was reported after its lease had lapsed is waited out by its own node alone.
        let process = Process { node, start: host.start };
        let runs = story.runs.iter().filter_map(|run| self.nature.runs.get(*run));
        let failed = runs.filter(|run| run.by == process && run.ended.is_some()).count() > 0;
        let handicap = if failed { handicap + longest_delay } else { handicap };
        // Nor does anybody else wait for who has waited for locks in vain.
        let vain = story.in_vain.iter().filter(|(by, _)| *by == process).count();
        let handicap = if vain > 0 { handicap + longest_delay + after_queue(vain) } else { handicap };
        let slack = self.slack(policy);
        let recovered = good + policy.lease_ttl + scenario.network.timeout + LONGEST_PAUSE + handicap;
        let due = scenario.time(free).max(tick) + LOOK + handicap + slack;
        (good < scenario.end).then(|| scenario.instant(due.max(recovered + LOOK + slack)))
    }

    /// What the failing node waits on top.
    pub(super) fn handicap(&self, policy: &Policy) -> Duration {
        let part = (longest_delay(policy) / 4).clamp(Duration::from_millis(250), Duration::from_secs(5));
        part.max(self.nature.scenario.poll.unwrap_or_default() * 2)
    }

    /// Two percent for clocks that drift, and the ways there and back.
    pub(super) fn slack(&self, policy: &Policy) -> Duration {
        let scenario = &self.nature.scenario;
        (longest_delay(policy) + policy.lease_ttl + scenario.period) / 50 + scenario.network.most * 4
    }

    /// A reported failure is tried again as soon as the wait is over, by another node than the one that failed.
    fn look_at_retry(&mut self, to: Process, id: SlotId, grant: NewGrant, free: DateTime<Utc>) {
        let (Some(failed), Some(story)) = (grant.failed, self.nature.stories.get(&id)) else { return };
        let slot = story.slot.clone();
        // A reload begins anew, and forgets whose failure it was.
        let mix = self.nature.scenario.mix;
        let forgets = mix.has(Fault::ClockDrift) || mix.has(Fault::Reload);
        let Some(run) = self.nature.run_of(&slot, failed) else { return };
        let blocked = self.blocked_until(id).is_some_and(|until| until > free);
        let lost = story.lost || story.given_up || blocked || grant.lapsed.is_some();
        if forgets || lost || self.nature.scenario.poll.is_some() {
            return;
        }
        let (failed, failing) = (run.by, run.by.node);
        let wait = self
            .nature
            .scenario
            .jobs
            .get(id.0)
            .map(|job| job.spec.policy.retry)
            .map_or(Duration::ZERO, |retry| retry.max_delay.max(retry.delay));
        // Clocks that are well differ by up to a ten-thousandth.
        let within = Duration::from_millis(101) + self.nature.scenario.network.most * 3 + wait / 5_000;
        let ready = |node: usize| node != failing && self.was_waiting(node, &slot, free);
        if let Some(other) = (0..self.hosts.len()).find(|node| ready(*node)) {
            let late = self.nature.instant() > later(free, within);
            if late || to == failed {
                let after = (self.nature.instant() - free).num_milliseconds();
                let text = format!(
                    "{slot} failed on n{}; n{} waited for it and n{} got it {after} ms after the wait",
                    failing + 1,
                    other + 1,
                    to.node + 1,
                );
                self.nature.break_off(Check::Retry, text);
            }
        }
    }

    /// Whether a node that was well waited for the slot before then.
    fn was_waiting(&self, node: usize, slot: &Slot, before: DateTime<Utc>) -> bool {
        let Some(host) = self.hosts.get(node) else { return false };
        let Some(daemon) = host.daemon.as_ref().filter(|daemon| !daemon.is_leaving()) else { return false };
        let Some(job) = daemon.job(slot.job()) else { return false };
        let id = self.nature.id(slot);
        let shadow = id.and_then(|id| self.backend.kept.shadows.get(&id));
        let allowed = shadow.is_some_and(|shadow| shadow.used() <= job.policy.max_attempts);
        let policy = &job.policy;
        let calm = self.nature.scenario.network.timeout + LONGEST_PAUSE + policy.lease_ttl;
        let well =
            self.nature.good_since.get(node).is_some_and(|good| self.nature.scenario.instant(*good + calm) < before);
        let story = id.and_then(|id| self.nature.stories.get(&id));
        let owed = id.zip(story).and_then(|(id, story)| self.owed_tick(id, story));
        let owed = owed.filter(|tick| !self.may_not_know(node, *tick));
        let ticked = owed.is_some_and(|tick| {
            let tick = daemon.corrected(host.clock).when_wall(self.nature.scenario.epoch, tick);
            self.nature.scenario.instant(tick + calm) < before
        });
        let waits = daemon.tasks().any(|task| task.machine.slot() == slot && !task.machine.is_holding());
        // It may still wait after a failure of its own.
        let retry = policy.retry;
        let handicap = retry.max_delay.max(retry.delay).mul_f64(1.25) + Duration::from_millis(250);
        let recent = |run: &SimulatedRun| {
            run.by.node == node && run.ended.is_none_or(|ended| self.nature.scenario.instant(ended + handicap) > before)
        };
        let runs = story.into_iter().flat_map(|story| &story.runs).filter_map(|run| self.nature.runs.get(*run));
        // One that could not be started is no run, and nobody says whose it was.
        let unstarted = story.and_then(|story| story.not_started);
        let unstarted = unstarted.is_some_and(|at| self.nature.scenario.instant(at + handicap) > before);
        let in_vain = story.is_some_and(|story| story.in_vain.iter().any(|(by, _)| by.node == node));
        let waits = waits && !unstarted && !in_vain && !runs.into_iter().any(recent);
        waits && well && ticked && allowed && policy.start_deadline.is_none()
    }

    /// A machine asked for a command to be started: its lease must stand, unless the store forgot it.
    pub(super) fn look_at_starts(&mut self) {
        for (slot, token, locks) in std::mem::take(&mut self.nature.spawned) {
            let Some(id) = self.nature.id(&slot) else { continue };
            self.look_at_locks_of(&slot, locks);
            let lost = self.nature.stories.get(&id).is_none_or(|story| story.lost);
            // Or somebody else has done it while the answer was on its way; that is told when this run ends.
            let done = self.backend.kept.shadows.get(&id).is_some_and(|shadow| shadow.done.is_some());
            if !lost && !done && !self.backend.holds(id, token, self.nature.instant()) {
                self.nature.break_off(Check::Trust, format!("{slot} is started under a lease that is over"));
            }
        }
    }

    /// Done is said only of a run that succeeded (I7).
    pub(super) fn look_at_completion(&mut self, request: &Request) {
        let Ask::Complete { lease, .. } = &request.ask else { return };
        let Some(id) = self.nature.id(&lease.slot) else { return };
        let Some(story) = self.nature.stories.get(&id) else { return };
        let runs = story.runs.iter().filter_map(|run| self.nature.runs.get(*run));
        let own = |run: &&SimulatedRun| run.by == request.from && run.attempt == lease.attempt && run.succeeded();
        if runs.filter(own).count() == 0 {
            let text =
                format!("n{} says that attempt {} of {} succeeded", request.from.node + 1, lease.attempt, lease.slot);
            self.nature.break_off(Check::I7, text);
        }
    }

    /// Whether a completion comes under a lease that stands.
    pub(super) fn holds_for(&self, id: SlotId, ask: &Ask) -> bool {
        matches!(ask, Ask::Complete { lease, .. } if self.backend.holds(id, lease.token, self.nature.instant()))
    }

    /// A success was recorded, under a lease that stood (`held`) or not. One that was done under its lease is done: only a
    /// store that lost the lease or the done marker can grant the slot again, once for each time.
    pub(super) fn completed(&mut self, id: SlotId, held: bool) {
        let Some(story) = self.nature.stories.get_mut(&id) else { return };
        story.was_done = true;
        story.secured += u32::from(held);
        if story.secured > 1 + story.losses {
            let text =
                format!("{} was done {} times; the store lost data {} times", story.slot, story.secured, story.losses);
            self.nature.break_off(Check::Loss, text);
        }
    }

    /// A verdict was asked for.
    pub(super) fn verdict(&mut self, from: Process, slot: &Slot, closing: &Closing) {
        let Some(story) = self.nature.story(slot) else { return };
        match closing {
            Closing::First(verdict) => {
                story.verdict.get_or_insert(*verdict);
                story.recorders.push(from);
            }
            Closing::Already(verdict) => {
                story.verdict.get_or_insert(*verdict);
            }
            Closing::Running { .. } | Closing::Open { .. } => {}
        }
    }

    /// A slot is over: if it could still be claimed, nobody may have been there to do it.
    pub(super) fn over(&mut self, id: SlotId) {
        let now = self.nature.instant();
        self.backend.purge(now);
        let shadow = self.backend.kept.shadows.get(&id).cloned().unwrap_or_default();
        if let Some(free) = shadow.free_since(now, u32::MAX) {
            self.look_at_waiting(id, free, now);
        }
        self.look_at_idleness(id);
        if shadow.verdict != Some(Verdict::Done) {
            self.look_at_keepers(id);
        }
    }

    /// A slot is over and the store does not know that it was done. A node that had done it has told that again, if it was
    /// well for long enough since.
    fn look_at_keepers(&mut self, id: SlotId) {
        let Some(story) = self.nature.stories.get(&id) else { return };
        let scenario = &self.nature.scenario;
        // A clock that is ahead lets go of what was done too early.
        let wrong = [Fault::ClockOff, Fault::ClockDrift, Fault::ClockJump].iter().any(|fault| scenario.mix.has(*fault));
        let within = RESYNC + Facts::TRY_AGAIN + scenario.network.timeout * 2 + scenario.network.most * 20;
        let well = |keeper: &&Process| {
            let host = self.hosts.get(keeper.node).filter(|host| host.start == keeper.start && host.daemon.is_some());
            let good = self.nature.good_since.get(keeper.node);
            host.is_some() && good.is_some_and(|good| *good + within < self.nature.now)
        };
        if let Some(keeper) = story.keepers.iter().find(well).filter(|_| !wrong) {
            let text = format!("n{} had done {}; the store forgot it and was not told", keeper.node + 1, story.slot);
            self.nature.break_off(Check::Loss, text);
        }
    }
}

/// The longest wait after a failure.
fn longest_delay(policy: &Policy) -> Duration {
    policy.retry.delay.max(policy.retry.max_delay)
}
