//! The lease of a slot: who holds it, under which token, as which attempt.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::job::NodeName;
use crate::slot::{Attempt, Fence, Slot};

/// 128 random bits that the *caller* makes for one claim, before the first send. The same token is one grant, however
/// often the request is sent (invariant I5). It is shown to operators but never to the command.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Token(u128);

/// A text that is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token is 32 hexadecimal digits in lower case")]
pub struct TokenError;

impl Token {
    /// A token from random bits.
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// The bits.
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// The token of the next claim of the same claimer. Unique because the first one's bits are random.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// The first eight digits: enough to tell claims apart, useless to whoever would act as the holder.
    pub fn first_digits(self) -> String {
        self.to_string().chars().take(8).collect()
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Token {
    type Err = TokenError;
    fn from_str(text: &str) -> Result<Self, TokenError> {
        let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 32 || !text.bytes().all(hex) {
            return Err(TokenError);
        }
        u128::from_str_radix(text, 16).map(Self).map_err(|_| TokenError)
    }
}

impl TryFrom<String> for Token {
    type Error = TokenError;
    fn try_from(text: String) -> Result<Self, TokenError> {
        text.parse()
    }
}

impl From<Token> for String {
    fn from(token: Token) -> Self {
        token.to_string()
    }
}

/// Why an attempt was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// Its tick.
    Schedule,
    /// An earlier attempt of the slot did not succeed.
    Retry,
    /// A person asked for it.
    Manual,
    /// `cronward exec`.
    Exec,
}

impl Trigger {
    /// The word used in keys, JSON and the command's environment.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Retry => "retry",
            Self::Manual => "manual",
            Self::Exec => "exec",
        }
    }
}

/// What a node holds after its claim was granted: all that a store needs to know whose request it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The slot.
    pub slot: Slot,
    /// The claim's token; every later operation names it.
    pub token: Token,
    /// Who holds it.
    pub node: NodeName,
    /// Which claim of the slot it is.
    pub attempt: Attempt,
    /// What started it.
    pub trigger: Trigger,
    /// When it was granted, by the store's clock.
    pub claimed_at: DateTime<Utc>,
    /// TTL that a claim or a renewal sets.
    pub ttl: Duration,
    /// The store's own number of the change that granted it, where a store has one (etcd's `mod_revision` of the mark): larger
    /// for each later grant of any slot. Only told on; no operation reads it.
    pub revision: Option<u64>,
}

impl Lease {
    /// The fence of this attempt.
    pub fn fence(&self) -> Fence {
        self.slot.fence(self.attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_as_written() {
        let token = Token::from_bits(0x0123);
        assert_eq!(token.to_string(), "00000000000000000000000000000123");
        assert_eq!(token.to_string().parse(), Ok(token));
    }

    #[test]
    fn what_is_not_32_lower_case_hex_digits_is_no_token() {
        for text in ["", "123", &"A".repeat(32), &"g".repeat(32), &"0".repeat(33), "+0000000000000000000000000000123"] {
            assert_eq!(text.parse::<Token>(), Err(TokenError), "{text}");
        }
    }

    #[test]
    fn the_next_token_is_another_one_even_at_the_end() {
        assert_ne!(Token::from_bits(u128::MAX).next(), Token::from_bits(u128::MAX));
    }
}
