//! Tells the store again what was done here and it has forgotten. The daemon alone lives long enough.
//!
//! Only what the store has no record of is told: a slot that an operator has opened again keeps the record of its run.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::drive::{Facts, Tools, timers};
use crate::event::Event;
use crate::slot::{Overlap, Slot};
use crate::store::{Settlement, StoreError, inspect_each};

impl Tools {
    /// However often the store must be asked.
    pub(crate) async fn assert_again(self: Arc<Self>) {
        while self.assert_once(self.clock.now().wall).await.is_err() {
            let again = self.clock.now().mono + Facts::TRY_AGAIN;
            timers::until(&*self.clock, Some(again)).await;
        }
    }

    async fn assert_once(&self, now: DateTime<Utc>) -> Result<(), StoreError> {
        let facts = self.facts.lasting(now);
        if facts.is_empty() {
            return Ok(());
        }
        let slots: Vec<Slot> = facts.iter().map(|fact| fact.lease.slot.clone()).collect();
        let (_, records) = inspect_each(&*self.store, &slots).await?;
        // What cannot be read is not forgotten.
        let records = facts.iter().zip(&records).filter_map(|(fact, record)| Some((fact, record.as_ref().ok()?)));
        for (fact, record) in records.filter(|(fact, record)| fact.is_forgotten(record)) {
            let settlement = self.store.complete(&fact.lease, &fact.run, fact.done_ttl).await?;
            self.observer.event(None, &Event::DoneAgain { of: record.slot.to_string() });
            // Somebody else was granted the slot that this node had done: a repeat, and never a silent one.
            if let Settlement::Overtaken { by } = settlement {
                let attempt = fact.lease.attempt;
                let other = record.runs.iter().rfind(|run| run.attempt == by.attempt && run.node == by.node);
                let overlap = other.map_or_else(Overlap::default, |other| Overlap::of(&fact.run, other));
                let (by, by_attempt) = (by.node, by.attempt);
                let overtaken = Event::Overtaken { attempt, by, by_attempt, unstarted: false, overlap };
                self.observer.event(Some(&record.slot), &overtaken);
            }
        }
        Ok(())
    }
}
