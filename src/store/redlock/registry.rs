//! Jobs, nodes, pauses and notes from the masters: whatever any of them knows, the newest of it.

use std::collections::BTreeMap;

use crate::job::{JobName, NodeName};
use crate::slot::{MOST_PAGES, NotePage};
use crate::store::redlock::quorum::median;
use crate::store::{JobEntry, NodeEntry, Pause};

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
    newest.sort_by_key(|page| std::cmp::Reverse(page.last));
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

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta};

    use super::*;
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
}
