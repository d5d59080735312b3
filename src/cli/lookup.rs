//! From what a person typed to a slot and its record.

use std::time::Duration;

use crate::cli::catalog::KnownJob;
use crate::cli::failure::Failure;
use crate::cli::reference::{SlotRef, Which};
use crate::cli::session::Session;
use crate::slot::{Mark, Slot, SlotKey, SlotRecord};

/// How far `J@-n` looks for slots: the longest gap of a yearly job, with room.
const HORIZON: Duration = Duration::from_secs(5 * 366 * 86_400);

/// The job and the record of the slot that a reference names.
pub(crate) async fn find<'a>(session: &'a Session, wanted: &SlotRef) -> Result<(&'a KnownJob, SlotRecord), Failure> {
    let job = session.catalog.find(&wanted.job)?;
    let record = match wanted.which {
        Which::Key(key) => one(session, with_key(job, key)?).await?,
        Which::Current => current(session, job).await?,
        Which::Back(steps) => {
            let newest = current(session, job).await?.slot;
            one(session, back(job, &newest, steps)?).await?
        }
    };
    Ok((job, record))
}

/// The record of a job's current slot.
async fn current(session: &Session, job: &KnownJob) -> Result<SlotRecord, Failure> {
    let records = session.inspect(&job.current(session.now)).await?;
    choose(records)
        .ok_or_else(|| Failure::Usage(format!("job {} has no slot yet: it has never ticked", job.entry.name)))
}

/// Which of the records of [`KnownJob::current`] is the current slot's: the first that anything happened in, else the
/// last, which had a tick.
pub(crate) fn choose(records: Vec<SlotRecord>) -> Option<SlotRecord> {
    let last = records.len().saturating_sub(1);
    records
        .into_iter()
        .enumerate()
        .find(|(index, record)| *index == last || is_touched(record))
        .map(|(_, record)| record)
}

/// Whether anything ever happened in the slot.
pub(crate) fn is_touched(record: &SlotRecord) -> bool {
    record.attempts > 0 || record.mark != Mark::Free || record.verdict.is_some() || !record.audit.is_empty()
}

async fn one(session: &Session, slot: Slot) -> Result<SlotRecord, Failure> {
    let missing = || Failure::Internal(format!("{} answered nothing for {slot}", session.store.location()));
    session.inspect(std::slice::from_ref(&slot)).await?.pop().ok_or_else(missing)
}

/// The slot with a key; when none starts there, the error names the one that contains the instant.
fn with_key(job: &KnownJob, key: SlotKey) -> Result<Slot, Failure> {
    if let Some(slot) = job.timetable.slot_with_key(key) {
        return Ok(slot);
    }
    let name = &job.entry.name;
    Err(Failure::Usage(match job.timetable.slot_at(key.start()) {
        Some(slot) => format!("no slot of {name} starts at {key}: that instant lies in {slot}"),
        None => format!("no slot of {name} starts at {key}, and none contains it"),
    }))
}

fn back(job: &KnownJob, newest: &Slot, steps: usize) -> Result<Slot, Failure> {
    let mut older = job.timetable.older(newest, HORIZON, steps);
    let found = older.len();
    older.pop().filter(|_| found == steps).ok_or_else(|| {
        Failure::Usage(format!("{}@-{steps} names no slot: only {found} come before {newest}", job.entry.name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::scene::Scene;

    fn record(start: &str, end: &str) -> SlotRecord {
        SlotRecord::untouched(Slot::parse("a", start, end).unwrap())
    }

    async fn found(scene: &Scene, text: &str) -> Result<String, String> {
        let session = scene.session().await;
        let found = find(&session, &text.parse().unwrap()).await;
        found.map(|(_, record)| record.slot.to_string()).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_slot_is_found_by_its_key_as_the_current_one_and_by_its_distance() {
        let scene = Scene::at("2026-11-21T12:10:00Z");
        scene.register("billing", "0 * * * *").await;
        for (text, slot) in [
            ("billing", "billing@2026-11-21T12Z"),
            ("billing@-1", "billing@2026-11-21T11Z"),
            ("billing@-13", "billing@2026-11-20T23Z"),
            ("billing@2026-11-21T14Z", "billing@2026-11-21T14Z"),
        ] {
            assert_eq!(found(&scene, text).await.as_deref(), Ok(slot));
        }
    }

    #[tokio::test]
    async fn distances_count_slots_that_have_a_tick_from_the_current_one() {
        let mut scene = Scene::at("2026-11-21T12:10:00Z");
        scene.register("billing", "0 3 * * *").await;
        assert_eq!(found(&scene, "billing").await.as_deref(), Ok("billing@2026-11-21T03Z"));
        assert_eq!(found(&scene, "billing@-1").await.as_deref(), Ok("billing@2026-11-20T03Z"));
        scene.fail("billing", "a").await;
        assert_eq!(found(&scene, "billing").await.as_deref(), Ok("billing@2026-11-21T12Z"));
        assert_eq!(found(&scene, "billing@-1").await.as_deref(), Ok("billing@2026-11-21T03Z"));
    }

    #[tokio::test]
    async fn a_key_that_is_no_slots_start_is_answered_with_the_slot_around_it() {
        let scene = Scene::at("2026-11-21T12:10:00Z");
        scene.register("billing", "*/10 * * * *").await;
        assert_eq!(
            found(&scene, "billing@2026-11-21T12:10Z").await.unwrap_err(),
            "no slot of billing starts at 2026-11-21T12:10Z: that instant lies in billing@2026-11-21T12Z"
        );
    }

    #[test]
    fn the_current_slot_is_that_of_now_once_anything_happened_in_it() {
        let of_now = record("2026-11-21T14Z", "2026-11-21T15Z");
        let last = record("2026-11-21T03Z", "2026-11-21T04Z");
        assert_eq!(choose(vec![of_now.clone(), last.clone()]), Some(last.clone()));
        let triggered = SlotRecord { attempts: 1, ..of_now.clone() };
        assert_eq!(choose(vec![triggered.clone(), last]), Some(triggered));
        assert_eq!(choose(vec![of_now.clone()]), Some(of_now));
        assert_eq!(choose(vec![]), None);
    }
}
