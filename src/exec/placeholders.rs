//! Placeholders in list commands: `{slot} {slot_start} {slot_end} {scheduled_at} {attempt} {fence} {job}`.
//!
//! `{{` and `}}` stand for the braces themselves. Never used in shell strings: a shell has the environment, and text
//! that is pasted into a shell line is a hole.

use crate::exec::rfc3339;
use crate::slot::RunContext;
use crate::text::message;

/// A text whose placeholders cannot be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceholderError {
    /// Nothing has that name.
    #[error(
        "unknown placeholder {{{0}}}; known are {{slot}}, {{slot_start}}, {{slot_end}}, {{scheduled_at}}, {{attempt}}, \
         {{fence}} and {{job}}; write {{{{ for a brace"
    )]
    Unknown(String),
    /// A `{` without its `}`.
    #[error("a '{{' without its '}}'; write {{{{ for a brace")]
    Unclosed,
    /// A `}` without its `{`.
    #[error("a '}}' without its '{{'; write }}}} for a brace")]
    Unopened,
}

/// One thing that a placeholder can stand for.
#[derive(Clone, Copy)]
enum Placeholder {
    Slot,
    SlotStart,
    SlotEnd,
    ScheduledAt,
    Attempt,
    Fence,
    Job,
}

impl Placeholder {
    fn parse(name: &str) -> Result<Self, PlaceholderError> {
        Ok(match name {
            "slot" => Self::Slot,
            "slot_start" => Self::SlotStart,
            "slot_end" => Self::SlotEnd,
            "scheduled_at" => Self::ScheduledAt,
            "attempt" => Self::Attempt,
            "fence" => Self::Fence,
            "job" => Self::Job,
            _ => return Err(PlaceholderError::Unknown(message(name, 40))),
        })
    }

    fn value(self, run: &RunContext) -> String {
        match self {
            Self::Slot => run.slot.key().to_string(),
            Self::SlotStart => rfc3339(run.slot.start()),
            Self::SlotEnd => rfc3339(run.slot.end()),
            Self::ScheduledAt => rfc3339(run.scheduled_at),
            Self::Attempt => run.attempt.to_string(),
            Self::Fence => run.fence.to_string(),
            Self::Job => run.slot.job().to_string(),
        }
    }
}

/// Whether every placeholder of the text is known: what `check` asks of each word of a list command.
pub fn check(text: &str) -> Result<(), PlaceholderError> {
    expand(text, |_| String::new()).map(drop)
}

/// The text with its placeholders filled in.
pub fn fill(text: &str, run: &RunContext) -> Result<String, PlaceholderError> {
    expand(text, |placeholder| placeholder.value(run))
}

fn expand(text: &str, value: impl Fn(Placeholder) -> String) -> Result<String, PlaceholderError> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        filled.push_str(before);
        rest = if let Some(after) = from.strip_prefix("{{") {
            filled.push('{');
            after
        } else if let Some(after) = from.strip_prefix("}}") {
            filled.push('}');
            after
        } else {
            let inner = from.strip_prefix('{').ok_or(PlaceholderError::Unopened)?;
            let (name, after) = inner.split_once('}').ok_or(PlaceholderError::Unclosed)?;
            filled.push_str(&value(Placeholder::parse(name)?));
            after
        };
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::environment::tests::run;

    #[test]
    fn every_placeholder_is_filled_in() {
        for (text, filled) in [
            ("--hour={slot}", "--hour=2026-11-21T14Z"),
            ("{slot_start}/{slot_end}", "2026-11-21T14:00:00Z/2026-11-21T15:00:00Z"),
            ("{scheduled_at}", "2026-11-21T14:05:00Z"),
            ("{job}-{attempt}", "push-2"),
            ("{fence}", "1795269600002"),
            ("", ""),
            ("none at all", "none at all"),
        ] {
            assert_eq!(check(text), Ok(()));
            assert_eq!(fill(text, &run()).unwrap(), filled);
        }
    }

    #[test]
    fn doubled_braces_are_braces() {
        assert_eq!(fill("{{slot}} {{{slot}}} }}{{", &run()).unwrap(), "{slot} {2026-11-21T14Z} }{");
    }

    #[test]
    fn a_value_is_not_filled_in_again() {
        assert_eq!(fill("{{{job}}}", &run()).unwrap(), "{push}");
    }

    #[test]
    fn an_unknown_placeholder_or_a_lone_brace_is_refused_with_the_way_out() {
        for (text, part) in [
            ("{hour}", "unknown placeholder {hour}; known are {slot}"),
            ("{}", "unknown placeholder {}"),
            ("{Slot}", "write {{ for a brace"),
            ("{\"a\":1}", "unknown placeholder"),
            ("{slot", "a '{' without its '}'"),
            ("slot}", "write }} for a brace"),
        ] {
            let error = check(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
            assert_eq!(fill(text, &run()).unwrap_err().to_string(), error);
        }
    }
}
