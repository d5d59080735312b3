//! Many slots at once, as people and dashboards ask for them: one transaction for each few dozen.

use chrono::{DateTime, Utc};
use futures_util::future::try_join_all;

use super::api::{KeyValue, RangeRequest};
use super::fault::Fault;
use super::slots::{read_counter, read_document, read_json};
use super::store::EtcdStore;
use crate::slot::{Attempt, OutputTail, Slot, SlotRecord, Token};
use crate::store::state::SlotState;

/// Slots of one transaction, three ranges each: a server takes 128 (`--max-txn-ops`).
const AT_ONCE: usize = 40;
const RANGES: usize = 3;

impl EtcdStore {
    /// The clock, and what is known of each slot, in the order asked.
    pub(super) async fn records(&self, slots: &[Slot]) -> Result<(DateTime<Utc>, Vec<SlotRecord>), Fault> {
        if slots.is_empty() {
            // An empty question asks for the clock, and whether the store is there.
            self.read(vec![RangeRequest::key(&self.keys.wake())]).await?;
        }
        let mut records = Vec::with_capacity(slots.len());
        for part in slots.chunks(AT_ONCE) {
            let ranges = part.iter().flat_map(|slot| {
                [
                    RangeRequest::key(&self.keys.mark(slot)),
                    RangeRequest::key(&self.keys.attempts(slot)),
                    RangeRequest::key(&self.keys.document(slot)),
                ]
            });
            let found = self.read(ranges.collect()).await?;
            let read = part.iter().zip(found.chunks(RANGES)).map(|(slot, found)| self.record(slot, found));
            records.extend(try_join_all(read).await?);
        }
        Ok((self.moment().now, records))
    }

    async fn record(&self, slot: &Slot, found: &[Vec<KeyValue>]) -> Result<SlotRecord, Fault> {
        let [mark, counter, document] = found else { return Err(Fault::odd_answer()) };
        // A lease that has just ended is gone.
        let mark = self.found_mark(mark.first().cloned()).await?.unwrap_or_default();
        let at = self.moment();
        let mark = mark.stored(at);
        let counter = read_counter(counter.first())?;
        let stored = SlotState { mark, counter, ..read_document(document.first())? };
        Ok(stored.record(slot, at))
    }

    /// The end of one run's output.
    pub(super) async fn output_of(
        &self,
        slot: &Slot,
        attempt: Attempt,
        token: Token,
    ) -> Result<Option<OutputTail>, Fault> {
        let found = self.read(vec![RangeRequest::key(&self.keys.output(slot, attempt, token))]).await?;
        found.first().and_then(|found| found.first()).map(read_json).transpose()
    }
}
