//! Values of flags: numbers, durations, times, states. Each error says what to write.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::ValueEnum;

use crate::config::{LEASE_TTL, format_duration, parse_duration, zone_hint};
use crate::resource::{Demand, DemandTextError};
use crate::slot::{SlotKey, SlotState, Token};
use crate::zone::Zone;

/// A whole number of this range.
pub(crate) fn number<N: Display + FromStr + PartialOrd + Clone>(
    range: RangeInclusive<N>,
) -> impl Fn(&str) -> Result<N, String> + Clone {
    move |text| {
        let wrong = || format!("write a whole number from {} to {}", range.start(), range.end());
        text.parse().ok().filter(|number| range.contains(number)).ok_or_else(wrong)
    }
}

/// A duration such as `24h`, `90m` or `1h 30m`, written as in the file.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let span = parse_duration(text).map_err(|error| error.to_string())?;
    if span.is_zero() { Err("a duration of zero: write one like 30m, 24h or 7d".to_owned()) } else { Ok(span) }
}

/// How long a lease lasts, as the file takes it: 500 ms to a day.
pub(crate) fn lease_ttl(text: &str) -> Result<Duration, String> {
    let ttl = span(text)?;
    if !LEASE_TTL.contains(&ttl) {
        let (least, most) = (format_duration(*LEASE_TTL.start()), format_duration(*LEASE_TTL.end()));
        return Err(format!("a lease lasts {least} to {most}"));
    }
    Ok(ttl)
}

/// What is asked of a lock: `ledger`, `schema:shared`, `gpu:2/4`.
pub(crate) fn demand(text: &str) -> Result<Demand, String> {
    text.parse().map_err(|error| match error {
        DemandTextError::Demand(error) => format!("{error}: write at least 1 and at most as many as there are"),
        other => other.to_string(),
    })
}

/// A time: RFC 3339 with its offset, or a slot key.
pub(crate) fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    let rfc_3339 = DateTime::parse_from_rfc3339(text).map(|instant| instant.to_utc());
    rfc_3339.or_else(|_| text.parse::<SlotKey>().map(SlotKey::start)).map_err(|_| {
        format!(
            "{text:?} is not a time: write it like 2026-11-21T14:00:00Z, 2026-11-21T15:00:00+01:00 or 2026-11-21T14Z"
        )
    })
}

/// The token of a request for a lock.
pub(crate) fn token(text: &str) -> Result<Token, String> {
    text.parse().map_err(|_| "write the 32 hexadecimal digits that `cronward locks NAME` lists".to_owned())
}

/// An IANA time zone.
pub(crate) fn zone(text: &str) -> Result<Zone, String> {
    Zone::named(text).map_err(|error| format!("{error}: {}", zone_hint(text)))
}

/// The states that can be asked for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateWord {
    /// No attempt has started yet
    Pending,
    /// A node holds the lease
    Running,
    /// An attempt failed, and attempts are left
    Retrying,
    /// A run succeeded
    Done,
    /// The attempts are exhausted without success
    Failed,
    /// The slot ended without success, although attempts were left
    Missed,
    /// The job was paused during the slot
    Skipped,
}

impl From<StateWord> for SlotState {
    fn from(word: StateWord) -> Self {
        match word {
            StateWord::Pending => Self::Pending,
            StateWord::Running => Self::Running,
            StateWord::Retrying => Self::Retrying,
            StateWord::Done => Self::Done,
            StateWord::Failed => Self::Failed,
            StateWord::Missed => Self::Missed,
            StateWord::Skipped => Self::Skipped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_none_or_out_of_range_is_refused_with_the_range() {
        let count = number(1..=999_u32);
        assert_eq!(count("12"), Ok(12));
        for text in ["", "x", "-1", "0", "1000", "99999999999", "1.5"] {
            assert_eq!(count(text), Err("write a whole number from 1 to 999".to_owned()), "{text}");
        }
    }

    #[test]
    fn a_duration_is_written_as_in_the_file_and_is_never_nothing() {
        assert_eq!(span("24h"), Ok(Duration::from_secs(86_400)));
        for text in ["", "24", "0s", "-1h", "24x"] {
            assert!(span(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_is_rfc_3339_or_a_slot_key() {
        let wanted: DateTime<Utc> = "2026-11-21T14:00:00Z".parse().unwrap();
        for text in ["2026-11-21T14:00:00Z", "2026-11-21T15:00:00+01:00", "2026-11-21T14Z"] {
            assert_eq!(instant(text), Ok(wanted), "{text}");
        }
        for text in ["", "now", "2026-11-21", "2026-11-21T14:00:00"] {
            assert!(instant(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_zone_that_is_none_is_told_with_the_nearest() {
        assert_eq!(zone("Europe/Berlin").unwrap().name(), "Europe/Berlin");
        let near = zone("Europe/Berln").unwrap_err();
        let database = crate::zone::Database::current();
        assert_eq!(near, format!("\"Europe/Berln\" is not a time zone of {database}: did you mean \"Europe/Berlin\"?"));
        assert!(zone("x/y/z/0").unwrap_err().contains("write an IANA name"));
    }

    #[test]
    fn every_state_has_its_word() {
        for word in StateWord::value_variants() {
            let name = word.to_possible_value().unwrap().get_name().to_owned();
            assert_eq!(name, SlotState::from(*word).as_str());
        }
    }
}
