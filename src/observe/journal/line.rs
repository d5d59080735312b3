//! A line of a journal, for writing and for reading. Fields are added, never renamed and never given another meaning.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::event::Event;
use crate::event::json::instant;
use crate::job::{JobName, NodeName};
use crate::slot::Slot;

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
    /// What happened; the field `event` names it.
    #[serde(flatten)]
    pub event: Event,
}

impl Line {
    /// A line of this node: of a slot, of a job, or of neither.
    pub fn of(at: DateTime<Utc>, (node, instance): (&NodeName, &str), slot: Option<&Slot>, event: &Event) -> Self {
        Self {
            at,
            node: node.clone(),
            instance: instance.to_owned(),
            job: slot.map(Slot::job).or_else(|| event.job()).cloned(),
            slot: slot.map(|slot| slot.key().to_string()),
            slot_end: slot.map(Slot::end),
            event: event.clone(),
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
{"event":"store_lost","error":"no","kind":"overloaded"}
{"event":"registration_refused","error":"no"}
{"event":"clock_off","offset_ms":-2500}
{"event":"namesake","other":"i2","started":"2026-11-21T14:00:00.000Z"}
{"event":"cluster_was_down","gap_s":61.001}
{"event":"store_forgot","acknowledged":"2026-11-21T14:00:00.000Z"}
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
{"event":"run_ended","attempt":1,"outcome":"success","exit_code":0,"duration_s":8.5,"ended_between":["2026-11-21T14:00:00.500Z","2026-11-21T14:00:08.500Z"]}
{"event":"lease_in_doubt","attempt":1,"killing":false,"ended":true}
{"event":"overtaken","attempt":1,"by":"b","by_attempt":2,"overlap":"sure"}
{"event":"unstarted","attempt":1,"why":"the start deadline had passed"}
{"event":"unstarted","attempt":1,"why":"the slot ended while it waited for db","locks":[{"lock":"db","weight":1,"of":1}]}
{"event":"run_timed_out","attempt":1}
{"event":"renewal_answered","answer":"restored"}
{"event":"lease_in_doubt","attempt":1,"killing":true}
{"event":"lease_lost","attempt":1,"to":"b","to_attempt":2,"killing":false}
{"event":"lease_lost","attempt":1,"killing":false}
{"event":"lease_lost","attempt":1,"killing":false,"unstarted":true}
{"event":"lease_restored","attempt":1}
{"event":"settled","attempt":1,"outcome":"given_back"}
{"event":"overtaken","attempt":1,"by":"b","by_attempt":2}
{"event":"overtaken","attempt":1,"by":"b","by_attempt":2,"unstarted":true}
{"event":"attempts_used_up","used":3}
{"event":"settlement_given_up","attempt":1,"outcome":"failure"}
{"event":"start_deadline_passed"}
{"event":"shed"}
{"event":"store_failed","op":"give_back","kind":"read_only","error":"no"}
{"event":"lock_waiting","attempt":1,"locks":[{"lock":"gpu","weight":1,"of":4}],"ahead":2,"by":"b","by_label":"export@2026-11-21T13Z#1","since":"2026-11-21T13:58:02.001Z"}
{"event":"lock_waiting","attempt":1,"locks":[{"lock":"db","weight":1,"of":1}],"ahead":1,"by":"b"}
{"event":"lock_held","attempt":1,"locks":[{"lock":"db","weight":1,"of":1}],"fence":1795269600001,"waited_s":3.5}
{"event":"lock_held","attempt":1,"locks":[{"lock":"db","weight":1,"of":1}],"fence":1795269600001,"waited_s":3.5,"again":true}
{"event":"lock_lost","attempt":1,"to":"b","to_label":"x","in_doubt":false,"killing":true}
{"event":"lock_lost","attempt":1,"in_doubt":true,"killing":false}
{"event":"lock_lost","attempt":1,"in_doubt":true,"killing":false,"unstarted":true}
{"event":"lock_left","attempt":1,"answer":"overtaken","by":"b","by_label":"x"}
{"event":"lock_left","attempt":1,"answer":"released","why":"lock_wait passed while it waited for db"}
{"event":"closed","verdict":"missed"}"#;

    #[test]
    fn each_event_is_written_as_it_was_read() {
        for event in EVENTS.lines().skip(1) {
            let text = format!(r#"{{"at":"2026-11-21T14:00:00.100Z","node":"a","instance":"i1",{}"#, &event[1..]);
            let line: Line = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(line.text(), text);
            assert_ne!(line.event, Event::Unknown, "{text}");
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
        assert_eq!(line.event, Event::Unknown);
    }

    #[test]
    fn an_answer_of_a_newer_version_is_unknown_and_no_fault() {
        for event in [
            r#""event":"claim_answered","answer":"hovered""#,
            r#""event":"renewal_answered","answer":"hovered""#,
            r#""event":"store_failed","op":"hover","kind":"timeout","error":"no""#,
            r#""event":"store_failed","op":"claim","kind":"hovering","error":"no""#,
        ] {
            let text = format!(r#"{{"at":"2026-11-21T14:00:00.100Z","node":"a","instance":"i1",{event}}}"#);
            let line: Line = serde_json::from_str(&text).unwrap();
            assert!(line.text().contains(r#""unknown""#), "{text}");
        }
    }
}
