//! Whether live nodes define a job differently than this one: a deployment that has not reached every node, or two clusters in one
//! namespace. Pure.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use crate::job::{JobName, NodeName};
use crate::store::{NodeEntry, NodeReport};

/// Jobs of each other node that differ.
type Differences = BTreeMap<NodeName, BTreeSet<JobName>>;

/// The most names of one message.
const MOST: usize = 5;

/// What was seen of other nodes. A deployment lasts for a while, so a difference counts once two looks in a row have seen it.
#[derive(Debug, Default)]
pub(super) struct DefinitionDrift {
    seen: Differences,
    reported: Differences,
}

/// What is worth a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DriftReport {
    pub(super) nodes: String,
    pub(super) jobs: String,
}

impl DefinitionDrift {
    /// Looks at the registry. Answers what differs for longer than one look and was not reported yet.
    pub(super) fn look(&mut self, own: &NodeReport, nodes: &[NodeEntry], now: DateTime<Utc>) -> Option<DriftReport> {
        let found = differences(own, nodes, now);
        let before = std::mem::replace(&mut self.seen, found);
        let lasting = common(&self.seen, &before);
        // What has ended and begins again is reported again.
        self.reported = common(&self.reported, &self.seen);
        if common(&lasting, &self.reported) == lasting {
            return None;
        }
        self.reported.clone_from(&lasting);
        let jobs: BTreeSet<&JobName> = lasting.values().flatten().collect();
        Some(DriftReport { nodes: few(lasting.keys()), jobs: few(jobs) })
    }
}

/// Jobs that a live node and this one both have, with different definitions.
fn differences(own: &NodeReport, nodes: &[NodeEntry], now: DateTime<Utc>) -> Differences {
    let others = nodes.iter().filter(|entry| entry.report.name != own.name && entry.is_alive(now));
    let differing = |report: &NodeReport| {
        let differs = |(job, hash): &(&JobName, &String)| report.hash_of(job).is_some_and(|other| other != *hash);
        own.job_hashes.iter().filter(differs).map(|(job, _)| job.clone()).collect::<BTreeSet<_>>()
    };
    let found = others.map(|entry| (entry.report.name.clone(), differing(&entry.report)));
    found.filter(|(_, jobs)| !jobs.is_empty()).collect()
}

fn common(one: &Differences, other: &Differences) -> Differences {
    let both = |(node, jobs): (&NodeName, &BTreeSet<JobName>)| {
        let jobs: BTreeSet<_> = jobs.intersection(other.get(node)?).cloned().collect();
        (!jobs.is_empty()).then(|| (node.clone(), jobs))
    };
    one.iter().filter_map(both).collect()
}

/// Some of the names, and how many more there are.
fn few<T: ToString>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
    let shown = names.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-11-21T12:00:00Z";

    fn entry(name: &str, jobs: &[(&str, &str)], seen: &str) -> NodeEntry {
        let job = |(name, hash): &(&str, &str)| (JobName::new(name).unwrap(), (*hash).to_owned());
        let mut report = NodeReport::new(NodeName::new(name).unwrap(), "i", NOW.parse().unwrap());
        report.job_hashes = jobs.iter().map(job).collect();
        NodeEntry { report, seen: seen.parse().unwrap() }
    }

    fn looks(drift: &mut DefinitionDrift, other: &NodeEntry) -> Option<(String, String)> {
        let own = entry("own", &[("a", "1"), ("b", "1"), ("own-only", "1")], NOW);
        let nodes = [own.clone(), other.clone()];
        let found = drift.look(&own.report, &nodes, NOW.parse().unwrap());
        found.map(|report| (report.nodes, report.jobs))
    }

    #[test]
    fn a_definition_that_differs_at_two_looks_in_a_row_is_reported_once() {
        let mut drift = DefinitionDrift::default();
        let other = entry("staging", &[("a", "2"), ("b", "1"), ("other-only", "1")], NOW);
        assert_eq!(looks(&mut drift, &other), None, "a deployment may be under way");
        assert_eq!(looks(&mut drift, &other), Some(("staging".to_owned(), "a".to_owned())));
        assert_eq!(looks(&mut drift, &other), None);
        let more = entry("staging", &[("a", "2"), ("b", "2")], NOW);
        assert_eq!(looks(&mut drift, &more), None);
        assert_eq!(looks(&mut drift, &more), Some(("staging".to_owned(), "a, b".to_owned())));
    }

    #[test]
    fn a_deployment_that_is_over_by_the_next_look_is_not_reported_and_a_difference_that_comes_back_is() {
        let mut drift = DefinitionDrift::default();
        let (other, same) = (entry("n", &[("a", "2")], NOW), entry("n", &[("a", "1")], NOW));
        for node in [&other, &same, &other, &same] {
            assert_eq!(looks(&mut drift, node), None);
        }
        for _ in 0..2 {
            assert_eq!(looks(&mut drift, &other), None);
            assert!(looks(&mut drift, &other).is_some());
            assert_eq!(looks(&mut drift, &same), None);
        }
    }

    #[test]
    fn a_node_that_is_gone_and_jobs_that_one_side_lacks_are_no_difference() {
        let mut drift = DefinitionDrift::default();
        for other in [entry("gone", &[("a", "2")], "2026-11-20T12:00:00Z"), entry("n", &[("other", "2")], NOW)] {
            for _ in 0..3 {
                assert_eq!(looks(&mut drift, &other), None);
            }
        }
    }

    #[test]
    fn a_message_has_a_bounded_number_of_names() {
        let jobs: Vec<String> = (0..9).map(|n| format!("j{n}")).collect();
        assert_eq!(few(&jobs), "j0, j1, j2, j3, j4 and 4 more");
    }
}
