//! Many slots at once, as people and dashboards ask for them: one transaction for each few dozen.

use chrono::{DateTime, Utc};
use futures_util::future::try_join_all;

use super::api::{KeyValue, RangeRequest};
use super::fault::Fault;
use super::keys::Keys;
use super::slots::{read_counter, read_document, read_json};
use super::store::EtcdStore;
use crate::slot::{Slot, SlotRecord};
use crate::store::document::{Kept, OutputChange};

/// Slots of one transaction, four ranges each: a server takes 128 (`--max-txn-ops`).
const AT_ONCE: usize = 30;
const RANGES: usize = 4;

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
                    RangeRequest::prefix(&self.keys.outputs(slot)),
                ]
            });
            let found = self.read(ranges.collect()).await?;
            let read = part.iter().zip(found.chunks(RANGES)).map(|(slot, found)| self.record(slot, found));
            records.extend(try_join_all(read).await?);
        }
        Ok((self.moment().now, records))
    }

    async fn record(&self, slot: &Slot, found: &[Vec<KeyValue>]) -> Result<SlotRecord, Fault> {
        let [mark, counter, document, outputs] = found else { return Err(Fault::odd_answer()) };
        // A lease that has just ended is gone.
        let mark = self.found_mark(mark.first().cloned()).await?.unwrap_or_default();
        let at = self.moment();
        let mark = mark.stored(at);
        let kept = Kept {
            slot: slot.clone(),
            mark,
            counter: read_counter(counter.first())?,
            document: read_document(document.first())?,
        };
        let outputs = outputs.iter().map(output).collect::<Result<_, _>>()?;
        Ok(kept.record(at, outputs))
    }
}

fn output(kv: &KeyValue) -> Result<OutputChange, Fault> {
    let (attempt, token) = Keys::run_of(&kv.key)
        .ok_or_else(|| Fault::foreign(&String::from_utf8_lossy(&kv.key), "no attempt's output has such a name"))?;
    Ok(OutputChange { attempt, token, output: Some(read_json(kv)?) })
}
