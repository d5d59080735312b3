//! The schema of a journal, for writing and for reading. Fields are added, never renamed and never given another meaning.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::job::{JobName, NodeName, OnLost};
use crate::slot::{Attempt, Outcome, Slot, Trigger, Verdict};

/// One line: who tells, of what, and when by the clock of who tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The node's clock, to the millisecond.
    #[serde(with = "instant")]
    pub at: DateTime<Utc>,
    /// The node.
    pub node: NodeName,
    /// Fresh at each start of the node.
    pub instance: String,
    /// The job, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobName>,
    /// The slot's key; with it come `job` and `slot_end`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// When the slot ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot_end: Option<DateTime<Utc>>,
    /// What happened.
    #[serde(flatten)]
    pub fact: Fact,
}

/// What happened; the field `event` names it. Each is explained where it is told: [`crate::guard::Event`],
/// [`crate::observe::NodeEvent`]. Spans are in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the fields are those of the events, and docs/journal.md lists them")]
pub enum Fact {
    Started {
        jobs: usize,
    },
    Planned(Plan),
    Reloaded {
        jobs: usize,
    },
    ReloadRefused {
        error: String,
    },
    StoreReached {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        away_s: Option<f64>,
    },
    StoreLost {
        error: String,
    },
    RegistrationRefused {
        error: String,
    },
    ClockOff {
        offset_ms: i64,
    },
    Namesake {
        other: String,
        #[serde(with = "instant")]
        started: DateTime<Utc>,
    },
    ClusterWasDown {
        gap_s: f64,
    },
    DoneAgain {
        of: String,
    },
    Overloaded {
        shed: u64,
        jobs: usize,
        waiting: usize,
        running: usize,
        full: bool,
    },
    StoreFailing {
        slots: u64,
        error: String,
    },
    StoreFailingOver {
        slots: u64,
    },
    SlotsMissed {
        slots: u64,
        first: String,
        last: String,
    },
    Gap {
        slots: usize,
    },
    Draining {
        running: usize,
        drain_s: f64,
    },
    Stopped,
    Fault {
        error: String,
    },
    /// Lines of this journal that were never written.
    Dropped {
        lines: u64,
    },
    ClaimAnswered {
        answer: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<NodeName>,
    },
    Granted {
        attempt: Attempt,
        used: u32,
        max_attempts: u32,
        /// By the store's clock.
        #[serde(with = "instant")]
        granted_at: DateTime<Utc>,
        /// The first eight digits: enough to tell claims apart, useless to whoever would act as the holder.
        token: String,
        trigger: Trigger,
        lease_ttl_s: f64,
        retry_delay_s: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        poll_s: Option<f64>,
        on_lost: OnLost,
    },
    RunStarted {
        attempt: Attempt,
        fence: u64,
        trigger: Trigger,
        guarded: bool,
    },
    RunEnded {
        attempt: Attempt,
        outcome: Outcome,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
        duration_s: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    RunTimedOut {
        attempt: Attempt,
    },
    RenewalAnswered {
        answer: String,
    },
    LeaseInDoubt {
        attempt: Attempt,
        killing: bool,
    },
    LeaseLost {
        attempt: Attempt,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<NodeName>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to_attempt: Option<Attempt>,
        killing: bool,
    },
    LeaseRestored {
        attempt: Attempt,
    },
    Settled {
        attempt: Attempt,
        outcome: Outcome,
    },
    Overtaken {
        attempt: Attempt,
        by: NodeName,
        by_attempt: Attempt,
    },
    AttemptsUsedUp {
        used: u32,
    },
    SettlementGivenUp {
        attempt: Attempt,
        outcome: Outcome,
    },
    StartDeadlinePassed,
    Shed,
    StoreFailed {
        op: String,
        kind: String,
        error: String,
    },
    Closed {
        verdict: Verdict,
    },
    /// Written by a newer version.
    #[serde(other)]
    Unknown,
}

/// What a node plans of one job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The cron expression.
    pub schedule: String,
    /// Its zone.
    pub timezone: String,
    /// What one slot spans.
    pub period: String,
    /// Attempts in all.
    pub max_attempts: u32,
    /// TTL of a lease.
    pub lease_ttl_s: f64,
    /// The wait after the first failure.
    pub retry_delay_s: f64,
    /// What becomes of a run whose lease is lost.
    pub on_lost: OnLost,
    /// False: `only_on` asks for other nodes.
    pub ours: bool,
    /// Upper bound of the job's fixed delay after each tick; absent in journals that are older than the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_s: Option<f64>,
    /// Not started later than this after the tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_deadline_s: Option<f64>,
}

impl Line {
    /// A line of this node: of a slot, of a job, or of neither.
    pub fn of(
        at: DateTime<Utc>,
        (node, instance): (&NodeName, &str),
        (slot, job): (Option<&Slot>, Option<&JobName>),
        fact: Fact,
    ) -> Self {
        Self {
            at,
            node: node.clone(),
            instance: instance.to_owned(),
            job: slot.map(Slot::job).or(job).cloned(),
            slot: slot.map(|slot| slot.key().to_string()),
            slot_end: slot.map(Slot::end),
            fact,
        }
    }

    /// As it stands in the file, without its end.
    pub fn text(&self) -> String {
        // Strings and numbers always have a form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The slot that the line is about, if it is about one and that one can be.
    pub fn slot(&self) -> Option<Slot> {
        let (job, key, end) = (self.job.clone()?, self.slot.as_ref()?, self.slot_end?);
        Slot::new(job, key.parse::<crate::slot::SlotKey>().ok()?.start(), end).ok()
    }
}

impl Fact {
    /// Whether the line has to name a slot.
    pub const fn is_of_slot(&self) -> bool {
        !matches!(
            self,
            Self::Started { .. }
                | Self::Planned(_)
                | Self::Reloaded { .. }
                | Self::ReloadRefused { .. }
                | Self::StoreReached { .. }
                | Self::StoreLost { .. }
                | Self::RegistrationRefused { .. }
                | Self::ClockOff { .. }
                | Self::Namesake { .. }
                | Self::ClusterWasDown { .. }
                | Self::DoneAgain { .. }
                | Self::Gap { .. }
                | Self::Draining { .. }
                | Self::Stopped
                | Self::Fault { .. }
                | Self::Dropped { .. }
                | Self::Overloaded { .. }
                | Self::StoreFailing { .. }
                | Self::StoreFailingOver { .. }
                | Self::SlotsMissed { .. }
                | Self::Unknown
        )
    }
}

/// A span in seconds.
pub(super) const fn seconds(span: Duration) -> f64 {
    span.as_secs_f64()
}

/// An instant in RFC 3339, UTC, always with three digits of a second, so that lines sort as text.
mod instant {
    use chrono::{DateTime, SecondsFormat, Utc};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(at: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&at.to_rfc3339_opts(SecondsFormat::Millis, true))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DateTime<Utc>, D::Error> {
        DateTime::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = r#"{"at":"2026-11-21T14:00:00.100Z","node":"a","instance":"i1","job":"push","slot":"2026-11-21T14Z","slot_end":"2026-11-21T15:00:00Z","event":"run_started","attempt":1,"fence":1795269600001,"trigger":"schedule","guarded":true}"#;

    #[test]
    fn a_line_reads_back_as_it_was_written() {
        let line: Line = serde_json::from_str(RUN).unwrap();
        assert_eq!(serde_json::to_string(&line).unwrap(), RUN);
        assert_eq!(line.slot().unwrap().to_string(), "push@2026-11-21T14Z");
    }

    /// One line of each event, as the contract has it: what reads them and what writes them are one type.
    const EVENTS: &str = r#"
{"event":"started","jobs":3}
{"event":"planned","schedule":"0 * * * *","timezone":"Europe/Berlin","period":"hour","max_attempts":3,"lease_ttl_s":30.0,"retry_delay_s":10.0,"on_lost":"kill","ours":true,"jitter_s":0.25,"start_deadline_s":60.0}
{"event":"planned","schedule":"0 * * * *","timezone":"UTC","period":"hour","max_attempts":3,"lease_ttl_s":30.0,"retry_delay_s":10.0,"on_lost":"continue","ours":false}
{"event":"reloaded","jobs":3}
{"event":"reload_refused","error":"no"}
{"event":"store_reached"}
{"event":"store_reached","away_s":1.5}
{"event":"store_lost","error":"no"}
{"event":"registration_refused","error":"no"}
{"event":"clock_off","offset_ms":-2500}
{"event":"namesake","other":"i2","started":"2026-11-21T14:00:00.000Z"}
{"event":"cluster_was_down","gap_s":61.001}
{"event":"done_again","of":"push@2026-11-21T14Z"}
{"event":"overloaded","shed":4,"jobs":2,"waiting":1,"running":64,"full":true}
{"event":"store_failing","slots":4,"error":"no"}
{"event":"store_failing_over","slots":4}
{"event":"slots_missed","slots":2,"first":"2026-11-21T14Z","last":"2026-11-21T16Z"}
{"event":"gap","slots":2}
{"event":"draining","running":1,"drain_s":60.0}
{"event":"stopped"}
{"event":"fault","error":"no"}
{"event":"dropped","lines":7}
{"event":"claim_answered","answer":"held","by":"b"}
{"event":"claim_answered","answer":"exhausted"}
{"event":"granted","attempt":1,"used":1,"max_attempts":3,"granted_at":"2026-11-21T14:00:00.005Z","token":"0123abcd","trigger":"schedule","lease_ttl_s":30.0,"retry_delay_s":10.0,"poll_s":3.0,"on_lost":"kill"}
{"event":"granted","attempt":2,"used":2,"max_attempts":3,"granted_at":"2026-11-21T14:00:00.005Z","token":"0123abcd","trigger":"retry","lease_ttl_s":30.0,"retry_delay_s":10.0,"on_lost":"continue"}
{"event":"run_started","attempt":1,"fence":1795269600001,"trigger":"manual","guarded":false}
{"event":"run_ended","attempt":1,"outcome":"success","exit_code":0,"duration_s":0.123}
{"event":"run_ended","attempt":1,"outcome":"killed","signal":9,"duration_s":3.0,"note":"no"}
{"event":"run_timed_out","attempt":1}
{"event":"renewal_answered","answer":"restored"}
{"event":"lease_in_doubt","attempt":1,"killing":true}
{"event":"lease_lost","attempt":1,"to":"b","to_attempt":2,"killing":false}
{"event":"lease_lost","attempt":1,"killing":false}
{"event":"lease_restored","attempt":1}
{"event":"settled","attempt":1,"outcome":"given_back"}
{"event":"overtaken","attempt":1,"by":"b","by_attempt":2}
{"event":"attempts_used_up","used":3}
{"event":"settlement_given_up","attempt":1,"outcome":"failure"}
{"event":"start_deadline_passed"}
{"event":"shed"}
{"event":"store_failed","op":"give_back","kind":"read_only","error":"no"}
{"event":"closed","verdict":"missed"}"#;

    #[test]
    fn each_event_is_written_as_it_was_read() {
        for event in EVENTS.lines().skip(1) {
            let text = format!(r#"{{"at":"2026-11-21T14:00:00.100Z","node":"a","instance":"i1",{}"#, &event[1..]);
            let line: Line = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(line.text(), text);
            assert_ne!(line.fact, Fact::Unknown, "{text}");
        }
    }

    #[test]
    fn a_known_event_with_a_broken_field_is_a_fault() {
        for broken in [r#""attempt":"1""#, r#""attempt":-1"#, r#""attempts":1"#] {
            let text = RUN.replace(r#""attempt":1"#, broken);
            assert!(serde_json::from_str::<Line>(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_event_and_a_field_of_a_newer_version_are_no_fault() {
        let newer = RUN.replace("run_started", "run_hovered").replace("true}", "true,\"more\":1}");
        let line: Line = serde_json::from_str(&newer).unwrap();
        assert_eq!(line.fact, Fact::Unknown);
    }
}
