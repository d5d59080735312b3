//! One thing that is to be told: what, of which job or node, and the name under which the cluster tells it once. Pure.

use chrono::{DateTime, SecondsFormat, Utc};
use sha2::{Digest as _, Sha256};

use crate::event::NoticeKind;
use crate::job::{JobName, Namespace, NodeName};
use crate::message::{MessageKey, Topic};
use crate::slot::{Attempt, SlotKey};

/// Something to be told. What is not in its subject may differ from node to node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) kind: NoticeKind,
    pub(super) topic: Topic,
    /// The slot; since when it fails, of `recovered` and `reminder`; the last success, of `late`.
    pub(super) slot: Option<SlotKey>,
    /// The attempt; the number of the reminder.
    pub(super) number: Option<u32>,
    /// Which node it is about.
    pub(super) about: Option<NodeName>,
    /// When it happened, of what has no slot.
    pub(super) stamp: Option<DateTime<Utc>>,
    /// How many slots, where they are several.
    pub(super) slots: u32,
    /// The first of them.
    pub(super) first: Option<SlotKey>,
    /// The node of the other run, of `overlap`, where that is known.
    pub(super) beside: Option<NodeName>,
    /// More about it, in somebody's words: of unknown origin.
    pub(super) words: Option<String>,
}

impl Notice {
    /// When what it tells of was, as far as its name says.
    pub(super) fn happened(&self) -> Option<DateTime<Utc>> {
        let names_an_earlier_slot =
            matches!(self.kind, NoticeKind::Recovered | NoticeKind::Reminder | NoticeKind::Late);
        self.slot.filter(|_| !names_an_earlier_slot).map(SlotKey::start).or(self.stamp)
    }

    /// Where it stands among those about one slot.
    pub(super) const fn step(&self) -> u8 {
        match self.kind {
            NoticeKind::Started => 0,
            NoticeKind::AttemptFailed => 1,
            NoticeKind::Succeeded => 3,
            NoticeKind::Recovered => 4,
            _ => 2,
        }
    }

    /// About a slot of a job.
    pub(super) fn of_slot(kind: NoticeKind, job: &JobName, slot: SlotKey) -> Self {
        Self { slot: Some(slot), ..Self::of_job(kind, job) }
    }

    /// About a job.
    pub(super) fn of_job(kind: NoticeKind, job: &JobName) -> Self {
        Self {
            kind,
            topic: Topic::Job(job.clone()),
            slot: None,
            number: None,
            about: None,
            stamp: None,
            slots: 1,
            first: None,
            beside: None,
            words: None,
        }
    }

    /// About a node.
    pub(super) fn of_node(kind: NoticeKind, node: &NodeName, stamp: DateTime<Utc>) -> Self {
        Self {
            kind,
            topic: Topic::Cluster,
            slot: None,
            number: None,
            about: Some(node.clone()),
            stamp: Some(stamp),
            slots: 1,
            first: None,
            beside: None,
            words: None,
        }
    }

    /// The same with the number of an attempt, or of a reminder.
    pub(super) const fn numbered(mut self, number: Attempt) -> Self {
        self.number = Some(number);
        self
    }

    /// The job that it is about.
    pub(super) const fn job(&self) -> Option<&JobName> {
        match &self.topic {
            Topic::Job(job) => Some(job),
            Topic::Cluster => None,
        }
    }

    /// The event, as the store keeps it: the same on every node that learns of it.
    pub(super) fn subject(&self) -> String {
        let kind = self.kind.as_str();
        let what = match (&self.about, self.slot) {
            (Some(node), _) => node.to_string(),
            (None, Some(slot)) => slot.to_string(),
            (None, None) => "never".to_owned(),
        };
        let which = self.stamp.map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true));
        match (which, self.number) {
            (Some(stamp), _) => format!("{what} {kind} {stamp}"),
            (None, Some(number)) => format!("{what} {kind} {number}"),
            (None, None) => format!("{what} {kind}"),
        }
    }

    /// What a subject says, as far as it says it; none where it is nothing that this version tells.
    pub(super) fn parse(key: &MessageKey) -> Option<Self> {
        let mut parts = key.subject().split(' ');
        let (what, kind) = (parts.next()?, NoticeKind::named(parts.next()?)?);
        let which = parts.next();
        let number = which.and_then(|text| text.parse().ok());
        let stamp = which.and_then(|text| text.parse::<DateTime<Utc>>().ok());
        let read = match key.topic() {
            Topic::Cluster => Self { stamp, ..Self::of_node(kind, &NodeName::new(what).ok()?, stamp?) },
            Topic::Job(job) => Self { slot: what.parse().ok(), number, stamp, ..Self::of_job(kind, job) },
        };
        (read.subject() == key.subject()).then_some(read)
    }

    /// Its name in the store, for this sink.
    pub(super) fn key(&self, sink: &str) -> Option<MessageKey> {
        MessageKey::new(self.topic.clone(), &self.subject(), sink).ok()
    }
}

/// The identity of a message: the same for each try of each node, so that a receiver knows one that comes twice.
pub(super) fn message_id(namespace: &Namespace, key: &MessageKey) -> String {
    let digest = digest(&[namespace.as_str(), key.topic().as_str(), key.subject(), key.sink()]);
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The identity of one message about several: another one where it is about others.
pub(super) fn digest_id(ids: &[String]) -> String {
    let mut sorted: Vec<&str> = ids.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    digest(&sorted).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The identity of a run of a slot for those who want a UUID: version 8, made of a hash (RFC 9562).
pub(super) fn run_uuid(namespace: &Namespace, job: &JobName, slot: SlotKey) -> String {
    let digest = digest(&[namespace.as_str(), job.as_str(), &slot.to_string()]);
    let mut bytes = [0_u8; 16];
    bytes.iter_mut().zip(&digest).for_each(|(byte, hashed)| *byte = *hashed);
    let [.., seventh, _, ninth, _, _, _, _, _, _, _] = &mut bytes;
    *seventh = (*seventh & 0x0f) | 0x80;
    *ninth = (*ninth & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

/// A number from a message's name, spread evenly: the same on every node.
pub(super) fn spread_of(key: &MessageKey) -> u64 {
    let digest = digest(&[key.topic().as_str(), key.subject(), key.sink()]);
    digest.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// The same for all messages of a job to one sink: what is put off by it stays in its order.
pub(super) fn turn_of(key: &MessageKey) -> u64 {
    let digest = digest(&[key.topic().as_str(), key.sink()]);
    digest.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

fn digest(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> JobName {
        JobName::new("billing").unwrap()
    }

    fn slot() -> SlotKey {
        "2026-11-21T14Z".parse().unwrap()
    }

    #[test]
    fn a_subject_names_the_event_and_is_read_back_by_whoever_finds_it_untold() {
        let node = NodeName::new("Web-1").unwrap();
        let at = "2026-11-21T14:05:06Z".parse().unwrap();
        for (notice, subject) in [
            (Notice::of_slot(NoticeKind::Failed, &job(), slot()), "2026-11-21T14Z failed"),
            (Notice::of_slot(NoticeKind::Started, &job(), slot()).numbered(2), "2026-11-21T14Z started 2"),
            (Notice::of_job(NoticeKind::Late, &job()), "never late"),
            (
                Notice { stamp: Some(at), ..Notice::of_job(NoticeKind::Paused, &job()) },
                "never paused 2026-11-21T14:05:06Z",
            ),
            (Notice::of_node(NoticeKind::NodeSilent, &node, at), "Web-1 node_silent 2026-11-21T14:05:06Z"),
        ] {
            assert_eq!(notice.subject(), subject);
            let key = notice.key("ops").unwrap();
            assert_eq!(Notice::parse(&key), Some(notice), "{subject}");
        }
        for subject in ["2026-11-21T14Z burned", "2026-11-21T14Z", "x failed"] {
            assert_eq!(Notice::parse(&MessageKey::new(job(), subject, "ops").unwrap()), None, "{subject}");
        }
    }

    #[test]
    fn an_identity_is_of_one_message_of_one_namespace() {
        let key = |sink: &str| Notice::of_slot(NoticeKind::Failed, &job(), slot()).key(sink).unwrap();
        let (prod, test) = (Namespace::new("prod").unwrap(), Namespace::new("test").unwrap());
        let id = message_id(&prod, &key("ops"));
        // python3: hashlib.sha256(b"prod\0billing\0" + b"2026-11-21T14Z failed\0ops\0").hexdigest()[:32]
        assert_eq!(id, "804384bc40bb1068582283e37250536d");
        assert_ne!(id, message_id(&test, &key("ops")));
        assert_ne!(id, message_id(&prod, &key("boss")));
    }

    #[test]
    fn a_run_has_one_uuid_whichever_message_is_about_it() {
        let prod = Namespace::new("prod").unwrap();
        let uuid = run_uuid(&prod, &job(), slot());
        assert_eq!((uuid.len(), uuid.get(14..15)), (36, Some("8")), "{uuid}");
        assert!(matches!(uuid.get(19..20), Some("8" | "9" | "a" | "b")), "{uuid}");
        assert_eq!(uuid, run_uuid(&prod, &job(), slot()));
    }
}
