//! From beats to ticks to slots: the part of the loop that starts things.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::task::JoinError;
use tokio_util::task::AbortOnDropHandle;

use crate::clock::{Mono, Now, jumped};
use crate::drive::{Drive, JobCommand, Message, Work};
use crate::guard::{Assignment, End, SlotMachine};
use crate::job::{Concurrency, JobSpec};
use crate::node::chores::Chores;
use crate::node::daemon::Node;
use crate::node::plan::Entry;
use crate::node::roll::TaskId;
use crate::observe::NodeEvent;
use crate::slot::{Decision, Slot, Trigger};
use crate::wake::{Wake, WakeKind};

/// A beat that has not come by then is not waited for.
const OVERDUE: Duration = Duration::from_millis(1_700);
/// Slots of one job that are noted as let pass between two heartbeats: more than one each second are no news.
const MOST_PASSED_OVER: usize = 16;

impl Node {
    /// Plans ahead and does what is due once in a while.
    pub(super) fn beat(&mut self, now: Now, chores: &Chores) {
        self.presence.beats += 1;
        if self.last_beat.is_some_and(|last| jumped(last, now)) {
            self.roll.tell_all(&Message::Look);
            self.presence.closer.hurry();
        }
        self.last_beat = Some(now);
        self.roll.sweep(now.wall);
        if self.tools.gate.is_away() {
            self.presence.probe();
        }
        self.sum_up(now);
        if self.leave_by.is_none() {
            let beat = self.planner.beat(now.wall);
            if !beat.look_back.is_empty() {
                self.ports.observer.node(&NodeEvent::Gap { slots: beat.look_back.len() });
            }
            for tick in beat.look_back.into_iter().chain(beat.ticks) {
                self.armed_count += 1;
                self.armed.insert((tick.fire_at, self.armed_count), tick);
            }
            self.fire(now);
        }
        self.attend(now, chores);
    }

    /// Tells what is told in sums.
    fn sum_up(&self, now: Now) {
        let is_closing = self.presence.closing > 0;
        for event in self.digest.due(now.mono, self.tools.gate.occupancy(), is_closing) {
            self.ports.observer.node(&event);
        }
    }

    /// When the next armed tick is due.
    pub(super) fn next_fire(&self) -> Option<DateTime<Utc>> {
        self.armed.first_key_value().map(|((at, _), _)| *at)
    }

    /// Starts every armed tick that is due.
    pub(super) fn fire(&mut self, now: Now) {
        while let Some(entry) = self.armed.first_entry()
            && entry.key().0 <= now.wall
        {
            let tick = entry.remove();
            self.start(now, &tick.job, tick.slot, tick.at, Trigger::Schedule);
        }
        self.tools.gate.serve();
    }

    /// When the next beat is late: the scheduler's beats follow the wall clock and stay away while that is set back.
    pub(super) fn beat_overdue(&self) -> Mono {
        self.last_beat.map_or(Mono::default(), |last| last.mono + OVERDUE)
    }

    /// Begins to drive a slot, unless it is driven or has ended here. It waits until the gate is served.
    fn start(
        &mut self,
        now: Now,
        job: &crate::job::JobName,
        slot: Slot,
        scheduled_at: DateTime<Utc>,
        trigger: Trigger,
    ) {
        if !self.roll.is_free(&slot) {
            return;
        }
        let Some(entry) = self.entries.get(job) else { return };
        let spec = Arc::clone(&entry.spec);
        if spec.policy.concurrency == Concurrency::Replace {
            self.roll.tell_older(&slot, &Message::Replace);
        }
        if trigger == Trigger::Schedule {
            self.notes.add(&slot, Decision::Ticked { tick: scheduled_at });
        }
        let assignment = self.assignment(&spec, slot, scheduled_at, trigger);
        let enrolled = self.roll.enrol(assignment.slot.clone());
        let (slot, id) = (assignment.slot.clone(), enrolled.id);
        let place = Some(self.tools.gate.enter(&slot));
        let tools = Arc::clone(&self.tools);
        let work: Arc<dyn Work> = Arc::new(JobCommand { spec, launches: Arc::clone(&self.launches) });
        self.tasks.spawn(async move {
            // Made where it is driven: at a full hour the loop has many to start.
            let machine = SlotMachine::waiting(assignment, now);
            let drive = Drive { machine, work, tools, holding: enrolled.holding, place, inbox: enrolled.inbox };
            Ended { end: drive.until_ended().await, slot, id, scheduled_at }
        });
    }

    /// Notes the slots that began since the last time and are for nodes with other labels: nothing else tells that this node
    /// let them pass.
    pub(super) fn note_not_selected(&mut self, now: Now) {
        let since = self.presence.passed_over.replace(now.wall);
        for Entry { spec, timetable, .. } in self.entries.values().filter(|entry| !entry.ours) {
            let current = || timetable.slot_at(now.wall).map_or(now.wall, |slot| slot.start());
            let wanted = wanted(&spec.only_on, &self.identity.labels);
            for (slot, _) in timetable.slots(since.unwrap_or_else(current), now.wall).take(MOST_PASSED_OVER) {
                self.notes.add(&slot, Decision::NotSelected { wanted: wanted.clone() });
            }
        }
    }

    fn assignment(&self, spec: &JobSpec, slot: Slot, scheduled_at: DateTime<Utc>, trigger: Trigger) -> Assignment {
        let capability = self.ports.store.capability();
        Assignment {
            slot,
            policy: spec.policy.clone(),
            success_codes: spec.command.success_codes.clone(),
            node: self.identity.name.clone(),
            trigger,
            scheduled_at,
            past: false,
            audit: None,
            poll: (!capability.push).then_some(capability.poll),
            seed: self.ports.entropy.token(),
        }
    }

    /// Passes a hint on, and drives a slot again that an operator opened.
    pub(super) fn wake(&mut self, now: Now, wake: &Wake) {
        if let Wake::Slot { job, key, what: WakeKind::Done } = wake
            && let Some(slot) = self.entries.get(job).and_then(|entry| entry.timetable.slot_with_key(*key))
        {
            self.presence.closer.settled(&slot);
        }
        if let Wake::Slot { job, key, what: WakeKind::Released } = wake {
            self.presence.closer.reopened(job, key.start());
        }
        if *wake == Wake::Resync {
            self.presence.closer.doubt_all();
            // A store that was away may have lost its registry.
            self.presence.register_again();
            // And what was done: who asked before goes on from here.
            let asserting = tokio::spawn(Arc::clone(&self.tools).assert_again());
            self.asserting = Some(AbortOnDropHandle::new(asserting));
        }
        if let Some(slot) = self.roll.wake(wake)
            && slot.end() > now.wall
            && self.leave_by.is_none()
        {
            let job = slot.job().clone();
            self.start(now, &job, slot, now.wall, Trigger::Retry);
            self.tools.gate.serve();
        }
    }

    /// A slot's task is over. One that left because its job changed makes room for the job as it is now.
    pub(super) fn task_ended(&mut self, ended: Result<Ended, JoinError>) {
        let Ended { slot, id, scheduled_at, end } = match ended {
            Ok(ended) => ended,
            Err(error) if error.is_cancelled() => return,
            Err(error) => return self.ports.observer.node(&NodeEvent::Fault { message: error.to_string() }),
        };
        let end = self.roll.ended(&slot, id, end);
        match end {
            End::Done => self.presence.closer.settled(&slot),
            End::Left if self.leave_by.is_none() => self.start_again(slot, scheduled_at),
            _ => {}
        }
    }

    /// Drives a slot by the job's present entry, if the job still has that slot and is this node's to run.
    pub(super) fn start_again(&mut self, slot: Slot, scheduled_at: DateTime<Utc>) {
        let now = self.ports.clock.now();
        let job = slot.job().clone();
        let still = |entry: &Entry| entry.ours && entry.timetable.slot_with_key(slot.key()).as_ref() == Some(&slot);
        if slot.end() > now.wall && self.entries.get(&job).is_some_and(still) {
            self.start(now, &job, slot, scheduled_at, Trigger::Schedule);
            self.tools.gate.serve();
        }
    }
}

/// What a job asks for and these labels lack.
fn wanted(only_on: &BTreeMap<String, String>, labels: &BTreeMap<String, String>) -> String {
    let lacking = only_on.iter().filter(|(label, value)| labels.get(*label) != Some(*value));
    lacking.map(|(label, value)| format!("{label}={value}")).collect::<Vec<_>>().join(", ")
}

/// How a slot's task ended.
#[derive(Debug)]
pub(super) struct Ended {
    slot: Slot,
    id: TaskId,
    scheduled_at: DateTime<Utc>,
    end: End,
}
