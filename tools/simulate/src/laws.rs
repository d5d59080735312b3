//! What is judged over many slots: what became of every slot by the end of a world, whether it has a verdict, and whether somebody
//! was told of what is to be told (L2); and a job that nobody does though somebody could (L3), looked at whenever a slot is over in
//! which nothing ran.
//!
//! A slot that is shorter than what keeps its nodes is over before L1 asks for anything, and to L1 every lease of another slot is
//! an excuse. Here the job is looked at, over as many slots as it takes, and a lease excuses only while somebody may stand behind
//! it. The law: while
//!
//! - the job's slots follow one another without a break, each of them open: begun and ticked, never done, never lost by the store,
//!   with attempts left and no wait;
//! - nothing of the job runs;
//! - one node is there that has the job, and its clock is right;
//! - that node, and each one that holds a lease of the job, has been well for one `op_timeout`, the longest pause after an error,
//!   and the length of a slot or one `lease_ttl`, whichever is shorter: by then whoever waits has looked, and whoever may hold a
//!   lease has found out;
//! - every other lease of the job is over: one whose node died, or whose token nobody asked for any more when it was set, as by a
//!   late copy,
//!
//! a run starts within the look that the protocol allows, with what nodes wait on top.

use std::time::Duration;

use cronward::job::Policy;
use cronward::slot::{Attempt, Slot, Token, Verdict};
use cronward::store::{Claim, Renewal};

use crate::backend::SlotId;
use crate::checks::Check;
use crate::engine::Time;
use crate::faults::Fault;
use crate::history::{Classes, SimulatedRun, SlotHistory};
use crate::judge::{LONGEST_PAUSE, LOOK};
use crate::message::{Answer, Process, Request};
use crate::shadow::Shadow;
use crate::world::{Holder, World};

/// The last slots of a world have no time to be closed.
const LAST: Duration = Duration::from_secs(70);

impl World {
    pub(super) fn judge(&mut self) {
        let before = self.nature.scenario.instant(self.nature.scenario.end.saturating_sub(LAST));
        let over: Vec<SlotId> =
            self.nature.stories.iter().filter(|(_, story)| story.slot.end() < before).map(|(id, _)| *id).collect();
        for id in over {
            let Some(story) = self.nature.stories.get(&id).cloned() else { continue };
            let runs: Vec<SimulatedRun> =
                story.runs.iter().filter_map(|run| self.nature.runs.get(*run)).cloned().collect();
            let done = self.backend.kept.shadows.get(&id).is_some_and(|shadow| shadow.verdict == Some(Verdict::Done));
            let classes = classify(&story, &runs, done);
            self.nature.summary.classes.add(&classes);
            if !self.is_leased(id) {
                self.look_at_verdict(&story, done);
            }
            self.look_at_silence(&story, &runs, &classes);
            self.look_at_ends(&story.slot, &runs);
        }
        self.look_at_locks();
        let (slots, now) = (self.nature.stories.values().map(|story| &story.slot), self.nature.instant());
        if let Some((check, text)) = self.backend.leaks(slots, now) {
            self.nature.break_off(check, text);
        }
    }

    /// The end of a run is recorded while its node lives and reaches the store, whatever becomes of its output.
    fn look_at_ends(&mut self, slot: &Slot, runs: &[SimulatedRun]) {
        let scenario = &self.nature.scenario;
        let calm = scenario.faults_until + scenario.lease_ttl;
        let lives = |run: &SimulatedRun| {
            self.hosts.get(run.by.node).is_some_and(|host| host.start == run.by.start && host.daemon.is_some())
        };
        let is_open = |run: &&SimulatedRun| {
            let well = self.well_since(run.by.node).unwrap_or(scenario.end);
            let ended = run.ended.filter(|ended| *ended > calm && (*ended).max(well) + LAST < scenario.end);
            ended.is_some() && !run.settled && !run.orphaned && !run.paused && lives(run)
        };
        if let Some(run) = runs.iter().find(is_open) {
            let text = format!("n{} never recorded how attempt {} of {slot} ended", run.by.node + 1, run.attempt);
            self.nature.break_off(Check::Unrecorded, text);
        }
    }

    /// A run went on until the end of the world, or nearly.
    fn is_leased(&self, id: SlotId) -> bool {
        let before = self.nature.scenario.instant(self.nature.scenario.end.saturating_sub(LAST));
        let shadow = self.backend.kept.shadows.get(&id);
        shadow.is_some_and(|shadow| shadow.freed > before || shadow.lease_at(before).is_some())
    }

    /// L2, and that a verdict other than done was told.
    fn look_at_verdict(&mut self, story: &SlotHistory, done: bool) {
        let slot = &story.slot;
        if story.verdict.is_none() && !done && !story.was_done && self.is_accounted_for(story) {
            return self.nature.break_off(Check::L2, format!("{slot} has no verdict"));
        }
        let gone = |process: &Process| self.hosts.get(process.node).is_none_or(|host| host.start != process.start);
        // A copy of a close that nobody waits for can be the one that records the verdict.
        // And a node whose file has lost the job asks no more what came of the one that it sent.
        let mix = self.nature.scenario.mix;
        let told = mix.has(Fault::Duplicate)
            || mix.has(Fault::Reload)
            || story.announced > 0
            || story.verdict == Some(Verdict::Done)
            || story.was_done;
        if !told && story.verdict.is_some() && !story.recorders.iter().any(gone) {
            self.nature.break_off(Check::Silence, format!("{slot} is {:?} and nobody was told", story.verdict));
        }
    }

    /// Some node is to see to it that the slot gets its verdict: one that was there at its tick and still is, or, if they all
    /// died, those that came after them, if the registry can tell them that there was somebody before, and the job.
    fn is_accounted_for(&self, story: &SlotHistory) -> bool {
        let scenario = &self.nature.scenario;
        let mut attended = story.attended.iter();
        let there = |process: &&Process| self.hosts.get(process.node).is_some_and(|host| host.start == process.start);
        let Some(process) = attended.clone().find(there) else {
            let same_files = !scenario.mix.has(Fault::Unlike) && !scenario.mix.has(Fault::Reload);
            let right = !scenario.mix.has(Fault::ClockOff) && !scenario.mix.has(Fault::ClockJump);
            // A heartbeat that arrives long after it was sent says of a dead node that it lives and is not behind.
            let late = [Fault::Delay, Fault::Duplicate, Fault::StoreSlow].iter().any(|fault| scenario.mix.has(*fault));
            let heard_of = attended.any(|process| self.nature.heartbeats.contains(&(process.node, process.start)));
            let owed = self.nature.id(&story.slot).is_some_and(|id| self.owed_tick(id, story).is_some());
            return same_files && right && !late && self.backend.losses == 0 && heard_of && owed;
        };
        let Some(host) = self.hosts.get(process.node) else { return false };
        if self.nature.id(&story.slot).is_none_or(|id| self.owed_tick(id, story).is_none()) {
            return false;
        }
        let known = host.daemon.as_ref().and_then(|daemon| daemon.known.get(story.slot.job()).copied());
        // A clock that is behind, or was ahead for a while, makes a verdict late.
        let closed = host.clock.when_wall(scenario.epoch, story.slot.end().max(host.looked)) + LAST;
        known.is_some_and(|known| known <= scenario.time(story.tick)) && closed < scenario.end
    }

    /// A repeat or an overlap is told by somebody: by a node, or by the record of a run that crashed. What a store had
    /// forgotten that was done nobody knows while it is done again; each success is told, so whoever reads the journals does.
    fn look_at_silence(&mut self, story: &SlotHistory, runs: &[SimulatedRun], classes: &Classes) {
        let successes = runs.iter().filter(|run| run.succeeded() && run.settled).count();
        if classes.repeated > 0 && story.told_successes < successes {
            let text = format!("{} was done {successes} times, {} of them told", story.slot, story.told_successes);
            return self.nature.break_off(Check::Silence, text);
        }
        if story.done_lost {
            return;
        }
        if let Some((run, later)) = silent_overlap(runs, &story.alarms) {
            let text = format!("attempts {run} and {later} of {} overlapped and nobody told of either", story.slot);
            return self.nature.break_off(Check::Silence, text);
        }
        if classes.repeated > 0 && story.alarms.is_empty() && runs.iter().all(|run| run.settled) {
            let text = format!("{} was run {} times and nobody told of it", story.slot, runs.len());
            self.nature.break_off(Check::Silence, text);
        }
    }
}

/// Two runs that overlapped, that the store could name, and of which no node told any trouble; by their attempts. One alarm
/// is of one run: that another one of the slot was told does not make these known. Where a node never heard that its end is
/// recorded, it has nothing to go by.
///
/// A node that is cut off hears of the later run when it settles its own; where the store has lost the later one's record by
/// then (it loses all it has a second time), nobody is left who knows both.
fn silent_overlap(runs: &[SimulatedRun], alarms: &[(Process, Attempt)]) -> Option<(Attempt, Attempt)> {
    let silent = |run: &&SimulatedRun| run.settled && !alarms.contains(&(run.by, run.attempt));
    let named =
        |run: &SimulatedRun, later: &SimulatedRun| run.overlaps(later) && !run.unnameable.contains(&later.token);
    runs.iter().enumerate().filter(|(_, run)| silent(run)).find_map(|(index, run)| {
        let mut later = runs.iter().skip(index + 1).filter(silent);
        later.find(|later| named(run, later)).map(|later| (run.attempt, later.attempt))
    })
}

fn classify(story: &SlotHistory, runs: &[SimulatedRun], done: bool) -> Classes {
    let succeeded = runs.iter().filter(|run| run.succeeded()).count();
    let overlapping =
        |(index, run): (usize, &SimulatedRun)| runs.iter().skip(index + 1).any(|later| run.overlaps(later));
    let repeated = succeeded > 1;
    let unguarded = runs.iter().any(|run| !run.guarded);
    let guarded = u32::try_from(runs.iter().filter(|run| run.guarded).count()).unwrap_or(u32::MAX);
    let failed = story.verdict == Some(Verdict::Failed);
    let undone = succeeded == 0 && !done;
    let one = |is: bool| u64::from(is);
    Classes {
        slots: 1,
        once: one(succeeded == 1 && runs.len() == 1),
        retried: one(succeeded == 1 && runs.len() > 1),
        repeated: one(repeated),
        repeated_after_loss: one(repeated && (story.done_lost || story.lost)),
        repeated_unguarded: one(repeated && !(story.done_lost || story.lost) && unguarded),
        repeated_after_lapse: one(repeated && !(story.done_lost || story.lost) && !unguarded),
        overlapped: one(runs.iter().enumerate().any(overlapping)),
        failed: one(undone && failed),
        missed: one(undone && !failed),
        never_ran: one(undone && !failed && runs.is_empty()),
        unused_grants: u64::from(story.grants.saturating_sub(guarded)),
        runs: 0,
        requests: 0,
        queued: 0,
        in_vain: 0,
        locks_lost: 0,
    }
}

/// What a clock may be off by that is right.
const RIGHT: chrono::TimeDelta = chrono::TimeDelta::milliseconds(100);

impl World {
    /// Notes who stands behind a lease that was set, or prolonged.
    pub(super) fn note_holder(&mut self, request: &Request, id: SlotId, answer: Option<&Answer>) {
        let set = match answer {
            Some(Answer::Claim(answer)) => matches!(answer, Claim::Claimed { .. }),
            Some(Answer::Renewal(answer)) => matches!(answer, Renewal::Renewed | Renewal::Restored),
            _ => false,
        };
        if let (true, Some(token), Some(slot)) = (set, request.ask.token(), request.ask.slot()) {
            // A copy that comes late prolongs the lease beyond what its sender can know of, and no shorter claim takes that back.
            let is_late = self.nature.now > request.until;
            let lasts = request.ask.lease_ttl().unwrap_or_default();
            let until = self.backend.kept.shadows.get(&id).and_then(|shadow| shadow.lease).map(|lease| lease.until);
            let is_its_own = until.is_none_or(|until| self.nature.scenario.time(until) <= self.nature.now + lasts);
            let was_known = self.holders.get(&id).is_none_or(|holder| holder.known);
            let known = !is_late && (is_its_own || was_known) && self.knows(request.from, slot, token);
            self.holders.insert(id, Holder { by: request.from, known });
        }
    }

    fn knows(&self, by: Process, slot: &Slot, token: Token) -> bool {
        let host = self.hosts.get(by.node).filter(|host| host.start == by.start);
        let mut tasks = host.and_then(|host| host.daemon.as_ref()).into_iter().flat_map(|daemon| daemon.tasks());
        tasks.any(|task| task.machine.slot() == slot && task.claimed == Some(token))
    }

    /// A slot is over: if nothing ran in it, its job was not left idle (L3).
    pub(super) fn look_at_idleness(&mut self, id: SlotId) {
        let Some(story) = self.nature.stories.get(&id).filter(|story| is_untried(story)) else { return };
        let length = (story.slot.end() - story.slot.start()).to_std().unwrap_or_default();
        let idle = (0..self.hosts.len()).find_map(|node| {
            let policy = self.policy_of(node, story)?;
            let bound = LOOK + self.handicap(policy).min(length) + self.slack(policy);
            let calm = self.nature.scenario.network.timeout + LONGEST_PAUSE + policy.lease_ttl.min(length);
            let well = self.well_since(node)? + calm;
            // Most slots are looked at no further.
            let since = |from: Time| Some(from).filter(|from| *from + bound < self.nature.now);
            let excused = since(well)?.max(self.busy_until(id)).max(self.excused_until(id, calm));
            self.owed_tick(id, story).filter(|tick| !self.may_not_know(node, *tick))?;
            let since = since(self.open_since(id, policy, since(excused)?))?;
            Some((node, since))
        });
        if let Some((node, since)) = idle {
            let (slot, ms) = (story.slot.clone(), (self.nature.now - since).as_millis());
            let text =
                format!("{} was idle for {ms} ms up to the end of {slot}, and n{} was well", slot.job(), node + 1);
            self.nature.break_off(Check::L3, text);
        }
    }

    /// By what a node that could start a slot would do so; none if it could not.
    fn policy_of(&self, node: usize, story: &SlotHistory) -> Option<&Policy> {
        let host = self.hosts.get(node)?;
        let daemon = host.daemon.as_ref().filter(|daemon| !daemon.is_leaving())?;
        let policy = &daemon.job(story.slot.job())?.policy;
        let shown = daemon.corrected(host.clock).now(self.nature.scenario.epoch, self.nature.now).wall;
        let is_right = (shown - self.nature.instant()).abs() <= RIGHT;
        (is_right && policy.start_deadline.is_none()).then_some(policy)
    }

    fn well_since(&self, node: usize) -> Option<Time> {
        self.nature.good_since.get(node).copied()
    }

    /// When something of the job ran last, or was to be started and could not.
    fn busy_until(&self, id: SlotId) -> Time {
        let now = self.nature.now;
        let runs = self.nature.of_job(id).flat_map(|(_, story)| &story.runs);
        let ends = runs.filter_map(|run| self.nature.runs.get(*run)).map(|run| run.ended.unwrap_or(now));
        let tried = self.nature.of_job(id).filter_map(|(_, story)| story.not_started);
        // Who waits for its locks is busy, and so is who pauses after that.
        ends.chain(tried).chain(self.queued_until(id)).max().unwrap_or_default()
    }

    /// Until when a lease of the job excused that nobody started anything.
    fn excused_until(&self, id: SlotId, calm: Duration) -> Time {
        let leased = self.nature.of_job(id).filter_map(|(id, _)| Some((id, self.backend.kept.shadows.get(id)?)));
        leased
            .map(|(id, shadow)| self.leased_until(shadow).min(self.accounted_until(*id, calm)))
            .max()
            .unwrap_or_default()
    }

    /// Until when the last lease of a slot stood.
    fn leased_until(&self, shadow: &Shadow) -> Time {
        let until = shadow.lease.map_or(shadow.freed, |lease| lease.until);
        self.nature.scenario.time(until).min(self.nature.now)
    }

    /// Until when a lease may stand with nothing running: until its holder, if it lives, has had the time to find out.
    fn accounted_until(&self, id: SlotId, calm: Duration) -> Time {
        let Some(holder) = self.holders.get(&id).filter(|holder| holder.known) else { return Time::MAX };
        let lives = |host: &&crate::world::Host| host.start == holder.by.start && host.daemon.is_some();
        let lives = self.hosts.get(holder.by.node).filter(lives).is_some();
        self.well_since(holder.by.node).filter(|_| lives).map_or(Time::MAX, |well| well + calm)
    }

    /// Since when the job's slots up to this one were open one after the other; not looked for before `from`.
    fn open_since(&self, id: SlotId, policy: &Policy, from: Time) -> Time {
        let jitter = self.nature.scenario.jobs.get(id.0).map_or(Duration::ZERO, |job| job.spec.jitter);
        let mut since = self.nature.now;
        for (id, story) in self.nature.of_job(id).rev().skip_while(|(other, _)| **other != id) {
            let shadow = self.backend.kept.shadows.get(id);
            let follows = self.nature.scenario.time(story.slot.end()) + jitter >= since;
            if since <= from || !follows || !is_open(story, shadow, policy.max_attempts) || self.ran_unguarded(story) {
                break;
            }
            let Some(tick) = self.owed_tick(*id, story) else { break };
            let waited = shadow.and_then(|shadow| shadow.wait).map_or(tick, |wait| wait.until.max(tick));
            since = self.nature.scenario.time(waited).min(since);
        }
        since.max(from)
    }

    fn ran_unguarded(&self, story: &SlotHistory) -> bool {
        story.runs.iter().filter_map(|run| self.nature.runs.get(*run)).any(|run| !run.guarded)
    }
}

fn is_untried(story: &SlotHistory) -> bool {
    story.runs.is_empty() && story.not_started.is_none()
}

/// Somebody was to start it as long as it lasted.
fn is_open(story: &SlotHistory, shadow: Option<&Shadow>, max_attempts: u32) -> bool {
    let done =
        story.was_done || shadow.is_some_and(|shadow| shadow.done.is_some() || shadow.verdict == Some(Verdict::Done));
    let used = shadow.map_or(0, Shadow::used);
    !done && !story.lost && !story.given_up && used < max_attempts
}

#[cfg(test)]
mod tests {
    use super::*;
    use cronward::slot::Token;

    fn run(attempt: Attempt, from: u64, to: u64) -> SimulatedRun {
        SimulatedRun {
            by: process(attempt),
            task: 1,
            attempt,
            token: Token::from_bits(u128::from(attempt)),
            guarded: true,
            started: Duration::from_secs(from),
            ended: Some(Duration::from_secs(to)),
            code: Some(0),
            stopped: false,
            orphaned: false,
            paused: false,
            settled: true,
            unnameable: Vec::new(),
            stubborn: false,
            plan: 0,
            locks: None,
        }
    }

    fn process(attempt: Attempt) -> Process {
        Process { node: usize::try_from(attempt).unwrap(), start: 1 }
    }

    #[test]
    fn an_alarm_of_one_run_does_not_make_the_overlap_of_two_others_known() {
        let runs = [run(1, 0, 10), run(2, 5, 20), run(3, 15, 30)];
        let told = |attempts: &[Attempt]| {
            let alarms: Vec<_> = attempts.iter().map(|attempt| (process(*attempt), *attempt)).collect();
            silent_overlap(&runs, &alarms)
        };
        assert_eq!(told(&[]), Some((1, 2)));
        assert_eq!(told(&[1]), Some((2, 3)));
        assert_eq!(told(&[3]), Some((1, 2)));
        assert_eq!(told(&[2]), None, "it is one of both");
        assert_eq!(told(&[1, 3]), None);
    }

    #[test]
    fn nobody_can_tell_of_a_run_whose_record_is_lost_or_whose_end_nobody_heard_of() {
        let forgotten = SimulatedRun { unnameable: vec![Token::from_bits(2)], ..run(1, 0, 10) };
        assert_eq!(silent_overlap(&[forgotten, run(2, 5, 20)], &[]), None);
        let open = SimulatedRun { settled: false, ..run(1, 0, 10) };
        assert_eq!(silent_overlap(&[open, run(2, 5, 20)], &[]), None);
        assert_eq!(silent_overlap(&[run(1, 0, 10), run(2, 10, 20)], &[]), None, "one after the other");
    }
}
