//! What one slot spans.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What one slot spans. Hours, minutes and days are those of the job's time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Period {
    /// A calendar minute.
    Minute,
    /// A calendar hour.
    Hour,
    /// A calendar day.
    Day,
    /// From one scheduled instant to the next: each tick is its own slot.
    Tick,
    /// A fixed number of whole seconds, counted from the Unix epoch. For services that embed the library and for tests;
    /// `jobs.toml` has no word for it.
    Fixed(Duration),
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Minute => f.write_str("minute"),
            Self::Hour => f.write_str("hour"),
            Self::Day => f.write_str("day"),
            Self::Tick => f.write_str("tick"),
            Self::Fixed(length) => write!(f, "{}s", length.as_secs()),
        }
    }
}

/// A word that is no period.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not a period: write hour, minute, day or tick")]
pub struct PeriodError {
    word: String,
}

impl FromStr for Period {
    type Err = PeriodError;

    /// Reads what [`Display`](fmt::Display) writes. `jobs.toml` does not take the form `<n>s`.
    fn from_str(word: &str) -> Result<Self, PeriodError> {
        let fixed = || {
            let digits = word.strip_suffix('s')?;
            let seconds = Some(digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
            seconds.parse().ok().filter(|seconds| *seconds > 0).map(|seconds| Self::Fixed(Duration::from_secs(seconds)))
        };
        match word {
            "minute" => Ok(Self::Minute),
            "hour" => Ok(Self::Hour),
            "day" => Ok(Self::Day),
            "tick" => Ok(Self::Tick),
            _ => fixed().ok_or_else(|| PeriodError { word: word.chars().take(40).collect() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_period_reads_back_as_it_is_written() {
        let fixed = Period::Fixed(Duration::from_secs(5));
        for period in [Period::Minute, Period::Hour, Period::Day, Period::Tick, fixed] {
            assert_eq!(period.to_string().parse(), Ok(period));
        }
    }

    #[test]
    fn another_word_is_refused_with_those_there_are() {
        for word in ["", "hours", "Hour", "week", "s", "0s", "-5s", "+5s", "5 s", "5m", "99999999999999999999s"] {
            assert!(word.parse::<Period>().unwrap_err().to_string().contains("hour, minute, day or tick"), "{word}");
        }
    }
}
