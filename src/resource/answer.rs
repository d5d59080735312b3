//! What a store answers about locks, and what it hints. Every answer is knowledge; see [`crate::error::StoreError`] for the lack
//! of it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::resource::{LockHolder, LockPlace};
use crate::slot::{Fence, Token};

/// The answer to a request for locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// It holds in every lock that it named.
    Held {
        /// One number for all of them. The same however often this is asked.
        fence: Fence,
        /// When it was granted, by the store's clock; see [`Fence::instant`].
        at: DateTime<Utc>,
        /// Where its entries stand, in the order of the demands.
        places: Vec<LockPlace>,
    },
    /// It stands in the queues, and is to ask again before its TTL is over.
    Waiting {
        /// Entries in front of it, in the lock where there are most; its own owner's do not count.
        ahead: u32,
        /// The first that holds there.
        by: LockHolder,
        /// Until the soonest entry in front of it lapses, unless that asks again or is renewed.
        remaining: Duration,
    },
    /// It may not hold now and does not wait: nothing was written.
    Busy {
        /// Who holds.
        by: LockHolder,
        /// Until the soonest entry in front lapses, unless it is renewed.
        remaining: Duration,
    },
    /// It cannot be waited for: it stands in no queue.
    Refused(LockRefusal),
}

/// Why a request for locks stands in no queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockRefusal {
    /// Its owner holds the lock already, and it could only be granted once somebody leaves who holds it too: two readers that both
    /// want to write would wait for each other for ever.
    #[error("it would wait for its own owner")]
    WaitsForItself,
    /// The queue has as many entries as it may have.
    #[error("the queue is full")]
    Full,
    /// The request has been left, or an operator has taken it out: what comes under its token is a late copy.
    #[error("the request has been left, or was taken out of the queue")]
    Spent,
}

/// The answer to a holder's renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockRenewal {
    /// All of it lasts for its TTL from now on.
    Renewed,
    /// Entries were absent and are set again: nobody who excludes it was granted since, as far as the store knows.
    Restored,
    /// It is not held any more in some lock; nothing was changed.
    Lost {
        /// Who holds that lock now, where somebody does.
        to: Option<LockHolder>,
    },
}

/// The answer to a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockRelease {
    /// It was held until now, or waited until now.
    Released,
    /// It had lapsed, and nobody who excludes it has been granted since.
    Expired,
    /// It had lapsed, and somebody was granted since: two may have worked at once. Nothing of theirs was changed.
    Overtaken {
        /// Who, where they are still there.
        by: Option<LockHolder>,
    },
}

impl LockRelease {
    /// Of the answers of several locks the one that says most.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Overtaken { by: Some(_) }, _) | (_, Self::Released) => self,
            (_, Self::Overtaken { .. }) | (Self::Released, _) => other,
            _ => self,
        }
    }
}

/// A hint to one process. It makes a look come sooner, and no rule depends on one arriving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockHint {
    /// The request with this token may hold now in some lock.
    Ready(Token),
    /// Hints may have been lost: look again at whatever is waited for.
    Resync,
}

/// A message that is no hint about a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a hint about a lock")]
pub struct LockHintError;

impl fmt::Display for LockHint {
    /// The message as it is published: `lock <token>`, `resync`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(token) => write!(f, "lock {token}"),
            Self::Resync => f.write_str("resync"),
        }
    }
}

impl FromStr for LockHint {
    type Err = LockHintError;

    fn from_str(text: &str) -> Result<Self, LockHintError> {
        match text.split_once(' ') {
            Some(("lock", token)) => token.parse().map(Self::Ready).map_err(|_| LockHintError),
            None if text == "resync" => Ok(Self::Resync),
            _ => Err(LockHintError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hint_reads_back_as_published_and_nothing_else_is_one() {
        for hint in [LockHint::Ready(Token::from_bits(7)), LockHint::Resync] {
            assert_eq!(hint.to_string().parse(), Ok(hint));
        }
        for text in ["", "lock", "lock x", "lock  ", "unlock 00000000000000000000000000000007", "resync x"] {
            assert_eq!(text.parse::<LockHint>(), Err(LockHintError), "{text}");
        }
    }

    #[test]
    fn of_several_locks_the_worst_answer_is_told() {
        use LockRelease::{Expired, Overtaken, Released};
        assert_eq!(Released.worse(Expired), Expired);
        assert_eq!(Expired.worse(Released), Expired);
        assert_eq!(Expired.worse(Overtaken { by: None }), Overtaken { by: None });
        assert_eq!(Overtaken { by: None }.worse(Expired), Overtaken { by: None });
        assert_eq!(Released.worse(Released), Released);
    }
}
