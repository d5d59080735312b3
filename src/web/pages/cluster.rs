//! `/nodes`, `/store`, `/locks`, `/activity`: the cluster itself.

use askama::Template;

use crate::admin::words::harmless;
use crate::board::Snapshot;
use crate::observe::view::{LockEntryView, LockView, NodeState, NodeView};
use crate::store::{Capability, Finding, Severity};
use crate::web::pages::frame::Frame;
use crate::web::pages::moment::{Apart, Moment, Teller};
use crate::web::pages::needs::few;
use crate::web::pages::state::Shown;

/// `/nodes`.
#[derive(Template)]
#[template(path = "nodes.html")]
pub(super) struct NodesPage {
    pub(super) frame: Frame,
    nodes: Vec<NodeLine>,
}

struct NodeLine {
    name: String,
    glyph: &'static str,
    state: &'static str,
    seen: Apart,
    started: Moment,
    version: String,
    clock: String,
    clock_off: bool,
    file: String,
    differs: Option<String>,
    zones: String,
    zones_old: bool,
    running: Vec<(String, String)>,
    labels: String,
}

/// A clock that is off by more is worth a warning, in seconds.
const OFF: f64 = 2.0;
/// Slots that are named of one node.
const MOST: usize = 20;

impl NodesPage {
    pub(super) fn of(frame: Frame, shown: &Snapshot, tell: &Teller) -> Self {
        Self { frame, nodes: shown.nodes.iter().map(|node| node_line(node, tell)).collect() }
    }
}

fn node_line(node: &NodeView, tell: &Teller) -> NodeLine {
    let glyph = match node.state {
        _ if node.overdue => Shown::Retrying.key(),
        NodeState::Alive => Shown::Done.key(),
        NodeState::Draining => Shown::Pending.key(),
        NodeState::Stopped => Shown::Skipped.key(),
        NodeState::Lost => Shown::Failed.key(),
    };
    let link = |slot: &String| (format!("/jobs/{}", slot.replacen('@', "/", 1)), slot.clone());
    let labels: Vec<String> = node.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    NodeLine {
        name: node.node.to_string(),
        glyph,
        state: (tell.t.words.node_state)(node.word()),
        seen: tell.apart(node.seen),
        started: tell.moment(node.started),
        version: node.version.clone(),
        clock: format!("{:+.3} s", node.clock_offset_s),
        clock_off: node.clock_offset_s.abs() > OFF,
        file: node.config_hash.chars().take(8).collect(),
        differs: (!node.differs.is_empty()).then(|| few(&node.differs)),
        zones: node.zones.clone().unwrap_or_else(|| tell.t.words.none.to_owned()),
        zones_old: node.zones_old,
        running: node.running.iter().take(MOST).map(link).collect(),
        labels: if labels.is_empty() { tell.t.words.none.to_owned() } else { labels.join(", ") },
    }
}

/// `/store`.
#[derive(Template)]
#[template(path = "store.html")]
pub(super) struct StorePage {
    pub(super) frame: Frame,
    facts: Vec<(&'static str, String)>,
    findings: Option<Vec<FindingLine>>,
    may_examine: bool,
}

struct FindingLine {
    check: String,
    glyph: &'static str,
    severity: &'static str,
    found: String,
    effect: Option<String>,
    fix: Option<String>,
}

impl StorePage {
    pub(super) fn of(
        frame: Frame,
        shown: &Snapshot,
        capability: &Capability,
        findings: Option<Vec<Finding>>,
        may_examine: bool,
        tell: &Teller,
    ) -> Self {
        let t = &tell.t.cluster;
        let store = &shown.store;
        let reached = match (&store.error, shown.read_at) {
            (Some(error), _) if store.refuses => format!("{}: {error}", tell.t.frame.store_refuses),
            (Some(error), _) => format!("{}: {error}", t.not_reached),
            (None, Some(read)) => tell.exact(read),
            (None, None) => tell.t.frame.reading.to_owned(),
        };
        let latency = store.latency_ms.map_or_else(|| tell.t.words.none.to_owned(), |millis| format!("{millis} ms"));
        let facts = vec![
            (t.where_, store.location.clone()),
            (t.kind, store.kind.to_owned()),
            (t.namespace, frame.namespace.clone()),
            (t.reached, reached),
            (t.latency, latency),
            (t.capability, (t.capability_of)(capability)),
        ];
        let findings = findings.map(|findings| findings.iter().map(|finding| finding_line(finding, tell)).collect());
        Self { frame, facts, findings, may_examine }
    }
}

fn finding_line(finding: &Finding, tell: &Teller) -> FindingLine {
    let (glyph, word) = match finding.severity {
        Severity::Ok => (Shown::Done.key(), "ok"),
        Severity::Warning => ("warning", "warning"),
        _ => (Shown::Failed.key(), "fault"),
    };
    FindingLine {
        check: finding.check.to_string(),
        glyph,
        severity: (tell.t.words.severity)(word),
        found: harmless(&finding.found).into_owned(),
        effect: finding.effect.as_deref().map(|effect| harmless(effect).into_owned()),
        fix: finding.fix.as_deref().map(|fix| harmless(fix).into_owned()),
    }
}

/// `/locks`.
#[derive(Template)]
#[template(path = "locks.html")]
pub(super) struct LocksPage {
    pub(super) frame: Frame,
    absent: bool,
    locks: Vec<LockLine>,
}

struct LockLine {
    name: String,
    held: String,
    holders: Vec<String>,
    waiting: Vec<String>,
}

impl LocksPage {
    /// `locks` is none where the store keeps none.
    pub(super) fn of(frame: Frame, locks: Option<&[LockView]>, tell: &Teller) -> Self {
        let lines = locks.unwrap_or_default().iter().map(|lock| lock_line(lock, tell)).collect();
        Self { frame, absent: locks.is_none(), locks: lines }
    }
}

fn lock_line(lock: &LockView, tell: &Teller) -> LockLine {
    let limit = lock.limit.map_or_else(|| tell.t.cluster.unlimited.to_owned(), |limit| limit.to_string());
    let entry = |entry: &LockEntryView| {
        let span = tell.fine_span(entry.age_s);
        let label = if entry.label.is_empty() { String::new() } else { format!(" · {}", harmless(&entry.label)) };
        let ring = if entry.deadlocked { format!(" · {}", tell.t.cluster.deadlock) } else { String::new() };
        format!("{}{label} · {} · {span}{ring}", entry.node, entry.demand)
    };
    LockLine {
        name: lock.lock.to_string(),
        held: format!("{}/{limit}", lock.held),
        holders: lock.queue.iter().filter(|entry| entry.holds).map(entry).collect(),
        waiting: lock.queue.iter().filter(|entry| !entry.holds).map(entry).collect(),
    }
}

/// `/activity`.
#[derive(Template)]
#[template(path = "activity.html")]
pub(super) struct ActivityPage {
    pub(super) frame: Frame,
    of_node: String,
    lines: Vec<ActivityLine>,
}

/// Something that happened.
pub(super) struct ActivityLine {
    pub(super) at: Moment,
    /// Address and words.
    pub(super) slot: Option<(String, String)>,
    pub(super) what: String,
}

impl ActivityPage {
    pub(super) fn of(frame: Frame, node: &str, lines: Vec<ActivityLine>, tell: &Teller) -> Self {
        Self { frame, of_node: (tell.t.cluster.activity_of)(node), lines }
    }
}
