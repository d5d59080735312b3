//! How many attempts a slot had: what was granted, what ran, and what was given back or may have been.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use crate::clock::later;
use crate::slot::Attempt;
use crate::verify::run::{Grant, JournalRun};
use crate::verify::story::Story;

impl Story {
    /// Attempts that were made and not given back; a grant counts though nobody saw it start.
    pub(super) fn attempts_made(&self) -> usize {
        let (mut made, alone) = self.attempts_started();
        made.extend(self.grants.iter().map(|grant| (grant.instance, grant.attempt)));
        made.difference(&self.refunded).count() + alone
    }

    /// Attempts that ran and were not given back, whatever came of that.
    pub(super) fn attempts_run(&self) -> usize {
        let (started, alone) = self.attempts_started();
        (&(&started - &self.refunded) - &self.refund_ordered).len() + alone
    }

    /// Those among them that a person asked for when the slot was over. Where that was needed, a reset went before.
    pub(super) fn attempts_of_past(&self) -> usize {
        let of_past = |run: &&JournalRun| run.grant.as_ref().is_some_and(|grant| self.is_of_past(grant));
        let told = self.runs.iter().filter(of_past).filter_map(|run| Some((run.instance?, run.attempt)));
        let told: BTreeSet<(usize, Attempt)> = told.collect();
        (&(&told - &self.refunded) - &self.refund_ordered).len()
    }

    /// When a person was first granted a run of the slot that was over.
    pub(super) fn first_of_past(&self) -> Option<DateTime<Utc>> {
        self.grants.iter().filter(|grant| self.is_of_past(grant)).map(|grant| grant.at).min()
    }

    fn is_of_past(&self, grant: &Grant) -> bool {
        grant.past && grant.at >= self.slot.end()
    }

    /// By the instances that told of them, and how many nobody told of.
    fn attempts_started(&self) -> (BTreeSet<(usize, Attempt)>, usize) {
        let runs = self.runs.iter().filter(|run| run.guarded);
        let told = runs.clone().filter_map(|run| Some((run.instance?, run.attempt))).collect();
        (told, runs.filter(|run| run.instance.is_none()).count())
    }

    /// Attempts that were given back, which the store may have taken or not: another one had taken their place, or their lease may have
    /// lapsed before.
    pub(super) fn refunds_in_doubt(&self) -> usize {
        let late = |of: &&(usize, Attempt)| {
            self.overtaken.contains(of) || self.locks.may_have_lapsed(**of) || self.was_heard_too_late(**of)
        };
        self.refunded.iter().filter(late).count()
    }

    /// Whether the lease of an attempt had lapsed when its node heard of the grant: nobody had renewed it before.
    fn was_heard_too_late(&self, (instance, attempt): (usize, Attempt)) -> bool {
        let mut own = self.grants.iter().filter(|grant| (grant.instance, grant.attempt) == (instance, attempt));
        own.any(|grant| later(grant.at, grant.lease_ttl) <= grant.heard)
    }

    /// When the first attempt was granted that was given back.
    pub(super) fn first_refunded(&self) -> Option<DateTime<Utc>> {
        let mut own = self.grants.iter().filter(|grant| self.refunded.contains(&(grant.instance, grant.attempt)));
        own.next().map(|grant| grant.at)
    }

    /// Attempts that count as made, and that the store has taken back, or may have, without anybody's word: the answer was lost.
    pub(super) fn refunds_untold(&self) -> usize {
        let unheard = self.refunds_unheard();
        // By its own count at the last grant it had taken back more than that.
        let by_count = self.grants.last().map_or(0, |last| {
            let heard = unheard.iter().chain(&self.refunded).filter(|(_, attempt)| *attempt < last.attempt).count();
            usize::try_from(last.attempt.saturating_sub(last.used)).unwrap_or(0).saturating_sub(heard)
        });
        unheard.len() + by_count
    }

    /// Those that were to be given back, without a word that they were.
    fn refunds_unheard(&self) -> BTreeSet<(usize, Attempt)> {
        let ran = |of: &(usize, Attempt)| self.runs.iter().any(|run| (run.instance, run.attempt) == (Some(of.0), of.1));
        let late = self.granted_late.iter().filter(|grant| !ran(grant));
        // Whose node died in the queues may have sent it back in that instant.
        let waiting = self.locks.never_left();
        let ordered: BTreeSet<_> = self.refund_ordered.iter().chain(late).copied().chain(waiting).collect();
        &ordered - &self.refunded
    }
}
