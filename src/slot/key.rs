//! The slot key: a slot's UTC start in ISO 8601, cut at the first part that is zero, so that a person can read and type it.
//!
//! `2026-11-21T14Z`, `2026-11-21T14:30Z`, `2026-11-21T14:30:15Z`. Every instant has exactly one key, and a key that is
//! not the shortest one for its instant is refused: two spellings would be two slots.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Datelike, NaiveDate, Timelike, Utc};
use serde::{Deserialize, Serialize};

/// The key of the slot that begins at this instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SlotKey(DateTime<Utc>);

/// A text that is no slot key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a slot: {fix}")]
pub struct SlotKeyError {
    text: String,
    fix: &'static str,
}

impl SlotKeyError {
    /// The text, cut where it is long.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl SlotKey {
    /// The first that there is, `1970-01-01T00Z`.
    pub const FIRST: Self = Self(DateTime::UNIX_EPOCH);

    /// The key for a start; none when the instant has a fraction of a second or lies outside the years 1970 to 9999.
    pub fn of(start: DateTime<Utc>) -> Option<Self> {
        let whole = start.nanosecond() == 0;
        let in_range = (1970..=9999).contains(&start.year());
        (whole && in_range).then_some(Self(start))
    }

    /// The slot's start.
    pub const fn start(self) -> DateTime<Utc> {
        self.0
    }
}

impl fmt::Display for SlotKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let format = match (self.0.minute(), self.0.second()) {
            (0, 0) => "%Y-%m-%dT%HZ",
            (_, 0) => "%Y-%m-%dT%H:%MZ",
            _ => "%Y-%m-%dT%H:%M:%SZ",
        };
        f.pad(&self.0.format(format).to_string())
    }
}

impl FromStr for SlotKey {
    type Err = SlotKeyError;

    fn from_str(text: &str) -> Result<Self, SlotKeyError> {
        let error = |fix| SlotKeyError { text: text.chars().take(40).collect(), fix };
        let key = parse(text).ok_or_else(|| error("use its start in UTC, like 2026-11-21T14Z or 2026-11-21T14:30Z"))?;
        if key.to_string() == text {
            Ok(key)
        } else {
            Err(error("leave out zero minutes and seconds at the end, like 2026-11-21T14Z"))
        }
    }
}

impl TryFrom<String> for SlotKey {
    type Error = SlotKeyError;

    fn try_from(text: String) -> Result<Self, SlotKeyError> {
        text.parse()
    }
}

impl From<SlotKey> for String {
    fn from(key: SlotKey) -> Self {
        key.to_string()
    }
}

/// Reads any of the three lengths; whether it is the shortest is the caller's to check.
fn parse(text: &str) -> Option<SlotKey> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let date = NaiveDate::parse_from_str(date, "%Y-%m-%d").ok()?;
    let mut parts = [0_u32; 3];
    for (index, part) in time.split(':').enumerate() {
        let two_digits = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        *parts.get_mut(index)? = if two_digits { part.parse().ok()? } else { return None };
    }
    let [hour, minute, second] = parts;
    SlotKey::of(date.and_hms_opt(hour, minute, second)?.and_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_cut_at_the_first_part_that_is_zero_from_the_right() {
        for (start, key) in [
            ("2026-11-21T14:00:00Z", "2026-11-21T14Z"),
            ("2026-11-21T00:00:00Z", "2026-11-21T00Z"),
            ("2026-11-21T14:30:00Z", "2026-11-21T14:30Z"),
            ("2026-11-21T14:30:15Z", "2026-11-21T14:30:15Z"),
            ("2026-11-21T14:00:15Z", "2026-11-21T14:00:15Z"),
        ] {
            let start: DateTime<Utc> = start.parse().unwrap();
            assert_eq!(SlotKey::of(start).unwrap().to_string(), key);
            assert_eq!(key.parse::<SlotKey>().unwrap().start(), start);
        }
    }

    #[test]
    fn a_longer_spelling_of_the_same_instant_is_refused() {
        for text in ["2026-11-21T14:00Z", "2026-11-21T14:30:00Z", "2026-11-21T14:00:00Z"] {
            assert!(text.parse::<SlotKey>().unwrap_err().to_string().contains("leave out"), "{text}");
        }
    }

    #[test]
    fn what_is_no_key_is_refused_with_an_example() {
        for text in [
            "",
            "Z",
            "T",
            "2026-11-21",
            "2026-11-21T14",
            "2026-13-01T00Z",
            "2026-02-30T00Z",
            "2026-11-21T24Z",
            "2026-11-21T1Z",
            "2026-11-21T14:60Z",
            "2026-11-21T14:30:15:01Z",
            "1969-12-31T23Z",
            "+12026-01-01T00Z",
            "2026-11-21T+1Z",
            "2026-11-21T14:30:60Z",
            "２026-11-21T14Z",
        ] {
            assert!(text.parse::<SlotKey>().unwrap_err().to_string().contains("2026-11-21T14Z"), "{text}");
        }
    }

    #[test]
    fn an_instant_with_a_fraction_or_out_of_range_has_no_key() {
        assert!(SlotKey::of("2026-11-21T14:00:00.5Z".parse().unwrap()).is_none());
        assert!(SlotKey::of(DateTime::<Utc>::MAX_UTC).is_none());
        assert!(SlotKey::of(DateTime::<Utc>::MIN_UTC).is_none());
    }
}
