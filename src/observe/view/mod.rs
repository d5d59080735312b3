//! What a program reads of jobs and slots: the JSON of `--json` and of the HTTP interface. These fields are a promise:
//! fields are added, never renamed, removed or given another meaning, and each is always there (`null` when there is
//! nothing to say). Times are RFC 3339 in UTC, durations are seconds.

mod job;
mod latest;
mod lock;
mod node;
mod slot;

pub use job::{JobView, NoStart, PauseView, TickView};
pub use latest::{EndView, FailingView, LatestView, SuccessView};
pub use lock::{LockEntryView, LockView};
pub use node::{NodeState, NodeView};
pub use slot::{AuditView, DecisionView, DoneView, LeaseView, RunView, SlotView, VerdictView, WhyView};

use serde::Serialize;

use crate::store::{Finding, Severity};

/// All that was found: `doctor --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DoctorView {
    /// The store's url, without secrets.
    pub store: String,
    /// Its kind: `redis`, `redis-sentinel`, `redis-cluster`, `redlock`, `sqlite`, `postgres`, `mysql`, `etcd`, `zookeeper`, `memory`.
    pub kind: &'static str,
    /// The worst of what was found: `ok`, `warning` (exit code 1), `fault` (2).
    pub severity: Severity,
    /// Each thing that was looked at: `check`, `severity`, `found`, and `effect` and `fix`, which are null where all is well.
    pub findings: Vec<Finding>,
}

impl DoctorView {
    /// Of these findings.
    pub fn new(store: String, kind: &'static str, findings: Vec<Finding>) -> Self {
        let severity = findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Ok);
        Self { store, kind, severity, findings }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_that_programs_rely_on_are_there() {
        let findings = vec![Finding::ok("latency", "1 ms"), Finding::warning("clock", "off", "late", "run NTP")];
        let json = serde_json::to_value(DoctorView::new("redis://h".to_owned(), "redis", findings)).unwrap();
        let wanted = serde_json::json!({
            "store": "redis://h", "kind": "redis", "severity": "warning",
            "findings": [
                {"check": "latency", "severity": "ok", "found": "1 ms", "effect": null, "fix": null},
                {"check": "clock", "severity": "warning", "found": "off", "effect": "late", "fix": "run NTP"},
            ],
        });
        assert_eq!(json, wanted);
    }
}
