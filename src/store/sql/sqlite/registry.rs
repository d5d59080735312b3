//! The registry beside the slots in its tables: jobs, nodes, pauses; and the purge.

use chrono::{DateTime, Utc};
use sqlx::sqlite::SqliteRow;

use super::fault::Fault;
use super::lane::Tx;
use super::row;
use super::slots::Scope;
use crate::job::JobName;
use crate::slot::Audit;
use crate::store::{HeartbeatReply, Intervention, JobEntry, NodeEntry, NodeReport, Pause};

/// The most slots that one purge removes: it must not hold the write lock for long.
const PURGE_AT_ONCE: i64 = 500;

fn odd(table: &str) -> impl Fn(row::Why) -> Fault + '_ {
    move |why| Fault::Row(format!("table {table}: {why}"))
}

pub(super) async fn pause_of(tx: &mut Tx<'_>, scope: &Scope, job: &JobName) -> Result<Option<Pause>, Fault> {
    let found = sqlx::query(include_str!("pause_get.sql"))
        .bind(scope.namespace.as_str())
        .bind(job.as_str())
        .fetch_optional(tx.on())
        .await?;
    found.as_ref().map(decode_pause).transpose().map_err(odd("pauses"))
}

fn decode_pause(found: &SqliteRow) -> Result<Pause, row::Why> {
    Ok(Pause {
        since: row::there(row::instant(found, "since_ms")?, "since_ms")?,
        until: row::instant(found, "until_ms")?,
        audit: row::there(row::record(found, "audit")?, "audit")?,
    })
}

async fn set_pause(tx: &mut Tx<'_>, scope: &Scope, job: &JobName, pause: &Pause) -> Result<(), Fault> {
    sqlx::query(include_str!("pause_set.sql"))
        .bind(scope.namespace.as_str())
        .bind(job.as_str())
        .bind(pause.since.timestamp_millis())
        .bind(pause.until.map(|until| until.timestamp_millis()))
        .bind(row::json(&pause.audit).map_err(odd("pauses"))?)
        .execute(tx.on())
        .await?;
    Ok(())
}

pub(super) async fn pause(
    tx: &mut Tx<'_>,
    scope: &Scope,
    job: &JobName,
    until: Option<DateTime<Utc>>,
    audit: &Audit,
) -> Result<Intervention, Fault> {
    let pause = Pause { since: tx.now, until, audit: Audit { at: tx.now, ..audit.clone() } };
    set_pause(tx, scope, job, &pause).await?;
    Ok(Intervention::Applied)
}

/// The pause's record then names who ended it.
pub(super) async fn resume(
    tx: &mut Tx<'_>,
    scope: &Scope,
    job: &JobName,
    audit: &Audit,
) -> Result<Intervention, Fault> {
    let now = tx.now;
    let Some(pause) = pause_of(tx, scope, job).await?.filter(|pause| pause.remaining(now).is_some()) else {
        return Ok(Intervention::Unchanged);
    };
    let ended = Pause { until: Some(now), audit: Audit { at: now, ..audit.clone() }, ..pause };
    set_pause(tx, scope, job, &ended).await?;
    Ok(Intervention::Applied)
}

pub(super) async fn pauses(tx: &mut Tx<'_>, scope: &Scope) -> Result<Vec<(JobName, Pause)>, Fault> {
    let rows = sqlx::query(include_str!("pauses.sql")).bind(scope.namespace.as_str()).fetch_all(tx.on()).await?;
    let decode = |found: &SqliteRow| {
        let name = row::there(row::text(found, "job")?, "job")?;
        let job = JobName::new(&name).map_err(|error| format!("column job: {error}"))?;
        Ok((job, decode_pause(found)?))
    };
    rows.iter().map(decode).collect::<Result<_, _>>().map_err(odd("pauses"))
}

pub(super) async fn register(tx: &mut Tx<'_>, scope: &Scope, entries: &[JobEntry]) -> Result<Vec<JobEntry>, Fault> {
    for entry in entries {
        // The column has the instant that counts; the record is the same whenever it is written.
        let record = JobEntry { first_seen: DateTime::UNIX_EPOCH, ..entry.clone() };
        sqlx::query(include_str!("job_register.sql"))
            .bind(scope.namespace.as_str())
            .bind(entry.name.as_str())
            .bind(tx.now.timestamp_millis())
            .bind(row::json(&record).map_err(odd("jobs"))?)
            .execute(tx.on())
            .await?;
    }
    jobs(tx, scope).await
}

pub(super) async fn jobs(tx: &mut Tx<'_>, scope: &Scope) -> Result<Vec<JobEntry>, Fault> {
    let rows = sqlx::query(include_str!("jobs.sql")).bind(scope.namespace.as_str()).fetch_all(tx.on()).await?;
    let decode = |found: &SqliteRow| {
        let first_seen = row::there(row::instant(found, "first_seen_ms")?, "first_seen_ms")?;
        let entry: JobEntry = row::there(row::record(found, "entry")?, "entry")?;
        Ok(JobEntry { first_seen, ..entry })
    };
    rows.iter().map(decode).collect::<Result<_, _>>().map_err(odd("jobs"))
}

pub(super) async fn heartbeat(tx: &mut Tx<'_>, scope: &Scope, report: &NodeReport) -> Result<HeartbeatReply, Fault> {
    let now = tx.now;
    sqlx::query(include_str!("nodes_forget.sql"))
        .bind(scope.namespace.as_str())
        .bind(scope.oldest(now).timestamp_millis())
        .execute(tx.on())
        .await?;
    sqlx::query(include_str!("node_save.sql"))
        .bind(scope.namespace.as_str())
        .bind(report.name.as_str())
        .bind(report.instance.as_str())
        .bind(now.timestamp_millis())
        .bind(row::json(report).map_err(odd("nodes"))?)
        .execute(tx.on())
        .await?;
    Ok(HeartbeatReply { now })
}

pub(super) async fn nodes(tx: &mut Tx<'_>, scope: &Scope) -> Result<(DateTime<Utc>, Vec<NodeEntry>), Fault> {
    let rows = sqlx::query(include_str!("nodes.sql"))
        .bind(scope.namespace.as_str())
        .bind(scope.oldest(tx.now).timestamp_millis())
        .fetch_all(tx.on())
        .await?;
    let decode = |found: &SqliteRow| {
        let seen = row::there(row::instant(found, "seen_ms")?, "seen_ms")?;
        Ok(NodeEntry { report: row::there(row::record(found, "report")?, "report")?, seen })
    };
    let entries = rows.iter().map(decode).collect::<Result<_, _>>().map_err(odd("nodes"))?;
    Ok((tx.now, entries))
}

/// Removes a batch of what is older than the retention; answers how many slots went.
pub(super) async fn purge(tx: &mut Tx<'_>, scope: &Scope) -> Result<u64, Fault> {
    let done = sqlx::query(include_str!("purge.sql"))
        .bind(scope.namespace.as_str())
        .bind(scope.oldest(tx.now).timestamp_millis())
        .bind(PURGE_AT_ONCE)
        .bind(tx.now.timestamp_millis())
        .execute(tx.on())
        .await?;
    Ok(done.rows_affected())
}
