//! `--slot`: the length of the slot of now, or one slot by its key.

use std::str::FromStr;

use crate::config::parse_duration;
use crate::slot::{Period, SlotKey};

/// Which slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotArg {
    /// The one of now, of this length.
    Span(Period),
    /// This one.
    Key(SlotKey),
}

impl FromStr for SlotArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "hour" => Ok(Self::Span(Period::Hour)),
            "minute" => Ok(Self::Span(Period::Minute)),
            "day" => Ok(Self::Span(Period::Day)),
            _ => match parse_duration(text) {
                Ok(length) => Period::of_length(length).map(Self::Span).map_err(|error| error.to_string()),
                Err(_) => text.parse().map(Self::Key).map_err(|_| not_a_slot(text)),
            },
        }
    }
}

fn not_a_slot(text: &str) -> String {
    format!(
        "{text:?} is not a slot: write hour, minute or day, a duration that divides a day, like 15m, or the start of a slot, like \
         2026-11-21T14Z"
    )
}
