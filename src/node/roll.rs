//! The slots that this node drives or has driven, until they are over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, Utc};
use tokio::sync::mpsc;

use crate::drive::Message;
use crate::guard::End;
use crate::job::JobName;
use crate::slot::{Slot, SlotKey};
use crate::wake::{Wake, WakeKind};

/// Which task of a slot: a slot may be driven again after an operator opened it.
pub(super) type TaskId = u64;

/// The slots, by job and key.
#[derive(Debug, Default)]
pub(super) struct Roll {
    slots: BTreeMap<(JobName, SlotKey), Driven>,
    last_id: TaskId,
}

#[derive(Debug)]
struct Driven {
    id: TaskId,
    slot: Slot,
    outbox: mpsc::UnboundedSender<Message>,
    holding: Arc<AtomicBool>,
    end: Option<End>,
    /// It was told to leave, because its job has changed.
    retired: bool,
}

/// The ends of a new task's channels.
pub(super) struct Enrolled {
    pub(super) id: TaskId,
    pub(super) inbox: mpsc::UnboundedReceiver<Message>,
    pub(super) holding: Arc<AtomicBool>,
}

impl Roll {
    /// Whether a tick of this slot has anything to do: it is not driven, and has not ended for good.
    pub(super) fn is_free(&self, slot: &Slot) -> bool {
        !self.slots.contains_key(&key(slot))
    }

    pub(super) fn enrol(&mut self, slot: Slot) -> Enrolled {
        self.last_id += 1;
        let (outbox, inbox) = mpsc::unbounded_channel();
        let holding = Arc::new(AtomicBool::new(false));
        let driven =
            Driven { id: self.last_id, slot, outbox, holding: Arc::clone(&holding), end: None, retired: false };
        self.slots.insert(key(&driven.slot), driven);
        Enrolled { id: self.last_id, inbox, holding }
    }

    /// A task has ended. Its slot stays on the roll, so that later ticks of it cost nothing, unless the node only stopped
    /// looking, or was too late for one tick of several. Answers how it ended as far as the job is concerned: one whose
    /// attempts were used up before it read that it was to leave knows of those of the old file only.
    pub(super) fn ended(&mut self, slot: &Slot, id: TaskId, end: End) -> End {
        let Some(driven) = self.slots.get_mut(&key(slot)).filter(|driven| driven.id == id) else { return end };
        let end = if driven.retired && end == End::Exhausted { End::Left } else { end };
        driven.end = Some(end);
        if matches!(end, End::Left | End::Unknown | End::TooLate | End::Shed) {
            self.slots.remove(&key(slot));
        }
        end
    }

    /// Passes a hint on. Answers the slot if it had ended here and the hint says that it can be claimed again.
    pub(super) fn wake(&mut self, wake: &Wake) -> Option<Slot> {
        match wake {
            Wake::Resync => self.tell_all(&Message::Wake(wake.clone())),
            Wake::Job(job) => self.tell_job(job, &Message::Wake(wake.clone())),
            Wake::Slot { job, key, what } => {
                self.tell_job(job, &Message::Wake(wake.clone()));
                let reopened = |driven: &&Driven| matches!(driven.end, Some(End::Done | End::Exhausted));
                if *what == WakeKind::Released {
                    let id = (job.clone(), *key);
                    let slot = self.slots.get(&id).filter(reopened).map(|driven| driven.slot.clone());
                    if slot.is_some() {
                        self.slots.remove(&id);
                    }
                    return slot;
                }
            }
        }
        None
    }

    /// Tells every driven slot.
    pub(super) fn tell_all(&self, message: &Message) {
        for driven in self.slots.values() {
            driven.tell(message);
        }
    }

    /// This node let go of a slot: the others of its job that wait here need not wait for the store to say so.
    pub(super) fn released(&self, slot: &Slot) {
        let wake = Wake::Slot { job: slot.job().clone(), key: slot.key(), what: WakeKind::Released };
        for driven in self.of(slot.job()).filter(|driven| driven.slot.key() != slot.key()) {
            driven.tell(&Message::Wake(wake.clone()));
        }
    }

    fn tell_job(&self, job: &JobName, message: &Message) {
        for driven in self.of(job) {
            driven.tell(message);
        }
    }

    /// Tells the slots of a job that run here and are older than this one.
    pub(super) fn tell_older(&self, slot: &Slot, message: &Message) {
        let older = |driven: &&Driven| driven.slot.start() < slot.start() && driven.is_holding();
        for driven in self.of(slot.job()).filter(older) {
            driven.tell(message);
        }
    }

    /// The job changed or is gone: every task of it is told to leave, and what has ended here is looked at anew by the
    /// next tick. Answers the slots that had ended without being done: there may be attempts again.
    pub(super) fn retire(&mut self, job: &JobName, message: &Message) -> Vec<Slot> {
        self.tell_job(job, message);
        let first = (job.clone(), SlotKey::FIRST);
        for (_, driven) in self.slots.range_mut(first..).take_while(|((name, _), _)| name == job) {
            driven.retired = true;
        }
        let ended: Vec<_> = self.of(job).filter_map(|driven| Some((key(&driven.slot), driven.end?))).collect();
        let mut reopened = Vec::new();
        for (key, end) in ended {
            if let Some(driven) = self.slots.remove(&key)
                && end == End::Exhausted
            {
                reopened.push(driven.slot);
            }
        }
        reopened
    }

    fn of<'a>(&'a self, job: &'a JobName) -> impl Iterator<Item = &'a Driven> {
        // One job's slots stand together: a hint for each of 10,000 jobs may not cost 10,000 looks each.
        let first = (job.clone(), SlotKey::FIRST);
        self.slots.range(first..).take_while(move |((name, _), _)| name == job).map(|(_, driven)| driven)
    }

    /// What runs here now.
    pub(super) fn running(&self) -> impl Iterator<Item = &Slot> {
        self.slots.values().filter(|driven| driven.is_holding()).map(|driven| &driven.slot)
    }

    /// Forgets slots that have ended here and are over, and those whose task is gone without a word.
    pub(super) fn sweep(&mut self, now: DateTime<Utc>) {
        self.slots.retain(|_, driven| match driven.end {
            Some(_) => driven.slot.end() > now,
            None => !driven.outbox.is_closed(),
        });
    }
}

impl Driven {
    fn is_holding(&self) -> bool {
        self.end.is_none() && self.holding.load(Ordering::Relaxed)
    }

    fn tell(&self, message: &Message) {
        // A task that has ended hears nothing more, and need not.
        let _ = self.outbox.send(message.clone());
    }
}

fn key(slot: &Slot) -> (JobName, SlotKey) {
    (slot.job().clone(), slot.key())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot() -> Slot {
        Slot::parse("a", "2026-11-21T14Z", "2026-11-21T15Z").unwrap()
    }

    fn released() -> Wake {
        Wake::Slot { job: slot().job().clone(), key: slot().key(), what: WakeKind::Released }
    }

    #[test]
    fn a_later_tick_of_a_slot_that_is_done_finds_nothing_to_do_until_the_slot_is_over() {
        let mut roll = Roll::default();
        let task = roll.enrol(slot());
        roll.ended(&slot(), task.id, End::Done);
        assert!(!roll.is_free(&slot()));
        roll.sweep("2026-11-21T14:59:59Z".parse().unwrap());
        assert!(!roll.is_free(&slot()));
        roll.sweep("2026-11-21T15:00:00Z".parse().unwrap());
        assert!(roll.is_free(&slot()));
    }

    #[test]
    fn a_slot_that_an_operator_opened_is_driven_again() {
        let mut roll = Roll::default();
        let task = roll.enrol(slot());
        assert_eq!(roll.wake(&released()), None);
        roll.ended(&slot(), task.id, End::Exhausted);
        assert_eq!(roll.wake(&released()), Some(slot()));
        assert!(roll.is_free(&slot()));
    }

    #[test]
    fn the_older_slots_of_a_job_that_run_here_are_told_that_a_newer_one_replaces_them() {
        let mut roll = Roll::default();
        let of = |job: &str, start: &str| Slot::parse(job, start, "2026-11-21T16Z").unwrap();
        let (old, idle, other) = (of("a", "2026-11-21T02Z"), of("a", "2026-11-21T12Z"), of("b", "2026-11-21T13Z"));
        let newer = of("a", "2026-11-21T15Z");
        let mut tasks = [&old, &idle, &other, &slot(), &newer].map(|slot| roll.enrol(slot.clone()));
        for task in [0, 2, 3, 4] {
            tasks[task].holding.store(true, Ordering::Relaxed);
        }
        roll.tell_older(&slot(), &Message::Replace);
        let told = tasks.each_mut().map(|task| task.inbox.try_recv().is_ok());
        assert_eq!(told, [true, false, false, false, false]);
    }

    #[test]
    fn a_hint_reaches_each_slot_of_its_job_and_no_other() {
        let mut roll = Roll::default();
        let mut tell = |job: &str, start: &str| {
            let task = roll.enrol(Slot::parse(job, start, "2026-11-21T15Z").unwrap());
            (job == "b", task.inbox)
        };
        let mut tasks = vec![tell("a", "2026-11-21T14Z"), tell("b", "1970-01-01T00Z"), tell("b", "2026-11-21T14Z")];
        tasks.push(tell("b-c", "2026-11-21T14Z"));
        let elsewhere = Slot::parse("b", "2026-11-21T13Z", "2026-11-21T14Z").unwrap();
        roll.wake(&Wake::Slot { job: elsewhere.job().clone(), key: elsewhere.key(), what: WakeKind::Done });
        for (is_told, mut inbox) in tasks {
            assert_eq!(inbox.try_recv().is_ok(), is_told);
        }
    }

    #[test]
    fn a_slot_that_this_node_let_go_of_is_a_hint_to_the_others_of_its_job_and_not_to_itself() {
        let mut roll = Roll::default();
        let of = |job: &str, start: &str| Slot::parse(job, start, "2026-11-21T16Z").unwrap();
        let (next, other) = (of("a", "2026-11-21T15Z"), of("b", "2026-11-21T15Z"));
        let mut tasks = [&slot(), &next, &other].map(|slot| roll.enrol(slot.clone()));
        roll.released(&slot());
        let told = tasks.each_mut().map(|task| match task.inbox.try_recv() {
            Ok(Message::Wake(wake)) => wake == released(),
            _ => false,
        });
        assert_eq!(told, [false, true, false]);
    }

    #[test]
    fn the_end_of_an_earlier_task_says_nothing_of_a_later_one() {
        let mut roll = Roll::default();
        let first = roll.enrol(slot());
        let second = roll.enrol(slot());
        roll.ended(&slot(), first.id, End::Left);
        assert!(!roll.is_free(&slot()));
        roll.ended(&slot(), second.id, End::Left);
        assert!(roll.is_free(&slot()));
    }

    #[test]
    fn a_change_of_a_job_is_told_to_every_task_of_it_and_none_is_taken_off_the_roll() {
        let mut roll = Roll::default();
        let mut task = roll.enrol(slot());
        assert_eq!(roll.retire(slot().job(), &Message::Look), []);
        assert!(task.inbox.try_recv().is_ok());
        assert!(!roll.is_free(&slot()));
    }

    #[test]
    fn a_task_that_had_no_attempt_left_before_it_read_of_the_change_is_one_that_left() {
        let mut roll = Roll::default();
        let task = roll.enrol(slot());
        roll.retire(slot().job(), &Message::Look);
        assert_eq!(roll.ended(&slot(), task.id, End::Exhausted), End::Left);
        assert!(roll.is_free(&slot()));
        let task = roll.enrol(slot());
        assert_eq!(roll.ended(&slot(), task.id, End::Exhausted), End::Exhausted);
    }

    #[test]
    fn after_a_change_of_a_job_what_had_ended_here_is_looked_at_anew() {
        for (end, again) in [(End::Exhausted, vec![slot()]), (End::Done, vec![])] {
            let mut roll = Roll::default();
            let task = roll.enrol(slot());
            roll.ended(&slot(), task.id, end);
            assert_eq!(roll.retire(slot().job(), &Message::Look), again);
            assert!(roll.is_free(&slot()));
        }
    }

    #[test]
    fn a_tick_that_came_too_late_leaves_its_slot_to_the_next_tick() {
        let mut roll = Roll::default();
        let task = roll.enrol(slot());
        roll.ended(&slot(), task.id, End::TooLate);
        assert!(roll.is_free(&slot()));
    }

    #[test]
    fn a_slot_whose_task_is_gone_without_a_word_is_free_again() {
        let mut roll = Roll::default();
        drop(roll.enrol(slot()));
        roll.sweep(slot().start());
        assert!(roll.is_free(&slot()));
    }
}
