//! Whether two runs of a slot went on at the same time, as far as their records say. The end of a run may be known by bounds alone:
//! [`RunRecord::ended_after`].

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock;
use crate::slot::{Outcome, RunRecord};

/// Starts and ends are by the clocks of nodes, claims by that of the store. Clocks that are set by NTP differ by less.
const CLOCKS_APART: Duration = Duration::from_secs(1);

/// Whether a run went on when a later one began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// No: it had ended by then, or one of the two never began.
    No,
    /// Nobody knows, or the bounds of its end allow both.
    #[default]
    Possible,
    /// Yes.
    Sure,
}

impl Overlap {
    /// Of two runs. The one that was claimed later began between its claim and its start.
    pub fn of(one: &RunRecord, other: &RunRecord) -> Self {
        let is_later = (one.claimed_at, one.attempt) > (other.claimed_at, other.attempt);
        let (earlier, later) = if is_later { (other, one) } else { (one, other) };
        let is_unstarted = |run: &RunRecord| run.started_at.is_none() && run.outcome == Some(Outcome::GivenBack);
        if is_unstarted(earlier) || is_unstarted(later) {
            return Self::No;
        }
        let Some(latest) = earlier.ended_at else { return Self::Possible };
        if clock::later(latest, CLOCKS_APART) <= later.claimed_at {
            return Self::No;
        }
        let earliest = earlier.ended_after.unwrap_or(latest);
        let surely = |started| clock::later(started, CLOCKS_APART) < earliest;
        if later.started_at.is_some_and(surely) { Self::Sure } else { Self::Possible }
    }

    /// Whether nobody knows.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
    pub fn is_possible(&self) -> bool {
        *self == Self::Possible
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};

    use super::*;
    use crate::job::NodeName;
    use crate::slot::{Lease, Slot, Token, Trigger};

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_795_269_600 + second, 0).unwrap()
    }

    /// A run that was claimed and started at these seconds.
    fn run(claimed: i64, started: Option<i64>) -> RunRecord {
        let lease = Lease {
            slot: Slot::parse("a", "2026-11-21T14Z", "2026-11-21T15Z").unwrap(),
            token: Token::from_bits(7),
            node: NodeName::new("a").unwrap(),
            attempt: 1,
            trigger: Trigger::Schedule,
            claimed_at: at(claimed),
            ttl: Duration::from_secs(60),
            revision: None,
        };
        RunRecord { started_at: started.map(at), ..RunRecord::begun(&lease) }
    }

    fn ended(after: Option<i64>, by: i64) -> RunRecord {
        RunRecord { ended_after: after.map(at), ended_at: Some(at(by)), ..run(0, Some(0)) }
    }

    #[test]
    fn runs_overlap_as_far_as_the_bounds_of_the_earlier_end_say() {
        for (after, by, overlap) in [
            (None, 2, Overlap::No),
            (None, 3, Overlap::Possible),
            (None, 6, Overlap::Possible),
            (None, 7, Overlap::Sure),
            (Some(1), 2, Overlap::No),
            (Some(1), 8, Overlap::Possible),
            (Some(6), 8, Overlap::Possible),
            (Some(7), 8, Overlap::Sure),
        ] {
            let (earlier, later) = (ended(after, by), run(3, Some(5)));
            assert_eq!(Overlap::of(&earlier, &later), overlap, "{after:?} to {by}");
            assert_eq!(Overlap::of(&later, &earlier), overlap, "{after:?} to {by}, the other way round");
        }
    }

    #[test]
    fn of_a_run_without_an_end_and_of_one_that_is_not_known_to_have_begun_nothing_is_sure() {
        assert_eq!(Overlap::of(&run(0, Some(0)), &run(3, Some(3))), Overlap::Possible);
        assert_eq!(Overlap::of(&ended(None, 9), &run(3, None)), Overlap::Possible);
        let unstarted = RunRecord { outcome: Some(Outcome::GivenBack), ..run(3, None) };
        assert_eq!(Overlap::of(&ended(None, 9), &unstarted), Overlap::No);
        assert_eq!(Overlap::of(&unstarted, &run(3, Some(3))), Overlap::No);
    }
}
