//! The nodes: their names, made to be read by a person with `zkCli.sh get /cronward/…`, and what stands
//! in them. All of a slot but the outputs is one node, so that one version guards it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use zookeeper_client::Stat;

use super::fault::Fault;
use crate::job::{JobName, LockName, Namespace, NodeName};
use crate::slot::{Attempt, JobLatest, Slot, SlotKey, Token};
use crate::store::codec::{LatestText, MarkText, PauseText};
use crate::store::state::{SlotState, StoredMark};
use crate::store::{Topic, Wake};

/// The name of the ephemeral node below a slot whose lease is held. No output has such a name.
const OWNER: &str = "owner";

/// One namespace's nodes.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    root: String,
}

impl Paths {
    /// `chroot` is empty or begins with a slash and ends without one. A namespace has no slash in its name.
    pub(super) fn new(chroot: &str, namespace: &Namespace) -> Self {
        Self { root: format!("{chroot}/cronward/{namespace}") }
    }

    /// The folders of a namespace. The first is above all others.
    pub(super) fn folders(&self) -> [String; 7] {
        ["", "/slot", "/lease", "/job", "/node", "/wake", "/lock"].map(|part| format!("{}{part}", self.root))
    }

    /// Every job's slots.
    pub(super) fn slots(&self) -> String {
        format!("{}/slot", self.root)
    }

    /// A job's slots.
    pub(super) fn slots_of(&self, job: &str) -> String {
        format!("{}/slot/{job}", self.root)
    }

    /// All that is kept of a slot but the outputs and the holder's session, which are below it.
    pub(super) fn slot(&self, slot: &Slot) -> String {
        self.slot_at(slot.job().as_str(), slot.key())
    }

    /// The same, by the slot's key.
    pub(super) fn slot_at(&self, job: &str, key: SlotKey) -> String {
        format!("{}/slot/{job}/{key}", self.root)
    }

    /// What goes with the session of the slot's holder.
    pub(super) fn owner(&self, slot: &Slot) -> String {
        format!("{}/{OWNER}", self.slot(slot))
    }

    /// The slots of a job that are leased. Its version counts the grants of slots that had to run alone.
    pub(super) fn leases_of(&self, job: &str) -> String {
        format!("{}/lease/{job}", self.root)
    }

    /// What is there while a slot's mark is a lease, also one that has run out.
    pub(super) fn lease(&self, slot: &Slot) -> String {
        format!("{}/lease/{}/{}", self.root, slot.job(), slot.key())
    }

    /// The same, of the slot with this node.
    pub(super) fn lease_of(&self, slot: &str) -> Option<String> {
        Some(format!("{}/lease{}", self.root, slot.strip_prefix(&self.slots())?))
    }

    /// Every job's notes.
    pub(super) fn notes(&self) -> String {
        format!("{}/note", self.root)
    }

    /// What was noted on a job's slots.
    pub(super) fn notes_of(&self, job: &str) -> String {
        format!("{}/note/{job}", self.root)
    }

    /// What was noted on a slot: one node, for all who note on it.
    pub(super) fn note(&self, slot: &Slot) -> String {
        format!("{}/note/{}/{}", self.root, slot.job(), slot.key())
    }

    /// The name of one attempt's output below its slot.
    pub(super) fn output(attempt: Attempt, token: Token) -> String {
        format!("{attempt}.{token}")
    }

    /// When the slot of this name began.
    pub(super) fn key_of(name: &str) -> Option<SlotKey> {
        name.parse().ok()
    }

    /// Every job's pause: one node, so that a step can make sure that none has changed.
    pub(super) fn pauses(&self) -> String {
        format!("{}/pauses", self.root)
    }

    /// Every lock.
    pub(super) fn locks(&self) -> String {
        format!("{}/lock", self.root)
    }

    /// A lock's queue.
    pub(super) fn lock(&self, lock: &LockName) -> String {
        format!("{}/lock/{lock}", self.root)
    }

    /// Every topic's messages.
    pub(super) fn all_messages(&self) -> String {
        format!("{}/message", self.root)
    }

    /// What is known of a topic's messages.
    pub(super) fn messages(&self, topic: &Topic) -> String {
        format!("{}/message/{topic}", self.root)
    }

    pub(super) fn jobs(&self) -> String {
        format!("{}/job", self.root)
    }

    pub(super) fn job(&self, job: &JobName) -> String {
        format!("{}/job/{job}", self.root)
    }

    /// What every job has come to lately.
    pub(super) fn all_latest(&self) -> String {
        format!("{}/latest", self.root)
    }

    /// What a job has come to lately.
    pub(super) fn latest(&self, job: &JobName) -> String {
        format!("{}/latest/{job}", self.root)
    }

    pub(super) fn nodes(&self) -> String {
        format!("{}/node", self.root)
    }

    pub(super) fn node(&self, node: &NodeName) -> String {
        format!("{}/node/{node}", self.root)
    }

    /// What is written to learn the time of it.
    pub(super) fn clock(&self) -> String {
        format!("{}/clock", self.root)
    }

    /// Where hints come and go.
    pub(super) fn wakes(&self) -> String {
        format!("{}/wake", self.root)
    }

    /// A hint: its name says it all.
    pub(super) fn wake(&self, wake: &Wake) -> String {
        self.message(&wake.to_string())
    }

    /// The same, of a slot or of a lock.
    pub(super) fn message(&self, message: &str) -> String {
        format!("{}/wake/{message}", self.root)
    }

    /// What the hint of this path says.
    pub(super) fn message_of<'p>(&self, path: &'p str) -> Option<&'p str> {
        path.strip_prefix(&self.wakes())?.strip_prefix('/')
    }
}

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
pub(super) enum NodeRequest {
    Data(String),
    Children(String),
}

/// What was found there; nothing where the node is not there.
pub(super) enum Found {
    Data(Vec<u8>, Stat),
    Children(Vec<String>),
    Nothing,
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

/// What a job has come to lately, and the version of its node; none when it is not there.
pub(super) fn read_latest(path: &str, found: Option<&Found>) -> Result<(JobLatest, Option<i32>), Fault> {
    match found {
        Some(Found::Data(data, stat)) => Ok((read_json::<LatestText>(path, data)?.latest, Some(stat.version))),
        _ => Ok((JobLatest::default(), None)),
    }
}

/// A node in JSON.
pub(super) fn read_json<T: serde::de::DeserializeOwned>(path: &str, data: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(data).map_err(|error| Fault::foreign(path, &error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_found_again() {
        let paths = Paths::new("/ops", &Namespace::new("prod").unwrap());
        let slot = Slot::parse("a.b", "2026-11-21T14:30Z", "2026-11-21T15Z").unwrap();
        assert_eq!(paths.slot(&slot), "/ops/cronward/prod/slot/a.b/2026-11-21T14:30Z");
        assert_eq!(Paths::key_of("2026-11-21T14:30Z"), Some(slot.key()));
        assert_eq!(paths.owner(&slot), format!("{}/owner", paths.slot(&slot)));
        assert_ne!(Paths::output(3, Token::from_bits(7)), OWNER);
        assert_eq!(paths.lease_of(&paths.slot(&slot)), Some(paths.lease(&slot)));
        let wake = Wake::Job(slot.job().clone());
        assert_eq!(paths.message_of(&paths.wake(&wake)).and_then(|text| text.parse().ok()), Some(wake));
        assert_eq!(paths.message_of(&paths.locks()), None);
    }
}
