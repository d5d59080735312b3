//! What this node has done itself, in slots that still last. A store that failed over or restarted may have forgotten it, and
//! the work would be done again; so whenever hints were lost, it is looked up, and told again (`again`) where it is missing.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::job::JobName;
use crate::slot::{Lease, Outcome, RunRecord, SlotKey, SlotRecord};

/// A run that succeeded here, from when the store is told of it.
#[derive(Clone, Debug)]
pub struct Fact {
    /// Under which it ran.
    pub lease: Lease,
    /// What the store is told of it.
    pub run: RunRecord,
    /// How long the store is to know.
    pub done_ttl: Duration,
}

impl Fact {
    /// Whether the store, which keeps this of the slot, knows neither the run nor a later reset.
    pub fn is_forgotten(&self, record: &SlotRecord) -> bool {
        let own = |run: &RunRecord| run.token == self.lease.token && run.outcome == Some(Outcome::Success);
        let reset = record.audit.iter().any(|audit| audit.verb == "reset" && audit.at > self.lease.claimed_at);
        !reset && !record.runs.iter().any(own)
    }
}

/// The facts of slots that last, one each.
#[derive(Debug, Default)]
pub struct Facts {
    done: Mutex<BTreeMap<(JobName, SlotKey), Fact>>,
}

impl Facts {
    /// The wait before a store that did not answer is asked again.
    #[doc(hidden)]
    pub const TRY_AGAIN: Duration = Duration::from_secs(1);

    /// From now on this is known, until the slot's end; without the output, which may be large. What is over is let go of, so
    /// that there are never more than slots that last.
    #[doc(hidden)]
    pub fn keep(&self, fact: Fact, now: DateTime<Utc>) {
        let fact = Fact { run: RunRecord { output: None, ..fact.run }, ..fact };
        let slot = &fact.lease.slot;
        let key = (slot.job().clone(), slot.key());
        let mut done = self.lock();
        done.retain(|_, other| other.lease.slot.end() > now);
        done.insert(key, fact);
    }

    /// What is known of slots that still last.
    #[doc(hidden)]
    pub fn lasting(&self, now: DateTime<Utc>) -> Vec<Fact> {
        let mut done = self.lock();
        done.retain(|_, fact| fact.lease.slot.end() > now);
        done.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(JobName, SlotKey), Fact>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::{Audit, OutputTail, Slot, Token, Trigger};

    fn fact() -> Fact {
        let lease = Lease {
            slot: Slot::parse("a", "2026-11-21T14Z", "2026-11-21T15Z").unwrap(),
            token: Token::from_bits(7),
            node: "n".parse().unwrap(),
            attempt: 1,
            trigger: Trigger::Schedule,
            claimed_at: "2026-11-21T14:00:01Z".parse().unwrap(),
            ttl: Duration::from_secs(60),
            revision: None,
        };
        let run = RunRecord { outcome: Some(Outcome::Success), exit_code: Some(0), ..RunRecord::begun(&lease) };
        Fact { lease, run, done_ttl: Duration::from_secs(7_200) }
    }

    fn record(runs: Vec<RunRecord>, reset: Option<&str>) -> SlotRecord {
        let word = || "x".to_owned();
        let audit = |at: &str| Audit {
            verb: "reset".to_owned(),
            who: word(),
            host: word(),
            why: word(),
            at: at.parse().unwrap(),
        };
        let audit = reset.map(audit).into_iter().collect();
        SlotRecord { runs, audit, ..SlotRecord::untouched(fact().lease.slot) }
    }

    #[test]
    fn what_the_store_knows_is_not_told_again_and_what_it_forgot_is() {
        let (fact, begun) = (fact(), RunRecord { outcome: None, ..fact().run });
        let another = RunRecord { token: Token::from_bits(8), ..fact.run.clone() };
        assert!(!fact.is_forgotten(&record(vec![fact.run.clone()], None)));
        for runs in [vec![], vec![begun], vec![another]] {
            assert!(fact.is_forgotten(&record(runs, None)));
        }
    }

    #[test]
    fn an_operators_reset_is_not_undone() {
        let fact = fact();
        assert!(!fact.is_forgotten(&record(vec![], Some("2026-11-21T14:30:00Z"))));
        assert!(fact.is_forgotten(&record(vec![], Some("2026-11-21T13:59:00Z"))), "it came before the run");
    }

    #[test]
    fn a_fact_is_kept_until_its_slot_is_over() {
        let facts = Facts::default();
        facts.keep(fact(), "2026-11-21T14:10:00Z".parse().unwrap());
        assert_eq!(facts.lasting("2026-11-21T14:59:59Z".parse().unwrap()).len(), 1);
        assert_eq!(facts.lasting("2026-11-21T15:00:00Z".parse().unwrap()).len(), 0);
        assert!(facts.lock().is_empty());
    }

    #[test]
    fn facts_of_slots_that_are_over_go_with_the_next_one_and_no_output_is_kept() {
        let facts = Facts::default();
        let mut first = fact();
        first.run.output = Some(OutputTail { text: "much".to_owned(), dropped_bytes: 0, loss: None });
        facts.keep(first, "2026-11-21T14:10:00Z".parse().unwrap());
        assert!(facts.lock().values().all(|fact| fact.run.output.is_none()));
        let mut next = fact();
        next.lease.slot = Slot::parse("a", "2026-11-21T15Z", "2026-11-21T16Z").unwrap();
        facts.keep(next.clone(), "2026-11-21T15:00:02Z".parse().unwrap());
        let kept: Vec<Slot> = facts.lock().values().map(|fact| fact.lease.slot.clone()).collect();
        assert_eq!(kept, [next.lease.slot]);
    }
}
