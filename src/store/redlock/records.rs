//! What the masters keep, put together.
//!
//! - One slot's record: knowledge adds up, the larger counter, an end over none, success over any other end. What only a minority
//!   has of a lease is none.
//! - Jobs, nodes, pauses, notes and what a job has come to lately: whatever any of them knows, the newest of it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::job::{JobName, NodeName};
use crate::slot::{
    Attempt, DoneMark, Holder, JobLatest, MOST_PAGES, Mark, NotePage, Outcome, RunRecord, SlotRecord, Token, Verdict,
    VerdictRecord,
};
use crate::store::redlock::{Quorum, lasting, median};
use crate::store::{JobEntry, NodeEntry, Pause};

/// What is known of the slot; none when too few masters answered.
pub fn merge(quorum: Quorum, records: &[Option<SlotRecord>]) -> Option<SlotRecord> {
    let heard: Vec<&SlotRecord> = records.iter().flatten().collect();
    let first = heard.first().filter(|_| heard.len() >= quorum.majority())?;
    let known = Known::of(&heard);
    Some(SlotRecord {
        slot: first.slot.clone(),
        attempts: heard.iter().map(|record| record.attempts).max().unwrap_or(0),
        forgiven: heard.iter().map(|record| record.forgiven).max().unwrap_or(0),
        mark: mark(quorum, &heard, &known),
        verdict: verdict(quorum, &heard, &known),
        runs: runs(&heard),
        audit: heard.iter().map(|record| &record.audit).max_by_key(|audit| audit.len()).cloned().unwrap_or_default(),
    })
}

/// Which resets there were. What a master that missed one still has from before is no longer true.
struct Known {
    resets: usize,
    last: Option<DateTime<Utc>>,
}

impl Known {
    fn of(heard: &[&SlotRecord]) -> Self {
        let best = heard.iter().copied().max_by_key(|record| resets(record));
        let last = best
            .and_then(|record| record.audit.iter().filter(|audit| audit.verb == "reset").map(|audit| audit.at).max());
        Self { resets: best.map_or(0, resets), last }
    }

    fn holds(&self, record: &SlotRecord, at: DateTime<Utc>) -> bool {
        resets(record) == self.resets || self.last.is_none_or(|last| at >= last)
    }
}

fn resets(record: &SlotRecord) -> usize {
    record.audit.iter().filter(|audit| audit.verb == "reset").count()
}

fn mark(quorum: Quorum, heard: &[&SlotRecord], known: &Known) -> Mark {
    let done = heard.iter().filter_map(|record| match &record.mark {
        Mark::Done(mark) => Some(mark).filter(|mark| known.holds(record, mark.at)),
        _ => None,
    });
    if let Some(mark) = first_done(quorum, &done.collect::<Vec<_>>()) {
        return Mark::Done(mark);
    }
    leased(quorum, heard).or_else(|| waiting(quorum, heard)).unwrap_or(Mark::Free)
}

/// The marker that a majority has, else the oldest; each master wrote it at a time of its own.
fn first_done(quorum: Quorum, marks: &[&DoneMark]) -> Option<DoneMark> {
    let count = |by: &Holder| marks.iter().filter(|mark| mark.by == *by).count();
    let key = |mark: &&&DoneMark| (count(&mark.by) < quorum.majority(), mark.at, mark.by.attempt);
    marks.iter().min_by_key(key).map(|mark| (*mark).clone())
}

fn leased(quorum: Quorum, heard: &[&SlotRecord]) -> Option<Mark> {
    let mut leases: BTreeMap<Token, (&Holder, Vec<std::time::Duration>)> = BTreeMap::new();
    for record in heard {
        // A reservation is no lease.
        if let Mark::Leased { by, token, remaining } = &record.mark
            && by.attempt > 0
        {
            let lease = leases.entry(*token).or_insert_with(|| (by, Vec::new()));
            lease.0 = if by.attempt > lease.0.attempt { by } else { lease.0 };
            lease.1.push(*remaining);
        }
    }
    let real = leases.into_iter().filter(|(_, (_, left))| quorum.may_hold(left.len(), heard.len()));
    let (token, (by, left)) = real.max_by_key(|(_, (by, _))| by.attempt)?;
    Some(Mark::Leased { by: by.clone(), token, remaining: lasting(quorum, left) })
}

fn waiting(quorum: Quorum, heard: &[&SlotRecord]) -> Option<Mark> {
    let waits: Vec<_> = heard
        .iter()
        .filter_map(|record| match &record.mark {
            Mark::Backoff { by, remaining } => Some((by, *remaining)),
            _ => None,
        })
        .collect();
    let (by, _) = waits.iter().max_by_key(|(by, _)| by.attempt)?;
    let left: Vec<_> = waits.iter().map(|(_, left)| *left).collect();
    quorum
        .may_hold(left.len(), heard.len())
        .then(|| Mark::Backoff { by: (*by).clone(), remaining: lasting(quorum, left) })
}

fn verdict(quorum: Quorum, heard: &[&SlotRecord], known: &Known) -> Option<VerdictRecord> {
    let verdicts =
        heard.iter().filter_map(|record| record.verdict.as_ref().filter(|verdict| known.holds(record, verdict.at)));
    let verdicts: Vec<&VerdictRecord> = verdicts.collect();
    let count = |one: &VerdictRecord| {
        let same = |other: &&&VerdictRecord| (other.verdict, &other.by) == (one.verdict, &one.by);
        verdicts.iter().filter(same).count()
    };
    let key =
        |one: &&&VerdictRecord| (one.verdict != Verdict::Done, count(one) < quorum.majority(), one.at, one.attempt);
    verdicts.iter().min_by_key(key).map(|verdict| (*verdict).clone())
}

fn runs(heard: &[&SlotRecord]) -> Vec<RunRecord> {
    let mut runs: BTreeMap<(Attempt, Token), &RunRecord> = BTreeMap::new();
    for run in heard.iter().flat_map(|record| &record.runs) {
        // What `unlock` makes of a reservation.
        if run.attempt == 0 && run.outcome == Some(Outcome::LostLease) {
            continue;
        }
        let best = runs.entry((run.attempt, run.token)).or_insert(run);
        if weight(run.outcome) > weight(best.outcome) {
            *best = run;
        }
    }
    let mut runs: Vec<RunRecord> = runs.into_values().cloned().collect();
    runs.sort_by_key(|run| (run.attempt, run.claimed_at, run.token));
    runs
}

/// What is told of a run by its node says more than that it was unlocked.
const fn weight(outcome: Option<Outcome>) -> u8 {
    match outcome {
        None => 0,
        Some(Outcome::LostLease) => 1,
        Some(Outcome::Success) => 3,
        Some(_) => 2,
    }
}

/// Every job that any master knows, first seen when the first of them saw it.
pub fn jobs(known: &[Option<Vec<JobEntry>>]) -> Vec<JobEntry> {
    let mut jobs: BTreeMap<&JobName, Vec<&JobEntry>> = BTreeMap::new();
    for job in known.iter().flatten().flatten() {
        jobs.entry(&job.name).or_default().push(job);
    }
    jobs.into_values().filter_map(|entries| job(&entries)).collect()
}

/// As most masters have it; a master that missed the last registration has the one before. What a file's daemon said is kept
/// against what came from elsewhere, as each master keeps it.
fn job(entries: &[&JobEntry]) -> Option<JobEntry> {
    let first_seen = entries.iter().map(|entry| entry.first_seen).min()?;
    let is_kept = |entry: &&&JobEntry| !entries.iter().any(|other| entry.yields_to(other));
    let entries: Vec<&JobEntry> = entries.iter().filter(is_kept).copied().collect();
    let bare = |entry: &JobEntry| JobEntry { first_seen, ..entry.clone() };
    let count = |entry: &JobEntry| entries.iter().filter(|other| bare(other) == bare(entry)).count();
    // Of equals the first: `max_by_key` would take the last.
    entries.iter().rev().max_by_key(|entry| count(entry)).map(|entry| bare(entry))
}

/// Every node that any master knows, by its newest report.
pub fn nodes(known: &[Option<Vec<NodeEntry>>]) -> Vec<NodeEntry> {
    let mut nodes: BTreeMap<&NodeName, Vec<&NodeEntry>> = BTreeMap::new();
    for node in known.iter().flatten().flatten() {
        nodes.entry(&node.report.name).or_default().push(node);
    }
    nodes.into_values().filter_map(|entries| node(&entries)).collect()
}

fn node(entries: &[&NodeEntry]) -> Option<NodeEntry> {
    let newest = entries.iter().max_by_key(|entry| entry.seen)?;
    let same = entries.iter().filter(|entry| entry.report == newest.report);
    Some(NodeEntry { report: newest.report.clone(), seen: median(same.map(|entry| entry.seen))? })
}

/// Every page that any master keeps, each as it was written last; the newest that a store keeps.
pub fn notes(known: &[Option<Vec<NotePage>>]) -> Vec<NotePage> {
    let mut pages: BTreeMap<&str, &NotePage> = BTreeMap::new();
    for page in known.iter().flatten().flatten() {
        let newest = pages.entry(&page.id).or_insert(page);
        if page.last > newest.last {
            *newest = page;
        }
    }
    let mut newest: Vec<NotePage> = pages.into_values().cloned().collect();
    newest.sort_by_key(|page| Reverse(page.last));
    newest.truncate(MOST_PAGES);
    NotePage::sort(&mut newest);
    newest
}

/// Every job's last pause, as the last verb left it.
pub fn pauses(known: &[Option<Vec<(JobName, Pause)>>]) -> Vec<(JobName, Pause)> {
    let mut pauses: BTreeMap<&JobName, &Pause> = BTreeMap::new();
    for (job, pause) in known.iter().flatten().flatten() {
        let last = pauses.entry(job).or_insert(pause);
        if pause.last().at > last.last().at {
            *last = pause;
        }
    }
    pauses.into_iter().map(|(job, pause)| (job.clone(), pause.clone())).collect()
}

/// What each of so many jobs has come to lately, in the order asked.
pub fn latest(jobs: usize, known: &[Option<Vec<JobLatest>>]) -> Vec<JobLatest> {
    let of_job = |index| known.iter().flatten().filter_map(move |of_jobs| of_jobs.get(index));
    (0..jobs).map(|index| latest_of(&of_job(index).collect::<Vec<_>>())).collect()
}

fn latest_of(known: &[&JobLatest]) -> JobLatest {
    let successes = known.iter().filter_map(|latest| latest.success);
    // The first to record that a slot is done stays, at each master and here.
    let success = successes.max_by_key(|success| (success.slot, Reverse(success.at)));
    let end = known.iter().filter_map(|latest| latest.end).max_by_key(|end| end.at);
    let failing = known.iter().filter_map(|latest| {
        let mut latest = JobLatest { success: None, end: None, ..(*latest).clone() };
        // A master that missed the success still counts what failed before it.
        if let Some(success) = success {
            latest.done(success.slot, success.at);
        }
        latest.failing
    });
    JobLatest { success, end, failing: failing.max_by_key(|failing| (failing.last, failing.slots)) }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta};

    use super::*;
    use crate::slot::SlotKey;
    use crate::store::JobOrigin;

    fn entry(origin: JobOrigin, max_attempts: u32, seen: i64) -> Option<Vec<JobEntry>> {
        Some(vec![JobEntry {
            name: JobName::new("push").unwrap(),
            schedule: "0 * * * *".to_owned(),
            timezone: "UTC".to_owned(),
            period: "hour".to_owned(),
            max_attempts,
            enabled: true,
            planned: None,
            command: None,
            origin,
            first_seen: DateTime::UNIX_EPOCH + TimeDelta::seconds(seen),
        }])
    }

    #[test]
    fn a_job_is_as_most_have_it_and_a_files_word_stands_against_any_number_of_others() {
        let (file, crontab) = (JobOrigin::File, JobOrigin::Crontab);
        let known = [entry(file, 3, 3), entry(file, 9, 2), entry(file, 9, 4)];
        assert_eq!(jobs(&known), entry(file, 9, 2).unwrap());
        let known = [entry(crontab, 3, 1), None, entry(file, 9, 2), entry(crontab, 3, 5)];
        assert_eq!(jobs(&known), entry(file, 9, 1).unwrap());
    }

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(second)
    }

    fn hour(hour: i64) -> SlotKey {
        SlotKey::of(at(hour * 3_600)).unwrap()
    }

    /// What a master keeps that was told of these slots, by hour: what each came to, in the order told, a second after the other.
    fn kept(told: &[(i64, Verdict)]) -> JobLatest {
        let mut latest = JobLatest::default();
        for (second, (slot, verdict)) in told.iter().enumerate() {
            let (slot, at) = (hour(*slot), at(i64::try_from(second).unwrap()));
            match verdict {
                Verdict::Done => {
                    latest.ended(slot, at, Outcome::Success);
                    latest.done(slot, at);
                }
                verdict => {
                    latest.ended(slot, at, Outcome::Failure);
                    latest.closed(slot, *verdict);
                }
            }
        }
        latest
    }

    fn merged(known: &[&[(i64, Verdict)]]) -> JobLatest {
        let known: Vec<_> = known.iter().map(|told| Some(vec![kept(told)])).collect();
        latest(1, &known).remove(0)
    }

    /// First and newest hour of what fails, and how many.
    fn failing(latest: &JobLatest) -> Option<(SlotKey, SlotKey, u32)> {
        latest.failing.map(|failing| (failing.since, failing.last, failing.slots))
    }

    #[test]
    fn masters_that_were_told_the_same_say_the_same_and_silent_ones_nothing() {
        let told: &[_] = &[(1, Verdict::Done), (2, Verdict::Failed), (3, Verdict::Missed)];
        assert_eq!(merged(&[told, told, told]), kept(told));
        let known = [Some(vec![kept(told), JobLatest::default()]), None, Some(vec![JobLatest::default(), kept(told)])];
        assert_eq!(latest(2, &known), [kept(told), kept(told)]);
        assert_eq!(latest(1, &[]), [JobLatest::default()]);
    }

    #[test]
    fn the_newest_success_and_the_newest_end_count_wherever_they_are_known() {
        let merged = merged(&[&[(5, Verdict::Done)], &[(1, Verdict::Done), (2, Verdict::Failed)], &[]]);
        assert_eq!(merged.success.map(|success| success.slot), Some(hour(5)));
        assert_eq!(merged.end.map(|end| (end.slot, end.outcome)), Some((hour(2), Outcome::Failure)));
        assert_eq!(failing(&merged), None, "a newer slot is done");
    }

    #[test]
    fn of_what_fails_the_newest_counts_and_of_those_the_longest_row() {
        let bad = Verdict::Failed;
        let longest: &[_] = &[(1, bad), (2, bad), (4, bad)];
        let merged_row = merged(&[&[(4, bad)], longest, &[(1, bad), (2, bad), (3, bad)]]);
        assert_eq!(failing(&merged_row), Some((hour(1), hour(4), 3)));
        let newer = merged(&[&[(5, Verdict::Missed)], longest, longest]);
        assert_eq!(failing(&newer), Some((hour(5), hour(5), 1)));
    }

    #[test]
    fn a_master_that_missed_a_success_does_not_make_the_row_longer_than_since_then() {
        let bad = Verdict::Failed;
        let told = [(1, bad), (2, Verdict::Done), (3, bad), (4, bad)];
        let missed = [(1, bad), (3, bad), (4, bad)];
        assert_eq!(failing(&merged(&[&told, &told, &missed])), Some((hour(3), hour(4), 2)));
        let only_success = [(2, Verdict::Done)];
        assert_eq!(failing(&merged(&[&only_success, &missed])), Some((hour(4), hour(4), 1)));
    }
}
