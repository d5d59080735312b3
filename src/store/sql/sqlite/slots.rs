//! Slots in their tables: read into an image, written back from it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::fault::Fault;
use super::lane::Tx;
use super::{registry, row};
use crate::clock::earlier;
use crate::job::Namespace;
use crate::slot::{Attempt, Audit, Lease, RunRecord, Slot, Token};
use crate::store::sql::image::{Effects, Image, Row, Runs, StoredMark};

/// Which slots are looked at, and which of their runs counts as the request's own.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) slot: Slot,
    /// The lease's token; none for the current lease's.
    pub(super) token: Option<Token>,
    /// The lease's attempt; none for the token's newest, or the current lease's.
    pub(super) attempt: Option<Attempt>,
    /// Older slots whose marks count.
    pub(super) older: Vec<Slot>,
    /// Whether the job's pause counts.
    pub(super) pause: bool,
}

impl Subject {
    pub(super) fn slot(slot: &Slot) -> Self {
        Self { slot: slot.clone(), token: None, attempt: None, older: Vec::new(), pause: false }
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
}

/// What the tables held when the image was made; tells what has to be written.
pub(super) struct Loaded {
    pub(super) image: Image,
    row: Row,
    touched: DateTime<Utc>,
    /// There are records, and they are older than the retention.
    outdated: bool,
}

/// Reads the slot.
pub(super) async fn load(tx: &mut Tx<'_>, scope: &Scope, subject: &Subject) -> Result<Loaded, Fault> {
    let slot = &subject.slot;
    let found = sqlx::query(include_str!("slot_load.sql"))
        .bind(scope.namespace.as_str())
        .bind(slot.job().as_str())
        .bind(slot.start().timestamp_millis())
        .bind(subject.token.map(|token| token.to_string()))
        .bind(subject.attempt.map(i64::from))
        .fetch_optional(tx.on())
        .await?;
    let (mut row, mut runs, touched) = match &found {
        Some(found) => decode(found).map_err(|why| Fault::row(slot, why))?,
        None => (Row::default(), Runs::default(), tx.now),
    };
    let outdated = found.is_some() && touched <= scope.oldest(tx.now);
    if outdated {
        // The mark has its own time.
        row = Row { mark: row.mark, ..Row::default() };
        runs = Runs::default();
    }
    let pause = if subject.pause { registry::pause_of(tx, scope, slot.job()).await? } else { None };
    let older = marks(tx, scope, &subject.older).await?;
    let (slot, now, effects) = (slot.clone(), tx.now, Effects::default());
    let image = Image { slot, now, row: row.clone(), runs, pause, older, effects };
    Ok(Loaded { image, row, touched, outdated })
}

fn decode(found: &SqliteRow) -> Result<(Row, Runs, DateTime<Utc>), row::Why> {
    let runs = Runs {
        own: row::record(found, "own")?,
        newest: row::count(found, "newest")?,
        newest_other: row::count(found, "newest_other")?,
        newest_other_node: row::node(found, "newest_other_node")?,
        spent: row::count(found, "spent")? > 0,
    };
    Ok((row::slot_row(found)?, runs, row::there(row::instant(found, "touched_ms")?, "touched_ms")?))
}

/// Writes what the rule has changed, if anything.
pub(super) async fn save(tx: &mut Tx<'_>, scope: &Scope, loaded: &Loaded) -> Result<(), Fault> {
    let image = &loaded.image;
    let log = |row: &Row| (row.counter, row.forgiven, row.verdict.clone());
    let recorded = image.effects.run.is_some() || image.effects.audit.is_some();
    let touched = recorded || log(&image.row) != log(&loaded.row);
    if touched && loaded.outdated {
        forget(tx, scope, &image.slot).await?;
    }
    if touched || image.row != loaded.row {
        // The retention begins with the last change, and never before the slot's end.
        let kept_from = image.now.max(image.slot.end());
        save_row(tx, scope, image, if touched { kept_from } else { loaded.touched }).await?;
    }
    if let Some(run) = &image.effects.run {
        save_run(tx, scope, &image.slot, run).await?;
    }
    match &image.effects.audit {
        Some(audit) => add_audit(tx, scope, &image.slot, audit).await,
        None => Ok(()),
    }
}

async fn forget(tx: &mut Tx<'_>, scope: &Scope, slot: &Slot) -> Result<(), Fault> {
    sqlx::query(include_str!("slot_forget.sql"))
        .bind(scope.namespace.as_str())
        .bind(slot.job().as_str())
        .bind(slot.start().timestamp_millis())
        .execute(tx.on())
        .await?;
    Ok(())
}

async fn save_row(tx: &mut Tx<'_>, scope: &Scope, image: &Image, touched: DateTime<Utc>) -> Result<(), Fault> {
    let mark = image.row.mark.as_ref();
    let (word, token) = mark.map(|mark| row::standing_columns(mark.standing)).unzip();
    let verdict = image.row.verdict.as_ref().map(row::json).transpose().map_err(|why| Fault::row(&image.slot, why))?;
    sqlx::query(include_str!("slot_save.sql"))
        .bind(scope.namespace.as_str())
        .bind(image.slot.job().as_str())
        .bind(image.slot.start().timestamp_millis())
        .bind(image.slot.end().timestamp_millis())
        .bind(i64::from(image.row.counter))
        .bind(i64::from(image.row.forgiven))
        .bind(word)
        .bind(token.flatten().map(|token| token.to_string()))
        .bind(mark.map(|mark| mark.by.node.as_str()))
        .bind(mark.map(|mark| i64::from(mark.by.attempt)))
        .bind(mark.map(|mark| mark.since.timestamp_millis()))
        .bind(mark.map(|mark| mark.until.timestamp_millis()))
        .bind(verdict)
        .bind(touched.timestamp_millis())
        .execute(tx.on())
        .await?;
    Ok(())
}

async fn save_run(tx: &mut Tx<'_>, scope: &Scope, slot: &Slot, run: &RunRecord) -> Result<(), Fault> {
    sqlx::query(include_str!("run_save.sql"))
        .bind(scope.namespace.as_str())
        .bind(slot.job().as_str())
        .bind(slot.start().timestamp_millis())
        .bind(i64::from(run.attempt))
        .bind(run.token.to_string())
        .bind(row::json(run).map_err(|why| Fault::row(slot, why))?)
        .execute(tx.on())
        .await?;
    Ok(())
}

async fn add_audit(tx: &mut Tx<'_>, scope: &Scope, slot: &Slot, audit: &Audit) -> Result<(), Fault> {
    sqlx::query(include_str!("audit_add.sql"))
        .bind(scope.namespace.as_str())
        .bind(slot.job().as_str())
        .bind(slot.start().timestamp_millis())
        .bind(row::json(audit).map_err(|why| Fault::row(slot, why))?)
        .execute(tx.on())
        .await?;
    Ok(())
}

/// What stands, or stood, at each slot that has a mark, in the order asked.
async fn marks(tx: &mut Tx<'_>, scope: &Scope, slots: &[Slot]) -> Result<Vec<(Slot, StoredMark)>, Fault> {
    if slots.is_empty() {
        return Ok(Vec::new());
    }
    let rows = sqlx::query(include_str!("slots_read.sql"))
        .bind(scope.namespace.as_str())
        .bind(asked(slots))
        .fetch_all(tx.on())
        .await?;
    let mut found = Vec::new();
    for slot in slots {
        let Some(row) = rows.iter().find(|row| is_of(row, slot)) else { continue };
        found.extend(row::mark(row).map_err(|why| Fault::row(slot, why))?.map(|mark| (slot.clone(), mark)));
    }
    Ok(found)
}

/// The slots as the `*_read.sql` texts take them. Names need no escapes: [`crate::job::NAME_RULE`].
pub(super) fn asked(slots: &[Slot]) -> String {
    let pairs: Vec<String> =
        slots.iter().map(|slot| format!("[\"{}\",{}]", slot.job(), slot.start().timestamp_millis())).collect();
    format!("[{}]", pairs.join(","))
}

fn is_of(row: &SqliteRow, slot: &Slot) -> bool {
    row.try_get::<&str, _>("job").is_ok_and(|job| job == slot.job().as_str())
        && row.try_get::<i64, _>("start_ms").is_ok_and(|start| start == slot.start().timestamp_millis())
}
