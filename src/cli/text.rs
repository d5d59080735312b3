//! Text for people: durations, instants, outcomes, and text of unknown origin made harmless for a terminal.

use std::borrow::Cow;
use std::fmt::Write;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};

use crate::clock::between;
use crate::slot::{Outcome, RunRecord, SlotRecord};

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

/// One line of text of unknown origin (output, messages, reasons): nothing in it can move a cursor, clear a screen,
/// retitle a window or turn the reading direction. Everything that could is written as an escape. Tabs stay.
pub(crate) fn harmless(line: &str) -> Cow<'_, str> {
    if !line.chars().any(is_harmful) {
        return Cow::Borrowed(line);
    }
    let mut shown = String::with_capacity(line.len() + 16);
    for c in line.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            c if is_harmful(c) && u32::from(c) < 0x100 => {
                let _ = write!(shown, "\\x{:02x}", u32::from(c));
            }
            c if is_harmful(c) => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// The same for text of several lines: line ends stay, also the `\r\n` of other systems.
pub(crate) fn harmless_lines(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    text.lines().map(harmless)
}

/// Controls (C0 but tab, DEL, C1), line and paragraph separators, and what overrides or isolates reading direction.
fn is_harmful(c: char) -> bool {
    match c {
        '\t' => false,
        '\u{200e}' | '\u{200f}' | '\u{061c}' => true,
        '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
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
    fn no_escape_sequence_passes() {
        assert_eq!(harmless("\x1b[2J\x1b]0;owned\x07 ok"), "\\x1b[2J\\x1b]0;owned\\x07 ok");
        assert_eq!(harmless("\u{9b}31m \u{7f}"), "\\x9b31m \\x7f");
        assert_eq!(harmless("a\rb\nc"), "a\\rb\\nc");
        assert_eq!(harmless("safe\u{202e}exe.txt\u{2028}"), "safe\\u{202e}exe.txt\\u{2028}");
    }

    #[test]
    fn what_is_harmless_stays_as_it_is() {
        for text in ["", "plain", "tab\tstop", "ä 漢 🦀", "\\x1b"] {
            assert_eq!(harmless(text), text);
        }
        assert_eq!(harmless_lines("a\r\nb\n").collect::<Vec<_>>(), ["a", "b"]);
    }
}
