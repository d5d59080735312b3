//! One request for locks from its first send to its end: what is asked, what is held, and how it is left.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::job::NodeName;
use crate::resource::Demands;
use crate::slot::{Attempt, Fence, Slot, Token, TokenError};
use crate::text;

/// A number by which entries stand in a queue: the store's clock in milliseconds, or the next one that is larger than all before.
pub type LockPlace = u64;

/// The longest label, in characters.
pub const LONGEST_LABEL: usize = 120;

/// What an attempt at a slot has as the label of its request, by which it is found in a queue.
pub(crate) fn attempt_label(slot: &Slot, attempt: Attempt) -> String {
    text::message(&format!("{slot}#{attempt}"), LONGEST_LABEL)
}

/// One identity that may take a lock again while it holds it: entries of one owner weigh once and stand together. Each request is its
/// own owner unless it says otherwise; tasks move between threads, so nothing is taken from a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OwnerId(Token);

impl OwnerId {
    /// From random bits.
    pub const fn new(token: Token) -> Self {
        Self(token)
    }

    /// The owner that everybody finds who knows the same text: a slot, whose attempts follow each other.
    pub fn of_text(text: &str) -> Self {
        // FNV-1a, 128 bits: the same in every version of the program, which a hasher of the standard library does not promise.
        // Whoever can name an owner can be it; nothing secret rests on this.
        const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let mixed = |hash: u128, byte: u8| (hash ^ u128::from(byte)).wrapping_mul(PRIME);
        Self(Token::from_bits(text.bytes().fold(OFFSET, mixed)))
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for OwnerId {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        text.parse().map(Self)
    }
}

/// A request for locks: all of them, or none. The same request again is the beat by which a waiter keeps its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcquireRequest {
    /// Made by the caller before the first send; the same for every repetition of this request, and for its whole life.
    pub token: Token,
    /// Who it is, for re-entrance.
    pub owner: OwnerId,
    /// On which node, for people.
    pub node: NodeName,
    /// What for, for people. See [`AcquireRequest::labelled`].
    pub label: String,
    /// The process that is told when it may hold ([`crate::store::LockStore::listen`]).
    pub instance: Token,
    /// How long its entries stand unless it asks again or renews.
    pub ttl: Duration,
    /// What is asked for.
    pub demands: Demands,
    /// Whether it waits its turn. Otherwise it holds at once or leaves no trace.
    pub queue: bool,
}

impl AcquireRequest {
    /// A request that waits, whose owner is itself, without a label.
    pub const fn new(token: Token, node: NodeName, instance: Token, ttl: Duration, demands: Demands) -> Self {
        Self { token, owner: OwnerId::new(token), node, label: String::new(), instance, ttl, demands, queue: true }
    }

    /// The same, for something that people know: cut to a line that can be shown.
    #[must_use]
    pub fn labelled(self, label: &str) -> Self {
        Self { label: text::message(label, LONGEST_LABEL), ..self }
    }

    /// What is held once the store has answered so.
    pub fn granted(&self, fence: Fence, places: Vec<LockPlace>) -> LockHold {
        LockHold {
            token: self.token,
            owner: self.owner,
            node: self.node.clone(),
            label: self.label.clone(),
            instance: self.instance,
            ttl: self.ttl,
            demands: self.demands.clone(),
            fence,
            places,
        }
    }

    /// What ends it before it was told that it holds.
    pub fn exit(&self, unsure: bool) -> LockExit {
        let demands = self.demands.clone();
        LockExit { token: self.token, owner: self.owner, demands, fence: None, unsure, ttl: self.ttl }
    }
}

/// What a process holds after its request was granted: all that a store needs to renew it, and to set it again where its entries
/// were lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHold {
    /// The request's token.
    pub token: Token,
    /// Its owner.
    pub owner: OwnerId,
    /// Its node.
    pub node: NodeName,
    /// What for.
    pub label: String,
    /// The process that is told.
    pub instance: Token,
    /// TTL that a renewal sets.
    pub ttl: Duration,
    /// What is held.
    pub demands: Demands,
    /// One number for all of it, larger than that of every earlier grant that it excludes.
    pub fence: Fence,
    /// Where its entries stand, in the order of the demands.
    pub places: Vec<LockPlace>,
}

impl LockHold {
    /// When it was granted, by the store's clock: its fence is that instant in milliseconds, or a little more where several were
    /// granted in one.
    pub fn since(&self) -> Option<DateTime<Utc>> {
        self.fence.instant()
    }

    /// What ends it.
    pub fn exit(&self, unsure: bool) -> LockExit {
        let (demands, fence) = (self.demands.clone(), Some(self.fence));
        LockExit { token: self.token, owner: self.owner, demands, fence, unsure, ttl: self.ttl }
    }
}

impl Fence {
    /// The instant that the fence of a lock is made of; a slot's is made of another.
    pub fn instant(self) -> Option<DateTime<Utc>> {
        i64::try_from(self.0).ok().and_then(DateTime::from_timestamp_millis)
    }
}

/// The end of a request, whatever it had come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockExit {
    /// Which request.
    pub token: Token,
    /// Whose.
    pub owner: OwnerId,
    /// What it asked for.
    pub demands: Demands,
    /// What it was told that it holds under; none where it never was.
    pub fence: Option<Fence>,
    /// Some acquire of it had no answer, so a copy may still be under way: its token is spent from now on.
    pub unsure: bool,
    /// For how long it is spent: no copy of a request is under way for longer.
    pub ttl: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_text_is_the_same_everywhere_and_another_for_another_text() {
        let owner = OwnerId::of_text("backup@2026-11-21T14Z");
        assert_eq!(owner.to_string(), OwnerId::of_text("backup@2026-11-21T14Z").to_string());
        assert_eq!(owner.to_string().parse(), Ok(owner));
        assert_ne!(owner, OwnerId::of_text("backup@2026-11-21T15Z"));
        // The published vectors of FNV-1a.
        assert_eq!(OwnerId::of_text("").to_string(), "6c62272e07bb014262b821756295c58d");
        assert_eq!(OwnerId::of_text("a").to_string(), "d228cb696f1a8caf78912b704e4a8964");
    }

    #[test]
    fn a_label_is_one_line_that_can_be_shown() {
        let name = crate::job::LockName::new("a").unwrap();
        let demands = Demands::from(crate::resource::Demand::exclusive(name));
        let (token, node) = (Token::from_bits(1), NodeName::new("n").unwrap());
        let request =
            AcquireRequest::new(token, node, token, Duration::from_secs(1), demands).labelled("a\nb\u{1b}[2J");
        assert_eq!(request.label, "a\\nb\\x1b[2J");
    }
}
