//! Which ended slots still need a verdict. Pure: it says what to ask the store, and is told what came of it.
//!
//! Every slot that had a tick ends in a recorded verdict (L2), also one that ended while no node was alive or the store
//! was away. For each job the closer keeps one place in the timetable, not a list of slots: an outage of days costs no
//! memory, and afterwards the slots are closed one after the other, oldest first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::{CLOCK_OFF, Now, earlier, later};
use crate::error::Applied;
use crate::job::JobName;
use crate::reply::Closing;
use crate::schedule::Timetable;
use crate::schedule::backlog::{Backlog, GRACE, QuestionState, current_or};
use crate::slot::{Slot, Verdict};

/// Until a verdict is asked for again that could not be.
const AGAIN: Duration = Duration::from_secs(1);

/// Walks through the ended slots of every job.
#[derive(Debug, Default)]
pub struct Closer {
    jobs: BTreeMap<JobName, Backlog>,
    /// Slots whose verdict this node may have recorded without hearing so.
    unsure: BTreeSet<Slot>,
}

/// What follows from an answer of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The verdict to be told: this node recorded it, or may have done so.
    pub tell: Option<Verdict>,
    /// The next slot may be due at once.
    pub moved_on: bool,
}

impl Closer {
    /// Takes the jobs of a (re)loaded file. A job that is new begins with the slot that is current at `now`.
    pub fn set(&mut self, timetables: Vec<Timetable>, now: Now) {
        let mut old = std::mem::take(&mut self.jobs);
        let places = timetables.into_iter().map(|timetable| {
            let job = timetable.job().clone();
            let place = match old.remove(&job) {
                Some(place) if place.timetable == timetable => place,
                Some(place) => {
                    let from = place.head.as_ref().map_or(now.wall, Slot::start);
                    let new = Backlog::new(timetable, (from, place.first_seen), place.known);
                    let state = if new.head == place.head { place.state } else { QuestionState::Idle };
                    Backlog { running: place.running, state, since: place.since, wanted: place.wanted, ..new }
                }
                None => {
                    let from = current_or(&timetable, now.wall);
                    Backlog::new(timetable, (from, None), Some(now))
                }
            };
            (job, place)
        });
        // A tree that is made of all of them is full; one that they are put into in their order is half empty.
        self.jobs = places.collect();
    }

    /// Nobody was alive since `from`: the slots of the job that ended since then are looked at too. Those before closed what ended
    /// earlier, from the slot that began at `since` on, or from the first.
    pub fn look_back(&mut self, job: &JobName, from: DateTime<Utc>, since: Option<DateTime<Utc>>) {
        let Some(place) = self.jobs.get_mut(job) else { return };
        place.since = since;
        if place.state != QuestionState::Asked {
            place.look_back(from);
        }
    }

    /// Nobody was heard of who had the job. Unless the store first saw it in the slot with which it begins here, somebody may owe
    /// verdicts of earlier ones.
    pub fn begin(&mut self, job: &JobName, first_seen: Option<DateTime<Utc>>) {
        let Some(place) = self.jobs.get_mut(job) else { return };
        let start = place.head.as_ref().map(Slot::start);
        place.since = start.filter(|start| first_seen.is_none_or(|seen| seen < *start));
    }

    /// The cluster has known the job since then: its slots are closed, but for those whose ticks all lie before. Until that is known
    /// no verdict of the job is asked for.
    pub fn owes_since(&mut self, job: &JobName, first_seen: DateTime<Utc>) {
        let Some(place) = self.jobs.get_mut(job) else { return };
        let before = place.first_seen.replace(first_seen);
        match before {
            Some(before) if first_seen < before => place.is_older(before),
            None => place.skip_what_is_not_owed(),
            Some(_) => {}
        }
    }

    /// A person had a slot run, or opened it again: it is closed, also where no schedule owes it, or it was passed over as done. Answers
    /// whether the job is known here.
    pub fn owe(&mut self, slot: &Slot) -> bool {
        let Some(place) = self.jobs.get_mut(slot.job()) else { return false };
        if place.state != QuestionState::Asked || !place.is_head(slot) {
            let closable = QuestionState::NotBefore(later(slot.end(), GRACE));
            place.running.entry(slot.start()).or_insert_with(|| (slot.clone(), closable));
        }
        true
    }

    /// The jobs of which nothing is known before some slot, with its start.
    pub fn since(&self) -> impl Iterator<Item = (&JobName, DateTime<Utc>)> {
        self.jobs.iter().filter_map(|(job, place)| Some((job, place.since?)))
    }

    /// The slot is known to be done.
    pub fn settled(&mut self, slot: &Slot) {
        let Some(place) = self.jobs.get_mut(slot.job()) else { return };
        place.running.remove(&slot.start());
        if place.head.as_ref().is_some_and(|head| slot.start() >= head.start()) {
            place.done.insert(slot.start());
        }
    }

    /// An operator opened the slot again: that it was done is no longer known.
    pub fn reopened(&mut self, job: &JobName, start: DateTime<Utc>) {
        if let Some(place) = self.jobs.get_mut(job) {
            place.done.remove(&start);
        }
    }

    /// The store may know of the slot what this node gave up recording. Its verdict is asked for, also where a hint said that it is done,
    /// and told: by nothing else does it become known here.
    pub fn doubt(&mut self, slot: &Slot) {
        let Some(place) = self.jobs.get_mut(slot.job()) else { return };
        place.done.remove(&slot.start());
        self.unsure.insert(slot.clone());
        if !self.will_close(slot) {
            self.still_running(slot, later(slot.end(), GRACE));
        }
    }

    /// Hints were lost, and slots may have been opened again: what was known to be done is asked about.
    pub fn doubt_all(&mut self) {
        self.jobs.values_mut().for_each(|place| place.done.clear());
    }

    /// Time has jumped: no wait that was measured by the old time is kept.
    pub fn hurry(&mut self) {
        for place in self.jobs.values_mut() {
            place.state.hurry();
            place.running.values_mut().for_each(|(_, state)| state.hurry());
        }
    }

    /// The wall clock was put right by the store's. A job that was taken while it was ahead begins where it would have begun by the
    /// time as it is now, unless a verdict of it was recorded since: slots have ended by the wrong time, too.
    pub fn clock_put_right(&mut self, now: Now) {
        self.hurry();
        for place in self.jobs.values_mut() {
            let Some(known) = place.known else { continue };
            let right = earlier(now.wall, now.mono.since(known.mono));
            if later(right, CLOCK_OFF) < known.wall {
                place.known = Some(Now { wall: right, ..known });
                place.look_back(right);
            }
        }
    }

    /// The jobs whose oldest slot without a verdict ended before `than`, with its start: what another node would have to
    /// go on with.
    pub fn behind(&self, than: DateTime<Utc>) -> impl Iterator<Item = (&JobName, DateTime<Utc>)> {
        self.jobs.iter().filter_map(move |(job, place)| {
            let running = place.running.values().map(|(slot, _)| slot.clone());
            let oldest = running.chain(place.undone()).min_by_key(Slot::start)?;
            (oldest.end() < than).then(|| (job, oldest.start()))
        })
    }

    /// Slots to close now, at most `limit`. Each is asked about once until it is answered.
    pub fn due(&mut self, now: DateTime<Utc>, limit: usize) -> Vec<Slot> {
        let mut due = Vec::new();
        for place in self.jobs.values_mut() {
            if due.len() >= limit {
                break;
            }
            due.extend(place.due(now));
        }
        due
    }

    /// The store's answer to the question for a slot's verdict, or whether the question may have been answered unheard.
    pub fn answered(&mut self, slot: &Slot, now: DateTime<Utc>, reply: Result<Closing, Applied>) -> Answered {
        let tell = match reply {
            Ok(Closing::First(verdict)) => Some(verdict),
            // An earlier answer was lost and may have been `First`: told twice is better than never.
            Ok(Closing::Already(verdict)) => Some(verdict).filter(|_| self.unsure.contains(slot)),
            Ok(Closing::Running { .. } | Closing::Open { .. }) | Err(_) => None,
        };
        match reply {
            Ok(Closing::First(_) | Closing::Already(_)) => {
                self.closed(slot);
                self.unsure.remove(slot);
                return Answered { tell, moved_on: true };
            }
            Ok(Closing::Running { remaining, .. }) => self.still_running(slot, later(now, remaining.max(AGAIN))),
            // This node's clock is ahead of the store's.
            Ok(Closing::Open { remaining }) => self.postponed(slot, later(now, remaining)),
            Err(applied) => {
                self.postponed(slot, later(now, AGAIN));
                if applied == Applied::Maybe {
                    self.unsure.insert(slot.clone());
                    // The walk may have gone back, and have come to the slot again before: a second answer took it for another node's.
                    if !self.will_close(slot) {
                        self.still_running(slot, later(now, AGAIN));
                    }
                }
            }
        }
        Answered { tell, moved_on: false }
    }

    /// The slot is not asked about here: somebody else of this node does.
    pub fn leave(&mut self, slot: &Slot) {
        if let Some(place) = self.jobs.get_mut(slot.job()) {
            place.running.remove(&slot.start());
        }
    }

    /// The store has a verdict for the slot.
    pub fn closed(&mut self, slot: &Slot) {
        let Some(place) = self.jobs.get_mut(slot.job()) else { return };
        place.running.remove(&slot.start());
        if place.is_head(slot) {
            place.advance();
        }
    }

    /// A run of the slot goes on: ask again after `remaining`, and go on with the next slot.
    pub fn still_running(&mut self, slot: &Slot, again: DateTime<Utc>) {
        let Some(place) = self.jobs.get_mut(slot.job()) else { return };
        place.running.insert(slot.start(), (slot.clone(), QuestionState::NotBefore(again)));
        if place.is_head(slot) {
            place.advance();
        }
    }

    /// Whether the slot's verdict is still asked for here, now or once it is over.
    pub fn will_close(&self, slot: &Slot) -> bool {
        let Some(place) = self.jobs.get(slot.job()) else { return false };
        place.running.contains_key(&slot.start()) || place.comes_to(slot)
    }

    /// The store could not be asked, or says that the slot is not over: ask again then.
    pub fn postponed(&mut self, slot: &Slot, again: DateTime<Utc>) {
        let Some(place) = self.jobs.get_mut(slot.job()) else { return };
        if place.is_head(slot) {
            place.state = QuestionState::NotBefore(again);
        } else if let Some((_, state)) = place.running.get_mut(&slot.start()) {
            *state = QuestionState::NotBefore(again);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Mono;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    /// Both clocks at that time of the day, the monotonic one as if it had begun with the day.
    fn now(text: &str) -> Now {
        let wall = at(text);
        let passed = wall - at("2026-11-21T00:00:00Z");
        Now { mono: Mono::from_origin(passed.to_std().unwrap()), wall }
    }

    fn hourly(job: &str) -> Timetable {
        Timetable::parse(JobName::new(job).unwrap(), "0 * * * *", "UTC", "hour").unwrap()
    }

    /// A closer that learns of the job `a` at half past two.
    fn closer() -> Closer {
        let mut closer = Closer::default();
        closer.set(vec![hourly("a")], now("2026-11-21T14:30:00Z"));
        closer.owes_since(&JobName::new("a").unwrap(), at("2026-11-01T00:00:00Z"));
        closer
    }

    fn due(closer: &mut Closer, now: &str) -> Vec<String> {
        closer.due(at(now), 10).iter().map(ToString::to_string).collect()
    }

    fn slot(start: &str) -> Slot {
        hourly("a").slot_with_key(start.parse().unwrap()).unwrap()
    }

    #[test]
    fn a_slot_is_closed_once_it_is_over_and_those_before_the_job_was_known_are_not() {
        let mut closer = closer();
        assert_eq!(due(&mut closer, "2026-11-21T15:00:00Z"), [""; 0]);
        assert_eq!(due(&mut closer, "2026-11-21T15:00:01Z"), ["a@2026-11-21T14Z"]);
    }

    #[test]
    fn a_slot_is_asked_about_once_until_it_is_answered_and_then_the_next_one_is() {
        let mut closer = closer();
        assert_eq!(due(&mut closer, "2026-11-21T16:30:00Z"), ["a@2026-11-21T14Z"]);
        assert_eq!(due(&mut closer, "2026-11-21T16:30:01Z"), [""; 0]);
        closer.closed(&slot("2026-11-21T14Z"));
        assert_eq!(due(&mut closer, "2026-11-21T16:30:02Z"), ["a@2026-11-21T15Z"]);
    }

    #[test]
    fn a_node_that_stood_still_is_behind_with_what_followed_its_last_success() {
        let mut closer = closer();
        closer.settled(&slot("2026-11-21T14Z"));
        let behind: Vec<_> = closer.behind(at("2026-11-21T20:00:00Z")).map(|(_, start)| start).collect();
        assert_eq!(behind, [at("2026-11-21T15:00:00Z")]);
    }

    #[test]
    fn a_slot_that_is_known_to_be_done_costs_no_question() {
        let mut closer = closer();
        closer.settled(&slot("2026-11-21T14Z"));
        closer.settled(&slot("2026-11-21T15Z"));
        assert_eq!(due(&mut closer, "2026-11-21T17:30:00Z"), ["a@2026-11-21T16Z"]);
    }

    #[test]
    fn a_store_that_is_away_is_asked_again_and_no_slot_is_passed_over() {
        let mut closer = closer();
        due(&mut closer, "2026-11-21T15:00:01Z");
        closer.postponed(&slot("2026-11-21T14Z"), at("2026-11-21T15:10:00Z"));
        assert_eq!(due(&mut closer, "2026-11-21T15:09:59Z"), [""; 0]);
        assert_eq!(due(&mut closer, "2026-11-21T15:10:00Z"), ["a@2026-11-21T14Z"]);
    }

    #[test]
    fn a_slot_will_be_closed_here_until_it_is() {
        let mut closer = closer();
        let (before, first) = (slot("2026-11-21T13Z"), slot("2026-11-21T14Z"));
        assert!(!closer.will_close(&before) && closer.will_close(&first));
        due(&mut closer, "2026-11-21T15:00:01Z");
        closer.still_running(&first, at("2026-11-21T15:31:00Z"));
        assert!(closer.will_close(&first), "it is asked about again");
        closer.closed(&first);
        assert!(!closer.will_close(&first) && closer.will_close(&slot("2026-11-21T15Z")));
    }

    #[test]
    fn a_run_that_outlasts_its_slot_holds_up_no_other_verdict_and_is_asked_about_again() {
        let mut closer = closer();
        due(&mut closer, "2026-11-21T16:30:00Z");
        closer.still_running(&slot("2026-11-21T14Z"), at("2026-11-21T16:31:00Z"));
        assert_eq!(due(&mut closer, "2026-11-21T16:30:01Z"), ["a@2026-11-21T15Z"]);
        closer.closed(&slot("2026-11-21T15Z"));
        assert_eq!(due(&mut closer, "2026-11-21T16:31:00Z"), ["a@2026-11-21T14Z"]);
        closer.closed(&slot("2026-11-21T14Z"));
        assert_eq!(due(&mut closer, "2026-11-21T16:59:00Z"), [""; 0]);
    }

    #[test]
    fn a_question_that_is_on_its_way_is_not_asked_again_when_time_jumps() {
        let mut closer = closer();
        due(&mut closer, "2026-11-21T15:00:01Z");
        closer.still_running(&slot("2026-11-21T14Z"), at("2026-11-21T15:01:00Z"));
        assert_eq!(due(&mut closer, "2026-11-21T15:01:00Z"), ["a@2026-11-21T14Z"]);
        closer.hurry();
        assert_eq!(due(&mut closer, "2026-11-21T15:03:00Z"), [""; 0]);
    }

    #[test]
    fn a_verdict_that_this_node_may_have_recorded_unheard_is_told() {
        let mut closer = closer();
        let slot = slot("2026-11-21T14Z");
        let mut answered = |reply| closer.answered(&slot, at("2026-11-21T15:00:02Z"), reply).tell;
        assert_eq!(answered(Ok(Closing::Already(Verdict::Missed))), None);
        assert_eq!(answered(Err(Applied::No)), None);
        assert_eq!(answered(Ok(Closing::Already(Verdict::Missed))), None);
        assert_eq!(answered(Err(Applied::Maybe)), None);
        assert_eq!(answered(Ok(Closing::Already(Verdict::Missed))), Some(Verdict::Missed));
        assert_eq!(answered(Ok(Closing::First(Verdict::Failed))), Some(Verdict::Failed));
    }

    #[test]
    fn after_a_silence_of_the_cluster_the_slots_that_ended_in_it_are_closed_oldest_first() {
        let mut closer = closer();
        closer.look_back(&JobName::new("a").unwrap(), at("2026-11-21T12:10:00Z"), None);
        assert_eq!(due(&mut closer, "2026-11-21T14:30:00Z"), ["a@2026-11-21T12Z"]);
        closer.closed(&slot("2026-11-21T12Z"));
        assert_eq!(due(&mut closer, "2026-11-21T14:30:01Z"), ["a@2026-11-21T13Z"]);
    }

    #[test]
    fn a_reload_keeps_the_place_of_every_job_also_of_one_that_changed() {
        let mut closer = closer();
        let changed = Timetable::parse(JobName::new("a").unwrap(), "5 * * * *", "UTC", "hour").unwrap();
        closer.set(vec![changed, hourly("b")], now("2026-11-21T16:30:00Z"));
        assert_eq!(due(&mut closer, "2026-11-21T16:30:00Z"), ["a@2026-11-21T14Z"]);
    }

    /// From which slot on the closer answers for the job `a`.
    fn since(closer: &Closer) -> Option<String> {
        closer.since().find(|(job, _)| job.as_str() == "a").map(|(_, start)| start.to_string())
    }

    #[test]
    fn a_job_that_nobody_had_is_answered_for_from_where_it_begins_unless_it_was_first_seen_there() {
        let begun = |first_seen: Option<&str>| {
            let mut closer = closer();
            closer.begin(&JobName::new("a").unwrap(), first_seen.map(at));
            since(&closer)
        };
        let head = Some("2026-11-21 14:00:00 UTC".to_owned());
        assert_eq!(begun(Some("2026-11-21T13:59:59Z")), head);
        assert_eq!(begun(None), head, "the registry does not take the job");
        assert_eq!(begun(Some("2026-11-21T14:00:00Z")), None);
        assert_eq!(begun(Some("2026-11-21T14:30:00Z")), None);
    }

    #[test]
    fn from_where_a_job_is_answered_for_is_taken_over_and_stays_when_its_timetable_changes() {
        let mut closer = closer();
        let job = JobName::new("a").unwrap();
        closer.look_back(&job, at("2026-11-21T13:10:00Z"), Some(at("2026-11-21T11:00:00Z")));
        let inherited = Some("2026-11-21 11:00:00 UTC".to_owned());
        assert_eq!(since(&closer), inherited);
        let changed = Timetable::parse(job, "5 * * * *", "UTC", "hour").unwrap();
        closer.set(vec![changed, hourly("b")], now("2026-11-21T14:40:00Z"));
        assert_eq!(since(&closer), inherited);
        assert_eq!(closer.since().count(), 1, "what a file brings later is answered for as before");
    }

    #[test]
    fn a_slot_that_was_opened_again_is_asked_about() {
        let mut closer = closer();
        closer.settled(&slot("2026-11-21T14Z"));
        closer.reopened(slot("2026-11-21T14Z").job(), slot("2026-11-21T14Z").start());
        assert_eq!(due(&mut closer, "2026-11-21T15:00:01Z"), ["a@2026-11-21T14Z"]);
    }

    #[test]
    fn after_lost_hints_every_slot_is_asked_about() {
        let mut closer = closer();
        closer.settled(&slot("2026-11-21T14Z"));
        closer.doubt_all();
        assert_eq!(due(&mut closer, "2026-11-21T15:00:01Z"), ["a@2026-11-21T14Z"]);
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_hold_up_verdicts() {
        let mut closer = closer();
        due(&mut closer, "2026-11-21T15:00:01Z");
        closer.postponed(&slot("2026-11-21T14Z"), at("2038-01-19T03:14:07Z"));
        closer.hurry();
        assert_eq!(due(&mut closer, "2026-11-21T15:00:02Z"), ["a@2026-11-21T14Z"]);
    }

    #[test]
    fn a_job_that_was_taken_while_the_clock_was_ahead_begins_with_the_slot_that_was_current() {
        let mut closer = Closer::default();
        let early = now("2026-11-21T14:30:00Z");
        closer.set(vec![hourly("a")], Now { wall: at("2026-11-21T17:30:00Z"), ..early });
        closer.owes_since(&JobName::new("a").unwrap(), at("2026-11-01T00:00:00Z"));
        closer.clock_put_right(now("2026-11-21T14:40:00Z"));
        assert_eq!(due(&mut closer, "2026-11-21T15:00:01Z"), ["a@2026-11-21T14Z"]);
        closer.closed(&slot("2026-11-21T14Z"));
        // Nothing that has its verdict is asked about again, however far the clock goes back.
        closer.clock_put_right(now("2026-11-21T03:40:00Z"));
        assert_eq!(due(&mut closer, "2026-11-21T16:00:01Z"), ["a@2026-11-21T15Z"]);
    }

    #[test]
    fn a_reload_does_not_forget_a_run_that_outlasts_its_slot() {
        let mut closer = closer();
        due(&mut closer, "2026-11-21T15:00:01Z");
        closer.still_running(&slot("2026-11-21T14Z"), at("2026-11-21T15:01:00Z"));
        let changed = Timetable::parse(JobName::new("a").unwrap(), "5 * * * *", "UTC", "hour").unwrap();
        closer.set(vec![changed], now("2026-11-21T15:00:30Z"));
        assert_eq!(due(&mut closer, "2026-11-21T15:01:00Z"), ["a@2026-11-21T14Z"]);
    }

    #[test]
    fn what_is_behind_is_the_oldest_slot_without_a_verdict() {
        let mut closer = closer();
        let behind = |closer: &Closer, now: &str| -> Vec<String> {
            closer.behind(at(now)).map(|(job, start)| format!("{job} {start}")).collect()
        };
        assert_eq!(behind(&closer, "2026-11-21T15:00:00Z"), [""; 0]);
        assert_eq!(behind(&closer, "2026-11-21T16:00:00Z"), ["a 2026-11-21 14:00:00 UTC"]);
        closer.settled(&slot("2026-11-21T14Z"));
        assert_eq!(behind(&closer, "2026-11-21T16:00:00Z"), [""; 0]);
    }

    /// Of a job that the closer learns of at half past two, and that has a slot each day: what is due two days later.
    fn due_of_a_day(schedule: &str, first_seen: Option<&str>) -> Vec<String> {
        let mut closer = Closer::default();
        let job = JobName::new("a").unwrap();
        closer.set(vec![Timetable::parse(job.clone(), schedule, "UTC", "day").unwrap()], now("2026-11-21T14:30:00Z"));
        first_seen.into_iter().for_each(|seen| closer.owes_since(&job, at(seen)));
        due(&mut closer, "2026-11-23T12:00:00Z")
    }

    #[test]
    fn a_slot_whose_ticks_all_lie_before_the_job_was_known_is_not_closed() {
        assert_eq!(due_of_a_day("0 2 * * *", Some("2026-11-21T14:30:00Z")), ["a@2026-11-22T00Z"]);
        assert_eq!(due_of_a_day("0 2,20 * * *", Some("2026-11-21T14:30:00Z")), ["a@2026-11-21T00Z"]);
        assert_eq!(due_of_a_day("0 2 * * *", Some("2026-11-21T02:00:00Z")), ["a@2026-11-21T00Z"]);
        assert_eq!(due_of_a_day("0 2 * * *", None), [""; 0], "the registry has not answered");
    }

    #[test]
    fn a_job_that_turns_out_to_be_older_is_closed_from_the_slot_that_was_skipped() {
        let mut closer = Closer::default();
        let job = JobName::new("a").unwrap();
        closer
            .set(vec![Timetable::parse(job.clone(), "0 2 * * *", "UTC", "day").unwrap()], now("2026-11-21T14:30:00Z"));
        for seen in ["2026-11-21T14:30:00Z", "2026-11-20T00:00:00Z"] {
            closer.owes_since(&job, at(seen));
        }
        assert_eq!(due(&mut closer, "2026-11-23T12:00:00Z"), ["a@2026-11-21T00Z"]);
    }

    #[test]
    fn a_slot_that_a_person_had_run_is_closed_though_no_schedule_owes_it() {
        let mut closer = Closer::default();
        let daily = Timetable::parse(JobName::new("a").unwrap(), "0 2 * * *", "UTC", "day").unwrap();
        let today = daily.slot_at(at("2026-11-21T14:30:00Z")).unwrap();
        closer.set(vec![daily], now("2026-11-21T14:30:00Z"));
        closer.owes_since(today.job(), at("2026-11-21T14:30:00Z"));
        closer.owe(&today);
        assert_eq!(due(&mut closer, "2026-11-22T00:00:00Z"), [""; 0]);
        assert_eq!(due(&mut closer, "2026-11-22T00:00:01Z"), ["a@2026-11-21T00Z"]);
        closer.closed(&today);
        assert_eq!(due(&mut closer, "2026-11-22T01:00:00Z"), [""; 0]);
    }

    #[test]
    fn a_slot_that_a_person_had_run_is_asked_about_once_whatever_the_walk_comes_to() {
        let today = || daily().slot_at(at("2026-11-21T14:30:00Z")).unwrap();
        for first_seen in ["2026-11-01T00:00:00Z", "2026-11-21T14:30:00Z"] {
            let mut closer = Closer::default();
            closer.set(vec![daily()], now("2026-11-21T14:30:00Z"));
            // The registry has not answered, and the walk stands at the slot.
            assert!(closer.owe(&today()));
            closer.owes_since(today().job(), at(first_seen));
            assert!(closer.will_close(&today()));
            assert_eq!(due(&mut closer, "2026-11-22T00:00:01Z"), ["a@2026-11-21T00Z"], "{first_seen}");
            assert_eq!(due(&mut closer, "2026-11-22T00:00:02Z"), [""; 0], "{first_seen}");
        }
    }

    #[test]
    fn a_slot_without_a_tick_that_a_person_had_run_is_closed_though_the_walk_passes_it_over() {
        let job = JobName::new("a").unwrap();
        let weekly = Timetable::parse(job.clone(), "0 2 * * MON", "UTC", "day").unwrap();
        let saturday = weekly.slot_at(at("2026-11-21T14:30:00Z")).unwrap();
        let mut closer = Closer::default();
        closer.set(vec![weekly], now("2026-11-21T14:30:00Z"));
        closer.owes_since(&job, at("2026-11-01T00:00:00Z"));
        closer.look_back(&job, at("2026-11-16T14:30:00Z"), None);
        assert!(!closer.will_close(&saturday));
        closer.owe(&saturday);
        assert_eq!(due(&mut closer, "2026-11-24T00:00:01Z"), ["a@2026-11-21T00Z", "a@2026-11-16T00Z"]);
    }

    #[test]
    fn what_ended_before_the_start_is_closed_where_the_registry_answers_late() {
        let job = JobName::new("a").unwrap();
        for refused_first in [false, true] {
            let mut closer = Closer::default();
            closer.set(vec![hourly("a")], now("2026-11-21T14:30:00Z"));
            if refused_first {
                closer.owes_since(&job, at("2026-11-21T14:30:00Z"));
            }
            closer.look_back(&job, at("2026-11-21T12:10:00Z"), None);
            closer.owes_since(&job, at("2026-11-01T00:00:00Z"));
            let mut closed = Vec::new();
            for slot in std::iter::from_fn(|| closer.due(at("2026-11-21T14:30:00Z"), 9).pop()).collect::<Vec<_>>() {
                closed.push(slot.to_string());
            }
            assert_eq!(closed, ["a@2026-11-21T12Z"], "{refused_first}");
        }
    }

    #[test]
    fn a_question_that_a_look_back_overtook_and_that_is_not_answered_is_asked_again() {
        let mut closer = Closer::default();
        let job = JobName::new("a").unwrap();
        closer.set(vec![hourly("a")], now("2026-11-21T14:30:00Z"));
        closer.owes_since(&job, at("2026-11-21T14:00:00Z"));
        closer.look_back(&job, at("2026-11-21T13:30:00Z"), None);
        assert_eq!(due(&mut closer, "2026-11-21T15:00:01Z"), ["a@2026-11-21T14Z"]);
        // The job is older, and the slot is asked about a second time before the first answer is given up.
        closer.owes_since(&job, at("2026-11-01T00:00:00Z"));
        let already = Ok(Closing::Already(Verdict::Missed));
        for start in ["2026-11-21T13Z", "2026-11-21T14Z"] {
            assert_eq!(due(&mut closer, "2026-11-21T15:00:02Z"), [format!("a@{start}")]);
            assert_eq!(closer.answered(&slot(start), at("2026-11-21T15:00:02Z"), already.clone()).tell, None);
        }
        closer.answered(&slot("2026-11-21T14Z"), at("2026-11-21T15:00:03Z"), Err(Applied::Maybe));
        assert_eq!(due(&mut closer, "2026-11-21T15:00:04Z"), ["a@2026-11-21T14Z"]);
        let answered = closer.answered(&slot("2026-11-21T14Z"), at("2026-11-21T15:00:04Z"), already);
        assert_eq!(answered.tell, Some(Verdict::Missed), "the answer that was lost may have been the first");
        assert_eq!(due(&mut closer, "2026-11-21T15:00:09Z"), [""; 0]);
    }

    #[test]
    fn a_slot_whose_end_was_not_recorded_is_asked_about_and_told_though_a_hint_said_that_it_is_done() {
        for has_passed in [false, true] {
            let mut closer = closer();
            let of_two = slot("2026-11-21T14Z");
            closer.settled(&of_two);
            if has_passed {
                // The walk has gone on without a question.
                assert_eq!(due(&mut closer, "2026-11-21T15:30:00Z"), [""; 0]);
            }
            closer.doubt(&of_two);
            assert_eq!(due(&mut closer, "2026-11-21T15:30:01Z"), ["a@2026-11-21T14Z"], "{has_passed}");
            let answered = closer.answered(&of_two, at("2026-11-21T15:30:01Z"), Ok(Closing::Already(Verdict::Done)));
            assert_eq!(answered.tell, Some(Verdict::Done), "{has_passed}");
            assert_eq!(due(&mut closer, "2026-11-21T15:30:02Z"), [""; 0], "{has_passed}");
        }
    }

    fn daily() -> Timetable {
        Timetable::parse(JobName::new("a").unwrap(), "0 2 * * *", "UTC", "day").unwrap()
    }

    #[test]
    fn one_beat_asks_for_a_bounded_number() {
        let mut closer = Closer::default();
        let jobs = ["a", "b", "c", "d"].map(hourly).to_vec();
        closer.set(jobs.clone(), now("2026-11-21T14:30:00Z"));
        jobs.iter().for_each(|table| closer.owes_since(table.job(), at("2026-11-01T00:00:00Z")));
        assert_eq!(closer.due(at("2026-11-21T16:30:00Z"), 3).len(), 3);
        assert_eq!(closer.due(at("2026-11-21T16:30:00Z"), 3).len(), 1);
    }
}
