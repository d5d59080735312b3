//! What the nodes of the cluster had closed before this one came. Pure.
//!
//! A node that is alive closes the slots of every job in its file (L2), and tells with each heartbeat where it is behind, and
//! with which slot that began where nobody could tell it of earlier ones. So the entries of the registry, those of dead nodes
//! among them, say for each job up to when its slots have their verdicts; who comes next goes on from there. The entries are
//! read before the first own heartbeat, which would take the place of this name's earlier one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::{between, earlier, later};
use crate::job::{JobName, NodeName};
use crate::slot::SlotKey;
use crate::store::registry::{NodeEntry, NodeReport, SILENCE};

/// Which slots of a job are closed. What begins earlier sorts first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Closed {
    /// From the slot that began then; none: from the job's first on.
    pub since: Option<DateTime<Utc>>,
    /// Up to this instant.
    pub until: DateTime<Utc>,
}

impl Closed {
    /// The same with what follows it without a gap. Behind a gap what is owed in it counts, whatever was closed later.
    fn joined(self, next: Self, silence: Duration) -> Self {
        // Who told of this may have died before it could close what ended just before.
        let follows = |since: DateTime<Utc>| since <= earlier(self.until, silence);
        let joins = next.since <= self.since || next.since.is_some_and(follows);
        if joins { Self { until: self.until.max(next.until), ..self } } else { self }
    }
}

/// Which slots are closed of each job that some node had in its file, from the earliest on that a node tells of. Who was not heard
/// of for `silence` may be dead.
pub fn closed(nodes: &[NodeEntry], silence: Duration) -> BTreeMap<JobName, Closed> {
    let mut told: BTreeMap<JobName, BTreeSet<Closed>> = BTreeMap::new();
    for NodeEntry { report, seen } in nodes {
        for job in report.job_hashes.keys() {
            let (since, until) = (report.since.get(job).copied(), report.behind.get(job).copied().unwrap_or(*seen));
            told.entry(job.clone()).or_default().insert(Closed { since, until });
        }
    }
    let joined = |told: BTreeSet<Closed>| told.into_iter().reduce(|known, next| known.joined(next, silence));
    told.into_iter().filter_map(|(job, told)| Some((job, joined(told)?))).collect()
}

/// The slots that dead nodes ran when they were heard of last, the earlier instance of the node itself among them.
pub fn left(
    nodes: &[NodeEntry],
    (name, instance): (&NodeName, &str),
    now: DateTime<Utc>,
) -> BTreeSet<(JobName, SlotKey)> {
    let is_own = |report: &NodeReport| report.name == *name && report.instance != instance;
    let dead = nodes.iter().filter(|entry| !entry.is_alive(now) || is_own(&entry.report));
    let slot = |text: &String| {
        let (job, key) = text.split_once('@')?;
        Some((JobName::new(job).ok()?, key.parse().ok()?))
    };
    dead.flat_map(|entry| &entry.report.running).filter_map(slot).collect()
}

/// The last heartbeat, where no node has been alive since; none when one was just now, or none ever.
pub fn silence(nodes: &[NodeEntry], now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    nodes.iter().map(|node| node.seen).max().filter(|last| between(*last, now) > SILENCE)
}

/// Whether no node was alive in a whole span, as far as the registry knows: the last heartbeat before it, and when the next node started;
/// none while none has.
pub fn silence_over(
    nodes: &[NodeEntry],
    (from, to): (DateTime<Utc>, DateTime<Utc>),
    now: DateTime<Utc>,
) -> Option<(DateTime<Utc>, Option<DateTime<Utc>>)> {
    // A node is alive from its start on, and may have been for a while after its last heartbeat, unless that said that it left.
    let last = |node: &NodeEntry| if node.report.stopped { node.seen } else { later(node.seen, SILENCE) };
    if nodes.iter().any(|node| node.report.started_at < to && last(node) > from) {
        return None;
    }
    let told = nodes.iter().filter_map(|node| Some((node.report.silent_since?, node.report.started_at)));
    let told =
        told.filter(|(since, started)| later(*since, SILENCE) <= from && *started >= to).min_by_key(|told| told.1);
    let none_since = || (to <= now && !nodes.iter().any(|node| node.is_alive(now))).then_some(());
    let newest = || nodes.iter().map(|node| node.seen).max().filter(|seen| *seen <= from);
    told.map(|(since, started)| (since, Some(started))).or_else(|| none_since().and_then(|()| Some((newest()?, None))))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// The same of a node that began with the slots of that instant.
    fn began(since: &str, mut node: NodeEntry) -> NodeEntry {
        node.report.since = node.report.job_hashes.keys().map(|job| (job.clone(), at(since))).collect();
        node
    }

    /// What is closed of the job `x`, whichever entry comes first.
    fn x(mut nodes: Vec<NodeEntry>) -> Closed {
        let told = closed(&nodes, SILENCE);
        nodes.reverse();
        assert_eq!(closed(&nodes, SILENCE), told);
        told[&job("x")]
    }

    fn until(time: &str) -> Closed {
        Closed { since: None, until: at(time) }
    }

    #[test]
    fn a_job_is_closed_up_to_the_last_sign_of_life_of_a_node_that_had_it() {
        let closed = closed(&[node("12:00:00", &["x", "y"], &[]), node("14:00:00", &["y"], &[])], SILENCE);
        assert_eq!(closed.get(&job("x")), Some(&until("12:00:00")), "the node that lives does not know x");
        assert_eq!(closed.get(&job("y")), Some(&until("14:00:00")));
    }

    #[test]
    fn a_node_that_died_while_it_caught_up_leaves_the_rest_to_the_next() {
        assert_eq!(x(vec![node("14:00:00", &["x"], &[("x", "09:00:00")])]), until("09:00:00"));
    }

    #[test]
    fn who_is_furthest_counts() {
        let nodes = vec![node("14:00:00", &["x"], &[("x", "09:00:00")]), node("13:00:00", &["x"], &[])];
        assert_eq!(x(nodes), until("13:00:00"));
    }

    #[test]
    fn a_job_that_nobody_had_has_nothing_to_close() {
        assert!(closed(&[node("14:00:00", &[], &[])], SILENCE).is_empty());
    }

    #[test]
    fn who_began_later_hides_nothing_that_another_owes_from_before() {
        let owing = node("15:31:00", &["x"], &[("x", "13:00:00")]);
        let later = began("15:00:00", node("15:40:00", &["x"], &[]));
        assert_eq!(x(vec![later.clone(), owing.clone()]), until("13:00:00"));
        // Nor does it together with one that took over from it.
        let heir = began("15:00:00", node("15:50:00", &["x"], &[]));
        assert_eq!(x(vec![heir, later.clone(), owing]), until("13:00:00"));
        assert_eq!(x(vec![later]), Closed { since: Some(at("15:00:00")), until: at("15:40:00") });
    }

    #[test]
    fn who_began_with_a_slot_that_another_saw_begin_goes_on_from_that_one() {
        let (first, last) = (node("13:00:00", &["x"], &[]), began("12:30:00", node("14:00:00", &["x"], &[])));
        assert_eq!(x(vec![first.clone(), last]), until("14:00:00"));
        // A node may have died a silence before its last word is counted on.
        let on_the_brink = |since| x(vec![first.clone(), began(since, node("14:00:00", &["x"], &[]))]);
        assert_eq!(on_the_brink("12:59:40"), until("14:00:00"));
        assert_eq!(on_the_brink("12:59:41"), until("13:00:00"));
        let between = began("12:30:00", node("13:30:00", &["x"], &[]));
        let chain = vec![first, between, began("13:15:00", node("14:00:00", &["x"], &[]))];
        assert_eq!(x(chain), until("14:00:00"));
    }

    #[test]
    fn of_those_that_began_with_the_same_slot_the_furthest_counts() {
        let behind = began("13:00:00", node("14:00:00", &["x"], &[("x", "13:00:00")]));
        let nodes = vec![behind, began("13:00:00", node("13:50:00", &["x"], &[]))];
        assert_eq!(x(nodes), Closed { since: Some(at("13:00:00")), until: at("13:50:00") });
    }

    #[test]
    fn what_a_node_ran_that_is_dead_or_was_this_one_is_left() {
        let runs = |name: &str, instance: &str, seen: &str, slot: &str| {
            let report = NodeReport {
                running: vec![slot.to_owned(), "no slot".to_owned()],
                ..NodeReport::new(NodeName::new(name).unwrap(), instance, at("00:00:00"))
            };
            NodeEntry { report, seen: at(seen) }
        };
        let nodes = [
            runs("a", "before", "14:00:00", "x@2026-11-21T10Z"),
            runs("b", "dead", "13:00:00", "x@2026-11-21T11Z"),
            runs("c", "alive", "14:00:00", "x@2026-11-21T12Z"),
        ];
        let slots = |instance: &str| {
            let left = left(&nodes, (&NodeName::new("a").unwrap(), instance), at("14:00:10"));
            left.into_iter().map(|(job, key)| format!("{job}@{key}")).collect::<Vec<_>>()
        };
        assert_eq!(slots("now"), ["x@2026-11-21T10Z", "x@2026-11-21T11Z"]);
        assert_eq!(slots("before"), ["x@2026-11-21T11Z"]);
    }

    #[test]
    fn that_no_node_was_alive_in_a_span_is_said_only_where_the_registry_knows_it() {
        let (span, now) = ((at("12:00:00"), at("13:00:00")), at("14:00:00"));
        let over = |nodes: &[NodeEntry]| silence_over(nodes, span, now);
        let began = |name: &str, started: &str, seen: &str| {
            let report = NodeReport::new(NodeName::new(name).unwrap(), "", at(started));
            NodeEntry { report, seen: at(seen) }
        };
        assert_eq!(over(&[]), None, "nobody is known");
        assert_eq!(over(&[began("a", "08:00:00", "11:50:00")]), Some((at("11:50:00"), None)));
        let both = [began("a", "08:00:00", "11:50:00"), began("b", "08:00:00", "11:55:00")];
        assert_eq!(over(&both), Some((at("11:55:00"), None)));
        assert_eq!(over(&[began("a", "08:00:00", "11:59:50")]), None, "it may have been alive when that began");
        let mut left = began("a", "08:00:00", "11:59:50");
        left.report.stopped = true;
        assert_eq!(over(&[left.clone()]), Some((at("11:59:50"), None)), "it said that it left");
        assert_eq!(over(&[began("a", "12:30:00", "12:40:00")]), None, "it lived in it");
        // What the instance before did nobody knows, unless the node says that none was alive.
        let next = began("a", "13:30:00", "13:59:55");
        assert_eq!(over(std::slice::from_ref(&next)), None);
        assert_eq!(over(&[left, next.clone()]), None);
        let tells = |since: &str| {
            let mut next = next.clone();
            next.report.silent_since = Some(at(since));
            over(&[began("b", "13:40:00", "13:59:58"), next])
        };
        assert_eq!(tells("11:55:00"), Some((at("11:55:00"), Some(at("13:30:00")))));
        assert_eq!(tells("11:59:50"), None, "it may have been alive when that began");
        assert_eq!(tells("12:10:00"), None);
        assert_eq!(silence_over(&both, span, at("12:30:00")), None, "it is not over");
    }

    #[test]
    fn silence_is_told_only_when_nobody_was_alive() {
        let nodes = [node("14:00:00", &[], &[]), node("12:00:00", &[], &[])];
        assert_eq!(silence(&nodes, at("14:00:20")), None);
        assert_eq!(silence(&nodes, at("14:01:00")), Some(at("14:00:00")));
        assert_eq!(silence(&[], at("14:00:00")), None);
    }
}
