//! `NodeMachine`: what a node does, without doing any of it. It is told what happened, each time with [`Now`], and asked what
//! to do:
//!
//! ```text
//!  handle_beat  handle_ticks  handle_wake  handle_report  handle_end  handle_reload  handle_shutdown …
//!  poll_action  → Ask Start Tell TellAll Emit Announce Note CorrectClock …
//!  next_tick    → the instant at which handle_ticks is due
//! ```
//!
//! It owns no rule of the protocol: each slot has a machine of its own (`machine`), in a drive that its driver starts. The daemon
//! drives it with a runtime, the simulator in virtual time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::{Mono, Now, jumped};
use crate::drive::Message;
use crate::event::Event;
use crate::job::{Concurrency, JobName, JobSpec};
use crate::machine::End;
use crate::node::action::{self, Action, DriveId, Outbox, Question, Report, Start};
use crate::node::active::ActiveSlots;
use crate::node::agenda::Agenda;
use crate::node::membership::{Context, Membership};
use crate::node::plan::{Entry, Health, Identity, Plan, Upkeep};
use crate::node::request::{TriggerRefusal, TriggerRequest};
use crate::node::resets::Resets;
use crate::schedule::{Planner, ScheduleError};
use crate::slot::{Decision, Slot, SlotRecord, Trigger};
use crate::store::{JobEntry, NodeReport, StoreError};
use crate::wake::Wake;

/// How far ahead ticks are armed: several beats, so that late and lost ones cost nothing.
const HORIZON: Duration = Duration::from_secs(5);

/// After the drain and the longest `kill_after`, time to record what was stopped.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A run that goes on after its job has changed is not hurried.
const FOR_EVER: Duration = Duration::from_secs(366 * 86_400);

/// One node.
#[derive(Debug)]
pub struct NodeMachine {
    identity: Identity,
    upkeep: Upkeep,
    plan: Plan,
    entries: BTreeMap<JobName, Entry>,
    agenda: Agenda,
    active: ActiveSlots,
    resets: Resets,
    membership: Membership,
    last_beat: Option<Now>,
    /// Set by a shutdown: when to give up on what still runs.
    leave_by: Option<Mono>,
    out: Outbox,
}

impl NodeMachine {
    /// A node that will do this plan.
    pub fn new(identity: Identity, upkeep: Upkeep, plan: Plan, now: Now) -> Result<Self, ScheduleError> {
        let entries = plan.compile(&identity)?;
        let mut machine = Self {
            identity,
            upkeep,
            plan,
            entries: BTreeMap::new(),
            agenda: Agenda::new(Planner::new(HORIZON)),
            active: ActiveSlots::default(),
            resets: Resets::default(),
            membership: Membership::new(now.mono),
            last_beat: None,
            leave_by: None,
            out: Outbox::new(),
        };
        machine.take(entries, now);
        let jobs = machine.entries.values().filter(|entry| entry.ours).count();
        machine.out.push_back(Action::Emit(Event::Started { jobs }));
        machine.tell_plan();
        Ok(machine)
    }

    /// What to do next; nothing until something happens.
    pub fn poll_action(&mut self) -> Option<Action> {
        action::next(&mut self.out)
    }

    /// When the next armed tick is due.
    pub fn next_tick(&self) -> Option<DateTime<Utc>> {
        self.agenda.next()
    }

    /// The last beat; none before the first.
    pub const fn last_beat(&self) -> Option<Now> {
        self.last_beat
    }

    /// Set by a shutdown: when to give up on what still runs.
    pub const fn leave_by(&self) -> Option<Mono> {
        self.leave_by
    }

    /// The jobs in force.
    pub const fn entries(&self) -> &BTreeMap<JobName, Entry> {
        &self.entries
    }

    /// The plan in force.
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    #[cfg(feature = "daemon")]
    pub(super) const fn verdicts(&mut self) -> &mut crate::node::verdicts::Verdicts {
        &mut self.membership.verdicts
    }

    /// How the node is.
    pub fn health(&self) -> Health {
        self.membership.health(self.active.running().count(), self.last_beat)
    }

    /// The last heartbeat of a node that leaves because it was told to; none where it has made none.
    pub fn last_report(&mut self, now: Now) -> Option<NodeReport> {
        let (membership, node, _) = self.membership();
        membership.last_report(now, &node)
    }

    /// Whether slots wait for room to be run: what can wait is put off.
    pub const fn set_busy(&mut self, busy: bool) {
        self.membership.verdicts.busy = busy;
    }

    /// Whether the store tells of resets, as far as it is known by now: a right to its channel may be missing.
    pub const fn set_hints(&mut self, hints: bool) {
        self.upkeep.hints = hints;
    }

    /// A request found the store away: the next beat asks whether it answers.
    pub const fn handle_store_away(&mut self) {
        self.membership.probe();
    }

    /// Plans ahead and does what is due once in a while.
    pub fn handle_beat(&mut self, now: Now) {
        self.membership.beats += 1;
        if self.last_beat.is_some_and(|last| jumped(last, now)) {
            self.out.push_back(Action::TellAll(Message::Look));
            self.membership.verdicts.hurry();
        }
        self.last_beat = Some(now);
        self.active.sweep(now.wall, self.upkeep.hints);
        if self.leave_by.is_none() {
            let slots = self.agenda.beat(now);
            if slots > 0 {
                self.out.push_back(Action::Emit(Event::Gap { slots }));
            }
            self.handle_ticks(now);
            let due = self.resets.due(now.mono, self.upkeep.hints, |after, most| self.active.ended_after(after, most));
            if !due.is_empty() {
                self.active.ask_about(&due, now.wall);
                self.out.push_back(Action::Ask(Question::Look(due)));
            }
        }
        let (membership, node, out) = self.membership();
        membership.attend(now, &node, out);
    }

    /// Starts every armed tick that is due.
    pub fn handle_ticks(&mut self, now: Now) {
        while let Some(tick) = self.agenda.due(now) {
            self.start(&tick.job, tick.slot, tick.at, Trigger::Schedule);
        }
    }

    /// A hint from the store: it is passed on, and a slot that an operator opened is driven again.
    pub fn handle_wake(&mut self, now: Now, wake: &Wake) {
        self.membership.verdicts.hear(wake, &self.entries);
        if *wake == Wake::Resync {
            self.resets.doubt_all();
            // A store that was away may have lost its registry.
            self.membership.doubt_registry();
            // And what was done: who asked before goes on from here.
            self.out.push_back(Action::AssertAgain);
        }
        if let Some(slot) = self.active.wake(wake, &mut self.out) {
            self.start_reopened(now, slot);
        }
    }

    fn start_reopened(&mut self, now: Now, slot: Slot) {
        if self.leave_by.is_none() && self.is_still_ours(now, &slot) {
            let job = slot.job().clone();
            self.start(&job, slot, now.wall, Trigger::Retry);
        }
    }

    /// A drive let go of its slot: it has done it, or has given it back.
    pub fn handle_released(&mut self, slot: &Slot) {
        self.active.released(slot, &mut self.out);
    }

    /// A drive has ended. One that left because its job changed makes room for the job as it is now.
    pub fn handle_end(&mut self, now: Now, slot: Slot, id: DriveId, scheduled_at: DateTime<Utc>, end: End) {
        let end = self.active.ended(&slot, id, end, now.wall);
        match self.membership.verdicts.ended(&slot, end, &mut self.out) {
            Some(End::Left) if self.leave_by.is_none() => self.start_again(now, slot, scheduled_at),
            Some(_) => {}
            None => self.start_reopened(now, slot),
        }
    }

    /// A drive is gone without a word.
    pub fn handle_lost(&mut self, slot: &Slot, id: DriveId) {
        self.active.lost(slot, id);
        self.membership.verdicts.ended(slot, None, &mut self.out);
    }

    /// What came of a question to the store.
    pub fn handle_report(&mut self, now: Now, report: Report) {
        if let Report::Looked(reply) = report {
            return self.looked(now, reply);
        }
        if let Report::Registered { reply, .. } = &report {
            self.learn(now, reply.as_deref());
        }
        let (membership, node, out) = self.membership();
        membership.reported(now, report, &node, out);
    }

    /// The registry of jobs has answered. While it refuses the plan, slots are closed from this node's start on, and what was due before
    /// waits for the answer.
    fn learn(&mut self, now: Now, reply: Result<&[JobEntry], &StoreError>) {
        let seen = match reply {
            Ok(registry) => self.agenda.learn(registry, now),
            Err(error) if error.is_transient() => return,
            Err(_) => self.agenda.known_here(now),
        };
        for (job, first_seen) in seen {
            self.membership.verdicts.closer.owes_since(&job, first_seen);
        }
        if self.leave_by.is_none() {
            self.handle_ticks(now);
        }
    }

    /// What was opened again is driven again, as if a hint had told of it.
    fn looked(&mut self, now: Now, reply: Result<Vec<SlotRecord>, StoreError>) {
        let is_answer = reply.is_ok();
        self.resets.answered(is_answer);
        for record in reply.unwrap_or_default() {
            if let Some(slot) = self.active.reset(&record) {
                self.membership.verdicts.opened(&slot, &record, now.wall);
                self.start_reopened(now, slot);
            }
        }
        self.active.asked_about(is_answer);
    }

    /// Nothing new begins; what runs may go on for this long. A second one may shorten it.
    pub fn handle_shutdown(&mut self, now: Now, drain: Duration) {
        let running = self.active.running().count();
        self.out.push_back(Action::Emit(Event::Draining { running, drain }));
        let longest_kill = self.entries.values().map(|entry| entry.spec.policy.kill_after).max().unwrap_or_default();
        let leave_by = now.mono + drain + longest_kill + LAST_WORDS;
        self.leave_by = Some(self.leave_by.map_or(leave_by, |before| before.min(leave_by)));
        self.agenda.clear();
        self.out.push_back(Action::TellAll(Message::Leave(drain)));
        self.membership.draining = true;
        let (membership, node, out) = self.membership();
        membership.send_heartbeat(now, &node, out);
    }

    /// It waits no longer: what the store was not told until now it will not be told, and each run says so.
    pub fn handle_impatience(&mut self) {
        self.out.push_back(Action::TellAll(Message::GiveUp));
    }

    /// An operator wants a slot to be run here now.
    pub fn handle_trigger(&mut self, now: Now, request: TriggerRequest) -> Result<(), TriggerRefusal> {
        if self.leave_by.is_some() {
            return Err(TriggerRefusal::Leaving);
        }
        let node = (&*self.plan.jobs, &self.identity.labels);
        let spec = TriggerRefusal::judge(&request.slot, request.past, node, now.wall)?;
        if !self.active.make_room(&request.slot) {
            return Err(TriggerRefusal::Driven);
        }
        self.membership.verdicts.asked_for(&request, now.wall);
        if request.past {
            let (membership, node, out) = self.membership();
            membership.tell_at_once(now, &node, out);
        }
        let start = self.enrol(spec, request.slot, now.wall, Trigger::Manual);
        self.out.push_back(Action::Start(Start { past: request.past, audit: Some(request.audit), ..start }));
        Ok(())
    }

    /// Begins to drive a slot, unless it is driven or has ended here.
    fn start(&mut self, job: &JobName, slot: Slot, scheduled_at: DateTime<Utc>, trigger: Trigger) {
        if !self.active.is_free(&slot) {
            return;
        }
        let Some(entry) = self.entries.get(job) else { return };
        let spec = Arc::clone(&entry.spec);
        let start = self.enrol(spec, slot, scheduled_at, trigger);
        self.out.push_back(Action::Start(start));
    }

    fn enrol(&mut self, spec: Arc<JobSpec>, slot: Slot, scheduled_at: DateTime<Utc>, trigger: Trigger) -> Start {
        if spec.policy.concurrency == Concurrency::Replace {
            self.active.tell_older(&slot, &Message::Replace, &mut self.out);
        }
        if trigger == Trigger::Schedule {
            self.out.push_back(Action::Note(slot.clone(), Decision::Ticked { tick: scheduled_at }));
        }
        let (id, holding) = self.active.enrol(slot.clone());
        Start { id, spec, slot, scheduled_at, trigger, past: false, audit: None, holding }
    }

    /// Drives a slot by the job's present entry, if the job still has that slot and is this node's to run.
    fn start_again(&mut self, now: Now, slot: Slot, scheduled_at: DateTime<Utc>) {
        if self.is_still_ours(now, &slot) {
            let job = slot.job().clone();
            self.start(&job, slot, scheduled_at, Trigger::Schedule);
        }
    }

    /// Whether the slot goes on, its job has it by the file as it is now, and may run here.
    fn is_still_ours(&self, now: Now, slot: &Slot) -> bool {
        let still = |entry: &Entry| entry.ours && entry.timetable.slot_with_key(slot.key()).as_ref() == Some(slot);
        slot.end() > now.wall && self.entries.get(slot.job()).is_some_and(still)
    }

    fn membership(&mut self) -> (&mut Membership, Context<'_>, &mut Outbox) {
        let node = Context {
            identity: &self.identity,
            upkeep: &self.upkeep,
            plan: &self.plan,
            entries: &self.entries,
            active: &self.active,
            first_seen: &self.agenda.first_seen,
        };
        (&mut self.membership, node, &mut self.out)
    }
}

mod reload;
#[cfg(test)]
mod tests;
