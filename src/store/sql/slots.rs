//! Slots in their table: read into a state; what a rule has made of it, as values for the dialect to write; and many at once.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::fault::SqlFault;
use super::row;
use super::session::{Session, Value, Why, values};
use crate::clock::earlier;
use crate::job::Namespace;
use crate::slot::{Attempt, JobLatest, OutputTail, Slot, SlotKey, SlotRecord, Token};
use crate::store::Pause;
use crate::store::rules::{Change, SlotStep};
use crate::store::state::{Moment, SlotQuery, SlotState, StoredMark};

/// Whose slots, and how long their records are kept.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    pub(super) namespace: Namespace,
    pub(super) retention: Duration,
}

impl Scope {
    /// Records that were last changed at or before this are gone, whether purged yet or not.
    pub(super) fn oldest(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        earlier(now, self.retention)
    }

    pub(super) const fn at(&self, now: DateTime<Utc>) -> Moment {
        Moment { now, retention: self.retention }
    }

    /// A slot's identity: namespace, job, slot.
    pub(super) fn slot(&self, slot: &Slot) -> Vec<Value> {
        values![self.namespace.as_str(), slot.job().as_str(), slot.key().to_string()]
    }
}

/// The turn of a job: who writes with it has read all that was granted before of a job of whose slots one runs at a time, and what the
/// job has come to lately.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(any(feature = "postgres", feature = "mysql")),
    allow(dead_code, reason = "one process writes to a file")
)]
pub(super) struct Turn {
    /// None where the job has had none yet.
    pub(super) read: Option<i64>,
    pub(super) next: i64,
}

/// The turn of a job that nobody has been granted: no other is as low.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) const NO_TURN: i64 = 0;

impl Turn {
    /// Never below the clock: larger than any before, also of a job whose turns were purged.
    fn after(read: Option<i64>, now: DateTime<Utc>) -> Self {
        Self { read, next: read.map_or(i64::MIN, |turn| turn.saturating_add(1)).max(now.timestamp_millis()) }
    }
}

/// A slot as it was read.
#[derive(Debug)]
pub(super) struct Loaded {
    slot: Slot,
    at: Moment,
    stored: SlotState,
    /// None where there is no row yet.
    version: Option<i64>,
    pause: Option<Pause>,
    /// The oldest of the job's other slots that is leased.
    other: Option<(SlotKey, StoredMark)>,
    /// None where it was not asked for, or cannot be read.
    latest: Option<JobLatest>,
    /// The job's turn, where the slot has to run alone, or what the job has come to may change.
    turn: Option<Turn>,
    exclusive: bool,
}

/// Reads the slot, as of one instant.
pub(super) async fn load<S: Session>(session: &mut S, scope: &Scope, query: &SlotQuery) -> Result<Loaded, SqlFault> {
    let asked = [scope.slot(&query.slot), values![i64::from(query.exclusive), i64::from(query.latest)]].concat();
    let rows = session.fetch(session.texts().slot_load, asked).await?;
    read(session, scope, query, &rows).map_err(|why| SqlFault::row(&query.slot, why))
}

fn read<S: Session>(session: &S, scope: &Scope, query: &SlotQuery, rows: &[S::Row]) -> Result<Loaded, Why> {
    let (mut own, mut other): (_, Option<(SlotKey, StoredMark)>) = (None, None);
    for found in rows {
        if row::number(found, "other")? != Some(1) {
            own = Some(found);
        } else if let (key, Some(mark)) = (row::key(found)?, row::mark(found)?)
            && other.as_ref().is_none_or(|(oldest, _)| key < *oldest)
        {
            other = Some((key, mark));
        }
    }
    let found = own.ok_or("nothing was answered")?;
    let version = row::number(found, "version")?;
    let now = session.read_at(found)?;
    let has_turn = query.exclusive || query.latest;
    let turn = has_turn.then(|| row::number(found, "turn").map(|read| Turn::after(read, now))).transpose()?;
    Ok(Loaded {
        slot: query.slot.clone(),
        at: scope.at(now),
        stored: if version.is_some() { row::state(found)? } else { SlotState::default() },
        version,
        pause: if query.pause { row::pause_beside(found)? } else { None },
        other,
        latest: if query.latest { row::latest(found).ok() } else { None },
        turn,
        exclusive: query.exclusive,
    })
}

impl Loaded {
    /// For a rule to decide.
    pub(super) fn step(&self) -> SlotStep {
        let (pause, other) = (self.pause.clone(), self.other.clone());
        let step = SlotStep { pause, other, ..SlotStep::new(&self.slot, self.stored.current(self.at), self.at.now) };
        step.with_latest(self.latest.clone())
    }

    /// What has to be written after it.
    pub(super) fn write(&self, step: SlotStep) -> SlotWrite {
        let change = Change::between(&self.stored, step, self.at);
        let had_ended = |run: (Attempt, Token)| self.stored.run(run.0, run.1).is_some_and(|run| run.outcome.is_some());
        let output = change.run.as_ref().and_then(|run| match &run.output {
            Some(output) => Some(OutputChange::Put(output.clone())),
            None => had_ended((run.attempt, run.token)).then_some(OutputChange::Remove),
        });
        let (slot, now) = (self.slot.clone(), self.at.now);
        let turn = self.turn.filter(|_| self.exclusive || change.latest.is_some());
        SlotWrite { slot, now, change, output, version: self.version, turn }
    }
}

/// What becomes of the output of the run whose record is written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum OutputChange {
    Put(OutputTail),
    Remove,
}

/// What a rule has changed. Where it has changed anything, the row is written with it.
#[derive(Debug)]
pub(super) struct SlotWrite {
    slot: Slot,
    /// When the slot was read.
    pub(super) now: DateTime<Utc>,
    pub(super) change: Change,
    output: Option<OutputChange>,
    /// The version of the row that was read.
    pub(super) version: Option<i64>,
    /// The job's turn that is taken with it; none where the slot need not run alone and the job has come to nothing else.
    #[cfg_attr(
        not(any(feature = "postgres", feature = "mysql")),
        allow(dead_code, reason = "one process writes to a file")
    )]
    pub(super) turn: Option<Turn>,
}

impl SlotWrite {
    /// The slot's identity: 1 namespace, 2 job, 3 slot.
    pub(super) fn slot(&self, scope: &Scope) -> Vec<Value> {
        scope.slot(&self.slot)
    }

    /// The job's identity: 1 namespace, 2 job.
    pub(super) fn job(&self, scope: &Scope) -> Vec<Value> {
        values![scope.namespace.as_str(), self.slot.job().as_str()]
    }

    /// The document of a slot that nothing has happened to.
    #[cfg(feature = "mysql")]
    pub(super) fn untouched(&self) -> Result<String, SqlFault> {
        let state = SlotState { touched: Some(self.now), ..SlotState::default() };
        row::json(&state).map_err(|why| SqlFault::row(&self.slot, why))
    }

    /// Larger than any version that a row of this slot has had, also one that was purged: it is never below the clock.
    fn next_version(&self) -> i64 {
        self.version.map_or(i64::MIN, |version| version.saturating_add(1)).max(self.now.timestamp_millis())
    }

    /// The slot's row: its identity, then 4 to 9 what stands at its key, 10 attempts, 11 verdict, 12 when it was touched, 13 the
    /// document, 14 its new version.
    pub(super) fn row(&self, scope: &Scope) -> Result<Vec<Value>, SqlFault> {
        let state = &self.change.state;
        let mut values = self.slot(scope);
        // What has run out is nothing any more, and not in the way of whoever looks for what runs.
        values.extend(row::mark_columns(state.mark(self.now)));
        values.extend(values![
            i64::from(state.counter),
            state.verdict.as_ref().map(|record| record.verdict.as_str().to_owned()),
            state.touched.unwrap_or(self.now),
            row::json(state).map_err(|why| SqlFault::row(&self.slot, why))?,
            self.next_version(),
        ]);
        Ok(values)
    }

    /// What the job has come to lately, where that has changed.
    pub(super) fn latest(&self) -> Result<Option<String>, SqlFault> {
        let latest = self.change.latest.as_ref();
        latest.map(|latest| row::json(latest).map_err(|why| SqlFault::row(&self.slot, why))).transpose()
    }

    /// Whether outputs change with it.
    #[cfg(feature = "mysql")]
    pub(super) const fn has_outputs(&self) -> bool {
        self.change.forgets || self.output.is_some()
    }

    /// The run whose output is written, or goes where that is NULL: attempt, token, output. Of an output whose JSON has more bytes than
    /// `most` the end is written.
    pub(super) fn output(&self, most: usize) -> Result<Option<Vec<Value>>, SqlFault> {
        let Some((run, output)) = self.change.run.as_ref().zip(self.output.as_ref()) else { return Ok(None) };
        let output = match output {
            OutputChange::Put(output) => {
                Some(row::json(&output.bounded(most)).map_err(|why| SqlFault::row(&self.slot, why))?)
            }
            OutputChange::Remove => None,
        };
        Ok(Some(values![i64::from(run.attempt), run.token.to_string(), output]))
    }
}

/// The slots as the statements take them that read many. Names and keys need no escapes: [`crate::job::NAME_RULE`].
pub(super) fn asked(slots: &[Slot]) -> String {
    let pairs: Vec<String> = slots.iter().map(|slot| format!("[\"{}\",\"{}\"]", slot.job(), slot.key())).collect();
    format!("[{}]", pairs.join(","))
}

/// The store's clock, and what is known of each slot, in the order asked: one statement, however many there are.
pub(super) async fn inspect<S: Session>(
    tx: &mut S,
    scope: &Scope,
    slots: &[Slot],
) -> Result<(DateTime<Utc>, Vec<SlotRecord>), SqlFault> {
    let rows = tx.fetch(tx.texts().slots_read, values![scope.namespace.as_str(), asked(slots)]).await?;
    let mut found = HashMap::with_capacity(rows.len());
    for row in &rows {
        let id = row::text(row, "job").and_then(|job| Ok(job.zip(row::text(row, "slot")?)));
        found.extend(id.map_err(|why| SqlFault::Row(format!("table slots: {why}")))?.map(|id| (id, row)));
    }
    let at = scope.at(tx.now());
    let record = |slot: &Slot| match found.get(&(slot.job().to_string(), slot.key().to_string())) {
        Some(row) => Ok(row::state(*row).map_err(|why| SqlFault::row(slot, why))?.record(slot, at)),
        None => Ok(SlotRecord::untouched(slot.clone())),
    };
    Ok((at.now, slots.iter().map(record).collect::<Result<_, SqlFault>>()?))
}

/// The end of one run's output.
pub(super) async fn output<S: Session>(
    tx: &mut S,
    scope: &Scope,
    slot: &Slot,
    attempt: Attempt,
    token: Token,
) -> Result<Option<OutputTail>, SqlFault> {
    let named = [scope.slot(slot), values![i64::from(attempt), token.to_string()]].concat();
    let rows = tx.fetch(tx.texts().output_read, named).await?;
    rows.first().map(row::output).transpose().map_err(|why| SqlFault::row(slot, why))
}
