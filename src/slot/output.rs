//! The end of a command's output, and what of it was not kept. Stores write it beside the record of its run.

use serde::{Deserialize, Serialize};

/// The end of a command's output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputTail {
    /// The last bytes, stdout and stderr as they came; what is not UTF-8 is replaced.
    pub text: String,
    /// Bytes that came before and were not kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_bytes: u64,
    /// Why the store has less than `output_limit` allows; none where nothing else was dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<OutputLoss>,
}

/// Why the store has less of an output than `output_limit` allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutputLoss {
    /// The store was nearly full.
    StoreFull,
    /// The output is longer than the store takes ([`crate::store::Capability::output_bytes`]).
    TooLarge,
    /// The store refused the record with the output.
    Refused,
    /// The store did not answer when the record was sent with the output.
    Unanswered,
    /// A word of a later version.
    #[serde(other)]
    Unknown,
}

impl OutputLoss {
    /// The word used in records and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StoreFull => "store_full",
            Self::TooLarge => "too_large",
            Self::Refused => "refused",
            Self::Unanswered => "unanswered",
            Self::Unknown => "unknown",
        }
    }

    /// The same as a part of a sentence.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::StoreFull => "the store was nearly full",
            Self::TooLarge => "more than the store takes",
            Self::Refused => "the store refused the output",
            Self::Unanswered => "the store gave no answer while the output was sent",
            Self::Unknown => "unknown reason",
        }
    }
}

impl OutputTail {
    /// Whether there was output and nothing of it was kept.
    pub const fn is_lost(&self) -> bool {
        self.text.is_empty() && self.dropped_bytes > 0
    }

    /// The same in words.
    pub fn lost(&self) -> String {
        format!(
            "not kept: {} bytes ({})",
            self.dropped_bytes,
            self.loss.map_or("output_limit is 0", OutputLoss::reason)
        )
    }

    /// Nothing of it is kept any more. False where there was nothing to drop.
    pub(crate) fn drop_text(&mut self, loss: OutputLoss) -> bool {
        let dropped = std::mem::take(&mut self.text);
        if dropped.is_empty() {
            return false;
        }
        self.dropped_bytes = self.dropped_bytes.saturating_add(dropped.len() as u64);
        self.loss = Some(loss);
        true
    }

    /// The end of it whose JSON has at most so many bytes.
    pub(crate) fn bounded(&self, most: usize) -> Self {
        let mut left = most;
        let fits = |(_, c): &(usize, char)| {
            let fits = left.checked_sub(json_len(*c));
            left = fits.unwrap_or(left);
            fits.is_some()
        };
        let start = self.text.char_indices().rev().take_while(fits).last().map_or(self.text.len(), |(at, _)| at);
        let Some((head, text)) = self.text.split_at_checked(start).filter(|(head, _)| !head.is_empty()) else {
            return self.clone();
        };
        let dropped_bytes = self.dropped_bytes.saturating_add(head.len() as u64);
        Self { text: text.to_owned(), dropped_bytes, loss: Some(OutputLoss::TooLarge) }
    }
}

/// The bytes of a character within a JSON text.
const fn json_len(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => c.len_utf8(),
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(text: &str) -> OutputTail {
        OutputTail { text: text.to_owned(), dropped_bytes: 5, loss: None }
    }

    #[test]
    fn an_output_is_cut_to_the_end_whose_json_fits_and_counts_what_was_dropped() {
        for text in ["", "plain", "\u{1}\u{2}\n\"\\\u{7f}", "结束🦀", "\0\0\0"] {
            let whole = serde_json::to_string(text).unwrap().len() - 2;
            assert_eq!(tail(text).bounded(whole), tail(text), "{text:?}");
            for most in 0..whole {
                let cut = tail(text).bounded(most);
                assert!(text.ends_with(&cut.text) && serde_json::to_string(&cut.text).unwrap().len() - 2 <= most);
                assert_eq!(cut.dropped_bytes, 5 + (text.len() - cut.text.len()) as u64);
                assert_eq!(cut.loss, Some(OutputLoss::TooLarge), "{text:?} {most}");
            }
        }
    }

    #[test]
    fn a_loss_of_a_later_version_is_read() {
        let read: OutputTail = serde_json::from_str(r#"{"text":"","dropped_bytes":3,"loss":"eaten"}"#).unwrap();
        assert_eq!(
            (read.loss, read.lost().as_str()),
            (Some(OutputLoss::Unknown), "not kept: 3 bytes (unknown reason)")
        );
    }
}
