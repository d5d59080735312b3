//! The JSON of records as stores hold them, and what is made of it for people.

use std::fmt::Debug;

use chrono::TimeDelta;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{NOON, is_one_line};
use crate::observe::view::SlotView;
use crate::schedule::Timetable;
use crate::slot::{Audit, RunRecord, Slot, SlotRecord, VerdictRecord};
use crate::store::{JobEntry, NodeReport};

/// One record, of whichever kind it can be.
pub fn stored_record(bytes: &[u8]) -> bool {
    let run = reads_back::<RunRecord>(bytes);
    let verdict = reads_back::<VerdictRecord>(bytes);
    let audit = reads_back::<Audit>(bytes);
    let job = reads_back::<JobEntry>(bytes);
    let node = reads_back::<NodeReport>(bytes);
    let accepted = run.is_some() || verdict.is_some() || audit.is_some() || job.is_some() || node.is_some();
    if let Some(job) = &job {
        is_planned(job);
    }
    is_shown(run, verdict, audit);
    accepted
}

fn reads_back<T: DeserializeOwned + Serialize + PartialEq + Debug>(bytes: &[u8]) -> Option<T> {
    let value: T = serde_json::from_slice(bytes).ok()?;
    let written = serde_json::to_string(&value).unwrap_or_default();
    assert_eq!(serde_json::from_str::<T>(&written).ok().as_ref(), Some(&value), "{written}");
    Some(value)
}

/// A job that somebody else registered: its slots are looked for by every command that lists them.
fn is_planned(job: &JobEntry) {
    match Timetable::parse(job.name.clone(), &job.schedule, &job.timezone, &job.period) {
        Ok(table) => {
            let current = table.slot_at(NOON);
            assert!(current.iter().all(|slot| slot.start() <= NOON && NOON < slot.end()));
            let slots: Vec<_> = table.slots(NOON - TimeDelta::days(1), NOON).take(3).collect();
            assert!(slots.iter().all(|(slot, tick)| slot.start() <= *tick && *tick < slot.end()));
            let _ = table.slot_at(job.first_seen);
            let _ = current.map(|slot| table.older(&slot, std::time::Duration::from_secs(3_600), 3));
        }
        Err(error) => is_one_line(&error.to_string()),
    }
}

fn is_shown(run: Option<RunRecord>, verdict: Option<VerdictRecord>, audit: Option<Audit>) {
    let Ok(slot) = Slot::parse("a", "2026-11-21T12Z", "2026-11-21T13Z") else { return };
    let mut record = SlotRecord::untouched(slot);
    record.attempts = run.as_ref().map_or(0, |run| run.attempt);
    record.runs.extend(run);
    record.audit.extend(audit);
    record.verdict = verdict;
    let view = SlotView::of(&record, NOON, 3);
    assert!(serde_json::to_string(&view).is_ok());
}
