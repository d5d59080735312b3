//! A node that starts: what it takes over from those before it, and what it says of that.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{Action, Identity, NodeMachine, Plan, Question, Report, Upkeep};
use crate::clock::{Mono, Now};
use crate::job::{JobName, JobSpec, NodeName, Program};
use crate::store::{NodeEntry, NodeReport};

fn at(time: &str) -> DateTime<Utc> {
    format!("2026-11-21T{time}Z").parse().unwrap()
}

fn now() -> Now {
    Now { mono: Mono::default(), wall: at("14:00:00") }
}

fn job() -> JobName {
    "a".parse().unwrap()
}

/// A node with one job, which has a slot each hour.
fn machine() -> NodeMachine {
    let name = NodeName::new("n").unwrap();
    let identity = Identity { name, instance: String::new(), labels: BTreeMap::new(), started_at: now().wall };
    let upkeep = Upkeep { heartbeat: Duration::from_secs(10), purges: false, hints: true };
    let spec = JobSpec::new(job(), "0 * * * *", Program::Direct(vec!["true".to_owned()]));
    let plan = Plan { jobs: vec![Arc::new(spec)], ..Plan::default() };
    NodeMachine::new(identity, upkeep, plan, now()).unwrap()
}

/// Another node that had the job.
fn other(seen: &str, since: Option<&str>, behind: Option<&str>) -> NodeEntry {
    let of_job = |time: Option<&str>| time.map(|time| (job(), at(time))).into_iter().collect();
    let report = NodeReport {
        job_hashes: BTreeMap::from([(job(), String::new())]),
        behind: of_job(behind),
        since: of_job(since),
        ..NodeReport::new(NodeName::new("m").unwrap(), "", now().wall)
    };
    NodeEntry { report, seen: at(seen) }
}

/// Of a node that starts, when it has read these registries: the verdicts that it asks for, and its first report.
fn taking_over(nodes: Vec<NodeEntry>, first_seen: &str) -> (Vec<String>, NodeReport) {
    let mut machine = machine();
    machine.handle_beat(now());
    let reply = Ok((now().wall, nodes));
    machine.handle_report(now(), Report::Nodes { sent: now(), received: now(), reply });
    let reply = Ok(machine.plan().registry(now().wall, |_| at(first_seen)));
    machine.handle_report(now(), Report::Registered { plan: 0, reply });
    let (mut closes, mut reports) = (Vec::new(), Vec::new());
    while let Some(action) = machine.poll_action() {
        match action {
            Action::Ask(Question::Close { slot, .. }) => closes.push(slot.to_string()),
            Action::Ask(Question::Heartbeat { report, .. }) => reports.push(*report),
            _ => {}
        }
    }
    assert_eq!(reports.len(), 1);
    (closes, reports.remove(0))
}

#[test]
fn what_a_node_owes_is_taken_over_although_another_that_began_later_owes_nothing() {
    let (owing, later) = (other("13:40:00", None, Some("12:00:00")), other("13:59:50", Some("13:00:00"), None));
    let (closes, report) = taking_over(vec![owing, later], "11:30:00");
    assert_eq!(closes, ["a@2026-11-21T12Z"]);
    assert_eq!(report.behind, BTreeMap::from([(job(), at("12:00:00"))]));
    assert_eq!(report.since, BTreeMap::new());
}

#[test]
fn a_node_that_starts_where_none_is_alive_says_since_when() {
    let said = |nodes| taking_over(nodes, "11:30:00").1.silent_since;
    let early = || other("12:00:00", None, None);
    assert_eq!(said(vec![early(), other("13:20:00", None, None)]), Some(at("13:20:00")));
    assert_eq!(said(vec![early(), other("13:59:50", None, None)]), None, "one is alive");
    assert_eq!(said(Vec::new()), None, "of what was before nothing is known");
}

#[test]
fn a_node_says_from_which_slot_on_it_answers_for_a_job_that_nobody_it_heard_of_had_before() {
    let begun = |nodes: Vec<NodeEntry>, first_seen: &str| {
        let (closes, report) = taking_over(nodes, first_seen);
        assert_eq!((closes, report.behind), (Vec::new(), BTreeMap::new()));
        report.since.into_values().next()
    };
    assert_eq!(begun(Vec::new(), "12:30:00"), Some(at("14:00:00")));
    assert_eq!(begun(Vec::new(), "14:00:00"), None, "there is nothing before");
    // It says what those said from whom it takes over.
    assert_eq!(begun(vec![other("13:59:50", Some("13:00:00"), None)], "12:30:00"), Some(at("13:00:00")));
    assert_eq!(begun(vec![other("13:59:50", None, None)], "12:30:00"), None);
}
