//! The second half of a claim: a number was written to the masters. Only what a majority acknowledged within the lease's
//! validity is a lease, and so the number is on a majority before any run begins.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::reply::Claim;
use crate::slot::{DoneMark, Holder};
use crate::store::redlock::claim::{Grant, Terms};
use crate::store::redlock::quorum::{drift, lasting};

/// One master's answer to a [`Grant`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// For how long it has kept what it was told.
    pub age: Duration,
    /// What it did.
    pub said: Said,
}

/// What a master did with a [`Grant`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It is written there.
    Granted {
        /// The time of the grant, as it stands there: that of the first send.
        at: DateTime<Utc>,
    },
    /// A done marker stands there.
    Done(DoneMark),
    /// Another claim's lease, or reservation, stands there.
    Held {
        /// Whose.
        by: Holder,
        /// How long.
        remaining: Duration,
    },
    /// The number is taken there, or a larger one is known, or the wait after one; or this claim's run is over.
    Taken,
    /// The slot is over by this master's clock.
    Closed,
}

/// What a grant came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is a lease.
    Claimed(Claim),
    /// It is none, and no majority has it: see that its number is never given again, then take it back, and answer this; without an
    /// answer, ask anew.
    Void(Option<Claim>),
    /// A done marker was met: read all that is known.
    ReadAll,
    /// Not known. The same token finds out what became of it; nothing is taken back, for it may be a lease.
    Unknown,
}

impl Terms<'_> {
    /// What the grant came to, `spent` after the first request of this claim was sent.
    pub fn after_grants(&self, grant: &Grant, acks: &[Option<Ack>], spent: Duration) -> Outcome {
        let heard: Vec<&Ack> = acks.iter().flatten().collect();
        if !self.done_is_stale && heard.iter().any(|ack| matches!(ack.said, Said::Done(_))) {
            return Outcome::ReadAll;
        }
        let granted = || heard.iter().filter_map(|ack| ack.granted().map(|at| (ack.age, at)));
        let counting = granted().filter(|(age, _)| *age >= self.least_age()).count();
        let valid = spent + drift(self.request.lease_ttl) < self.request.lease_ttl;
        if counting >= self.quorum.majority() && valid {
            let at = granted().map(|(_, at)| at).min().unwrap_or(grant.at);
            return Outcome::Claimed(Claim::Claimed { attempt: grant.attempt, used: grant.used, at, revision: None });
        }
        let refused = heard.len() - granted().count();
        if self.quorum.masters() - refused < self.quorum.majority() {
            return Outcome::Void(self.why(&heard));
        }
        Outcome::Unknown
    }

    fn why(&self, heard: &[&Ack]) -> Option<Claim> {
        let held = |ack: &&&Ack| match &ack.said {
            Said::Held { by, remaining } => Some((by.clone(), *remaining)),
            _ => None,
        };
        let rivals: Vec<(Holder, Duration)> = heard.iter().filter_map(|ack| held(&ack)).collect();
        if let Some((by, _)) = rivals.iter().max_by_key(|(by, _)| by.attempt) {
            let left = rivals.iter().filter(|(other, _)| other == by).map(|(_, left)| *left).collect();
            return Some(Claim::Held { by: by.clone(), remaining: lasting(self.quorum, left) });
        }
        heard.iter().any(|ack| ack.said == Said::Closed).then_some(Claim::Closed)
    }
}

impl Ack {
    const fn granted(&self) -> Option<DateTime<Utc>> {
        match self.said {
            Said::Granted { at } => Some(at),
            _ => None,
        }
    }
}
