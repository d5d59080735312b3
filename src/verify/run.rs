//! One run of one slot, as its node told it and as the job recorded it.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::later;
use crate::job::{NodeName, OnLost};
use crate::slot::{Attempt, Outcome};

/// A claim that was granted.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) instance: usize,
    pub(super) attempt: Attempt,
    /// As the store counts.
    pub(super) used: u32,
    pub(super) max_attempts: u32,
    /// By the store's clock.
    pub(super) at: DateTime<Utc>,
    /// When its node told of it.
    pub(super) heard: DateTime<Utc>,
    pub(super) token: String,
    pub(super) lease_ttl: Duration,
    pub(super) retry_delay: Duration,
    pub(super) poll: Duration,
    pub(super) on_lost: OnLost,
    /// Of a slot that was over, to a person who asked for it by name.
    pub(super) past: bool,
    pub(super) line: usize,
}

/// One run.
#[derive(Clone, Debug)]
pub(super) struct JournalRun {
    pub(super) node: NodeName,
    /// None when only the recorder knows of it.
    pub(super) instance: Option<usize>,
    pub(super) attempt: Attempt,
    pub(super) fence: u64,
    pub(super) guarded: bool,
    pub(super) start: DateTime<Utc>,
    /// When its node ordered it to be started: a bound on nodes is not for the shell that writes a record.
    pub(super) ordered: DateTime<Utc>,
    /// When its end was told; none when nobody did: its node died first, or it still runs.
    pub(super) end: Option<DateTime<Utc>>,
    /// For how long the command ran, by its node's monotonic clock: its keeper saw it end, and the node may tell of it later.
    pub(super) ran: Option<Duration>,
    /// The earliest instant of its end, where its node stood still meanwhile.
    pub(super) ended_after: Option<DateTime<Utc>>,
    /// The start is the job's own.
    pub(super) measured: bool,
    /// The end is: a command that is killed records none.
    pub(super) end_is_measured: bool,
    /// The job itself found an earlier run alive.
    pub(super) met_another: bool,
    pub(super) outcome: Option<Outcome>,
    /// When the store had its outcome.
    pub(super) settled: Option<DateTime<Utc>>,
    /// The store answered another node, before any later run, that the slot waits for its retry.
    pub(super) retry_was_waited_for: bool,
    pub(super) grant: Option<Grant>,
    /// What its node told of trouble with it.
    pub(super) trouble: Vec<&'static str>,
    /// The lines that tell of it.
    pub(super) lines: Vec<String>,
}

/// What clocks that are set right to the store's may still differ by.
pub(super) const CLOCKS: Duration = Duration::from_millis(100);

/// The trouble that only the record of a run had.
pub(super) const GIVEN_UP: &str = "settlement given up";

impl JournalRun {
    /// For people.
    pub(super) fn words(&self) -> String {
        if self.guarded {
            format!("attempt {} on {}", self.attempt, self.node)
        } else {
            format!("the run without a guard on {}", self.node)
        }
    }

    /// Its node told that it may not have been alone. A settlement that was given up says nothing of that.
    pub(super) fn was_in_doubt(&self) -> bool {
        self.trouble.iter().any(|trouble| *trouble != GIVEN_UP)
    }

    /// Attempt and fence count for guarded runs alone.
    pub(super) fn succeeded(&self) -> bool {
        self.outcome == Some(Outcome::Success)
    }

    /// It ended, and not well.
    pub(super) fn failed(&self) -> bool {
        self.outcome.is_some_and(|outcome| outcome != Outcome::Success)
    }

    /// When the command was over, of a run whose end is told.
    pub(super) fn over(&self) -> Option<DateTime<Utc>> {
        let ran = self.ran.filter(|_| !self.end_is_measured);
        self.end.map(|end| ran.map_or(end, |ran| end.min(later(self.start, ran))))
    }

    /// Until when the command is known to have run, of a run whose end is told.
    pub(super) fn surely_ran_until(&self) -> Option<DateTime<Utc>> {
        let after = self.ended_after.filter(|_| !self.end_is_measured);
        self.over().map(|over| after.map_or(over, |after| over.min(after)))
    }

    /// Whether it goes on until its lease is lost and longer.
    pub(super) fn is_killed_when_lost(&self) -> bool {
        self.grant.as_ref().is_some_and(|grant| grant.on_lost == OnLost::Kill)
    }

    /// Whether the store handed the slot on from this run to the other one, whatever the nodes' clocks say of which began first: the
    /// other one was granted it under the lease of this one, which had ended by then.
    fn was_followed_by(&self, other: &Self) -> bool {
        let (Some(own), Some(next), Some(end)) = (&self.grant, &other.grant, self.end) else { return false };
        own.attempt < next.attempt && next.at < later(own.at, own.lease_ttl) && end <= later(next.at, CLOCKS)
    }
}

/// In the order in which they began: by the clocks of their nodes, unless the store knows better.
pub(super) fn sort(runs: &mut [JournalRun]) {
    runs.sort_by_key(|run| (run.start, run.attempt));
    for index in 1..runs.len() {
        let (before, rest) = runs.split_at(index);
        let followed = rest.first().and_then(|run| before.iter().position(|other| run.was_followed_by(other)));
        if let Some(moved) = followed.and_then(|place| runs.get_mut(place..=index)) {
            moved.rotate_right(1);
        }
    }
}
