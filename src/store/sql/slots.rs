//! Slots in their tables: read into a state; what a rule has changed of it, as values for the dialect to write.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::cells::Cells;
use super::fault::Fault;
use super::row;
use super::session::{Columns, Session, Value, values};
use crate::clock::earlier;
use crate::job::Namespace;
use crate::slot::{RunRecord, Slot, SlotKey};
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

    fn slot(&self, slot: &Slot) -> Vec<Value> {
        values![self.namespace.as_str(), slot.job().as_str(), slot.start()]
    }
}

/// What a dialect's statement asks for that reads a slot and may grant it; none where a verb is to be recorded with the grant.
/// 1 to 4 as `slot_load.sql`, then the row without its identity (5 end, 6 counter, 7 forgiven, 8 to 13 the mark, 14 verdict,
/// 15 when it was touched), and 16 to 18 the run.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) fn granting(scope: &Scope, query: &SlotQuery, write: &SlotWrite) -> Result<Option<Vec<Value>>, Fault> {
    if write.audit()?.is_some() {
        return Ok(None);
    }
    let mut values = asked_of(scope, query);
    let id = scope.slot(&query.slot).len();
    values.extend(write.row(scope)?.into_iter().skip(id));
    values.extend(write.run()?.unwrap_or_else(|| values![None::<i64>, None::<String>, None::<String>]));
    Ok(Some(values))
}

/// A slot as it was read.
#[derive(Debug)]
pub(super) struct Loaded {
    slot: Slot,
    at: Moment,
    /// Without the operators' verbs.
    stored: SlotState,
    pause: Option<Pause>,
    /// The oldest of the job's other slots that is leased.
    other: Option<(SlotKey, StoredMark)>,
    /// The job's turn that a grant takes, where the slot has to run alone.
    next_turn: Option<i64>,
}

/// Reads the slot, as of one instant; and the row that it was read from, for what only the dialect has in it.
pub(super) async fn load<S: Session>(
    session: &mut S,
    scope: &Scope,
    query: &SlotQuery,
) -> Result<(Loaded, S::Row), Fault> {
    let text = session.texts().slot_load;
    load_by(session, scope, query, (text, asked_of(scope, query))).await
}

/// The same, by another statement that answers such a row.
pub(super) async fn load_by<S: Session>(
    session: &mut S,
    scope: &Scope,
    query: &SlotQuery,
    (text, values): (&'static str, Vec<Value>),
) -> Result<(Loaded, S::Row), Fault> {
    let odd = |why| Fault::row(&query.slot, why);
    let found = session.fetch(text, values).await?.into_iter().next();
    let found = found.ok_or_else(|| odd("nothing was answered".to_owned()))?;
    let (now, last) = (session.read_at(&found).map_err(odd)?, session.last_run(&found).map_err(odd)?);
    let last_turn = session.last_turn(&found).map_err(odd)?;
    let loaded = Loaded::read(query, (&found, last), scope.at(now)).map_err(odd)?;
    Ok((Loaded { next_turn: query.exclusive.then(|| last_turn.unwrap_or(0).saturating_add(1)), ..loaded }, found))
}

/// What `slot_load.sql` asks for: 1 to 3 the slot, 4 whether it has to run alone.
fn asked_of(scope: &Scope, query: &SlotQuery) -> Vec<Value> {
    let mut values = scope.slot(&query.slot);
    values.push(i64::from(query.exclusive).into());
    values
}

impl Loaded {
    /// From its row and the run in it.
    fn read(
        query: &SlotQuery,
        (found, last): (&impl Columns, Option<RunRecord>),
        at: Moment,
    ) -> Result<Self, row::Why> {
        let mut stored = SlotState { runs: row::runs(found)?, ..row::slot_row(found)? };
        if let Some(last) = last {
            // Where the others have it as well, theirs is the older form.
            stored.runs.retain(|run| (run.attempt, run.token) != (last.attempt, last.token));
            stored.runs.push(last);
        }
        stored.sort_runs();
        let pause = if query.pause { row::pause_beside(found)? } else { None };
        Ok(Self { slot: query.slot.clone(), at, stored, pause, other: other(found)?, next_turn: None })
    }

    /// A slot that nobody has touched, of a job that is not paused, with no lease at another slot.
    #[cfg(any(feature = "postgres", feature = "mysql"))]
    pub(super) fn untouched(slot: &Slot, at: Moment) -> Self {
        Self { slot: slot.clone(), at, stored: SlotState::default(), pause: None, other: None, next_turn: None }
    }

    /// For a rule to decide.
    pub(super) fn step(&self) -> SlotStep {
        let (pause, other) = (self.pause.clone(), self.other.clone());
        SlotStep { pause, other, ..SlotStep::new(&self.slot, self.stored.current(self.at), self.at.now) }
    }

    /// What has to be written after it.
    pub(super) fn write(&self, step: SlotStep) -> SlotWrite {
        let change = Change::between(&self.stored, step, self.at);
        SlotWrite { slot: self.slot.clone(), now: self.at.now, change, turn: self.next_turn }
    }
}

/// What a rule has changed. Where it has changed anything, the row is written with it.
#[derive(Debug)]
pub(super) struct SlotWrite {
    slot: Slot,
    /// When the slot was read.
    #[cfg_attr(
        not(any(feature = "postgres", feature = "mysql")),
        allow(dead_code, reason = "a file is locked from before the reading")
    )]
    pub(super) now: DateTime<Utc>,
    pub(super) change: Change,
    /// The job's turn that is taken with it; none where the row keeps what it has.
    #[cfg_attr(
        not(any(feature = "postgres", feature = "mysql")),
        allow(dead_code, reason = "one process writes to a file")
    )]
    pub(super) turn: Option<i64>,
}

impl SlotWrite {
    /// The slot's identity: 1 namespace, 2 job, 3 start.
    pub(super) fn slot(&self, scope: &Scope) -> Vec<Value> {
        scope.slot(&self.slot)
    }

    /// The slot's row: its identity, then 4 end, 5 counter, 6 forgiven, 7 to 12 the mark, 13 verdict, 14 when it was
    /// touched.
    pub(super) fn row(&self, scope: &Scope) -> Result<Vec<Value>, Fault> {
        let state = &self.change.state;
        // What has run out is nothing any more, and not in the way of whoever looks for what runs.
        let mark = state.mark(self.now);
        let (word, token) = mark.map(|mark| row::kind_columns(mark.kind)).unzip();
        let verdict = state.verdict.as_ref().map(row::json).transpose().map_err(|why| self.odd(why))?;
        let mut values = self.slot(scope);
        values.extend(values![
            self.slot.end(),
            i64::from(state.counter),
            i64::from(state.forgiven),
            word.map(str::to_owned),
            token.flatten().map(|token| token.to_string()),
            mark.map(|mark| mark.by.node.as_str().to_owned()),
            mark.map(|mark| i64::from(mark.by.attempt)),
            mark.map(|mark| mark.since.timestamp_millis()),
            mark.map(|mark| mark.until.timestamp_millis()),
            verdict,
            state.touched.unwrap_or(self.now),
        ]);
        Ok(values)
    }

    /// The run's record, if there is one to write: attempt, token, record.
    pub(super) fn run(&self) -> Result<Option<Vec<Value>>, Fault> {
        let Some(run) = &self.change.run else { return Ok(None) };
        let record = row::json(run).map_err(|why| self.odd(why))?;
        Ok(Some(values![i64::from(run.attempt), run.token.to_string(), record]))
    }

    /// The operator's verb, if there is one to write.
    pub(super) fn audit(&self) -> Result<Option<Value>, Fault> {
        let Some(audit) = &self.change.audit else { return Ok(None) };
        Ok(Some(row::json(audit).map_err(|why| self.odd(why))?.into()))
    }

    fn odd(&self, why: row::Why) -> Fault {
        Fault::row(&self.slot, why)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::NodeName;
    use crate::slot::{Lease, Outcome, Token};
    use crate::store::ClaimRequest;
    use crate::store::sql::cells::Cells;

    fn slot() -> Slot {
        Slot::parse("job", "2026-11-21T14Z", "2026-11-21T15Z").unwrap()
    }

    fn lease(token: u128, attempt: u32) -> Lease {
        let minute = Duration::from_secs(60);
        let request = ClaimRequest::new(slot(), Token::from_bits(token), NodeName::new("a").unwrap(), minute, 3);
        request.granted(attempt, slot().start())
    }

    /// A row of `slot_load.sql` with these runs beside it.
    fn row(runs: &[RunRecord]) -> Cells {
        let runs: Vec<String> = runs.iter().map(|run| row::json(run).unwrap()).collect();
        let runs = row::json(&row::json(&runs).unwrap()).unwrap();
        let columns =
            r#""counter":2,"forgiven":0,"mark":null,"verdict":null,"touched_ms":1,"since_ms":null,"other":null"#;
        serde_json::from_str(&format!(r#"{{{columns},"runs":{runs}}}"#)).unwrap()
    }

    fn runs(row: &Cells, last: Option<RunRecord>) -> Vec<RunRecord> {
        let at = Moment { now: slot().start(), retention: Duration::from_secs(60) };
        Loaded::read(&SlotQuery::slot(&slot()), (row, last), at).unwrap().stored.runs
    }

    #[test]
    fn the_run_in_the_row_takes_the_place_of_its_older_form_and_stands_in_order() {
        let (first, second) = (RunRecord::ended(&lease(1, 1), Outcome::Failure), RunRecord::begun(&lease(2, 2)));
        let ended = RunRecord::ended(&lease(2, 2), Outcome::Success);
        assert_eq!(runs(&row(&[second.clone(), first.clone()]), Some(ended.clone())), [first.clone(), ended.clone()]);
        assert_eq!(runs(&row(&[second]), Some(first.clone())).len(), 2);
        assert_eq!(runs(&row(std::slice::from_ref(&ended)), Some(first.clone())), [first.clone(), ended]);
        assert_eq!(runs(&row(&[]), Some(first.clone())), std::slice::from_ref(&first));
        assert_eq!(runs(&row(std::slice::from_ref(&first)), None), [first]);
    }
}
