//! Everything that the board knows, and what it is to read next. Told what was read and what time it is; reads nothing, and tells what
//! changed as patches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::admin::KnownJob;
use crate::admin::catalog::Catalog;
use crate::board::faults::Faults;
use crate::board::line::{Line, OF_AN_HOUR, ReadAt, SlotRange};
use crate::board::patch::{CellsPatch, HoursPatch, JobsPatch, Patches, RowPatch, RowsPatch};
use crate::board::unreadable::{RecordName, Unreadable};
use crate::board::window::{Window, hour_of};
use crate::board::{BoardRow, HourCell};
use crate::clock::later;
use crate::error::Reply;
use crate::job::JobName;
use crate::observe::view::{JobView, LatestView, PauseView};
use crate::slot::{JobLatest, Mark, Slot, SlotKey, SlotRecord};
use crate::store::{NodeEntry, Pause};

/// Slots that one call asks for.
pub(super) const AT_ONCE: usize = 100;
/// Past slots without a verdict that are looked at again each time.
const OPEN: usize = 1_000;
/// Slots of older hours, of jobs with many slots an hour, that a first fill reads.
const OLDER: usize = 10_000;

/// Which slots of which job are to be read.
pub(super) type Want = (JobName, SlotRange);

/// See [`super`].
#[derive(Debug)]
pub(super) struct Sheet {
    pub(super) window: Window,
    retention: Duration,
    /// Boxed: a tree is half empty, and lines are large.
    lines: BTreeMap<JobName, (Box<Line>, Arc<BoardRow>)>,
    pub(super) faults: Faults,
    pub(super) unreadable: Unreadable,
    /// What something happened at.
    urgent: BTreeSet<Want>,
    /// What nobody has looked at yet, of the hour that is being filled.
    filling: BTreeSet<Want>,
    /// Hours that are not yet looked at, the newest last.
    unread: Vec<DateTime<Utc>>,
    /// What may still be read of older hours with many slots.
    budget: usize,
    /// Slots that are leased, and until when: nobody says that a lease has run out.
    leases: BTreeMap<(JobName, SlotKey), DateTime<Utc>>,
    /// The store tells nothing: what may begin at any time is looked at as well.
    silent: bool,
    /// What could not be used of the registry.
    pub(super) warnings: Vec<String>,
    pub(super) patches: Patches,
}

impl Sheet {
    pub(super) fn new(now: DateTime<Utc>, hours: usize, retention: Duration, patches: Patches) -> Self {
        let window = Window::until(now, hours);
        let unread = window.hours().to_vec();
        Self {
            window,
            retention,
            lines: BTreeMap::new(),
            faults: Faults::default(),
            unreadable: Unreadable::default(),
            urgent: BTreeSet::new(),
            filling: BTreeSet::new(),
            unread,
            budget: OLDER,
            leases: BTreeMap::new(),
            silent: false,
            warnings: Vec::new(),
            patches,
        }
    }

    /// The same of a store that does not tell what changes.
    pub(super) fn unheard(self, silent: bool) -> Self {
        Self { silent, ..self }
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &Arc<BoardRow>> {
        self.lines.values().map(|(_, row)| row)
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = (&Line, &BoardRow)> {
        self.lines.values().map(|(line, row)| (&**line, &**row))
    }

    /// The jobs of which somebody is told.
    pub(super) fn told_about(&self) -> impl Iterator<Item = JobName> {
        let told = |line: &Line| line.job.spec.as_ref().is_some_and(|spec| !spec.notify.is_empty());
        self.lines.values().filter(move |(line, _)| told(line)).map(|(line, _)| line.job.entry.name.clone())
    }

    pub(super) fn names(&self) -> Vec<JobName> {
        self.lines.keys().cloned().collect()
    }

    /// How many hours were read.
    pub(super) fn filled(&self) -> usize {
        let going = usize::from(!self.filling.is_empty());
        self.window.hours().len().saturating_sub(self.unread.len() + going)
    }

    /// These are the jobs. What is known of those that stay is kept.
    pub(super) fn know(&mut self, catalog: Catalog, now: DateTime<Utc>) {
        let mut before = std::mem::take(&mut self.lines);
        let count = before.len();
        self.warnings.clone_from(&catalog.warnings);
        for job in catalog.into_jobs() {
            let (name, line) = (job.entry.name.clone(), Line::new(job));
            let was = before.remove(&name);
            let is_new = was.as_ref().is_none_or(|(was, _)| !line.continues(was));
            let (mut line, row) = match was {
                Some((was, row)) => (line.after(*was), Some(row)),
                None => (line, None),
            };
            line.plan(&self.window, now, false);
            line.choose(now);
            let want = |span| (name.clone(), span);
            self.urgent.extend(line.unread_current().map(want));
            if is_new && self.unread.len() < self.window.hours().len() {
                self.urgent.extend(self.window.hours().iter().flat_map(|hour| line.unread(*hour, now)).map(want));
            }
            let row = row.unwrap_or_else(|| Arc::new(self.row(&line, now)));
            self.lines.insert(name, (Box::new(line), row));
        }
        if !before.is_empty() || count != self.lines.len() {
            self.patches.push("jobs", &JobsPatch { at: now, jobs: self.lines.len() });
        }
    }

    /// Time has passed: another hour may have begun, and what was to come may be due.
    pub(super) fn pass(&mut self, now: DateTime<Utc>, hours: usize) {
        let window = Window::until(now, hours);
        if window != self.window {
            self.turn(window, now);
        }
        let names = self.names();
        for name in &names {
            if let Some((line, _)) = self.lines.get_mut(name) {
                self.urgent.extend(line.pass(&self.window, now).into_iter().map(|span| (name.clone(), span)));
            }
        }
        self.refresh(names.iter(), now);
    }

    fn turn(&mut self, window: Window, now: DateTime<Utc>) {
        // Whoever looks has to look again: the rows are not told one by one.
        let (had, deeper) = (self.window.start(), window.hours().len() > self.window.hours().len());
        self.unread.retain(|hour| *hour >= window.start());
        let new = window.hours().iter().filter(|hour| **hour < had).copied();
        self.unread = new.chain(std::mem::take(&mut self.unread)).collect();
        self.window = window;
        for (name, (line, _)) in &mut self.lines {
            line.plan(&self.window, now, deeper);
            line.choose(now);
            self.urgent.extend(line.unread_current().map(|span| (name.clone(), span)));
        }
        let rows = self.lines.values().map(|(line, _)| Arc::new(self.row(line, now))).collect::<Vec<_>>();
        self.lines.values_mut().zip(rows).for_each(|((_, old), row)| *old = row);
        self.patches.push("hours", &HoursPatch { at: now, hours: self.window.hours() });
    }

    /// Something happened at a slot.
    pub(super) fn touch(&mut self, job: &JobName, key: SlotKey) {
        let span = self.lines.get(job).and_then(|(line, _)| line.span_of(key));
        self.urgent.extend(span.map(|span| (job.clone(), span)));
    }

    /// Slots that may have changed with nobody saying so; `all`: also those that have a verdict.
    pub(super) fn doubt(&mut self, now: DateTime<Utc>, all: bool) {
        let hour = hour_of(now);
        let mut open = 0;
        let span = |job: &JobName, key| self.lines.get(job).and_then(|(line, _)| line.span_of(key));
        self.unreadable.keep(|job| self.lines.contains_key(job), |job, key| span(job, key).is_some());
        let unreadable = self.unreadable.slots().take(AT_ONCE);
        self.urgent.extend(unreadable.filter_map(|(job, key)| Some((job.clone(), span(job, key)?))));
        for (name, (line, _)) in &self.lines {
            let current = line.current_slots(!all).filter(|_| all || self.silent).chain(line.unread_current());
            self.urgent.extend(current.map(|span| (name.clone(), span)));
            for span in line.unsettled() {
                let past = match span {
                    SlotRange::One(key) => key.start() < hour,
                    SlotRange::Hour(_) => true,
                };
                open += usize::from(past);
                if !past || open <= OPEN {
                    self.urgent.insert((name.clone(), span));
                }
            }
        }
    }

    /// Leases that have run out by now, where nobody has said what came of them, are looked at.
    pub(super) fn expire(&mut self, now: DateTime<Utc>) {
        let over = self.leases.iter().filter(|(_, until)| **until <= now).map(|(slot, _)| slot.clone());
        for (job, key) in over.collect::<Vec<_>>() {
            self.touch(&job, key);
            self.leases.remove(&(job, key));
        }
    }

    /// When the first lease runs out.
    pub(super) fn next_expiry(&self) -> Option<DateTime<Utc>> {
        self.leases.values().min().copied()
    }

    /// Whether something happened that was not looked at.
    pub(super) fn is_urgent(&self) -> bool {
        !self.urgent.is_empty()
    }

    /// Whether there is anything to be read that nobody has looked at.
    pub(super) fn is_filling(&mut self, now: DateTime<Utc>) -> bool {
        while self.filling.is_empty() {
            let Some(hour) = self.unread.pop() else { return false };
            let budget = &mut self.budget;
            let mut affords = |span: &SlotRange| match span {
                SlotRange::One(_) => true,
                SlotRange::Hour(_) => {
                    *budget = budget.saturating_sub(OF_AN_HOUR);
                    *budget > 0
                }
            };
            for (name, (line, _)) in &self.lines {
                let spans = line.unread(hour, now).into_iter().filter(&mut affords);
                self.filling.extend(spans.map(|span| (name.clone(), span)));
            }
        }
        true
    }

    /// What to ask for in the next call: what happened first, then what nobody has looked at.
    pub(super) fn next_batch(&mut self) -> Vec<(Want, Vec<Slot>)> {
        let (mut batch, mut count) = (Vec::new(), 0);
        let from = if self.urgent.is_empty() { &mut self.filling } else { &mut self.urgent };
        while let Some(want) = from.first() {
            let slots = self.lines.get(&want.0).map(|(line, _)| line.slots_of(want.1)).unwrap_or_default();
            // What could not be read last time is asked for by itself: with others it would cost calls by halves.
            let alone = matches!(want.1, SlotRange::One(key) if self.unreadable.has_slot(&want.0, key));
            if count > 0 && (alone || count + slots.len() > AT_ONCE) {
                break;
            }
            count += slots.len();
            batch.extend(from.pop_first().map(|want| (want, slots)));
            if alone {
                break;
            }
        }
        batch
    }

    /// These could not be read.
    pub(super) fn put_back(&mut self, batch: Vec<(Want, Vec<Slot>)>) {
        self.urgent.extend(batch.into_iter().map(|(want, _)| want));
    }

    /// What was read, in the order asked. `live`: something had happened there.
    pub(super) fn take(
        &mut self,
        batch: &[(Want, Vec<Slot>)],
        records: Vec<Reply<SlotRecord>>,
        now: DateTime<Utc>,
        live: bool,
    ) {
        let reading = ReadAt { now, retention: self.retention, window: &self.window };
        let mut records = records.into_iter();
        let mut touched = BTreeSet::new();
        for ((job, span), slots) in batch {
            let read = slots.iter().zip(records.by_ref());
            let read = read.map(|(slot, record)| (slot.key(), self.unreadable.take(slot.into(), record, now)));
            let (read, missing): (Vec<_>, Vec<_>) = read.partition(|(_, record)| record.is_some());
            let read: Vec<SlotRecord> = read.into_iter().filter_map(|(_, record)| record).collect();
            let Some((line, _)) = self.lines.get_mut(job) else { continue };
            missing.iter().for_each(|(key, _)| line.lose(*key));
            for record in &read {
                let slot = (job.clone(), record.slot.key());
                match &record.mark {
                    Mark::Leased { remaining, .. } => drop(self.leases.insert(slot, later(now, *remaining))),
                    _ => drop(self.leases.remove(&slot)),
                }
            }
            match span {
                SlotRange::One(_) => read.iter().for_each(|record| {
                    line.take(record, reading);
                    self.faults.take(record, line.job.entry.max_attempts, now);
                }),
                SlotRange::Hour(hour) => line.take_hour(*hour, &read, missing.len(), reading),
            }
            touched.insert(job.clone());
        }
        if live {
            self.refresh(touched.iter(), now);
        } else {
            self.show_cells(touched.iter(), now);
        }
    }

    pub(super) fn take_pauses(&mut self, pauses: Vec<(JobName, Pause)>, now: DateTime<Utc>) {
        let mut pauses: BTreeMap<JobName, Pause> = pauses.into_iter().collect();
        self.lines.iter_mut().for_each(|(name, (line, _))| line.pause = pauses.remove(name));
        let names = self.names();
        self.refresh(names.iter(), now);
    }

    pub(super) fn take_latest(&mut self, jobs: &[JobName], latest: Vec<Reply<JobLatest>>, now: DateTime<Utc>) {
        for (name, latest) in jobs.iter().zip(latest) {
            let latest = self.unreadable.take(RecordName::Latest(name.clone()), latest, now);
            let (Some((line, _)), Some(latest)) = (self.lines.get_mut(name), latest) else { continue };
            if let Some(failing) = latest.failing.filter(|failing| !self.faults.knows(name, failing.last)) {
                self.urgent.insert((name.clone(), SlotRange::One(failing.last)));
            }
            line.latest = Some(latest);
        }
        self.refresh(jobs.iter(), now);
    }

    /// Jobs of which it was not read how they fare.
    pub(super) fn unread(&self) -> Vec<JobName> {
        let unread = self.lines.iter().filter(|(_, (line, _))| line.latest.is_none());
        unread.map(|(name, _)| name.clone()).collect()
    }

    /// What nodes have in their files changes who runs a job.
    pub(super) fn take_nodes(&mut self, nodes: &[NodeEntry], now: DateTime<Utc>) {
        let mut behind: BTreeMap<&JobName, DateTime<Utc>> = BTreeMap::new();
        for (job, start) in nodes.iter().filter(|node| node.is_alive(now)).flat_map(|node| &node.report.behind) {
            behind.entry(job).and_modify(|known| *known = (*known).min(*start)).or_insert(*start);
        }
        for (name, (line, _)) in &mut self.lines {
            line.job.planned_by(nodes, now);
            line.behind = behind.get(name).copied();
        }
    }

    /// Rows made anew, and those told that became others.
    fn refresh<'a>(&mut self, names: impl Iterator<Item = &'a JobName>, now: DateTime<Utc>) {
        let mut rows = Vec::new();
        for name in names {
            let Some((line, was)) = self.lines.get(name) else { continue };
            let row = self.row(line, now);
            if row.shows_the_same(was) {
                continue;
            }
            rows.extend(RowPatch::between(was, &row, self.window.hours()));
            self.lines.entry(name.clone()).and_modify(|(_, old)| *old = Arc::new(row));
        }
        for rows in rows.chunks(AT_ONCE) {
            self.patches.push("rows", &RowsPatch { at: now, rows });
        }
    }

    /// The same while the board is filled: what is told is the cells alone.
    fn show_cells<'a>(&mut self, names: impl Iterator<Item = &'a JobName>, now: DateTime<Utc>) {
        let mut changed: BTreeMap<DateTime<Utc>, BTreeMap<JobName, HourCell>> = BTreeMap::new();
        for name in names {
            let Some((line, was)) = self.lines.get(name) else { continue };
            let row = self.row(line, now);
            let cells = self.window.hours().iter().zip(row.cells.iter().zip(&was.cells));
            for (hour, (cell, _)) in cells.filter(|(_, (cell, was))| cell != was) {
                changed.entry(*hour).or_default().insert(name.clone(), *cell);
            }
            if row.shows_the_same(was) {
                continue;
            }
            self.lines.entry(name.clone()).and_modify(|(_, old)| *old = Arc::new(row));
        }
        for (hour, cells) in changed {
            self.patches.push("cells", &CellsPatch { at: now, hour, cells, filled: self.filled() });
        }
    }

    fn row(&self, line: &Line, now: DateTime<Utc>) -> BoardRow {
        let KnownJob { entry, spec, orphaned, .. } = &line.job;
        let plans = entry.enabled && !orphaned;
        let view = JobView {
            paused: line.pause.as_ref().and_then(|pause| PauseView::of(pause, now)),
            current: line.current().cloned(),
            orphaned: *orphaned,
            first_seen: line.job.known_since,
            latest: line.latest.as_ref().map(LatestView::of).unwrap_or_default(),
            ..JobView::of(entry, line.job.next_tick(line.current().map(AsRef::as_ref), now))
        };
        let late = plans && view.paused.is_none() && line.late_since().is_some_and(|since| since <= now);
        let no_start = view.current.as_ref().and_then(|slot| line.job.no_start_of(slot, now));
        let view = JobView { no_start, ..view };
        BoardRow { view, spec: spec.clone(), cells: line.cells(&self.window), late }
    }
}
