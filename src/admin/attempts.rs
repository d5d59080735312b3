//! Slots with their attempt counters, newest first.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::admin::{AdminError, AdminSession, BATCH, KnownJob};
use crate::clock::{earlier, later};
use crate::job::JobName;
use crate::slot::{Slot, SlotRecord, SlotState};
use crate::store::StoreError;

/// Slots that one listing looks at, at the most: some hundreds of mebibytes, and some ten seconds of an embedded store.
const MOST_SLOTS: usize = 2_000_000;

/// Which slots are listed.
pub(crate) struct Wanted {
    /// Of these jobs alone; of all where none is named.
    pub(crate) jobs: Vec<JobName>,
    /// How far back.
    pub(crate) since: Duration,
    /// Also slots that are done.
    pub(crate) all: bool,
    /// Only slots in one of these states, where there is any.
    pub(crate) states: Vec<SlotState>,
}

/// One slot that may be listed.
struct Candidate<'a> {
    slot: Slot,
    job: &'a KnownJob,
    /// The slot's first tick has passed.
    due: bool,
}

/// One slot that is listed.
pub(crate) struct Listed {
    pub(crate) record: SlotRecord,
    pub(crate) max_attempts: u32,
    /// How many later slots of the job are due in the listed time: neighbours differ by one.
    pub(crate) position: usize,
}

impl Listed {
    /// Whether `older` is the slot before this one, and both went without an attempt in the same way.
    fn repeats(&self, older: &Self, now: DateTime<Utc>) -> bool {
        let untried = |listed: &Self| listed.record.runs.is_empty() && listed.record.audit.is_empty();
        self.record.slot.job() == older.record.slot.job()
            && older.position == self.position + 1
            && untried(self)
            && untried(older)
            && self.record.state(now, self.max_attempts) == older.record.state(now, older.max_attempts)
    }
}

/// Slots that one row can show: the newest, the oldest, and how many they are.
pub(crate) struct Folded<'a> {
    pub(crate) newest: &'a Listed,
    pub(crate) oldest: &'a Listed,
    pub(crate) slots: usize,
}

/// Neighbouring slots of a job without an attempt, in one state, folded; in the order of the newest slot of each.
pub(crate) fn fold(listed: &[Listed], now: DateTime<Utc>) -> Vec<Folded<'_>> {
    let mut rows: Vec<Folded<'_>> = Vec::new();
    let mut last_row: BTreeMap<&JobName, usize> = BTreeMap::new();
    for one in listed {
        let job = one.record.slot.job();
        match last_row.get(job).and_then(|index| rows.get_mut(*index)).filter(|row| row.oldest.repeats(one, now)) {
            Some(row) => {
                row.oldest = one;
                row.slots += 1;
            }
            None => {
                last_row.insert(job, rows.len());
                rows.push(Folded { newest: one, oldest: one, slots: 1 });
            }
        }
    }
    rows
}

/// Slots are not searched for in the store: they are computed from jobs and time, and each is asked about. With them: why those that are
/// left out cannot be read.
pub(crate) async fn collect(
    session: &AdminSession,
    wanted: &Wanted,
) -> Result<(Vec<Listed>, Vec<StoreError>), AdminError> {
    collect_within(session, wanted, MOST_SLOTS).await
}

/// The same with another bound of the slots that are looked at.
pub(crate) async fn collect_within(
    session: &AdminSession,
    wanted: &Wanted,
    most: usize,
) -> Result<(Vec<Listed>, Vec<StoreError>), AdminError> {
    let candidates = candidates(session, wanted, most)?;
    let (mut listed, mut unreadable) = (Vec::new(), Vec::new());
    let mut positions: BTreeMap<&JobName, usize> = BTreeMap::new();
    for batch in candidates.chunks(BATCH) {
        let slots: Vec<Slot> = batch.iter().map(|candidate| candidate.slot.clone()).collect();
        for (candidate, record) in batch.iter().zip(session.inspect_each(&slots).await?) {
            let next = positions.entry(&candidate.job.entry.name).or_default();
            let position = *next;
            *next += 1;
            match record {
                Ok(record) if is_wanted(wanted, candidate, &record, session.now) => {
                    listed.push(Listed { record, max_attempts: candidate.job.entry.max_attempts, position });
                }
                Ok(_) => {}
                Err(error) => unreadable.push(error),
            }
        }
    }
    Ok((listed, unreadable))
}

/// Every slot that is not older than asked for, newest first.
fn candidates<'a>(session: &'a AdminSession, wanted: &Wanted, most: usize) -> Result<Vec<Candidate<'a>>, AdminError> {
    let jobs: Vec<&KnownJob> = if wanted.jobs.is_empty() {
        session.catalog.iter().collect()
    } else {
        wanted.jobs.iter().map(|name| session.catalog.find(name)).collect::<Result<_, _>>()?
    };
    let all = jobs.into_iter().flat_map(move |job| slots_of(job, session.now, wanted.since));
    let mut candidates: Vec<Candidate<'a>> = all.take(most.saturating_add(1)).collect();
    if candidates.len() > most {
        return Err(AdminError::ManySlots(most));
    }
    candidates.sort_by(|a, b| b.slot.start().cmp(&a.slot.start()).then_with(|| a.slot.job().cmp(b.slot.job())));
    candidates.dedup_by(|a, b| a.slot == b.slot);
    Ok(candidates)
}

/// A job's slots that touch the last `since`, and the current one even if it has no tick.
fn slots_of(job: &KnownJob, now: DateTime<Utc>, since: Duration) -> impl Iterator<Item = Candidate<'_>> {
    let edge = earlier(now, since);
    let from = job.timetable.slot_at(edge).map_or(edge, |slot| slot.start());
    // The slot that begins at this very instant is one of them.
    let to = later(now, Duration::from_nanos(1));
    let ticked = job.timetable.slots(from, to).map(move |(slot, tick)| Candidate { slot, job, due: tick <= now });
    let of_now = job.timetable.slot_at(now).map(|slot| Candidate { slot, job, due: false });
    ticked.chain(of_now)
}

/// Whether a slot is listed. One that nothing happened in counts only from when the job was known on, and once it is
/// due: before that nobody has missed it.
fn is_wanted(wanted: &Wanted, candidate: &Candidate<'_>, record: &SlotRecord, now: DateTime<Utc>) -> bool {
    let job = candidate.job;
    let expected = job.entry.enabled && job.owes(candidate.slot.end()) && candidate.due;
    let expected = expected && !job.is_nobodys(candidate.slot.start());
    if !expected && !record.is_touched() {
        return false;
    }
    let state = record.state(now, job.entry.max_attempts);
    if wanted.states.is_empty() {
        return wanted.all || state != SlotState::Done;
    }
    wanted.states.contains(&state)
}
