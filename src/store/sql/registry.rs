//! What stands beside the slots in tables of its own: jobs, nodes, pauses, and notes on slots, which no rule reads and which a slot
//! has that nobody claimed. And the purge.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::fault::SqlFault;
use super::messages;
use super::row;
use super::session::{Columns, Session, Why, values};
use super::slots::{Scope, asked};
use crate::job::JobName;
use crate::slot::{Audit, JobLatest, NotePage, Slot};
use crate::store::{HeartbeatReply, Intervention, JobEntry, NodeEntry, NodeReport, Pause, Trial};

/// The most slots that one purge removes: it must not keep others waiting for long.
const PURGE_AT_ONCE: i64 = 500;

/// Pages of notes that one purge removes at the most.
const PAGES_AT_ONCE: i64 = 5_000;

/// Pages of one statement.
const AT_ONCE: usize = 200;

fn odd(table: &str) -> impl Fn(Why) -> SqlFault + '_ {
    move |why| SqlFault::Row(format!("table {table}: {why}"))
}

/// The job's last pause, which nobody else changes until the transaction ends.
async fn pause_of<S: Session>(tx: &mut S, scope: &Scope, job: &JobName) -> Result<Option<Pause>, SqlFault> {
    read_pause(tx, scope, job, tx.texts().pause_get).await
}

async fn read_pause<S: Session>(
    tx: &mut S,
    scope: &Scope,
    job: &JobName,
    statement: &'static str,
) -> Result<Option<Pause>, SqlFault> {
    let rows = tx.fetch(statement, values![scope.namespace.as_str(), job.as_str()]).await?;
    rows.first().map(row::pause).transpose().map_err(odd("pauses"))
}

/// The job's last pause, with the clock. Reads only.
pub(super) async fn pause_known<S: Session>(
    tx: &mut S,
    scope: &Scope,
    job: &JobName,
) -> Result<(DateTime<Utc>, Option<Pause>), SqlFault> {
    let pause = read_pause(tx, scope, job, tx.texts().pause_read).await?;
    Ok((tx.now(), pause))
}

async fn set_pause<S: Session>(tx: &mut S, scope: &Scope, job: &JobName, pause: &Pause) -> Result<(), SqlFault> {
    let audit = row::json(&row::PauseAudit::of(pause)).map_err(odd("pauses"))?;
    let until = pause.until.map(|until| until.timestamp_millis());
    let values = values![scope.namespace.as_str(), job.as_str(), pause.since, until, audit];
    tx.execute(tx.texts().pause_set, values).await?;
    Ok(())
}

pub(super) async fn pause<S: Session>(
    tx: &mut S,
    scope: &Scope,
    job: &JobName,
    until: Option<DateTime<Utc>>,
    audit: &Audit,
) -> Result<Intervention, SqlFault> {
    let pause = Pause::begun(until, audit, tx.now());
    set_pause(tx, scope, job, &pause).await?;
    Ok(Intervention::Applied)
}

/// The pause's record then names who ended it, too.
pub(super) async fn resume<S: Session>(
    tx: &mut S,
    scope: &Scope,
    job: &JobName,
    audit: &Audit,
) -> Result<Intervention, SqlFault> {
    let now = tx.now();
    let Some(ended) = pause_of(tx, scope, job).await?.and_then(|pause| pause.end(audit, now)) else {
        return Ok(Intervention::Unchanged);
    };
    set_pause(tx, scope, job, &ended).await?;
    Ok(Intervention::Applied)
}

pub(super) async fn pauses<S: Session>(tx: &mut S, scope: &Scope) -> Result<Vec<(JobName, Pause)>, SqlFault> {
    let rows = tx.fetch(tx.texts().pauses, values![scope.namespace.as_str()]).await?;
    let decode = |found: &S::Row| {
        let name = row::there(row::text(found, "job")?, "job")?;
        let job = JobName::new(&name).map_err(|error| format!("column job: {error}"))?;
        Ok((job, row::pause(found)?))
    };
    rows.iter().map(decode).collect::<Result<_, _>>().map_err(odd("pauses"))
}

/// What each job has come to lately, in the order asked: one statement, however many there are.
pub(super) async fn latest<S: Session>(
    tx: &mut S,
    scope: &Scope,
    jobs: &[JobName],
) -> Result<Vec<JobLatest>, SqlFault> {
    let names = row::json(&jobs).map_err(odd("latest"))?;
    let rows = tx.fetch(tx.texts().latest_read, values![scope.namespace.as_str(), names]).await?;
    let decode = |found: &S::Row| Ok((row::there(row::text(found, "job")?, "job")?, row::latest(found)?));
    let known: BTreeMap<_, _> = rows.iter().map(decode).collect::<Result<_, _>>().map_err(odd("latest"))?;
    Ok(jobs.iter().map(|job| known.get(job.as_str()).cloned().unwrap_or_default()).collect())
}

pub(super) async fn register<S: Session>(
    tx: &mut S,
    scope: &Scope,
    entries: &[JobEntry],
) -> Result<Vec<JobEntry>, SqlFault> {
    // By name: nodes that register the same jobs at the same time never wait for each other in a circle.
    let by_name = JobEntry::by_name(entries);
    let mut named = Vec::with_capacity(by_name.len());
    for entry in by_name.into_values() {
        // The column has the instant that counts; the record is the same whenever it is written.
        let record = JobEntry { first_seen: DateTime::UNIX_EPOCH, ..entry.clone() };
        let seen_ms = entry.first_seen.min(tx.now()).timestamp_millis();
        named.push((entry.name.as_str(), row::json(&record).map_err(odd("jobs"))?, seen_ms));
    }
    for part in parts(&named, |(name, record, _)| name.len() + record.len()) {
        let part = row::json(&part).map_err(odd("jobs"))?;
        tx.execute(tx.texts().jobs_register, values![scope.namespace.as_str(), part]).await?;
    }
    jobs(tx, scope).await
}

/// Bytes of entries in one statement: a server may take a mebibyte (`max_allowed_packet`), and each quote is escaped.
const STATEMENT: usize = 256 * 1_024;

/// The entries in parts of so many bytes; one that is larger is a part of its own.
fn parts<T>(entries: &[T], size: impl Fn(&T) -> usize) -> Vec<&[T]> {
    let (mut parts, mut begin, mut bytes) = (Vec::new(), 0, 0);
    for (index, entry) in entries.iter().enumerate() {
        let size = size(entry);
        if begin < index && bytes + size > STATEMENT {
            parts.extend(entries.get(begin..index));
            (begin, bytes) = (index, 0);
        }
        bytes += size;
    }
    parts.extend(entries.get(begin..).filter(|rest| !rest.is_empty()));
    parts
}

pub(super) async fn jobs<S: Session>(tx: &mut S, scope: &Scope) -> Result<Vec<JobEntry>, SqlFault> {
    let rows = tx.fetch(tx.texts().jobs, values![scope.namespace.as_str()]).await?;
    let decode = |found: &S::Row| {
        let first_seen = row::there(row::instant(found, "first_seen_ms")?, "first_seen_ms")?;
        let entry: JobEntry = row::there(row::record(found, "entry")?, "entry")?;
        Ok(JobEntry { first_seen, ..entry })
    };
    rows.iter().map(decode).collect::<Result<_, _>>().map_err(odd("jobs"))
}

pub(super) async fn heartbeat<S: Session>(
    tx: &mut S,
    scope: &Scope,
    report: &NodeReport,
) -> Result<HeartbeatReply, SqlFault> {
    let now = tx.now();
    let namespace = scope.namespace.as_str();
    tx.execute(tx.texts().nodes_forget, values![namespace, scope.oldest(now)]).await?;
    let known = tx.fetch(tx.texts().node_known, values![namespace, report.name.as_str()]).await?;
    let json = row::json(report).map_err(odd("nodes"))?;
    let values = values![namespace, report.name.as_str(), report.instance.as_str(), now, json];
    tx.execute(tx.texts().node_save, values).await?;
    Ok(HeartbeatReply { now, was_known: !known.is_empty() })
}

pub(super) async fn nodes<S: Session>(tx: &mut S, scope: &Scope) -> Result<(DateTime<Utc>, Vec<NodeEntry>), SqlFault> {
    let values = values![scope.namespace.as_str(), scope.oldest(tx.now())];
    let rows = tx.fetch(tx.texts().nodes, values).await?;
    let decode = |found: &S::Row| {
        let seen = row::there(row::instant(found, "seen_ms")?, "seen_ms")?;
        Ok(NodeEntry { report: row::there(row::record(found, "report")?, "report")?, seen })
    };
    let entries = rows.iter().map(decode).collect::<Result<_, _>>().map_err(odd("nodes"))?;
    Ok((tx.now(), entries))
}

/// Removes a batch of what is older than the retention; answers how many slots went.
pub(super) async fn purge<S: Session>(tx: &mut S, scope: &Scope) -> Result<u64, SqlFault> {
    purge_notes(tx, scope).await?;
    messages::purge(tx, scope).await?;
    let values = values![scope.namespace.as_str(), scope.oldest(tx.now()), tx.now(), PURGE_AT_ONCE];
    Ok(tx.execute(tx.texts().purge, values).await?)
}

/// Removes what a trial wrote.
pub(super) async fn forget<S: Session>(tx: &mut S, scope: &Scope, trial: &Trial) -> Result<(), SqlFault> {
    let (namespace, texts) = (scope.namespace.as_str(), tx.texts());
    let slots = [texts.trial_slots, texts.trial_notes].into_iter().filter(|_| !trial.slots.is_empty());
    let of_job = [texts.trial_jobs, texts.trial_pauses, texts.trial_latest, texts.trial_messages];
    let texts_of_job = of_job.into_iter().chain(slots);
    if let Some(job) = &trial.job {
        for text in texts_of_job {
            tx.execute(text, values![namespace, job.as_str()]).await?;
        }
    }
    if let Some(node) = &trial.node {
        tx.execute(texts.trial_nodes, values![namespace, node.as_str()]).await?;
    }
    if let Some(lock) = &trial.lock {
        tx.execute(texts.trial_locks, values![namespace, lock.as_str()]).await?;
    }
    Ok(())
}

/// Job and slot.
type Id = (String, String);

/// Keeps pages.
pub(super) async fn note<S: Session>(tx: &mut S, scope: &Scope, pages: &[(Slot, NotePage)]) -> Result<(), SqlFault> {
    for part in pages.chunks(AT_ONCE) {
        // By name: nodes that note on the same slots at the same time never wait for each other in a circle.
        let mut by_name = BTreeMap::new();
        for (slot, page) in part {
            let kept = tx.now().max(slot.end()).timestamp_millis();
            let named = (slot.job().as_str(), slot.key().to_string(), page.id.as_str());
            let record = row::json(page).map_err(odd("notes"))?;
            by_name.insert(named, (page.last.timestamp_millis(), kept, record));
        }
        let rows: Vec<_> =
            by_name.iter().map(|((job, slot, id), (last, kept, record))| (job, slot, id, last, kept, record)).collect();
        let rows = row::json(&rows).map_err(odd("notes"))?;
        tx.execute(tx.texts().notes_save, values![scope.namespace.as_str(), rows]).await?;
        trim(tx, scope, part).await?;
    }
    Ok(())
}

/// Removes the pages that are too many.
async fn trim<S: Session>(tx: &mut S, scope: &Scope, part: &[(Slot, NotePage)]) -> Result<(), SqlFault> {
    let mut slots: Vec<Slot> = part.iter().map(|(slot, _)| slot.clone()).collect();
    slots.sort();
    slots.dedup();
    let rows = tx.fetch(tx.texts().notes_there, values![scope.namespace.as_str(), asked(&slots)]).await?;
    let mut kept: BTreeMap<Id, Vec<(DateTime<Utc>, String, ())>> = BTreeMap::new();
    for found in &rows {
        let Some((id, last, page)) = place(found).map_err(odd("notes"))? else { continue };
        kept.entry(id).or_default().push((last, page, ()));
    }
    for ((job, slot), pages) in kept {
        for (page, ()) in NotePage::surplus(pages) {
            let named = values![scope.namespace.as_str(), job.as_str(), slot.as_str(), page];
            tx.execute(tx.texts().notes_forget, named).await?;
        }
    }
    Ok(())
}

/// The slot that a row's page is of, when its last note was made, and its name; none where one of them is NULL.
pub(super) fn place(found: &impl Columns) -> Result<Option<(Id, DateTime<Utc>, String)>, Why> {
    let id = row::text(found, "job")?.zip(row::text(found, "slot")?);
    let named = row::instant(found, "last_ms")?.zip(row::text(found, "page")?);
    Ok(id.zip(named).map(|(id, (last, page))| (id, last, page)))
}

/// The page of a row.
pub(super) fn page(found: &impl Columns) -> Result<NotePage, Why> {
    row::there(row::record(found, "record")?, "record")
}

/// A slot's pages.
pub(super) async fn notes<S: Session>(tx: &mut S, scope: &Scope, slot: &Slot) -> Result<Vec<NotePage>, SqlFault> {
    let named = [scope.slot(slot), values![scope.oldest(tx.now())]].concat();
    let rows = tx.fetch(tx.texts().notes_read, named).await?;
    let mut pages: Vec<NotePage> = rows.iter().map(page).collect::<Result<_, _>>().map_err(odd("notes"))?;
    NotePage::sort(&mut pages);
    Ok(pages)
}

/// Removes a batch of those that are older than the retention.
async fn purge_notes<S: Session>(tx: &mut S, scope: &Scope) -> Result<(), SqlFault> {
    let values = values![scope.namespace.as_str(), scope.oldest(tx.now()), PAGES_AT_ONCE];
    tx.execute(tx.texts().notes_purge, values).await.map(drop)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registration_goes_in_parts_that_a_server_takes() {
        let sizes = |entries: &[usize]| parts(entries, |size| *size).iter().map(|part| part.len()).collect::<Vec<_>>();
        assert_eq!(sizes(&[]), [0; 0]);
        assert_eq!(sizes(&[400; 1_000]), [655, 345]);
        assert_eq!(sizes(&[9, STATEMENT + 1, 9, 9]), [1, 1, 2]);
    }
}
