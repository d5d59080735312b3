//! Slots and the registry as texts, for stores that keep keys and values instead of rows. Pure: no store, no I/O, no clock.
//!
//! Of each slot there is kept: the *mark* (lease, wait or done marker), the attempt *counter*, one *document*, which is the JSON of
//! its [state](super::state::SlotState) with the verdict, each attempt and the operators' verbs, and beside it each attempt's
//! *output*, which no rule asks for and which may be long.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::clock::later;
use crate::job::NodeName;
use crate::slot::{Attempt, Audit, Holder, JobLatest, NotePage, Token};
use crate::store::state::{MarkKind, StoredMark};
use crate::store::{LATEST_KEPT, NodeEntry, NodeReport, Pause};

/// Why a text cannot be read, as a lowercase fragment.
type Why = String;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Running,
    Backoff,
    Done,
}

/// The mark as it stands at its key, readable by a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct MarkText {
    state: Word,
    node: NodeName,
    attempt: Attempt,
    /// None where an operator said that it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<Token>,
    #[serde(rename = "since_ms", with = "chrono::serde::ts_milliseconds")]
    since: DateTime<Utc>,
    /// None where the store itself removes the mark in time.
    #[serde(
        default,
        rename = "until_ms",
        with = "chrono::serde::ts_milliseconds_option",
        skip_serializing_if = "Option::is_none"
    )]
    until: Option<DateTime<Utc>>,
}

#[cfg_attr(not(feature = "etcd"), allow(dead_code, reason = "in ZooKeeper a mark is a part of its slot"))]
impl MarkText {
    pub(in crate::store) fn read(bytes: &[u8]) -> Result<Self, Why> {
        let text: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if text.token.is_none() && text.state != Word::Done {
            return Err("a lease without its token".to_owned());
        }
        Ok(text)
    }

    /// A mark that ends by its text.
    pub(in crate::store) fn of(mark: &StoredMark) -> Self {
        let (state, token) = match mark.kind {
            MarkKind::Lease(token) => (Word::Running, Some(token)),
            MarkKind::Wait(token) => (Word::Backoff, Some(token)),
            MarkKind::Done(token) => (Word::Done, token),
        };
        let Holder { node, attempt } = mark.by.clone();
        Self { state, node, attempt, token, since: mark.since, until: Some(mark.until) }
    }

    /// The same, ended by the store.
    pub(in crate::store) fn without_end(self) -> Self {
        Self { until: None, ..self }
    }

    pub(in crate::store) fn is_lease(&self) -> bool {
        self.state == Word::Running
    }

    pub(in crate::store) const fn until(&self) -> Option<DateTime<Utc>> {
        self.until
    }

    /// As a rule sees it; `until` where the text does not say.
    pub(in crate::store) fn stored(self, until: DateTime<Utc>) -> Result<StoredMark, Why> {
        let kind = match (self.state, self.token) {
            (Word::Running, Some(token)) => MarkKind::Lease(token),
            (Word::Backoff, Some(token)) => MarkKind::Wait(token),
            (Word::Done, token) => MarkKind::Done(token),
            (_, None) => return Err("a lease without its token".to_owned()),
        };
        let by = Holder { node: self.node, attempt: self.attempt };
        Ok(StoredMark { kind, by, since: self.since, until: self.until.unwrap_or(until) })
    }
}

/// A node and when it was last heard of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct NodeText {
    #[serde(rename = "seen_ms", with = "chrono::serde::ts_milliseconds")]
    seen: DateTime<Utc>,
    report: NodeReport,
}

impl NodeText {
    pub(in crate::store) fn of(entry: NodeEntry) -> Self {
        Self { seen: entry.seen, report: entry.report }
    }

    pub(in crate::store) fn entry(self) -> NodeEntry {
        NodeEntry { report: self.report, seen: self.seen }
    }
}

/// A job's last pause.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct PauseText {
    #[serde(rename = "since_ms", with = "chrono::serde::ts_milliseconds")]
    since: DateTime<Utc>,
    /// Without an end: until resumed.
    #[serde(
        default,
        rename = "until_ms",
        with = "chrono::serde::ts_milliseconds_option",
        skip_serializing_if = "Option::is_none"
    )]
    until: Option<DateTime<Utc>>,
    audit: Audit,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<Audit>,
}

impl PauseText {
    pub(in crate::store) fn of(pause: Pause) -> Self {
        let Pause { since, until, audit, ended } = pause;
        Self { since, until, audit, ended }
    }

    pub(in crate::store) fn pause(self) -> Pause {
        let Self { since, until, audit, ended } = self;
        Pause { since, until, audit, ended }
    }
}

/// What a job has come to lately.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct LatestText {
    /// The last change: what it is kept for counts from there.
    #[serde(rename = "changed_ms", with = "chrono::serde::ts_milliseconds")]
    changed: DateTime<Utc>,
    #[serde(flatten)]
    pub(in crate::store) latest: JobLatest,
}

impl LatestText {
    pub(in crate::store) fn of(latest: &JobLatest, changed: DateTime<Utc>) -> Self {
        Self { changed, latest: latest.clone() }
    }

    pub(in crate::store) fn is_outdated(&self, now: DateTime<Utc>) -> bool {
        later(self.changed, LATEST_KEPT) <= now
    }
}

/// One page of notes on a slot.
#[cfg(feature = "etcd")]
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct NoteText {
    /// The last change or the slot's end, whichever is later: the retention counts from there.
    #[serde(rename = "kept_from_ms", with = "chrono::serde::ts_milliseconds")]
    pub(in crate::store) kept_from: DateTime<Utc>,
    pub(in crate::store) page: NotePage,
}

/// All pages of notes on a slot.
#[cfg(feature = "zookeeper")]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::store) struct NotesText {
    /// The last change or the slot's end, whichever is later: the retention counts from there.
    #[serde(rename = "kept_from_ms", with = "chrono::serde::ts_milliseconds")]
    pub(in crate::store) kept_from: DateTime<Utc>,
    pub(in crate::store) pages: Vec<NotePage>,
}

#[cfg(feature = "zookeeper")]
impl NotesText {
    /// The page takes the place of its earlier form; of too many the oldest go.
    pub(in crate::store) fn put(&mut self, page: NotePage) {
        self.pages.retain(|known| known.id != page.id);
        self.pages.push(page);
        let kept = self.pages.iter().map(|page| (page.last, page.id.clone(), ())).collect();
        for (id, ()) in NotePage::surplus(kept) {
            self.pages.retain(|known| known.id != id);
        }
    }
}

#[cfg(feature = "fuzzing")]
pub(super) mod fuzzing {
    //! A door for the fuzz target: any bytes as the texts that etcd and ZooKeeper keep of a slot and of the registry, and on to
    //! the rules. Only behind its feature.

    use std::fmt::Debug;
    use std::time::Duration;

    use chrono::{DateTime, TimeDelta, Utc};
    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use super::{LatestText, MarkText, NodeText, NoteText, NotesText, PauseText};
    use crate::clock::later;
    use crate::job::NodeName;
    use crate::reply::ClaimRequest;
    use crate::slot::{MOST_PAGES, NotePage, Outcome, Slot, Token, Verdict};
    use crate::store::Pause;
    use crate::store::rules::{Change, SlotStep, TopicState};
    use crate::store::state::{Moment, SlotState, StoredMark};

    /// The lines are texts of whatever kind they can be; the first mark, document and pause are those of one slot. True when
    /// any is taken.
    pub fn document_texts(bytes: &[u8]) -> bool {
        let Ok(slot) = Slot::parse("a", "2026-11-21T14Z", "2026-11-21T15Z") else { return false };
        let (mut mark, mut log, mut pause, mut node, mut latest, mut noted) = (None, None, None, None, None, false);
        for line in bytes.split(|byte| *byte == b'\n') {
            mark = mark.or_else(|| MarkText::read(line).ok());
            log = log.or_else(|| reads_back::<SlotState>(line));
            pause = pause.or_else(|| reads_back::<PauseText>(line));
            node = node.or_else(|| reads_back::<NodeText>(line));
            latest = latest.or_else(|| reads_back::<LatestText>(line));
            noted |= is_noted(line) || reads_back::<TopicState>(line).is_some();
        }
        let taken = mark.is_some() || log.is_some() || pause.is_some() || node.is_some() || latest.is_some() || noted;
        if let Some(text) = latest {
            is_told(&text, &slot);
        }
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

    /// What a job has come to is told of whatever stands there: a slot that is done last leaves nothing failing.
    fn is_told(text: &LatestText, slot: &Slot) {
        let _ = text.is_outdated(slot.end());
        let mut latest = text.latest.clone();
        latest.closed(slot.key(), Verdict::Failed);
        latest.reopened(slot.key());
        latest.ended(slot.key(), slot.end(), Outcome::Failure);
        let newest = latest.failing.map_or(slot.key(), |failing| failing.last.max(slot.key()));
        latest.done(newest, slot.end());
        assert!(latest.failing.is_none(), "{latest:?}");
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
        let _ = claimed.claim(&ClaimRequest::new(
            slot.clone(),
            Token::from_bits(1),
            node.clone(),
            Duration::from_secs(60),
            3,
        ));
        let change = Change::between(stored, claimed, at);
        assert!(serde_json::to_vec(&change.state).is_ok(), "what a rule makes of it can be kept");
        let _ = SlotStep { now: slot.end(), ..step() }.close(3, &node);

        let record = stored.record(slot, at);
        let newest = record.runs.iter().map(|run| run.attempt).max();
        assert!(record.attempts >= newest.unwrap_or(0), "a counter that was lost is made up for");
    }
}
