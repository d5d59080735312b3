//! Slots in their tables: read into an image; what a rule has changed in it, as values for the dialect to write.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::cells::Cells;
use super::fault::Fault;
use super::image::{Effects, Image, Row, Runs, StoredMark};
use super::last_run::with_last;
use super::row;
use super::session::{Columns, Session, Value, values};
use crate::clock::earlier;
use crate::job::Namespace;
use crate::slot::{Attempt, Lease, RunRecord, Slot, SlotKey, Token};

/// Which slots are looked at, and which of their runs counts as the request's own.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) slot: Slot,
    /// The lease's token; none for the current lease's.
    pub(super) token: Option<Token>,
    /// The lease's attempt; none for the token's newest, or the current lease's.
    pub(super) attempt: Option<Attempt>,
    /// Whether the leases of the job's other slots count.
    pub(super) exclusive: bool,
    /// Whether the job's pause counts.
    pub(super) pause: bool,
}

impl Subject {
    pub(super) fn slot(slot: &Slot) -> Self {
        Self { slot: slot.clone(), token: None, attempt: None, exclusive: false, pause: false }
    }

    pub(super) fn lease(lease: &Lease) -> Self {
        Self { token: Some(lease.token), attempt: Some(lease.attempt), ..Self::slot(&lease.slot) }
    }
}

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

    fn slot(&self, slot: &Slot) -> Vec<Value> {
        values![self.namespace.as_str(), slot.job().as_str(), slot.start()]
    }
}

/// What a dialect's statement asks for that reads a slot and may grant it; none where a verb is to be recorded with the grant.
/// 1 to 6 as `slot_load.sql`, then the row without its identity (7 end, 8 counter, 9 forgiven, 10 to 15 the mark, 16 verdict,
/// 17 when it was touched), and 18 to 20 the run.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) fn granting(scope: &Scope, subject: &Subject, change: &Change<'_>) -> Result<Option<Vec<Value>>, Fault> {
    if change.audit()?.is_some() {
        return Ok(None);
    }
    let mut values = asked_of(scope, subject);
    let id = scope.slot(&subject.slot).len();
    values.extend(change.row(scope)?.into_iter().skip(id));
    values.extend(change.run()?.unwrap_or_else(|| values![None::<i64>, None::<String>, None::<String>]));
    Ok(Some(values))
}

/// What the tables held when the image was made; tells what has to be written.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) image: Image,
    row: Row,
    touched: DateTime<Utc>,
    /// There are records, and they are older than the retention.
    outdated: bool,
    /// The job's turn that a grant takes, where the slot has to run alone.
    next_turn: Option<i64>,
}

/// Reads the slot, as of one instant; and the row that it was read from, for what only the dialect has in it.
pub(super) async fn load<S: Session>(
    session: &mut S,
    scope: &Scope,
    subject: &Subject,
) -> Result<(Loaded, S::Row), Fault> {
    let text = session.texts().slot_load;
    load_by(session, scope, subject, (text, asked_of(scope, subject))).await
}

/// The same, by another statement that answers such a row.
pub(super) async fn load_by<S: Session>(
    session: &mut S,
    scope: &Scope,
    subject: &Subject,
    (text, values): (&'static str, Vec<Value>),
) -> Result<(Loaded, S::Row), Fault> {
    let odd = |why| Fault::row(&subject.slot, why);
    let found = session.fetch(text, values).await?.into_iter().next();
    let found = found.ok_or_else(|| odd("nothing was answered".to_owned()))?;
    let (now, last) = (session.read_at(&found).map_err(odd)?, session.last_run(&found).map_err(odd)?);
    let last_turn = session.last_turn(&found).map_err(odd)?;
    let loaded = Loaded::read(scope, subject, (&found, last), now)?;
    Ok((Loaded { next_turn: subject.exclusive.then(|| last_turn.unwrap_or(0).saturating_add(1)), ..loaded }, found))
}

/// What `slot_load.sql` asks for: 1 to 3 the slot, 4 token, 5 attempt, 6 whether it has to run alone.
fn asked_of(scope: &Scope, subject: &Subject) -> Vec<Value> {
    let mut values = scope.slot(&subject.slot);
    let token = subject.token.map(|token| token.to_string());
    values.extend(values![token, subject.attempt.map(i64::from), i64::from(subject.exclusive)]);
    values
}

impl Loaded {
    /// From its row and the run in it, as of `now`.
    fn read(
        scope: &Scope,
        subject: &Subject,
        (found, last): (&impl Columns, Option<RunRecord>),
        now: DateTime<Utc>,
    ) -> Result<Self, Fault> {
        let slot = &subject.slot;
        let odd = |why| Fault::row(slot, why);
        let (mut row, mut runs) = (row::slot_row(found).map_err(odd)?, row::runs(found).map_err(odd)?);
        if let Some(last) = last {
            with_last(&mut runs, last, subject, row.mark.as_ref());
        }
        let touched = row::instant(found, "touched_ms").map_err(odd)?;
        let outdated = touched.is_some_and(|touched| touched <= scope.oldest(now));
        if outdated {
            // The mark has its own time.
            row = Row { mark: row.mark, ..Row::default() };
            runs = Runs::default();
        }
        let pause = if subject.pause { row::pause_beside(found).map_err(odd)? } else { None };
        let others = other(found).map_err(odd)?.into_iter().collect();
        let (slot, effects) = (slot.clone(), Effects::default());
        let image = Image { slot, now, row: row.clone(), runs, pause, others, effects };
        Ok(Self { image, row, touched: touched.unwrap_or(now), outdated, next_turn: None })
    }

    /// A slot that nobody has touched, of a job that is not paused, with no lease at another slot.
    #[cfg(any(feature = "postgres", feature = "mysql"))]
    pub(super) fn untouched(slot: &Slot, now: DateTime<Utc>) -> Self {
        let (row, runs, effects) = (Row::default(), Runs::default(), Effects::default());
        let image = Image { slot: slot.clone(), now, row: row.clone(), runs, pause: None, others: Vec::new(), effects };
        Self { image, row, touched: now, outdated: false, next_turn: None }
    }

    /// What has to be written; none when the rule has changed nothing.
    pub(super) fn change(&self) -> Option<Change<'_>> {
        let image = &self.image;
        let log = |row: &Row| (row.counter, row.forgiven, row.verdict.clone());
        let recorded = image.effects.run.is_some() || image.effects.audit.is_some();
        let touched = recorded || log(&image.row) != log(&self.row);
        // The retention begins with the last change, and never before the slot's end.
        let kept_from = if touched { image.now.max(image.slot.end()) } else { self.touched };
        let changed = touched || image.row != self.row;
        changed.then_some(Change { image, kept_from, forget: touched && self.outdated, turn: self.next_turn })
    }
}

/// What a rule has changed. The row is always written with it.
pub(super) struct Change<'l> {
    pub(super) image: &'l Image,
    kept_from: DateTime<Utc>,
    /// The slot's records are older than the retention: its runs and its audit go first.
    pub(super) forget: bool,
    /// The job's turn that is taken with it; none where the row keeps what it has.
    #[cfg_attr(
        not(any(feature = "postgres", feature = "mysql")),
        allow(dead_code, reason = "one process writes to a file")
    )]
    pub(super) turn: Option<i64>,
}

impl Change<'_> {
    /// The slot's identity: 1 namespace, 2 job, 3 start.
    pub(super) fn slot(&self, scope: &Scope) -> Vec<Value> {
        scope.slot(&self.image.slot)
    }

    /// The slot's row: its identity, then 4 end, 5 counter, 6 forgiven, 7 to 12 the mark, 13 verdict, 14 when it was
    /// touched.
    pub(super) fn row(&self, scope: &Scope) -> Result<Vec<Value>, Fault> {
        let row = &self.image.row;
        // What has run out is nothing any more, and not in the way of whoever looks for what runs.
        let mark = self.image.mark();
        let (word, token) = mark.map(|mark| row::standing_columns(mark.standing)).unzip();
        let verdict = row.verdict.as_ref().map(row::json).transpose().map_err(|why| self.odd(why))?;
        let mut values = self.slot(scope);
        values.extend(values![
            self.image.slot.end(),
            i64::from(row.counter),
            i64::from(row.forgiven),
            word.map(str::to_owned),
            token.flatten().map(|token| token.to_string()),
            mark.map(|mark| mark.by.node.as_str().to_owned()),
            mark.map(|mark| i64::from(mark.by.attempt)),
            mark.map(|mark| mark.since.timestamp_millis()),
            mark.map(|mark| mark.until.timestamp_millis()),
            verdict,
            self.kept_from,
        ]);
        Ok(values)
    }

    /// The run's record, if there is one to write: attempt, token, record.
    pub(super) fn run(&self) -> Result<Option<Vec<Value>>, Fault> {
        let Some(run) = &self.image.effects.run else { return Ok(None) };
        let record = row::json(run).map_err(|why| self.odd(why))?;
        Ok(Some(values![i64::from(run.attempt), run.token.to_string(), record]))
    }

    /// The operator's verb, if there is one to write.
    pub(super) fn audit(&self) -> Result<Option<Value>, Fault> {
        let Some(audit) = &self.image.effects.audit else { return Ok(None) };
        Ok(Some(row::json(audit).map_err(|why| self.odd(why))?.into()))
    }

    fn odd(&self, why: row::Why) -> Fault {
        Fault::row(&self.image.slot, why)
    }
}

/// The oldest of the job's other slots that is leased, where that was asked.
fn other(found: &impl Columns) -> Result<Option<(SlotKey, StoredMark)>, row::Why> {
    let Some(other) = row::record::<Cells>(found, "other")? else { return Ok(None) };
    let start = row::there(row::instant(&other, "start_ms")?, "start_ms")?;
    let key = SlotKey::of(start).ok_or_else(|| format!("column start_ms: no slot begins at {start}"))?;
    Ok(row::mark(&other)?.map(|mark| (key, mark)))
}

/// The slots as the `*_read.sql` texts take them. Names need no escapes: [`crate::job::NAME_RULE`].
pub(super) fn asked(slots: &[Slot]) -> String {
    let pairs: Vec<String> =
        slots.iter().map(|slot| format!("[\"{}\",{}]", slot.job(), slot.start().timestamp_millis())).collect();
    format!("[{}]", pairs.join(","))
}
