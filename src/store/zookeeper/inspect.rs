//! Many slots at once, as people and dashboards ask for them: a request for each few dozen, and one for their outputs.

use chrono::{DateTime, Utc};

use super::fault::Fault;
use super::link::Session;
use super::paths::Paths;
use super::slots::{Ask, Found, SlotText, kept, outputs_of, read_json};
use super::store::ZookeeperStore;
use crate::slot::{Slot, SlotRecord};
use crate::store::document::OutputChange;

/// Slots of one request.
const AT_ONCE: usize = 30;
/// Outputs of one request: each may be long, and servers are told to refuse what is longer than a megabyte.
const OUTPUTS_AT_ONCE: usize = 2;

impl ZookeeperStore {
    /// The clock, and what is known of each slot, in the order asked.
    pub(super) async fn records(&self, slots: &[Slot]) -> Result<(DateTime<Utc>, Vec<SlotRecord>), Fault> {
        let session = self.link.session().await?;
        // An empty question asks for the clock, and whether the store is there.
        let mut now = self.moment(&session, slots.is_empty()).await?.now;
        let mut records = Vec::with_capacity(slots.len());
        for part in slots.chunks(AT_ONCE) {
            let asks = part.iter().flat_map(|slot| {
                let path = self.paths.slot(slot);
                [Ask::Data(path.clone()), Ask::Children(path)]
            });
            let found = self.read(&session, asks.collect()).await?;
            let at = self.moment(&session, false).await?;
            now = at.now;
            for (slot, found) in part.iter().zip(found.chunks(2)) {
                let [node, children] = found else { return Err(Fault::odd_answer()) };
                let path = self.paths.slot(slot);
                let text: SlotText = match node {
                    Found::Data(data, _) => read_json(&path, data)?,
                    _ => SlotText::default(),
                };
                let outputs = self.outputs(&session, slot, &outputs_of(Some(children))).await?;
                records.push(kept(slot, &path, &text)?.record(at, outputs));
            }
        }
        Ok((now, records))
    }

    async fn outputs(&self, session: &Session, slot: &Slot, names: &[String]) -> Result<Vec<OutputChange>, Fault> {
        let folder = self.paths.slot(slot);
        let mut outputs = Vec::with_capacity(names.len());
        for part in names.chunks(OUTPUTS_AT_ONCE) {
            let asks = part.iter().map(|name| Ask::Data(format!("{folder}/{name}")));
            for (name, found) in part.iter().zip(self.read(session, asks.collect()).await?) {
                let path = format!("{folder}/{name}");
                let run = Paths::run_of(name);
                let (attempt, token) =
                    run.ok_or_else(|| Fault::foreign(&path, "no attempt's output has such a name"))?;
                if let Found::Data(data, _) = found {
                    outputs.push(OutputChange { attempt, token, output: Some(read_json(&path, &data)?) });
                }
            }
        }
        Ok(outputs)
    }
}
