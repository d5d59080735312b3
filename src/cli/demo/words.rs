//! What a line of a node's journal says to whoever watches. Pure; what only a checker needs is left out.

use chrono::{DateTime, Utc};

use crate::observe::journal::{Fact, Line};
use crate::slot::{Outcome, Slot, Verdict};

/// The node that was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kill {
    pub(super) at: DateTime<Utc>,
    pub(super) node: String,
    /// The slot that it held.
    pub(super) slot: Slot,
}

/// A line of the story; none for what is not worth one.
pub(super) fn story(line: &Line, kill: Option<&Kill>) -> Option<String> {
    let slot = line.slot();
    let what = words(&line.fact, kill.filter(|kill| slot.as_ref() == Some(&kill.slot)))?;
    Some(entry(line.at, line.node.as_str(), &slot.map(|slot| slot.to_string()).unwrap_or_default(), &what))
}

/// One line: when, who, which slot, what.
pub(super) fn entry(at: DateTime<Utc>, who: &str, slot: &str, what: &str) -> String {
    format!("{}  {who:<4}  {slot:<27}  {what}", at.format("%H:%M:%S%.3f"))
}

/// What happened; `kill` is that of the holder of this very slot.
fn words(fact: &Fact, kill: Option<&Kill>) -> Option<String> {
    Some(match fact {
        Fact::Started { .. } => "is up".to_owned(),
        Fact::Granted { attempt: 1, .. } => "holds the lease, attempt 1".to_owned(),
        Fact::Granted { attempt, .. } => match kill {
            Some(Kill { node, .. }) => format!("takes over from {node}, attempt {attempt}"),
            None => format!("tries again, attempt {attempt}"),
        },
        Fact::RunEnded { outcome: Outcome::Success, .. } => return None,
        Fact::RunEnded { outcome: Outcome::Failure, exit_code: Some(code), .. } => format!("fails with exit {code}"),
        Fact::RunEnded { outcome, .. } => format!("ends: {}", outcome.as_str().replace('_', " ")),
        Fact::Settled { outcome: Outcome::Success, .. } => "done".to_owned(),
        Fact::Settled { outcome: Outcome::GivenBack, .. } => "gives it back".to_owned(),
        Fact::LeaseLost { .. } => "lost its lease".to_owned(),
        Fact::AttemptsUsedUp { .. } => "no attempt is left".to_owned(),
        Fact::Closed { verdict } if *verdict != Verdict::Done => format!("is over: {}", verdict.as_str()),
        Fact::StoreLost { .. } => "cannot reach the store".to_owned(),
        Fact::Draining { .. } => "is leaving".to_owned(),
        Fact::Fault { error } => format!("fault: {error}"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(event: &str) -> Line {
        let head = r#"{"at":"2026-11-21T14:00:12.100Z","node":"a","instance":"i","job":"export""#;
        let slot = r#""slot":"2026-11-21T14:00:12Z","slot_end":"2026-11-21T14:00:24Z""#;
        serde_json::from_str(&format!("{head},{slot},{event}}}")).unwrap()
    }

    fn granted(attempt: u32) -> Line {
        line(&format!(
            r#""event":"granted","attempt":{attempt},"used":{attempt},"max_attempts":3,"granted_at":"2026-11-21T14:00:12.000Z",
               "token":"0","trigger":"retry","lease_ttl_s":2.0,"retry_delay_s":1.0,"on_lost":"continue""#
        ))
    }

    #[test]
    fn a_takeover_is_told_from_a_second_try() {
        let kill = |job: &str| {
            let slot = Slot::parse(job, "2026-11-21T14:00:12Z", "2026-11-21T14:00:24Z").unwrap();
            Kill { at: DateTime::UNIX_EPOCH, node: "b".to_owned(), slot }
        };
        let told = |kill: Option<&Kill>| story(&granted(2), kill).unwrap();
        assert_eq!(told(None), "14:00:12.100  a     export@2026-11-21T14:00:12Z  tries again, attempt 2");
        assert!(told(Some(&kill("export"))).ends_with("takes over from b, attempt 2"));
        assert!(told(Some(&kill("push"))).ends_with("tries again, attempt 2"), "another slot");
    }

    #[test]
    fn a_line_fits_80_columns() {
        let told = story(&granted(2), None).unwrap();
        assert!(told.len() <= 80, "{told}");
    }

    #[test]
    fn a_run_that_succeeded_is_told_once_when_it_is_recorded() {
        let ended = line(r#""event":"run_ended","attempt":1,"outcome":"success","exit_code":0,"duration_s":1.0"#);
        assert_eq!(story(&ended, None), None);
        let settled = line(r#""event":"settled","attempt":1,"outcome":"success""#);
        assert!(story(&settled, None).unwrap().ends_with("done"));
    }
}
