//! What the nodes of the cluster had closed before this one came. Pure.
//!
//! A node that is alive closes the slots of every job in its file (L2), and tells with each heartbeat where it is behind.
//! So the entries of the registry, those of dead nodes among them, say for each job up to when its slots have their
//! verdicts; who comes next goes on from there. The entries are read before the first own heartbeat, which would take the
//! place of this name's earlier one.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::between;
use crate::job::JobName;
use crate::store::registry::{NodeEntry, SILENCE};

/// Up to when the slots of a job are closed, for each job that some node had in its file.
pub fn closed_until(nodes: &[NodeEntry]) -> BTreeMap<JobName, DateTime<Utc>> {
    let mut closed: BTreeMap<JobName, DateTime<Utc>> = BTreeMap::new();
    for node in nodes {
        for job in node.report.job_hashes.keys() {
            let until = node.report.behind.get(job).copied().unwrap_or(node.seen);
            let best = closed.entry(job.clone()).or_insert(until);
            *best = until.max(*best);
        }
    }
    closed
}

/// For how long no node was alive; none when one was just now, or none ever.
pub fn silence(nodes: &[NodeEntry], now: DateTime<Utc>) -> Option<Duration> {
    let last = nodes.iter().map(|node| node.seen).max()?;
    Some(between(last, now)).filter(|gap| *gap > SILENCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::NodeName;
    use crate::store::NodeReport;

    fn at(time: &str) -> DateTime<Utc> {
        format!("2026-11-21T{time}Z").parse().unwrap()
    }

    fn job(name: &str) -> JobName {
        JobName::new(name).unwrap()
    }

    fn node(seen: &str, jobs: &[&str], behind: &[(&str, &str)]) -> NodeEntry {
        let report = NodeReport {
            job_hashes: jobs.iter().map(|name| (job(name), String::new())).collect(),
            behind: behind.iter().map(|(name, time)| (job(name), at(time))).collect(),
            ..NodeReport::new(NodeName::new("a").unwrap(), "", at("00:00:00"))
        };
        NodeEntry { report, seen: at(seen) }
    }

    #[test]
    fn a_job_is_closed_up_to_the_last_sign_of_life_of_a_node_that_had_it() {
        let closed = closed_until(&[node("12:00:00", &["x", "y"], &[]), node("14:00:00", &["y"], &[])]);
        assert_eq!(closed.get(&job("x")), Some(&at("12:00:00")), "the node that lives does not know x");
        assert_eq!(closed.get(&job("y")), Some(&at("14:00:00")));
    }

    #[test]
    fn a_node_that_died_while_it_caught_up_leaves_the_rest_to_the_next() {
        let closed = closed_until(&[node("14:00:00", &["x"], &[("x", "09:00:00")])]);
        assert_eq!(closed.get(&job("x")), Some(&at("09:00:00")));
    }

    #[test]
    fn who_is_furthest_counts() {
        let closed = closed_until(&[node("14:00:00", &["x"], &[("x", "09:00:00")]), node("13:00:00", &["x"], &[])]);
        assert_eq!(closed.get(&job("x")), Some(&at("13:00:00")));
    }

    #[test]
    fn a_job_that_nobody_had_has_nothing_to_close() {
        assert!(closed_until(&[node("14:00:00", &[], &[])]).is_empty());
    }

    #[test]
    fn silence_is_told_only_when_nobody_was_alive() {
        let nodes = [node("14:00:00", &[], &[]), node("12:00:00", &[], &[])];
        assert_eq!(silence(&nodes, at("14:00:20")), None);
        assert_eq!(silence(&nodes, at("14:01:00")), Some(Duration::from_secs(60)));
        assert_eq!(silence(&[], at("14:00:00")), None);
    }
}
