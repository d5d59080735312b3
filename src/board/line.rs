//! One job of the board: its newest slots one by one, its older hours as sums, its current slot. Told what was read and what time it is;
//! reads nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::admin::KnownJob;
use crate::board::seen::{Seen, SeenSlots};
use crate::board::window::{Window, hour_of};
use crate::board::{CellState, HourCell};
use crate::clock::later;
use crate::observe::view::SlotView;
use crate::slot::{JobLatest, Slot, SlotKey, SlotRecord, SlotState, Verdict};
use crate::store::Pause;

/// Slots that are kept one by one, where there are more of them than hours.
const KEPT: usize = 120;
/// Slots of one older hour that are looked at, the newest ones.
pub(super) const OF_AN_HOUR: usize = 60;
/// Instants are whole seconds.
const JUST_BEFORE: TimeDelta = TimeDelta::nanoseconds(1);

/// A slot that may be the current one.
#[derive(Clone, Debug)]
struct Shown {
    slot: Slot,
    read: Option<ShownRead>,
}

/// What was read of it.
#[derive(Clone, Debug)]
struct ShownRead {
    /// Anything happened in it.
    touched: bool,
    /// It has its verdict.
    settled: bool,
    /// None of a slot in which nothing happened and that is not the last: it cannot be the one that is shown.
    view: Option<Arc<SlotView>>,
}

/// One job. See [`super`].
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) job: KnownJob,
    /// None before it was read: nothing is said then of how the job fares.
    pub(super) latest: Option<JobLatest>,
    pub(super) pause: Option<Pause>,
    /// Where its oldest slot begins whose verdict a live node owes, and has not been able to record for a while; none where none is owed.
    pub(super) behind: Option<DateTime<Utc>>,
    slots: SeenSlots,
    /// Hours whose slots are not kept one by one, by their start.
    folded: BTreeMap<DateTime<Utc>, HourCell>,
    shown: Vec<Shown>,
    /// The current slot before those of now were read.
    last_shown: Option<Arc<SlotView>>,
}

/// Slots that are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SlotRange {
    /// One of those that are kept one by one.
    One(SlotKey),
    /// All of an hour that are not.
    Hour(DateTime<Utc>),
}

/// Slots that ended without success and that the store has not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Uncounted {
    pub(super) first: SlotKey,
    pub(super) last: SlotKey,
    pub(super) slots: u32,
    /// Of the last.
    pub(super) verdict: Verdict,
}

/// When something was read, and by what it is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadAt<'a> {
    /// The store's clock.
    pub(super) now: DateTime<Utc>,
    /// What is older may have been forgotten.
    pub(super) retention: Duration,
    pub(super) window: &'a Window,
}

fn seconds(from: DateTime<Utc>, to: DateTime<Utc>) -> u32 {
    u32::try_from((to - from).num_seconds()).unwrap_or(0)
}

impl Line {
    pub(super) fn new(job: KnownJob) -> Self {
        let (slots, folded) = (SeenSlots::default(), BTreeMap::new());
        Self { job, latest: None, pause: None, behind: None, slots, folded, shown: Vec::new(), last_shown: None }
    }

    /// Whether its slots are those of a job of the same name, and stand alike.
    pub(super) fn continues(&self, before: &Self) -> bool {
        let (a, b) = (&self.job.entry, &before.job.entry);
        (&a.schedule, &a.timezone, &a.period, a.enabled) == (&b.schedule, &b.timezone, &b.period, b.enabled)
    }

    /// Goes on from what was known of a job of the same name, as far as that holds.
    pub(super) fn after(self, before: Self) -> Self {
        let kept = Self { latest: before.latest.clone(), pause: before.pause.clone(), ..self };
        if kept.continues(&before) { Self { job: kept.job, ..before } } else { kept }
    }

    /// Knows which slots there are in the window, newest first, as far as it does not know them; and forgets what is before it. `all`:
    /// also those that are older than what is known. Answers whether it has come to what it knows, or to the window's start.
    pub(super) fn plan(&mut self, window: &Window, now: DateTime<Utc>, all: bool) -> bool {
        let schedule = self.job.timetable.schedule().clone();
        let mut at = self.horizon(window, now);
        let (mut found, mut met) = (0, true);
        while let Some(tick) = schedule.last_until(at - JUST_BEFORE) {
            let Some(slot) = self.job.timetable.slot_of(tick).filter(|_| tick >= window.start()) else { break };
            let first = schedule.next_after(slot.start() - JUST_BEFORE).unwrap_or(tick);
            found += 1;
            met = found <= window.kept(KEPT);
            if (!all && self.slots.get(slot.key()).is_some()) || !met {
                break;
            }
            at = slot.start();
            self.slots.add(Seen {
                key: slot.key(),
                state: CellState::NotRead,
                attempts: 0,
                settled: false,
                lasts: seconds(slot.start(), slot.end()),
                tick: seconds(slot.start(), first),
            });
        }
        self.fold(window);
        self.fill_up(window);
        met
    }

    /// The end of the next slot that has a tick to come: of a job with a slot each second, those of the whole hour would leave no room for
    /// those that were.
    fn horizon(&self, window: &Window, now: DateTime<Utc>) -> DateTime<Utc> {
        let next = self.job.timetable.schedule().next_after(now).and_then(|tick| self.job.timetable.slot_of(tick));
        next.map_or(window.end(), |slot| slot.end().min(window.end()))
    }

    /// Knows the slots that have come since the newest that is known. Answers which are to be read: until then they are not shown.
    fn go_on(&mut self, window: &Window, now: DateTime<Utc>) -> Vec<SlotRange> {
        let newest = self.slots.newest().copied();
        if newest.is_some_and(|newest| newest.first() > now) {
            return Vec::new();
        }
        let met = self.plan(window, now, false);
        let mut wanted = Vec::new();
        for seen in self.slots.iter_mut().rev() {
            if newest.is_some_and(|newest| seen.key <= newest.key) || seen.state != CellState::NotRead {
                break;
            }
            seen.state = CellState::NotDue;
            wanted.extend((seen.first() <= now).then_some(SlotRange::One(seen.key)));
        }
        // Between what was known and the oldest that is kept now there may be more, of which a sum is read.
        let since = newest.map(|newest| hour_of(newest.key.start()));
        let gap = window.hours().iter().filter(|hour| !met && since.is_some_and(|since| **hour >= since));
        wanted.extend(gap.map(|hour| SlotRange::Hour(*hour)));
        wanted
    }

    /// Keeps no more than it may: the oldest become sums.
    fn fold(&mut self, window: &Window) {
        for seen in self.slots.cut(window.kept(KEPT)) {
            self.folded.entry(seen.hour()).or_default().add(seen.state, seen.attempts);
        }
        self.slots.keep(|seen| seen.first() >= window.start());
        self.folded = self.folded.split_off(&window.start());
    }

    /// What is before the slots that are kept: whether there is something to be read in each hour.
    fn fill_up(&mut self, window: &Window) {
        let Some(oldest) = self.slots.oldest().map(Seen::first) else { return };
        if self.slots.len() < window.kept(KEPT) {
            return;
        }
        for hour in window.hours().iter().filter(|hour| **hour < oldest) {
            let end = oldest.min(*hour + TimeDelta::hours(1));
            let ticks = self.job.timetable.schedule().next_after(*hour - JUST_BEFORE).is_some_and(|tick| tick < end);
            let unread = HourCell { state: CellState::NotRead, ..HourCell::default() };
            self.folded.entry(*hour).or_insert(if ticks { unread } else { HourCell::default() });
        }
    }

    /// When it is late, or was: its last success, or when it was first known, and `alert_after`. None before that success was read.
    pub(super) fn late_since(&self) -> Option<DateTime<Utc>> {
        let after = self.job.spec.as_ref()?.alert_after?;
        let done = self.latest.as_ref()?.success.map(|success| success.at);
        Some(later(done.or(self.job.known_since)?, after))
    }

    /// The newest slots that ended without success, of those whose verdict is owed and that are kept one by one: the oldest and the newest
    /// of them, how many they are, and what became of the newest. The store has not counted them. Of what ended while nobody owed a verdict,
    /// as while the job was disabled, nothing is said.
    pub(super) fn uncounted(&self) -> Option<Uncounted> {
        let behind = self.behind?;
        let mut found: Option<Uncounted> = None;
        for seen in self.slots.iter().rev().take_while(|seen| seen.key.start() >= behind) {
            let verdict = match seen.state {
                CellState::Missed if !seen.settled => Verdict::Missed,
                CellState::Failed if !seen.settled => Verdict::Failed,
                CellState::Done => break,
                _ => continue,
            };
            let newer = found.unwrap_or(Uncounted { first: seen.key, last: seen.key, slots: 0, verdict });
            found = Some(Uncounted { first: seen.key, slots: newer.slots + 1, ..newer });
        }
        found
    }

    /// Which slots may be the current one. Keeps what was read of those that stay, and what was shown until the others are read. One without
    /// a tick never becomes the last, of which alone the view of a slot is needed in which nothing happened.
    pub(super) fn choose(&mut self, now: DateTime<Utc>) {
        self.last_shown = self.current().cloned();
        let before = std::mem::take(&mut self.shown);
        let known = |slot: &Slot| before.iter().find(|shown| shown.slot == *slot).and_then(|shown| shown.read.clone());
        self.shown = self.job.current(now).into_iter().map(|slot| Shown { read: known(&slot), slot }).collect();
    }

    /// Takes what was read of a slot.
    pub(super) fn take(&mut self, record: &SlotRecord, at: ReadAt<'_>) {
        let key = record.slot.key();
        let (state, attempts) = self.judge(record, at);
        if let Some(seen) = self.slots.get_mut(key) {
            (seen.state, seen.attempts) = (state, attempts);
            seen.settled = record.verdict.is_some();
            // Earlier ticks are from before the cluster knew the job.
            let owed = self.job.owed_tick(&record.slot);
            owed.into_iter().for_each(|tick| seen.tick = seconds(record.slot.start(), tick));
        } else if record.is_touched() && self.is_kept(key) && at.window.place(hour_of(key.start())).is_some() {
            // Somebody ran a slot that has no tick.
            let lasts = seconds(record.slot.start(), record.slot.end());
            self.slots.add(Seen { key, state, attempts, settled: record.verdict.is_some(), lasts, tick: 0 });
        }
        let max_attempts = self.job.entry.max_attempts;
        let last = self.shown.last().map(|shown| shown.slot.key());
        if let Some(shown) = self.shown.iter_mut().find(|shown| shown.slot.key() == key) {
            let touched = record.is_touched();
            let view = (touched || last == Some(key)).then(|| Arc::new(SlotView::of(record, at.now, max_attempts)));
            shown.read = Some(ShownRead { touched, settled: record.verdict.is_some(), view });
        }
    }

    /// What the store has of a slot cannot be read.
    pub(super) fn lose(&mut self, key: SlotKey) {
        if let Some(seen) = self.slots.get_mut(key) {
            (seen.state, seen.attempts, seen.settled) = (CellState::Unknown, 0, false);
        }
        if let Some(shown) = self.shown.iter_mut().find(|shown| shown.slot.key() == key) {
            shown.read = Some(ShownRead { touched: true, settled: false, view: None });
        }
    }

    /// Takes what was read of all the slots of an older hour, of which some could not be.
    pub(super) fn take_hour(&mut self, hour: DateTime<Utc>, records: &[SlotRecord], unread: usize, at: ReadAt<'_>) {
        let mut sum = HourCell::default();
        (0..unread).for_each(|_| sum.add(CellState::Unknown, 0));
        for record in records {
            let (state, attempts) = self.judge(record, at);
            sum.add(state, attempts);
        }
        self.folded.insert(hour, sum);
    }

    fn judge(&self, record: &SlotRecord, at: ReadAt<'_>) -> (CellState, u16) {
        let idle = self.job.idle_reason(record, at.now, at.retention);
        let attempts = u16::try_from(record.used()).unwrap_or(u16::MAX);
        (CellState::of(record.state(at.now, self.job.entry.max_attempts), idle), attempts)
    }

    /// One for each hour of the window.
    pub(super) fn cells(&self, window: &Window) -> Vec<HourCell> {
        let mut cells = vec![HourCell::default(); window.hours().len()];
        for (hour, sum) in &self.folded {
            if let Some(cell) = window.place(*hour).and_then(|place| cells.get_mut(place)) {
                cell.join(sum);
            }
        }
        for seen in self.slots.iter() {
            if let Some(cell) = window.place(seen.hour()).and_then(|place| cells.get_mut(place)) {
                cell.add(seen.state, seen.attempts);
            }
        }
        cells
    }

    /// The current slot, once every slot that it may be was read; until then the one before.
    pub(super) fn current(&self) -> Option<&Arc<SlotView>> {
        if self.shown.iter().any(|shown| shown.read.is_none()) {
            return self.last_shown.as_ref();
        }
        let mut read = self.shown.iter().filter_map(|shown| shown.read.as_ref());
        let shown = read.clone().find(|read| read.touched).or(read.next_back())?;
        // What was over before anybody knew the job nobody missed.
        let counts =
            |view: &SlotView| !self.job.orphaned && (view.state != SlotState::Missed || self.job.owes(view.end));
        shown.view.as_ref().filter(|view| shown.touched || counts(view))
    }

    /// The current slots that are still to be read.
    pub(super) fn unread_current(&self) -> impl Iterator<Item = SlotRange> {
        let unread = self.shown.iter().filter(|shown| shown.read.is_none());
        unread.map(|shown| SlotRange::One(shown.slot.key()))
    }

    /// The current slots, read or not; `open`: without those that have their verdict.
    pub(super) fn current_slots(&self, open: bool) -> impl Iterator<Item = SlotRange> {
        let settled = |shown: &&Shown| shown.read.as_ref().is_some_and(|read| read.settled);
        self.shown.iter().filter(move |shown| !open || !settled(shown)).map(|shown| SlotRange::One(shown.slot.key()))
    }

    /// What is to be read of an hour that nobody has looked at.
    pub(super) fn unread(&self, hour: DateTime<Utc>, now: DateTime<Utc>) -> Vec<SlotRange> {
        let of_hour = self.slots.iter().filter(|seen| seen.hour() == hour);
        let unread = of_hour.filter(|seen| seen.state == CellState::NotRead && seen.first() <= now);
        let unread = unread.map(|seen| SlotRange::One(seen.key));
        let sum = self.folded.get(&hour).filter(|cell| cell.state == CellState::NotRead);
        unread.chain(sum.map(|_| SlotRange::Hour(hour))).collect()
    }

    /// Slots that may have become something else without anybody saying so: due, or begun before, and without a verdict. Newest first.
    pub(super) fn unsettled(&self) -> impl Iterator<Item = SlotRange> {
        let idle = |seen: &Seen| !seen.state.may_change();
        let open = self.slots.iter().rev().filter(move |seen| !seen.settled && !idle(seen));
        let going = |sum: &HourCell| matches!(sum.state, CellState::Running | CellState::Retrying | CellState::Pending);
        let sums = self.folded.iter().rev().filter(move |(_, sum)| going(sum));
        open.map(|seen| SlotRange::One(seen.key)).chain(sums.map(|(hour, _)| SlotRange::Hour(*hour)))
    }

    /// What is to be read when something happened at the slot; nothing where it is not shown.
    pub(super) fn span_of(&self, key: SlotKey) -> Option<SlotRange> {
        if self.is_kept(key) || self.shown.iter().any(|shown| shown.slot.key() == key) {
            return Some(SlotRange::One(key));
        }
        let hour = hour_of(key.start());
        self.folded.contains_key(&hour).then_some(SlotRange::Hour(hour))
    }

    /// Whether slots of this age are kept one by one.
    fn is_kept(&self, key: SlotKey) -> bool {
        self.folded.is_empty() || self.slots.oldest().is_none_or(|oldest| oldest.key <= key)
    }

    /// The slots of a span, newest first.
    pub(super) fn slots_of(&self, span: SlotRange) -> Vec<Slot> {
        match span {
            SlotRange::One(key) => {
                let end = self.slots.get(key).map(Seen::end);
                let known = end.and_then(|end| Slot::new(self.job.entry.name.clone(), key.start(), end).ok());
                known.or_else(|| self.job.timetable.slot_with_key(key)).into_iter().collect()
            }
            SlotRange::Hour(hour) => {
                let (timetable, kept) = (&self.job.timetable, self.slots.oldest().map(|oldest| oldest.key));
                let mut at = hour + TimeDelta::hours(1);
                let older = std::iter::from_fn(|| {
                    let tick = timetable.schedule().last_until(at - JUST_BEFORE).filter(|tick| *tick >= hour)?;
                    let slot = timetable.slot_of(tick)?;
                    at = slot.start();
                    Some(slot)
                });
                older.filter(|slot| kept.is_none_or(|kept| slot.key() < kept)).take(OF_AN_HOUR).collect()
            }
        }
    }

    /// What has become due since it was looked at is waited for from now on. Answers which slots have come, to be read.
    pub(super) fn pass(&mut self, window: &Window, now: DateTime<Utc>) -> Vec<SlotRange> {
        for seen in self.slots.iter_mut() {
            if seen.state == CellState::NotDue && seen.first() <= now {
                seen.state = CellState::Pending;
            } else if seen.state == CellState::NotRead && seen.first() > now {
                seen.state = CellState::NotDue;
            }
        }
        if self.shown.iter().all(|shown| shown.slot.end() <= now) {
            self.choose(now);
        }
        let mut wanted = self.go_on(window, now);
        wanted.extend(self.unread_current());
        wanted
    }
}
