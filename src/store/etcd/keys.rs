//! The names of the keys, made to be read by a person with `etcdctl get --prefix /cronward/`.

use super::api::end_of;
use crate::job::{JobName, LockName, Namespace};
use crate::slot::{Attempt, Slot, SlotKey, Token};
use crate::store::Topic;

/// One namespace's keys.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    root: String,
}

impl Keys {
    /// A namespace has no slash in its name, so no root is the beginning of another.
    pub(super) fn new(namespace: &Namespace) -> Self {
        Self { root: format!("/cronward/{namespace}/") }
    }

    /// The lease, wait or done marker.
    pub(super) fn mark(&self, slot: &Slot) -> String {
        format!("{}mark/{slot}", self.root)
    }

    /// Every slot of a job that is leased.
    pub(super) fn leases(&self, job: &JobName) -> String {
        format!("{}lease/{job}@", self.root)
    }

    /// The same as the mark, while that is a lease.
    pub(super) fn lease(&self, slot: &Slot) -> String {
        format!("{}lease/{slot}", self.root)
    }

    /// The attempt counter, a plain integer.
    pub(super) fn attempts(&self, slot: &Slot) -> String {
        format!("{}attempts/{slot}", self.root)
    }

    /// The document: verdict, attempts, verbs.
    pub(super) fn document(&self, slot: &Slot) -> String {
        format!("{}slot/{slot}", self.root)
    }

    /// Every slot's document.
    pub(super) fn documents(&self) -> String {
        format!("{}slot/", self.root)
    }

    /// The name of a slot as it stands in the key of its document, mark or lease.
    pub(super) fn slot_of<'a>(&self, key: &'a [u8]) -> Option<&'a str> {
        let rest = std::str::from_utf8(key).ok()?.strip_prefix(&self.root)?;
        ["slot/", "mark/", "lease/"].iter().find_map(|part| rest.strip_prefix(part))
    }

    /// The same, read.
    pub(super) fn slot_key_of(&self, key: &[u8]) -> Option<(JobName, SlotKey)> {
        let (job, key) = self.slot_of(key)?.split_once('@')?;
        Some((job.parse().ok()?, key.parse().ok()?))
    }

    /// The keys of a slot by its name, and the beginning of its outputs' keys.
    pub(super) fn all_of(&self, slot: &str) -> ([String; 3], String) {
        let root = &self.root;
        let keys = ["mark", "attempts", "slot"].map(|part| format!("{root}{part}/{slot}"));
        (keys, format!("{root}output/{slot}/"))
    }

    /// Every output of a slot.
    pub(super) fn outputs(&self, slot: &Slot) -> String {
        format!("{}output/{slot}/", self.root)
    }

    /// One attempt's output.
    pub(super) fn output(&self, slot: &Slot, attempt: Attempt, token: Token) -> String {
        format!("{}{attempt}.{token}", self.outputs(slot))
    }

    /// Every slot's notes.
    pub(super) fn all_notes(&self) -> String {
        format!("{}note/", self.root)
    }

    /// What was noted on a slot.
    pub(super) fn notes(&self, slot: &Slot) -> String {
        format!("{}note/{slot}/", self.root)
    }

    /// One page of it.
    pub(super) fn note(&self, slot: &Slot, page: &str) -> String {
        format!("{}{page}", self.notes(slot))
    }

    /// What a watch looks at: the marks, and beside them the last hint.
    pub(super) fn watched(&self) -> String {
        format!("{}mark/", self.root)
    }

    /// The last hint. No slot has this name: theirs have an `@`.
    pub(super) fn wake(&self) -> String {
        format!("{}mark/wake", self.root)
    }

    /// The last hints on locks, beside that.
    pub(super) fn lock_wake(&self) -> String {
        format!("{}mark/lock-wake", self.root)
    }

    /// What whoever looks on watches, from and to: the pauses and the documents of slots, and no other key between them.
    pub(super) fn seen(&self) -> (Vec<u8>, Vec<u8>) {
        (format!("{}pause/", self.root).into_bytes(), end_of(&self.documents()))
    }

    /// The job whose pause this key is.
    pub(super) fn paused_job_of(&self, key: &[u8]) -> Option<JobName> {
        std::str::from_utf8(key).ok()?.strip_prefix(&self.root)?.strip_prefix("pause/")?.parse().ok()
    }

    /// What is known of a topic's messages.
    pub(super) fn messages(&self, topic: &Topic) -> String {
        format!("{}{topic}", self.all_messages())
    }

    /// Every topic's messages.
    pub(super) fn all_messages(&self) -> String {
        format!("{}message/", self.root)
    }

    /// A lock's queue.
    pub(super) fn lock(&self, lock: &LockName) -> String {
        format!("{}lock/{lock}", self.root)
    }

    /// Every lock's.
    pub(super) fn locks(&self) -> String {
        format!("{}lock/", self.root)
    }

    pub(super) fn job(&self, job: &JobName) -> String {
        format!("{}job/{job}", self.root)
    }

    pub(super) fn jobs(&self) -> String {
        format!("{}job/", self.root)
    }

    /// What a job has come to lately.
    pub(super) fn latest(&self, job: &JobName) -> String {
        format!("{}latest/{job}", self.root)
    }

    /// What every job has come to.
    pub(super) fn all_latest(&self) -> String {
        format!("{}latest/", self.root)
    }

    pub(super) fn node(&self, node: &crate::job::NodeName) -> String {
        format!("{}node/{node}", self.root)
    }

    pub(super) fn nodes(&self) -> String {
        format!("{}node/", self.root)
    }

    pub(super) fn pause(&self, job: &JobName) -> String {
        format!("{}pause/{job}", self.root)
    }

    pub(super) fn pauses(&self) -> String {
        format!("{}pause/", self.root)
    }

    /// The part of a key after its last slash.
    pub(super) fn name_of(key: &[u8]) -> Option<&str> {
        std::str::from_utf8(key).ok()?.rsplit_once('/').map(|(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_found_again() {
        let keys = Keys::new(&Namespace::new("prod").unwrap());
        let slot = Slot::parse("a.b", "2026-11-21T14:30Z", "2026-11-21T15Z").unwrap();
        assert_eq!(keys.mark(&slot), "/cronward/prod/mark/a.b@2026-11-21T14:30Z");
        assert!(keys.lease(&slot).starts_with(&keys.leases(slot.job())));
        for key in [keys.mark(&slot), keys.document(&slot), keys.lease(&slot)] {
            assert_eq!(keys.slot_key_of(key.as_bytes()), Some((slot.job().clone(), slot.key())));
            assert_eq!(keys.slot_of(key.as_bytes()), Some("a.b@2026-11-21T14:30Z"));
        }
        let token = Token::from_bits(7);
        assert_eq!(keys.output(&slot, 3, token), format!("{}3.{token}", keys.outputs(&slot)));
        assert_eq!(Keys::name_of(keys.pause(slot.job()).as_bytes()), Some("a.b"));
        let (all, outputs) = keys.all_of("a.b@2026-11-21T14:30Z");
        assert_eq!(all, [keys.mark(&slot), keys.attempts(&slot), keys.document(&slot)]);
        assert_eq!(outputs, keys.outputs(&slot));
    }

    #[test]
    fn a_hint_is_no_slot() {
        let keys = Keys::new(&Namespace::new("prod").unwrap());
        for key in [keys.wake(), keys.lock_wake()] {
            assert_eq!(keys.slot_key_of(key.as_bytes()), None);
            assert!(key.starts_with(&keys.watched()));
        }
    }
}
