//! A job that nobody does though somebody could (L3): looked at whenever a slot is over in which nothing ran.
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

use crate::job::Policy;
use crate::sim::backend::SlotId;
use crate::sim::checks::Check;
use crate::sim::engine::Time;
use crate::sim::history::Story;
use crate::sim::judge::{LONGEST_PAUSE, LOOK};
use crate::sim::message::{Answer, Process, Request};
use crate::sim::shadow::Shadow;
use crate::sim::world::{Holder, World};
use crate::slot::{Slot, Token, Verdict};
use crate::store::{Claim, Renewal};

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
        let mut tasks = host.and_then(|host| host.daemon.as_ref()).into_iter().flat_map(|daemon| daemon.tasks.values());
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
    fn policy_of(&self, node: usize, story: &Story) -> Option<&Policy> {
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
        ends.chain(tried).max().unwrap_or_default()
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
        let lives = |host: &&crate::sim::world::Host| host.start == holder.by.start && host.daemon.is_some();
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
            let waited = shadow.and_then(|shadow| shadow.wait).map_or(story.tick, |wait| wait.until.max(story.tick));
            since = self.nature.scenario.time(waited).min(since);
        }
        since.max(from)
    }

    fn ran_unguarded(&self, story: &Story) -> bool {
        story.runs.iter().filter_map(|run| self.nature.runs.get(*run)).any(|run| !run.guarded)
    }
}

fn is_untried(story: &Story) -> bool {
    story.runs.is_empty() && story.not_started.is_none()
}

/// Somebody was to start it as long as it lasted.
fn is_open(story: &Story, shadow: Option<&Shadow>, max_attempts: u32) -> bool {
    let done =
        story.was_done || shadow.is_some_and(|shadow| shadow.done.is_some() || shadow.verdict == Some(Verdict::Done));
    let used = shadow.map_or(0, Shadow::used);
    !done && !story.lost && !story.given_up && used < max_attempts
}
