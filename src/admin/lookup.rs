//! How a person names a slot: `billing@2026-11-21T14Z`, `billing` for the current one, `billing@-1` for the previous one; and from there to
//! the slot and its record.

use std::str::FromStr;
use std::time::Duration;

use crate::admin::{AdminError, AdminSession, KnownJob, UnknownTarget};
use crate::job::{JobName, NameError};
use crate::slot::{Slot, SlotKey, SlotKeyError, SlotRecord};

/// The farthest that `J@-n` goes back; beyond it a key is clearer.
pub(crate) const FARTHEST: usize = 1_000;

/// A slot as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlotRef {
    /// The job.
    pub(crate) job: JobName,
    /// Which of its slots.
    which: Which,
}

/// Which slot of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    /// The current one.
    Current,
    /// So many before the current one; at least 1.
    Back(usize),
    /// The one with this key.
    Key(SlotKey),
}

/// A text that names no slot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SlotRefError {
    /// The name of the job breaks its rule.
    #[error(transparent)]
    Job(#[from] NameError),
    /// What follows the @ is no key.
    #[error("{0}, or @-1 for the previous slot")]
    Key(#[from] SlotKeyError),
    /// What follows the @ is no distance.
    #[error("{0:?} is not a slot: write @-1 for the previous slot, up to @-{FARTHEST}")]
    Distance(String),
}

impl FromStr for SlotRef {
    type Err = SlotRefError;

    fn from_str(text: &str) -> Result<Self, SlotRefError> {
        let (job, which) = match text.split_once('@') {
            None => (text, Which::Current),
            Some((job, which)) => (job, which_of(which)?),
        };
        Ok(Self { job: JobName::new(job)?, which })
    }
}

fn which_of(text: &str) -> Result<Which, SlotRefError> {
    let Some(back) = text.strip_prefix('-') else { return Ok(Which::Key(text.parse()?)) };
    match back.parse() {
        Ok(steps @ 1..=FARTHEST) if back.bytes().all(|byte| byte.is_ascii_digit()) => Ok(Which::Back(steps)),
        _ => Err(SlotRefError::Distance(text.to_owned())),
    }
}

/// How far `J@-n` looks for slots: the longest gap of a yearly job, with room.
const HORIZON: Duration = Duration::from_secs(5 * 366 * 86_400);

/// The job and the record of the slot that a reference names.
pub(crate) async fn find<'a>(
    session: &'a AdminSession,
    wanted: &SlotRef,
) -> Result<(&'a KnownJob, SlotRecord), AdminError> {
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
async fn current(session: &AdminSession, job: &KnownJob) -> Result<SlotRecord, AdminError> {
    let records = session.inspect(&job.current(session.now)).await?;
    choose(records).ok_or_else(|| UnknownTarget::FirstSlot(job.entry.name.clone()).into())
}

/// Which of the records of [`KnownJob::current`] is the current slot's: the first that anything happened in, else the
/// last, which had a tick.
pub(crate) fn choose(records: Vec<SlotRecord>) -> Option<SlotRecord> {
    let last = records.len().saturating_sub(1);
    records
        .into_iter()
        .enumerate()
        .find(|(index, record)| *index == last || record.is_touched())
        .map(|(_, record)| record)
}

async fn one(session: &AdminSession, slot: Slot) -> Result<SlotRecord, AdminError> {
    let missing = || AdminError::Internal(format!("{} answered nothing for {slot}", session.store.location()));
    session.inspect(std::slice::from_ref(&slot)).await?.pop().ok_or_else(missing)
}

/// The slot with a key; when none starts there, the error names the one that contains the instant.
fn with_key(job: &KnownJob, key: SlotKey) -> Result<Slot, AdminError> {
    if let Some(slot) = job.timetable.slot_with_key(key) {
        return Ok(slot);
    }
    let (job, within) = (job.entry.name.clone(), job.timetable.slot_at(key.start()));
    Err(UnknownTarget::Slot { job, key, within }.into())
}

fn back(job: &KnownJob, newest: &Slot, steps: usize) -> Result<Slot, AdminError> {
    let mut older = job.timetable.older(newest, HORIZON, steps);
    let found = older.len();
    older.pop().filter(|_| found == steps).ok_or_else(|| {
        UnknownTarget::OldSlot { job: job.entry.name.clone(), steps, found, newest: newest.clone() }.into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::admin::fixture::Scene;

    fn which(text: &str) -> Result<Which, SlotRefError> {
        text.parse::<SlotRef>().map(|slot| slot.which)
    }

    #[test]
    fn a_slot_is_named_by_its_key_by_its_distance_or_not_at_all() {
        let key: SlotKey = "2026-11-21T14Z".parse().unwrap();
        assert_eq!(which("billing@2026-11-21T14Z"), Ok(Which::Key(key)));
        assert_eq!(which("billing"), Ok(Which::Current));
        assert_eq!(which("billing@-1"), Ok(Which::Back(1)));
        assert_eq!(which("billing@-1000"), Ok(Which::Back(1_000)));
    }

    #[test]
    fn what_names_no_slot_is_refused_with_an_example() {
        for (text, hint) in [
            ("Billing", "a-z"),
            ("", "1 to 52"),
            ("billing@", "2026-11-21T14Z"),
            ("billing@14", "2026-11-21T14Z"),
            ("billing@2026-11-21T14:00Z", "leave out"),
            ("billing@-0", "@-1"),
            ("billing@-", "@-1"),
            ("billing@-+1", "@-1"),
            ("billing@-1001", "@-1"),
            ("billing@2026-11-21T14Z@", "2026-11-21T14Z"),
        ] {
            let error = which(text).unwrap_err().to_string();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }

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
            "no slot of billing starts at 2026-11-21T12:10Z: that time lies in billing@2026-11-21T12Z"
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
