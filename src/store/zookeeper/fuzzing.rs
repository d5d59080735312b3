//! A door for the fuzz target: any bytes as a node of ZooKeeper, its path and what stands in it. Only behind its feature.

use super::fault::Fault;
use super::nodes::Paths;
use super::nodes::{SlotText, read_json, read_pauses, state};
use crate::slot::{OutputTail, Slot};
use crate::store::codec::{NodeText, NotesText};
use crate::store::keyed::json;
use crate::store::rules::LockState;
use crate::store::state::Moment;
use crate::store::{JobEntry, Op, StoreOptions, Wake};

/// The first line is the node's path, the rest what stands in it. True when that is something that cronward could have
/// written. What is refused is told in one line.
pub fn zookeeper_node(bytes: &[u8]) -> bool {
    let path_end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (path, data) = bytes.split_at(path_end);
    let (path, data) = (String::from_utf8_lossy(path), data.get(1..).unwrap_or_default());
    let paths = Paths::new("", &StoreOptions::default().namespace);
    names(&paths, &path);
    let taken = [
        told(slot(&path, data)),
        told(read_pauses(&path, data).inspect(|pauses| assert!(pauses.len() <= data.len()))),
        told(read_json::<NotesText>(&path, data).inspect(|text| assert!(text.pages.len() <= data.len()))),
        told(read_json::<JobEntry>(&path, data)),
        told(read_json::<NodeText>(&path, data)),
        told(read_json::<OutputTail>(&path, data)),
    ];
    taken.contains(&true) || is_lock(&path, data)
}

/// A lock's queue. Each of its parts may be absent, so that any object is one.
fn is_lock(path: &str, data: &[u8]) -> bool {
    let queue = read_json::<LockState>(path, data);
    let is_used = queue.as_ref().is_ok_and(|state| !state.is_untouched());
    told(queue) && is_used
}

fn names(paths: &Paths, path: &str) {
    let wake_of = |path: &str| paths.message_of(path).and_then(|message| message.parse::<Wake>().ok());
    if let Some(wake) = wake_of(path) {
        assert_eq!(wake_of(&paths.wake(&wake)), Some(wake));
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    if let Some(key) = Paths::key_of(name) {
        assert_eq!(Paths::key_of(&key.to_string()), Some(key));
    }
}

/// The node of a slot, and the record that is made of it. Written again it says the same.
fn slot(path: &str, data: &[u8]) -> Result<(), Fault> {
    let text: SlotText = read_json(path, data)?;
    let written = json(&text)?;
    let again = read_json::<SlotText>(path, &written).and_then(|text| json(&text))?;
    assert_eq!(again, written);
    let Ok(slot) = Slot::parse("a", "2026-11-21T14Z", "2026-11-21T15Z") else { return Ok(()) };
    let stored = state(path, &text)?;
    let at = Moment { now: slot.start(), retention: StoreOptions::default().retention };
    let record = stored.record(&slot, at);
    assert!(record.runs.len() + record.audit.len() <= data.len(), "no more comes out than went in");
    Ok(())
}

fn told<T>(outcome: Result<T, Fault>) -> bool {
    match outcome {
        Ok(_) => true,
        Err(fault) => {
            let message = fault.into_error(Op::Inspect, false, "zookeeper://h").to_string();
            assert!(!message.chars().any(crate::text::is_harmful), "not one harmless line: {message:?}");
            assert!(message.chars().count() <= 4_000, "{} bytes of message", message.len());
            false
        }
    }
}
