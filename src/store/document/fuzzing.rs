//! A door for the fuzz target: any bytes as the texts that etcd and ZooKeeper keep of a slot and of the registry, and on to
//! the rules. Only behind its feature.

use std::fmt::Debug;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{MarkText, NodeText, NoteText, NotesText, PauseText};
use crate::clock::later;
use crate::job::NodeName;
use crate::reply::ClaimRequest;
use crate::slot::{MOST_PAGES, NotePage, Slot, Token};
use crate::store::Pause;
use crate::store::rules::{Change, SlotStep};
use crate::store::state::{Moment, SlotState, StoredMark};

/// The lines are texts of whatever kind they can be; the first mark, document and pause are those of one slot. True when
/// any is taken.
pub fn document_texts(bytes: &[u8]) -> bool {
    let Ok(slot) = Slot::parse("a", "2026-11-21T14Z", "2026-11-21T15Z") else { return false };
    let (mut mark, mut log, mut pause, mut node, mut noted) = (None, None, None, None, false);
    for line in bytes.split(|byte| *byte == b'\n') {
        mark = mark.or_else(|| MarkText::read(line).ok());
        log = log.or_else(|| reads_back::<SlotState>(line));
        pause = pause.or_else(|| reads_back::<PauseText>(line));
        node = node.or_else(|| reads_back::<NodeText>(line));
        noted |= is_noted(line);
    }
    let taken = mark.is_some() || log.is_some() || pause.is_some() || node.is_some() || noted;
    let _ = node.map(NodeText::entry);
    let pause = pause.map(PauseText::pause);
    let mark = mark.and_then(|text| stored(text, slot.end()));
    let stored = SlotState { mark, counter: 1, ..log.unwrap_or_default() };
    for retention in [Duration::ZERO, Duration::from_secs(30 * 86_400), Duration::MAX] {
        let now = slot.start() + TimeDelta::minutes(10);
        is_judged((&slot, &stored), Moment { now, retention }, pause.as_ref());
    }
    taken
}

/// What is written again says the same: some of these types cannot be compared but by their texts.
fn reads_back<T: DeserializeOwned + Serialize + Debug>(bytes: &[u8]) -> Option<T> {
    let value: T = serde_json::from_slice(bytes).ok()?;
    let written = serde_json::to_vec(&value).unwrap_or_default();
    let again = serde_json::from_slice::<T>(&written).ok().and_then(|value| serde_json::to_vec(&value).ok());
    assert_eq!(again.as_ref(), Some(&written), "{value:?}");
    Some(value)
}

/// Notes: a page by itself, as etcd keeps it, or all pages of a slot, as ZooKeeper does. One more page can be put to them,
/// and they are not too many then.
fn is_noted(line: &[u8]) -> bool {
    let alone = reads_back::<NoteText>(line);
    let together = reads_back::<NotesText>(line);
    let noted = alone.is_some() || together.is_some();
    let page = alone.map(|text| (later(text.kept_from, Duration::MAX), text.page));
    if let (Some(mut text), Ok(node)) = (together, NodeName::new("n")) {
        let _ = later(text.kept_from, Duration::MAX);
        let own = NotePage::new("own".to_owned(), node, None, DateTime::UNIX_EPOCH);
        text.put(page.map_or(own, |(_, page)| page));
        assert!(text.pages.len() <= MOST_PAGES, "{} pages", text.pages.len());
        NotePage::sort(&mut text.pages);
    }
    noted
}

/// A mark that was read can be used, and is the same when it is written.
fn stored(text: MarkText, until: DateTime<Utc>) -> Option<StoredMark> {
    let is_lease = text.is_lease();
    let written = serde_json::to_vec(&text).unwrap_or_default();
    assert_eq!(MarkText::read(&written).ok().as_ref(), Some(&text));
    let mark = text.stored(until);
    assert!(mark.is_ok(), "it was read, and so it can be used");
    let mark = mark.ok();
    assert!(mark.iter().all(|mark| MarkText::of(mark).is_lease() == is_lease));
    mark
}

fn is_judged((slot, stored): (&Slot, &SlotState), at: Moment, pause: Option<&Pause>) {
    let step = || SlotStep { pause: pause.cloned(), ..SlotStep::new(slot, stored.current(at), at.now) };
    let change = Change::between(stored, step(), at);
    let silent = change.counter.is_none() && change.run.is_none();
    assert!(silent && change.is_none(), "a rule that changes nothing writes nothing: {change:?}");

    let mut claimed = step();
    let Ok(node) = NodeName::new("n") else { return };
    let _ =
        claimed.claim(&ClaimRequest::new(slot.clone(), Token::from_bits(1), node.clone(), Duration::from_secs(60), 3));
    let change = Change::between(stored, claimed, at);
    assert!(serde_json::to_vec(&change.state).is_ok(), "what a rule makes of it can be kept");
    let _ = SlotStep { now: slot.end(), ..step() }.close(3, &node);

    let record = stored.record(slot, at);
    let newest = record.runs.iter().map(|run| run.attempt).max();
    assert!(record.attempts >= newest.unwrap_or(0), "a counter that was lost is made up for");
}
