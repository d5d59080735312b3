//! Many slots at once, as people and dashboards ask for them: a request for each few dozen.

use chrono::{DateTime, Utc};

use super::fault::Fault;
use super::paths::Paths;
use super::slots::{Ask, Found, SlotText, read_json, state};
use super::store::ZookeeperStore;
use crate::slot::{Attempt, OutputTail, Slot, SlotRecord, Token};

/// Slots of one request.
const AT_ONCE: usize = 30;

impl ZookeeperStore {
    /// The clock, and what is known of each slot, in the order asked.
    pub(super) async fn records(&self, slots: &[Slot]) -> Result<(DateTime<Utc>, Vec<SlotRecord>), Fault> {
        let session = self.link.session().await?;
        // An empty question asks for the clock, and whether the store is there.
        let mut now = self.moment(&session, slots.is_empty()).await?.now;
        let mut records = Vec::with_capacity(slots.len());
        for part in slots.chunks(AT_ONCE) {
            let asks = part.iter().map(|slot| Ask::Data(self.paths.slot(slot)));
            let found = self.read(&session, asks.collect()).await?;
            let at = self.moment(&session, false).await?;
            now = at.now;
            for (slot, node) in part.iter().zip(&found) {
                let path = self.paths.slot(slot);
                let text: SlotText = match node {
                    Found::Data(data, _) => read_json(&path, data)?,
                    _ => SlotText::default(),
                };
                records.push(state(&path, &text)?.record(slot, at));
            }
        }
        Ok((now, records))
    }

    /// The end of one run's output.
    pub(super) async fn output_of(
        &self,
        slot: &Slot,
        attempt: Attempt,
        token: Token,
    ) -> Result<Option<OutputTail>, Fault> {
        let session = self.link.session().await?;
        let path = format!("{}/{}", self.paths.slot(slot), Paths::output(attempt, token));
        match self.read(&session, vec![Ask::Data(path.clone())]).await?.pop() {
            Some(Found::Data(data, _)) => read_json(&path, &data).map(Some),
            _ => Ok(None),
        }
    }
}
