//! Durations, instants and outcomes as people read them.

use std::borrow::Cow;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};

use crate::clock::between;
use crate::slot::{Outcome, RunRecord, SlotRecord};
pub(crate) use crate::text::harmless;
use crate::zone::Zone;

/// A duration in its largest sensible unit, cut: `41s`, `12m`, `3h`, `5d`.
pub(crate) fn brief(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7_199 => format!("{}m", seconds / 60),
        7_200..=172_799 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// How long ago an instant was, or how soon it comes.
pub(crate) fn relative(now: DateTime<Utc>, instant: DateTime<Utc>) -> String {
    if instant > now {
        format!("in {}", brief(between(now, instant)))
    } else {
        format!("{} ago", brief(between(instant, now)))
    }
}

/// An instant in RFC 3339, UTC, with milliseconds where it has them.
pub(crate) fn instant(instant: DateTime<Utc>) -> String {
    instant.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// How an attempt ended, in a word or two: `success`, `exit 1`, `signal 9`, `timeout`, `crashed`; `running` before.
pub(crate) fn ending(record: &SlotRecord, run: &RunRecord) -> String {
    match (record.outcome_of(run), run.exit_code, run.signal) {
        (None, _, _) => "running".to_owned(),
        (Some(Outcome::Failure), Some(code), _) => format!("exit {code}"),
        (Some(Outcome::Killed), _, Some(signal)) => format!("signal {signal}"),
        (Some(outcome), _, _) => outcome.as_str().replace('_', " "),
    }
}

/// What is said of a slot that ended with attempts left, after attempts that failed: how many, of how many.
pub(crate) fn missed_after(used: u32, of: u32) -> String {
    format!("missed: attempt {used} of {of} did not succeed, no retry before the slot ended")
}

/// Why the command of an attempt could not be started, as its node recorded it.
pub(crate) fn start_failure(run: &RunRecord) -> Option<&str> {
    run.message.as_deref().filter(|_| matches!(run.exit_code, Some(126 | 127)))
}

/// Between which instants an attempt ended whose node stood still meanwhile.
pub(crate) fn ended_between(run: &RunRecord) -> Option<String> {
    let (after, by) = run.ended_between()?;
    Some(format!("between {} and {}: node {} stood still", instant(after), instant(by), run.node))
}

/// [`ending`], with the cause where the command could not be started.
pub(crate) fn ending_with_cause(record: &SlotRecord, run: &RunRecord) -> String {
    let ended = ending(record, run);
    start_failure(run).map(|cause| format!("{ended}: {cause}")).unwrap_or(ended)
}

/// What stands beside each time: a city says more to people than an abbreviation, of which `CST` is three.
pub(crate) fn zone_name(zone: &Zone) -> String {
    let name = zone.name();
    name.rsplit('/').next().unwrap_or(name).replace('_', " ")
}

/// [`harmless`] for text of several lines: line ends stay, also the `\r\n` of other systems.
pub(crate) fn harmless_lines(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    text.lines().map(harmless)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_cut_to_its_largest_sensible_unit() {
        for (seconds, text) in
            [(0, "0s"), (119, "119s"), (120, "2m"), (7_199, "119m"), (7_200, "2h"), (172_799, "47h"), (172_800, "2d")]
        {
            assert_eq!(brief(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn an_instant_is_before_or_after_now() {
        let now: DateTime<Utc> = "2026-11-21T14:00:00Z".parse().unwrap();
        assert_eq!(relative(now, "2026-11-21T14:48:00Z".parse().unwrap()), "in 48m");
        assert_eq!(relative(now, "2026-11-21T13:59:00Z".parse().unwrap()), "60s ago");
        assert_eq!(relative(now, now), "0s ago");
    }

    #[test]
    fn an_end_that_was_not_seen_lies_between_two_instants() {
        let at = |text: &str| -> DateTime<Utc> { text.parse().unwrap() };
        let seen = crate::admin::fixture::ended(1, "a", Outcome::Success, 0);
        assert_eq!(ended_between(&seen), None);
        let by = Some(at("2026-11-21T12:00:08.250Z"));
        let unseen = RunRecord { ended_after: Some(at("2026-11-21T12:00:01Z")), ended_at: by, ..seen };
        let words = "between 2026-11-21T12:00:01Z and 2026-11-21T12:00:08.250Z: node a stood still";
        assert_eq!(ended_between(&unseen).as_deref(), Some(words));
    }

    #[test]
    fn line_ends_of_any_system_stay() {
        assert_eq!(harmless_lines("a\r\nb\n").collect::<Vec<_>>(), ["a", "b"]);
    }
}
