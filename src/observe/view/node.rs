//! Nodes, and where their files differ, as a program reads them.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::clock::later;
use crate::job::{JobName, NodeName};
use crate::store::{HEARTBEAT_DUE, NodeEntry, NodeReport};

/// One node: each element of `nodes --json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeView {
    /// Its name.
    pub node: NodeName,
    /// Another one at each start.
    pub instance: String,
    /// Whether it is heard of.
    pub state: NodeState,
    /// The program's version.
    pub version: String,
    /// When it started, by its own clock.
    pub started: DateTime<Utc>,
    /// When it was heard of last, by the store's clock.
    pub seen: DateTime<Utc>,
    /// Its next heartbeat has not come in time, though it may still be alive.
    pub overdue: bool,
    /// Its clock minus the store's, in seconds, as it measured last.
    pub clock_offset_s: f64,
    /// Hash of its jobs.
    pub config_hash: String,
    /// Jobs that it has in another form than most nodes that are alive, or does not have, or alone has.
    pub differs: Vec<JobName>,
    /// The release of its time zone database, or `unknown`; null where every job of its file is in UTC.
    pub zones: Option<String>,
    /// The folder of that database, or `bundled`.
    pub zones_from: Option<String>,
    /// Its release is older than that of another node that is alive.
    pub zones_old: bool,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What it runs, as `job@slot`.
    pub running: Vec<String>,
    /// Jobs whose ended slots it has not closed yet.
    pub behind: Vec<JobName>,
}

/// Whether a node is heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// A heartbeat came within the last 20 s.
    Alive,
    /// The same, and it begins nothing more.
    Draining,
    /// It died, or does not reach the store.
    Lost,
    /// It shut down cleanly.
    Stopped,
}

impl NodeState {
    /// Whether it runs no more, as far as is known.
    pub const fn is_gone(self) -> bool {
        matches!(self, Self::Lost | Self::Stopped)
    }

    /// The word used on screens and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Draining => "draining",
            Self::Lost => "lost",
            Self::Stopped => "stopped",
        }
    }
}

impl NodeView {
    /// The word for people: whether a node whose heartbeat is overdue is alive nobody knows.
    pub const fn word(&self) -> &'static str {
        if self.overdue { "late" } else { self.state.as_str() }
    }

    /// Every node, with what differs among those that are alive.
    pub fn all(nodes: &[NodeEntry], now: DateTime<Utc>) -> Vec<Self> {
        // Two with the same name take turns in the registry: whoever speaks brings the other along.
        let both = |node: &NodeEntry| {
            let namesake = node.report.namesake.as_deref().filter(|_| node.is_alive(now)).cloned();
            let namesake = namesake.map(|report| NodeEntry { report, seen: node.seen });
            [Some(node.clone()), namesake]
        };
        let nodes: Vec<NodeEntry> = nodes.iter().flat_map(both).flatten().collect();
        let alive = nodes.iter().filter(|node| node.is_alive(now)).map(|node| &node.report);
        let alive: Vec<&NodeReport> = alive.collect();
        let usual = usual(&alive);
        let newest = alive.iter().filter_map(|report| release(report)).max();
        let view = |node: &NodeEntry| {
            let view = Self::of(node, now, &usual);
            Self {
                zones_old: !view.state.is_gone() && release(&node.report).is_some_and(|own| Some(own) < newest),
                ..view
            }
        };
        nodes.iter().map(view).collect()
    }

    fn of(entry: &NodeEntry, now: DateTime<Utc>, usual: &BTreeMap<&JobName, Option<&String>>) -> Self {
        let NodeEntry { report, seen } = entry;
        let state = match (entry.is_alive(now), report.draining) {
            (false, _) if report.stopped => NodeState::Stopped,
            (false, _) => NodeState::Lost,
            (true, true) => NodeState::Draining,
            (true, false) => NodeState::Alive,
        };
        let differs =
            |(job, hash): &(&&JobName, &Option<&String>)| !report.has_unknown(job) && report.hash_of(job) != **hash;
        let differing = usual.iter().filter(differs).map(|(job, _)| (*job).clone());
        Self {
            node: report.name.clone(),
            instance: report.instance.clone(),
            state,
            version: report.version.clone(),
            started: report.started_at,
            seen: *seen,
            overdue: !state.is_gone() && later(*seen, HEARTBEAT_DUE) <= now,
            clock_offset_s: std::time::Duration::from_millis(report.clock_offset_ms.unsigned_abs()).as_secs_f64()
                * if report.clock_offset_ms < 0 { -1.0 } else { 1.0 },
            config_hash: report.config_hash.clone(),
            // What a node had that is gone says nothing of the cluster as it is.
            differs: if state.is_gone() { Vec::new() } else { differing.collect() },
            zones: report.zones.as_ref().map(|zones| zones.version.clone().unwrap_or_else(|| "unknown".to_owned())),
            zones_from: report.zones.as_ref().map(|zones| zones.folder.clone().unwrap_or_else(|| "bundled".to_owned())),
            zones_old: false,
            labels: report.labels.clone(),
            running: report.running.clone(),
            behind: report.behind.keys().cloned().collect(),
        }
    }
}

/// The release of its time zone database. Of two the later one is the greater text, up to the year 9999.
fn release(report: &NodeReport) -> Option<&str> {
    report.zones.as_ref()?.version.as_deref()
}

/// Of each job that some node has, what most of them have; none where most have it not. Of as many on each side the first by
/// name are taken for right.
fn usual<'a>(alive: &[&'a NodeReport]) -> BTreeMap<&'a JobName, Option<&'a String>> {
    let jobs: BTreeSet<&JobName> = alive.iter().flat_map(|report| report.job_hashes.keys()).collect();
    let of = |job: &'a JobName| {
        let known = alive.iter().filter(|report| !report.has_unknown(job));
        let hashes: Vec<Option<&String>> = known.map(|report| report.hash_of(job)).collect();
        let count = |hash: &Option<&String>| hashes.iter().filter(|other| *other == hash).count();
        let most = hashes.iter().map(count).max().unwrap_or(0);
        (job, hashes.iter().find(|hash| count(hash) == most).copied().flatten())
    };
    jobs.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zone::ZoneRelease;

    fn node(name: &str, seen: &str, jobs: &[(&str, &str)]) -> NodeEntry {
        let job = |(name, hash): &(&str, &str)| (JobName::new(name).unwrap(), (*hash).to_owned());
        let report = NodeReport {
            name: NodeName::new(name).unwrap(),
            instance: "i".to_owned(),
            version: "0.1.0".to_owned(),
            config_hash: "c0ffee".to_owned(),
            zones: None,
            job_hashes: jobs.iter().map(job).collect(),
            labels: BTreeMap::from([("zone".to_owned(), "eu".to_owned())]),
            started_at: "2026-11-21T11:00:00Z".parse().unwrap(),
            clock_offset_ms: -1_500,
            running: vec!["x@2026-11-21T12Z".to_owned()],
            draining: name == "d",
            stopped: false,
            namesake: None,
            behind: BTreeMap::new(),
            since: BTreeMap::new(),
            silent_since: None,
        };
        NodeEntry { report, seen: format!("2026-11-21T{seen}Z").parse().unwrap() }
    }

    fn differs(nodes: &[NodeEntry]) -> Vec<String> {
        let views = NodeView::all(nodes, "2026-11-21T12:00:10Z".parse().unwrap());
        let shown = |view: &NodeView| {
            let jobs: Vec<&str> = view.differs.iter().map(JobName::as_str).collect();
            format!("{} {}", view.node, jobs.join(","))
        };
        views.iter().map(shown).collect()
    }

    #[test]
    fn the_node_that_has_a_job_in_another_form_than_most_is_named_with_the_job() {
        let same: &[(&str, &str)] = &[("x", "1"), ("y", "1")];
        let nodes = [
            node("a", "12:00:00", same),
            node("b", "12:00:00", &[("x", "2"), ("y", "1")]),
            node("c", "12:00:00", same),
        ];
        assert_eq!(differs(&nodes), ["a ", "b x", "c "]);
    }

    #[test]
    fn a_job_that_one_node_lacks_or_alone_has_differs() {
        let both: &[(&str, &str)] = &[("x", "1"), ("y", "1")];
        let nodes = [node("a", "12:00:00", both), node("b", "12:00:00", &[("x", "1")]), node("c", "12:00:00", both)];
        assert_eq!(differs(&nodes), ["a ", "b y", "c "]);
        let nodes =
            [node("a", "12:00:00", &[("x", "1")]), node("b", "12:00:00", both), node("c", "12:00:00", &[("x", "1")])];
        assert_eq!(differs(&nodes), ["a ", "b y", "c "]);
    }

    #[test]
    fn of_two_nodes_that_differ_the_second_is_named_and_a_node_that_is_gone_counts_for_nothing() {
        let nodes = [node("a", "12:00:00", &[("x", "1")]), node("b", "12:00:00", &[("x", "2")])];
        assert_eq!(differs(&nodes), ["a ", "b x"]);
        let gone = [node("a", "11:00:00", &[("x", "1")]), node("b", "12:00:00", &[("x", "2")])];
        assert_eq!(differs(&gone), ["a ", "b "]);
    }

    #[test]
    fn two_nodes_of_one_name_are_both_there_and_one_that_left_has_stopped() {
        let mut first = node("a", "12:00:00", &[("x", "1")]);
        first.report.namesake = Some(Box::new(NodeReport { instance: "j".to_owned(), ..first.report.clone() }));
        let mut left = node("b", "12:00:05", &[]);
        left.report.stopped = true;
        let views = NodeView::all(&[first, left], "2026-11-21T12:00:10Z".parse().unwrap());
        let shown: Vec<_> = views.iter().map(|view| (view.node.as_str(), &*view.instance, view.state)).collect();
        assert_eq!(shown, [("a", "i", NodeState::Alive), ("a", "j", NodeState::Alive), ("b", "i", NodeState::Stopped)]);
    }

    #[test]
    fn a_node_whose_time_zones_are_older_than_anothers_is_marked_unless_the_other_is_gone() {
        let zones = |name, seen, version: Option<&str>| {
            let mut node = node(name, seen, &[]);
            node.report.zones = Some(ZoneRelease { folder: None, version: version.map(str::to_owned) });
            node
        };
        let old = |nodes: &[NodeEntry]| {
            let views = NodeView::all(nodes, "2026-11-21T12:00:10Z".parse().unwrap());
            views.iter().filter(|view| view.zones_old).map(|view| view.node.to_string()).collect::<Vec<_>>()
        };
        let [a, b, newest] = [("a", "2025b"), ("b", "2025b"), ("c", "2026f")]
            .map(|(name, version)| zones(name, "12:00:00", Some(version)));
        assert_eq!(old(&[a.clone(), b.clone()]), [""; 0]);
        assert_eq!(old(&[a.clone(), newest.clone(), b, zones("d", "12:00:00", None)]), ["a", "b"]);
        assert_eq!(old(&[a, NodeEntry { seen: "2026-11-21T11:00:00Z".parse().unwrap(), ..newest }]), [""; 0]);
        let view = NodeView::all(&[zones("d", "12:00:00", None)], "2026-11-21T12:00:10Z".parse().unwrap()).remove(0);
        assert_eq!((view.zones.as_deref(), view.zones_from.as_deref()), (Some("unknown"), Some("bundled")));
    }

    #[test]
    fn the_fields_that_programs_rely_on_are_there() {
        let views = NodeView::all(&[node("d", "12:00:00", &[("x", "1")])], "2026-11-21T12:00:10Z".parse().unwrap());
        let json = serde_json::to_value(&views).unwrap();
        let wanted = serde_json::json!([{
            "node": "d", "instance": "i", "state": "draining", "version": "0.1.0",
            "started": "2026-11-21T11:00:00Z", "seen": "2026-11-21T12:00:00Z", "overdue": false, "clock_offset_s": -1.5,
            "config_hash": "c0ffee", "differs": [],
            "zones": null, "zones_from": null, "zones_old": false, "labels": {"zone": "eu"},
            "running": ["x@2026-11-21T12Z"], "behind": [],
        }]);
        assert_eq!(json, wanted);
    }
}
