//! One step on one slot: read it, let the rule decide, write what it changed if nothing that was read has changed since;
//! otherwise all over again. All of a slot but the outputs is one node, so that one version guards it.

use std::collections::BTreeMap;

use futures_util::future::try_join;
use serde::{Deserialize, Serialize};
use zookeeper_client::{Error, MultiReadResult, Stat};

use super::fault::Fault;
use super::leases::Leases;
use super::link::Session;
use super::owner::Owner;
use super::paths::OWNER;
use super::store::{Call, ZookeeperStore};
use super::writing::Written;
use crate::job::JobName;
use crate::slot::{Slot, Token};
use crate::store::document::{MarkText, PauseText};
use crate::store::rules::{Change, SlotStep};
use crate::store::state::{Moment, SlotQuery, SlotState, StoredMark};
use crate::store::{Pause, StoreError};

/// How often a step is tried anew when others change the same slot meanwhile. Each time one of them has got through.
const MOST_TRIES: usize = 200;

/// The node of a slot.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SlotText {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mark: Option<MarkText>,
    /// The attempt counter.
    #[serde(default)]
    pub(super) attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) log: Option<SlotState>,
}

/// What is asked of one node.
pub(super) enum Ask {
    Data(String),
    Children(String),
}

/// What was found there; nothing where the node is not there.
pub(super) enum Found {
    Data(Vec<u8>, Stat),
    Children(Vec<String>),
    Nothing,
}

/// A slot as it was read, and what must not have changed when it is written.
pub(super) struct Loaded {
    pub(super) slot: Slot,
    pub(super) stored: SlotState,
    pub(super) text: SlotText,
    /// None when the node is not there.
    pub(super) version: Option<i32>,
    /// Whether the job has a folder yet.
    pub(super) folder: bool,
    /// The outputs that are there.
    pub(super) outputs: Vec<String>,
    /// Whose session stands beside the lease.
    pub(super) owner: Owner,
    /// Whose request this is.
    pub(super) token: Option<Token>,
    pub(super) at: Moment,
    pause: Option<Pause>,
    /// What is leased of the job.
    pub(super) leases: Leases,
    /// Other nodes that were read, with their versions.
    pub(super) read: Vec<(String, i32)>,
}

impl Loaded {
    fn step(&self) -> SlotStep {
        let (pause, other) = (self.pause.clone(), self.leases.other.clone());
        SlotStep { pause, other, ..SlotStep::new(&self.slot, self.stored.current(self.at), self.at.now) }
    }
}

impl ZookeeperStore {
    /// One rule on one slot, in one atomic step.
    pub(super) async fn on_slot<T: Send>(
        &self,
        call: Call,
        query: SlotQuery,
        rule: impl Fn(&mut SlotStep) -> T + Send + Sync,
    ) -> Result<T, StoreError> {
        let work = async {
            let session = self.link.session().await?;
            for _ in 0..MOST_TRIES {
                let Some(loaded) = self.load(&session, &query).await? else { continue };
                let mut step = loaded.step();
                let answer = rule(&mut step);
                let change = Change::between(&loaded.stored, step, loaded.at);
                if matches!(self.write(&call, &session, &loaded, &change).await?, Written::Yes) {
                    return Ok(answer);
                }
            }
            Err(Fault::contended())
        };
        self.within(&call, work).await
    }

    /// Reads the slot; none when the namespace had to be made first.
    async fn load(&self, session: &Session, query: &SlotQuery) -> Result<Option<Loaded>, Fault> {
        let (slot, pauses) = (&query.slot, self.paths.pauses());
        let path = self.paths.slot(slot);
        let mut asks = vec![Ask::Data(path.clone()), Ask::Children(path.clone()), Ask::Data(self.paths.owner(slot))];
        asks.extend([self.paths.slots_of(slot.job().as_str()), pauses.clone()].map(Ask::Data));
        asks.extend(self.leases_asked(query));
        // At the same time, so that a clock that has to be asked costs no round trip of its own.
        let (found, at) = try_join(self.read(session, asks), self.moment(session, false)).await?;
        let mut found = found.into_iter();
        let (node, outputs, owner, folder) = (found.next(), found.next(), found.next(), found.next());
        let Some(Found::Data(text_of_pauses, stat)) = found.next() else {
            self.link.prepare(&session.client).await?;
            return Ok(None);
        };
        let (text, version) = match node {
            Some(Found::Data(data, stat)) => (read_json(&path, &data)?, Some(stat.version)),
            _ => (SlotText::default(), None),
        };
        let mut known = read_pauses(&pauses, &text_of_pauses)?;
        let read = vec![(pauses, stat.version)];
        let leases = self.leases_found(session, query, found, at).await?;
        Ok(Some(Loaded {
            slot: slot.clone(),
            stored: state(&path, &text)?,
            text,
            version,
            folder: matches!(folder, Some(Found::Data(..))),
            outputs: outputs_of(outputs.as_ref()),
            owner: Owner::of(owner.as_ref(), session),
            token: query.token,
            at,
            pause: known.remove(slot.job()).filter(|_| query.pause).map(PauseText::pause),
            leases,
            read,
        }))
    }

    /// Reads several nodes as they are at one moment, and not before this call.
    pub(super) async fn read(&self, session: &Session, asks: Vec<Ask>) -> Result<Vec<Found>, Fault> {
        // Asked before the reading, on the same connection: a server that lags behind the leader catches up first.
        let caught_up = session.client.sync(&self.paths.pauses());
        let mut reader = session.client.new_multi_reader();
        for ask in asks {
            match ask {
                Ask::Data(path) => reader.add_get_data(&path)?,
                Ask::Children(path) => reader.add_get_children(&path)?,
            }
        }
        let ((), results) = try_join(caught_up, reader.commit()).await?;
        let found = results.into_iter().map(|result| match result {
            MultiReadResult::Data { data, stat } => Ok(Found::Data(data, stat)),
            MultiReadResult::Children { children } => Ok(Found::Children(children)),
            MultiReadResult::Error { err: Error::NoNode } => Ok(Found::Nothing),
            MultiReadResult::Error { err } => Err(err.into()),
            _ => Err(Fault::odd_answer()),
        });
        found.collect()
    }
}

/// All that is kept of a slot but its outputs.
pub(super) fn state(path: &str, text: &SlotText) -> Result<SlotState, Fault> {
    let mark = stored(path, text.mark.clone())?;
    Ok(SlotState { mark, counter: text.attempts, ..text.log.clone().unwrap_or_default() })
}

/// The names of the outputs below a slot.
pub(super) fn outputs_of(children: Option<&Found>) -> Vec<String> {
    match children {
        Some(Found::Children(names)) => names.iter().filter(|name| *name != OWNER).cloned().collect(),
        _ => Vec::new(),
    }
}

/// A mark as a rule sees it.
pub(super) fn stored(path: &str, text: Option<MarkText>) -> Result<Option<StoredMark>, Fault> {
    let Some(text) = text else { return Ok(None) };
    let until = text.until().ok_or_else(|| Fault::foreign(path, "a mark without an end"))?;
    text.stored(until).map(Some).map_err(|why| Fault::foreign(path, &why))
}

/// Every job's pause.
pub(super) fn read_pauses(path: &str, data: &[u8]) -> Result<BTreeMap<JobName, PauseText>, Fault> {
    read_json(path, data)
}

/// A node in JSON.
pub(super) fn read_json<T: serde::de::DeserializeOwned>(path: &str, data: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(data).map_err(|error| Fault::foreign(path, &error.to_string()))
}

/// A record's JSON. Its types have no key or number that JSON lacks.
pub(super) fn json<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, Fault> {
    serde_json::to_vec(value).map_err(|error| Fault::foreign("a record", &error.to_string()))
}
