//! The slots that this node drives or has driven, until they are over. Pure: whom to tell what goes to the machine's outbox.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, Utc};

use crate::clock::{CLOCK_OFF, later};
use crate::drive::Message;
use crate::job::JobName;
use crate::machine::End;
use crate::node::action::{Action, DriveId, Outbox};
use crate::node::resets::is_reset;
use crate::slot::{Slot, SlotKey, SlotRecord};
use crate::wake::{Wake, WakeKind};

/// The slots, by job and key.
#[derive(Debug, Default)]
pub(super) struct ActiveSlots {
    slots: BTreeMap<(JobName, SlotKey), Active>,
    last_id: DriveId,
}

#[derive(Debug)]
struct Active {
    id: DriveId,
    slot: Slot,
    holding: Arc<AtomicBool>,
    /// How and when it ended, by the wall clock.
    end: Option<(End, DateTime<Utc>)>,
    /// It was told to leave, because its job has changed.
    retired: bool,
    /// The last that was heard of the slot is that it was let go of, or opened by an operator: the answer with which this drive ends
    /// may be from before that.
    reopened: bool,
    /// The store is being asked whether an operator opened it, for the last time: it is over.
    last_look: bool,
}

/// Slots that are kept beyond their end for a last look at them. Of more, those that sort last are forgotten.
const MOST_LAST_LOOKS: usize = 10_000;

impl ActiveSlots {
    /// Whether a tick of this slot has anything to do: it is not driven, and has not ended for good.
    pub(super) fn is_free(&self, slot: &Slot) -> bool {
        !self.slots.contains_key(&key(slot))
    }

    /// Whether the slot can be driven now, when an operator asks for that: also one that has ended here. What is driven stays.
    pub(super) fn make_room(&mut self, slot: &Slot) -> bool {
        let id = key(slot);
        let is_driven = self.slots.get(&id).is_some_and(|active| active.end.is_none());
        if !is_driven {
            self.slots.remove(&id);
        }
        !is_driven
    }

    /// A slot begins to be driven. Answers how its drive is called, and where that shows whether its command may run.
    pub(super) fn enrol(&mut self, slot: Slot) -> (DriveId, Arc<AtomicBool>) {
        self.last_id += 1;
        let holding = Arc::new(AtomicBool::new(false));
        let active = Active {
            id: self.last_id,
            slot,
            holding: Arc::clone(&holding),
            end: None,
            retired: false,
            reopened: false,
            last_look: false,
        };
        self.slots.insert(key(&active.slot), active);
        (self.last_id, holding)
    }

    /// A drive is gone without a word.
    pub(super) fn lost(&mut self, slot: &Slot, id: DriveId) {
        if self.slots.get(&key(slot)).is_some_and(|active| active.id == id) {
            self.slots.remove(&key(slot));
        }
    }

    /// A drive has ended. Its slot stays known, so that later ticks of it cost nothing, unless the node only stopped
    /// looking, or was too late for one tick of several. Answers how it ended as far as the job is concerned: one whose
    /// attempts were used up before it read that it was to leave knows of those of the old file only. None when the store's last
    /// answer may be from before the slot was opened again: it is to be asked once more, also where others have only let go of it.
    pub(super) fn ended(&mut self, slot: &Slot, id: DriveId, end: End, now: DateTime<Utc>) -> Option<End> {
        let Some(active) = self.slots.get_mut(&key(slot)).filter(|active| active.id == id) else { return Some(end) };
        let end = if active.retired && end == End::Exhausted { End::Left } else { end };
        if active.reopened && matches!(end, End::Done | End::Exhausted) {
            self.slots.remove(&key(slot));
            return None;
        }
        active.end = Some((end, now));
        if matches!(end, End::Left | End::Unknown | End::Unrecorded | End::TooLate | End::Shed) {
            self.slots.remove(&key(slot));
        }
        Some(end)
    }

    /// Passes a hint on. Answers the slot if it had ended here and the hint says that it can be claimed again.
    pub(super) fn wake(&mut self, wake: &Wake, out: &mut Outbox) -> Option<Slot> {
        match wake {
            Wake::Resync => out.push_back(Action::TellAll(Message::Wake(wake.clone()))),
            Wake::Job(job) => self.tell_job(job, &Message::Wake(wake.clone()), out),
            Wake::Slot { job, key, what } => {
                self.tell_job(job, &Message::Wake(wake.clone()), out);
                let id = (job.clone(), *key);
                let active = self.slots.get_mut(&id)?;
                active.reopened = *what == WakeKind::Released;
                if active.reopened && active.has_ended_for_good() {
                    return self.slots.remove(&id).map(|active| active.slot);
                }
            }
        }
        None
    }

    /// This node let go of a slot: the others of its job that wait here need not wait for the store to say so.
    pub(super) fn released(&self, slot: &Slot, out: &mut Outbox) {
        let wake = Wake::Slot { job: slot.job().clone(), key: slot.key(), what: WakeKind::Released };
        for active in self.of(slot.job()).filter(|active| active.slot.key() != slot.key()) {
            active.tell(&Message::Wake(wake.clone()), out);
        }
    }

    fn tell_job(&self, job: &JobName, message: &Message, out: &mut Outbox) {
        for active in self.of(job) {
            active.tell(message, out);
        }
    }

    /// Tells the slots of a job that run here and are older than this one.
    pub(super) fn tell_older(&self, slot: &Slot, message: &Message, out: &mut Outbox) {
        let older = |active: &&Active| active.slot.start() < slot.start() && active.is_holding();
        for active in self.of(slot.job()).filter(older) {
            active.tell(message, out);
        }
    }

    /// The job changed or is gone: every drive of it is told to leave, and what has ended here is looked at anew by the
    /// next tick. Answers the slots that had ended without being done: there may be attempts again.
    pub(super) fn retire(&mut self, job: &JobName, message: &Message, out: &mut Outbox) -> Vec<Slot> {
        self.tell_job(job, message, out);
        let first = (job.clone(), SlotKey::FIRST);
        for (_, active) in self.slots.range_mut(first..).take_while(|((name, _), _)| name == job) {
            active.retired = true;
        }
        let ended: Vec<_> = self.of(job).filter_map(|active| Some((key(&active.slot), active.end?.0))).collect();
        let mut reopened = Vec::new();
        for (key, end) in ended {
            if let Some(active) = self.slots.remove(&key)
                && end == End::Exhausted
            {
                reopened.push(active.slot);
            }
        }
        reopened
    }

    fn of<'a>(&'a self, job: &'a JobName) -> impl Iterator<Item = &'a Active> {
        // One job's slots stand together: a hint for each of 10,000 jobs may not cost 10,000 looks each.
        let first = (job.clone(), SlotKey::FIRST);
        self.slots.range(first..).take_while(move |((name, _), _)| name == job).map(|(_, active)| active)
    }

    /// The next slots after `after` that have ended here for good, by job and key.
    pub(super) fn ended_after(&self, after: Option<&(JobName, SlotKey)>, most: usize) -> Vec<&Slot> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let ended = self.slots.range((from, Bound::Unbounded)).filter(|(_, active)| active.has_ended_for_good());
        ended.map(|(_, active)| &active.slot).take(most).collect()
    }

    /// Answers the slot if it had ended here, and the store's record says that an operator opened it since.
    pub(super) fn reset(&mut self, record: &SlotRecord) -> Option<Slot> {
        let id = key(&record.slot);
        let active = self.slots.get(&id).filter(|active| active.has_ended_for_good())?;
        let (_, ended) = active.end?;
        if is_reset(record, ended) { self.slots.remove(&id).map(|active| active.slot) } else { None }
    }

    /// What runs here now.
    pub(super) fn running(&self) -> impl Iterator<Item = &Slot> {
        self.slots.values().filter(|active| active.is_holding()).map(|active| &active.slot)
    }

    /// Forgets slots that have ended here and are over. Where the store does not tell of resets (`hints`), a slot that is done is kept
    /// for one more look: an operator may have opened it just before its end.
    pub(super) fn sweep(&mut self, now: DateTime<Utc>, hints: bool) {
        let mut room = if hints { 0 } else { MOST_LAST_LOOKS };
        self.slots.retain(|_, active| {
            if active.end.is_none() || active.slot.end() > now {
                return true;
            }
            let is_done = matches!(active.end, Some((End::Done, _)));
            let is_kept = is_done && room > 0;
            room -= usize::from(is_kept);
            is_kept
        });
    }

    /// The store is asked about these slots: for the last time, where they are over by every clock that is well.
    pub(super) fn ask_about(&mut self, slots: &[Slot], now: DateTime<Utc>) {
        for slot in slots.iter().filter(|slot| later(slot.end(), CLOCK_OFF) <= now) {
            self.slots.get_mut(&key(slot)).into_iter().for_each(|active| active.last_look = true);
        }
    }

    /// What the store was asked about was answered, or not.
    pub(super) fn asked_about(&mut self, is_answer: bool) {
        if is_answer {
            self.slots.retain(|_, active| !active.last_look);
        }
        self.slots.values_mut().for_each(|active| active.last_look = false);
    }
}

impl Active {
    /// It is done, or its attempts are used up: no tick of it has anything to do.
    const fn has_ended_for_good(&self) -> bool {
        matches!(self.end, Some((End::Done | End::Exhausted, _)))
    }

    fn is_holding(&self) -> bool {
        self.end.is_none() && self.holding.load(Ordering::Relaxed)
    }

    /// A drive that has ended hears nothing more, and need not.
    fn tell(&self, message: &Message, out: &mut Outbox) {
        if self.end.is_none() {
            out.push_back(Action::Tell(self.id, message.clone()));
        }
    }
}

fn key(slot: &Slot) -> (JobName, SlotKey) {
    (slot.job().clone(), slot.key())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> DateTime<Utc> {
        "2026-11-21T14:10:00Z".parse().unwrap()
    }

    fn slot() -> Slot {
        Slot::parse("a", "2026-11-21T14Z", "2026-11-21T15Z").unwrap()
    }

    /// Who is told something.
    fn told(out: &Outbox) -> Vec<DriveId> {
        out.iter().filter_map(|action| if let Action::Tell(id, _) = action { Some(*id) } else { None }).collect()
    }

    fn released() -> Wake {
        Wake::Slot { job: slot().job().clone(), key: slot().key(), what: WakeKind::Released }
    }

    #[test]
    fn a_later_tick_of_a_slot_that_is_done_finds_nothing_to_do_until_the_slot_is_over() {
        let mut active = ActiveSlots::default();
        let (id, _) = active.enrol(slot());
        active.ended(&slot(), id, End::Done, at());
        assert!(!active.is_free(&slot()));
        active.sweep("2026-11-21T14:59:59Z".parse().unwrap(), true);
        assert!(!active.is_free(&slot()));
        active.sweep("2026-11-21T15:00:00Z".parse().unwrap(), true);
        assert!(active.is_free(&slot()));
    }

    #[test]
    fn a_slot_that_an_operator_opened_is_driven_again() {
        let mut active = ActiveSlots::default();
        let (id, _) = active.enrol(slot());
        active.ended(&slot(), id, End::Exhausted, at());
        assert_eq!(active.wake(&released(), &mut Outbox::new()), Some(slot()));
        assert!(active.is_free(&slot()));
    }

    #[test]
    fn a_slot_that_an_operator_opens_while_its_drive_ends_is_driven_again_once() {
        for end in [End::Done, End::Exhausted] {
            let mut active = ActiveSlots::default();
            let (id, _) = active.enrol(slot());
            // The store had answered the last claim before, and the end is on its way.
            assert_eq!(active.wake(&released(), &mut Outbox::new()), None);
            assert_eq!((active.ended(&slot(), id, end, at()), active.is_free(&slot())), (None, true));
            let (id, _) = active.enrol(slot());
            assert_eq!((active.ended(&slot(), id, end, at()), active.is_free(&slot())), (Some(end), false));
        }
    }

    #[test]
    fn a_slot_that_others_have_done_after_a_retry_is_not_driven_again() {
        let mut active = ActiveSlots::default();
        let (id, _) = active.enrol(slot());
        let done = Wake::Slot { job: slot().job().clone(), key: slot().key(), what: WakeKind::Done };
        for wake in [released(), done] {
            assert_eq!(active.wake(&wake, &mut Outbox::new()), None);
        }
        assert_eq!(active.ended(&slot(), id, End::Done, at()), Some(End::Done));
    }

    #[test]
    fn the_older_slots_of_a_job_that_run_here_are_told_that_a_newer_one_replaces_them() {
        let mut active = ActiveSlots::default();
        let of = |job: &str, start: &str| Slot::parse(job, start, "2026-11-21T16Z").unwrap();
        let (old, idle, other) = (of("a", "2026-11-21T02Z"), of("a", "2026-11-21T12Z"), of("b", "2026-11-21T13Z"));
        let newer = of("a", "2026-11-21T15Z");
        let drives = [&old, &idle, &other, &slot(), &newer].map(|slot| active.enrol(slot.clone()));
        for drive in [0, 2, 3, 4] {
            drives[drive].1.store(true, Ordering::Relaxed);
        }
        let mut out = Outbox::new();
        active.tell_older(&slot(), &Message::Replace, &mut out);
        assert_eq!(told(&out), [drives[0].0]);
    }

    #[test]
    fn a_hint_reaches_each_slot_of_its_job_and_no_other() {
        let mut active = ActiveSlots::default();
        let mut enrol = |job: &str, start: &str| active.enrol(Slot::parse(job, start, "2026-11-21T15Z").unwrap()).0;
        enrol("a", "2026-11-21T14Z");
        let of_b = [enrol("b", "1970-01-01T00Z"), enrol("b", "2026-11-21T14Z")];
        enrol("b-c", "2026-11-21T14Z");
        let elsewhere = Slot::parse("b", "2026-11-21T13Z", "2026-11-21T14Z").unwrap();
        let done = Wake::Slot { job: elsewhere.job().clone(), key: elsewhere.key(), what: WakeKind::Done };
        let mut out = Outbox::new();
        active.wake(&done, &mut out);
        assert_eq!(told(&out), of_b);
    }

    #[test]
    fn a_slot_that_this_node_let_go_of_is_a_hint_to_the_others_of_its_job_and_not_to_itself() {
        let mut active = ActiveSlots::default();
        let of = |job: &str, start: &str| Slot::parse(job, start, "2026-11-21T16Z").unwrap();
        let (next, other) = (of("a", "2026-11-21T15Z"), of("b", "2026-11-21T15Z"));
        let drives = [&slot(), &next, &other].map(|slot| active.enrol(slot.clone()).0);
        let mut out = Outbox::new();
        active.released(&slot(), &mut out);
        assert!(matches!(out.front(), Some(Action::Tell(_, Message::Wake(wake))) if *wake == released()));
        assert_eq!(told(&out), [drives[1]]);
    }

    #[test]
    fn the_end_of_an_earlier_task_says_nothing_of_a_later_one() {
        let mut active = ActiveSlots::default();
        let first = active.enrol(slot());
        let second = active.enrol(slot());
        active.ended(&slot(), first.0, End::Left, at());
        assert!(!active.is_free(&slot()));
        active.ended(&slot(), second.0, End::Left, at());
        assert!(active.is_free(&slot()));
    }

    #[test]
    fn a_change_of_a_job_is_told_to_every_task_of_it_and_none_is_forgotten() {
        let mut active = ActiveSlots::default();
        let (id, _) = active.enrol(slot());
        let mut out = Outbox::new();
        assert_eq!(active.retire(slot().job(), &Message::Look, &mut out), []);
        assert_eq!(told(&out), [id]);
        assert!(!active.is_free(&slot()));
    }

    #[test]
    fn a_task_that_had_no_attempt_left_before_it_read_of_the_change_is_one_that_left() {
        let mut active = ActiveSlots::default();
        let (id, _) = active.enrol(slot());
        active.retire(slot().job(), &Message::Look, &mut Outbox::new());
        assert_eq!(active.ended(&slot(), id, End::Exhausted, at()), Some(End::Left));
        assert!(active.is_free(&slot()));
        let (id, _) = active.enrol(slot());
        assert_eq!(active.ended(&slot(), id, End::Exhausted, at()), Some(End::Exhausted));
    }

    #[test]
    fn after_a_change_of_a_job_what_had_ended_here_is_looked_at_anew() {
        for (end, again) in [(End::Exhausted, vec![slot()]), (End::Done, vec![])] {
            let mut active = ActiveSlots::default();
            let (id, _) = active.enrol(slot());
            active.ended(&slot(), id, end, at());
            assert_eq!(active.retire(slot().job(), &Message::Look, &mut Outbox::new()), again);
            assert!(active.is_free(&slot()));
        }
    }

    #[test]
    fn a_tick_that_came_too_late_leaves_its_slot_to_the_next_tick() {
        let mut active = ActiveSlots::default();
        let (id, _) = active.enrol(slot());
        active.ended(&slot(), id, End::TooLate, at());
        assert!(active.is_free(&slot()));
    }

    #[test]
    fn a_slot_whose_task_is_gone_without_a_word_is_free_again() {
        let mut active = ActiveSlots::default();
        let (id, _) = active.enrol(slot());
        active.lost(&slot(), id + 1);
        assert!(!active.is_free(&slot()));
        active.lost(&slot(), id);
        assert!(active.is_free(&slot()));
    }
}
