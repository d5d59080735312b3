//! Redlock: what a majority of independent masters said, put together. `docs/redlock.md` is its specification.
//!
//! Pure: answers and times come in, a decision goes out. Nothing here talks to a server, waits or reads a clock; the adapter
//! that asks the masters is `store::redis::redlock`, and `tests/protocol/model/redlock` visits every history of a small cluster with
//! these very functions.
//!
//! | part | what it decides |
//! |---|---|
//! | this one | how many masters are a majority, and what may hold beyond the answers that came |
//! | `claim` | from the looks at all masters to a number, a wait or a refusal |
//! | `lease` | whether a number that was written made a lease, whether it still stands, and how a run's end was taken |
//! | `records` | one slot's record from the masters' records; jobs, nodes, pauses and notes from what they keep |

pub mod claim;
pub mod lease;
pub mod records;

use std::time::Duration;

/// A number of masters, odd and at least three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quorum {
    masters: usize,
    majority: usize,
}

/// A number of masters that makes no Redlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuorumError {
    /// One master is a plain store, and none is none.
    #[error(
        "it names {0} master(s): write redis:// for one, or name three, five or seven that do not replicate each other"
    )]
    TooFew(usize),
    /// A majority of four is three, so that four bear the loss of one, as three do, and there is one more to lose.
    #[error("it names {0} masters: {0} masters tolerate no more failures than {less}; leave one out", less = .0 - 1)]
    Even(usize),
    /// More than anybody runs; a list that went wrong.
    #[error("it names {0} masters: at most 15 are taken")]
    TooMany(usize),
}

impl Quorum {
    /// That many masters.
    pub const fn of(masters: usize) -> Result<Self, QuorumError> {
        match masters {
            0..=2 => Err(QuorumError::TooFew(masters)),
            16.. => Err(QuorumError::TooMany(masters)),
            _ if masters.is_multiple_of(2) => Err(QuorumError::Even(masters)),
            _ => Ok(Self { masters, majority: masters / 2 + 1 }),
        }
    }

    /// One master by itself: no Redlock, but what shows how that one answers.
    pub const fn one() -> Self {
        Self { masters: 1, majority: 1 }
    }

    /// A quorum that is none; for a test that shows what it breaks.
    #[doc(hidden)]
    pub const fn flawed(masters: usize, majority: usize) -> Self {
        Self { masters, majority }
    }

    /// How many masters there are.
    pub const fn masters(self) -> usize {
        self.masters
    }

    /// How many are more than half. Two majorities always share a master.
    pub const fn majority(self) -> usize {
        self.majority
    }

    /// Whether what `said` of `heard` masters say may be what a majority of all says.
    pub const fn may_hold(self, said: usize, heard: usize) -> bool {
        said + self.masters.saturating_sub(heard) >= self.majority
    }
}

/// The middle one, the lower of two: a minority cannot move it beyond what the others say.
pub fn median<T: Ord>(values: impl IntoIterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort();
    let middle = values.len().checked_sub(1)? / 2;
    values.into_iter().nth(middle)
}

/// Of what is left at each master that has it, until when a majority has it: after that it stands nowhere or at too few. With
/// fewer than a majority, the longest that the others may have too.
fn lasting(quorum: Quorum, mut left: Vec<Duration>) -> Duration {
    left.sort_unstable_by(|a, b| b.cmp(a));
    let index = if left.len() >= quorum.majority() { quorum.majority() - 1 } else { 0 };
    left.get(index).copied().unwrap_or_default()
}

/// What clocks that run at slightly different rates may be apart after `span` (Redlock's own figure).
fn drift(span: Duration) -> Duration {
    span / 100 + Duration::from_millis(2)
}

#[cfg(test)]
mod tests;
