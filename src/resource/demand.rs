//! How much of a lock is asked for, and the set of demands of one request. A value of these types can be asked for: what cannot is
//! an error before anything is sent.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::job::{LockName, NameError};

/// The limit of who shares: any number of entries fit under it.
pub const UNLIMITED: u32 = u32::MAX;

/// The most locks of one request.
pub const MOST_DEMANDS: usize = 16;

/// No pool has more permits, as people write it. Programs may ask for any number.
pub const MOST_PERMITS: u32 = 1_000_000;

/// One request's part in one lock: so much weight, in a queue that holds as long as no more than `of` is held in all.
///
/// | asked for | weight | of |
/// |---|---|---|
/// | exclusive | 1 | 1 |
/// | shared | 1 | [`UNLIMITED`] |
/// | k permits of n | k | n |
/// | the whole pool of n | n | n |
///
/// Requests for one lock may name different limits: the smallest of those that stand in front counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Demand {
    lock: LockName,
    weight: u32,
    of: u32,
}

/// A demand, or a set of them, that no store could ever grant, or that says one thing twice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DemandError {
    /// No permit at all.
    #[error("{lock}: ask for at least one permit")]
    NoPermits {
        /// Of which lock.
        lock: LockName,
    },
    /// More permits than there are.
    #[error("{lock}: {weight} permits of {of} can never be held")]
    TooManyPermits {
        /// Of which lock.
        lock: LockName,
        /// Permits that were asked for.
        weight: u32,
        /// Permits that there are.
        of: u32,
    },
    /// A request without a lock.
    #[error("a request names at least one lock")]
    Empty,
    /// A request for more than [`MOST_DEMANDS`] locks.
    #[error("a request names at most {MOST_DEMANDS} locks, not {0}")]
    TooManyLocks(usize),
    /// The same lock twice in one request.
    #[error("{lock} is named twice in one request")]
    Twice {
        /// Which.
        lock: LockName,
    },
}

impl Demand {
    /// Nobody else at the same time.
    pub const fn exclusive(lock: LockName) -> Self {
        Self { lock, weight: 1, of: 1 }
    }

    /// Beside others that share, and nobody who does not.
    pub const fn shared(lock: LockName) -> Self {
        Self { lock, weight: 1, of: UNLIMITED }
    }

    /// So many permits of a pool of `of`.
    ///
    /// # Errors
    /// [`DemandError`] for no permit, and for more than there are.
    pub fn permits(lock: LockName, weight: u32, of: u32) -> Result<Self, DemandError> {
        if weight == 0 {
            return Err(DemandError::NoPermits { lock });
        }
        if weight > of {
            return Err(DemandError::TooManyPermits { lock, weight, of });
        }
        Ok(Self { lock, weight, of })
    }

    /// Which lock.
    pub const fn lock(&self) -> &LockName {
        &self.lock
    }

    /// What it weighs.
    pub const fn weight(&self) -> u32 {
        self.weight
    }

    /// The most that may be held in all, this included.
    pub const fn of(&self) -> u32 {
        self.of
    }
}

impl fmt::Display for Demand {
    /// As people write it: `db`, `db:shared`, `gpu:2/4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.weight, self.of) {
            (1, 1) => write!(f, "{}", self.lock),
            (1, UNLIMITED) => write!(f, "{}:shared", self.lock),
            (weight, of) => write!(f, "{}:{weight}/{of}", self.lock),
        }
    }
}

/// A text that is no demand.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DemandTextError {
    /// The part before the colon is no name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// It can never be granted.
    #[error(transparent)]
    Demand(#[from] DemandError),
    /// The part after the colon is none of the two.
    #[error("{0}: after the colon write shared, or permits as in 2/4")]
    Form(LockName),
    /// More than [`MOST_PERMITS`].
    #[error("{0}: a pool has at most 1,000,000 permits")]
    TooLarge(LockName),
}

impl FromStr for Demand {
    type Err = DemandTextError;

    /// As people write it: `db`, `db:shared`, `gpu:2/4`.
    fn from_str(text: &str) -> Result<Self, DemandTextError> {
        let Some((name, how)) = text.split_once(':') else { return Ok(Self::exclusive(LockName::new(text)?)) };
        let name = LockName::new(name)?;
        if how == "shared" {
            return Ok(Self::shared(name));
        }
        // Digits alone: a sign is none that people mean.
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse().unwrap_or(UNLIMITED))
        };
        let permits = how.split_once('/').and_then(|(weight, of)| Some((number(weight)?, number(of)?)));
        let Some((weight, of)) = permits else { return Err(DemandTextError::Form(name)) };
        if of > MOST_PERMITS {
            return Err(DemandTextError::TooLarge(name));
        }
        Ok(Self::permits(name, weight, of)?)
    }
}

/// What one request asks for: one to [`MOST_DEMANDS`] locks, each once, in the order in which they were named.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Demands(Vec<Demand>);

impl Demands {
    /// A set that can be asked for.
    ///
    /// # Errors
    /// [`DemandError`] for none, for too many, and for a lock that is named twice.
    pub fn new(demands: Vec<Demand>) -> Result<Self, DemandError> {
        if demands.is_empty() {
            return Err(DemandError::Empty);
        }
        if demands.len() > MOST_DEMANDS {
            return Err(DemandError::TooManyLocks(demands.len()));
        }
        let twice = demands
            .iter()
            .enumerate()
            .find(|(index, demand)| demands.iter().take(*index).any(|other| other.lock == demand.lock));
        match twice {
            Some((_, demand)) => Err(DemandError::Twice { lock: demand.lock.clone() }),
            None => Ok(Self(demands)),
        }
    }

    /// Each of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Demand> {
        self.0.iter()
    }

    /// The names of the locks.
    pub fn names(&self) -> Vec<LockName> {
        self.0.iter().map(|demand| demand.lock.clone()).collect()
    }
}

impl From<Demand> for Demands {
    fn from(demand: Demand) -> Self {
        Self(vec![demand])
    }
}

impl<'a> IntoIterator for &'a Demands {
    type Item = &'a Demand;
    type IntoIter = std::slice::Iter<'a, Demand>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Demands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, demand) in self.0.iter().enumerate() {
            write!(f, "{}{demand}", if index > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> LockName {
        LockName::new(text).unwrap()
    }

    #[test]
    fn permits_that_can_never_be_held_are_refused_before_anything_is_sent() {
        assert_eq!(Demand::permits(name("gpu"), 0, 4), Err(DemandError::NoPermits { lock: name("gpu") }));
        assert_eq!(
            Demand::permits(name("gpu"), 5, 4),
            Err(DemandError::TooManyPermits { lock: name("gpu"), weight: 5, of: 4 })
        );
        assert_eq!(Demand::permits(name("gpu"), 4, 4).unwrap().weight(), 4);
    }

    #[test]
    fn a_request_names_one_to_sixteen_locks_each_once() {
        let many = |count: usize| (0..count).map(|at| Demand::exclusive(name(&format!("l{at}")))).collect::<Vec<_>>();
        assert_eq!(Demands::new(Vec::new()), Err(DemandError::Empty));
        assert_eq!(Demands::new(many(17)), Err(DemandError::TooManyLocks(17)));
        assert_eq!(Demands::new(many(16)).unwrap().names().len(), 16);
        let twice = vec![Demand::exclusive(name("a")), Demand::shared(name("b")), Demand::shared(name("a"))];
        assert_eq!(Demands::new(twice), Err(DemandError::Twice { lock: name("a") }));
    }

    #[test]
    fn a_name_that_could_break_a_key_is_no_lock() {
        for hostile in ["", "a b", "a:b", "{a}", "A", "a/b", "-a"] {
            assert!(LockName::new(hostile).unwrap_err().to_string().starts_with("lock name"), "{hostile}");
        }
    }

    #[test]
    fn a_demand_reads_as_it_is_written() {
        let all = vec![
            Demand::exclusive(name("db")),
            Demand::shared(name("schema")),
            Demand::permits(name("gpu"), 2, 4).unwrap(),
        ];
        for demand in &all {
            assert_eq!(demand.to_string().parse().as_ref(), Ok(demand));
        }
        assert_eq!(Demands::new(all).unwrap().to_string(), "db, schema:shared, gpu:2/4");
    }

    #[test]
    fn what_can_never_be_held_or_is_no_demand_is_refused_with_what_to_write() {
        let told = |text: &str| text.parse::<Demand>().unwrap_err().to_string();
        assert_eq!(told("gpu:0/4"), "gpu: ask for at least one permit");
        assert_eq!(told("gpu:5/4"), "gpu: 5 permits of 4 can never be held");
        for text in ["gpu:", "gpu:Shared", "gpu:2", "gpu:/4", "gpu:+1/4", "gpu:1/4/4"] {
            assert_eq!(told(text), "gpu: after the colon write shared, or permits as in 2/4", "{text}");
        }
        for text in ["gpu:1/1000001", "gpu:1/4294967295", "gpu:1/99999999999"] {
            assert_eq!(told(text), "gpu: a pool has at most 1,000,000 permits", "{text}");
        }
        for text in ["", ":shared", "Gpu", "a b:1/2"] {
            assert!(told(text).starts_with("lock name"), "{text}");
        }
    }
}
