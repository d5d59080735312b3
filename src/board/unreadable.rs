//! What the store has and cannot be read. The rest is shown all the same; somebody has to look at what is in the way. Told what was read;
//! reads nothing.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::board::snapshot::LONGEST;
use crate::board::{Concern, ConcernKind};
use crate::job::JobName;
use crate::message::Topic;
use crate::slot::{Slot, SlotKey};
use crate::store::StoreError;
use crate::text::message;

/// What cannot be read. Of a job's the newest slot comes last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RecordName {
    /// What a job has come to lately.
    Latest(JobName),
    /// Messages about a job, or about the cluster.
    Messages(Topic),
    Slot(JobName, SlotKey),
}

impl From<&Slot> for RecordName {
    fn from(slot: &Slot) -> Self {
        Self::Slot(slot.job().clone(), slot.key())
    }
}

impl RecordName {
    const fn job(&self) -> Option<&JobName> {
        match self {
            Self::Latest(job) | Self::Slot(job, _) | Self::Messages(Topic::Job(job)) => Some(job),
            Self::Messages(Topic::Cluster) => None,
        }
    }
}

/// See [`super`].
#[derive(Debug, Default)]
pub(super) struct Unreadable(BTreeMap<RecordName, (DateTime<Utc>, String)>);

impl Unreadable {
    /// Takes what came of a read at `now`: what was read, if it was.
    pub(super) fn take<T>(&mut self, name: RecordName, read: Result<T, StoreError>, now: DateTime<Utc>) -> Option<T> {
        match read {
            Ok(read) => {
                self.0.remove(&name);
                Some(read)
            }
            Err(error) => {
                let error = message(&error.to_string(), LONGEST);
                self.0.entry(name).and_modify(|(_, told)| told.clone_from(&error)).or_insert((now, error));
                None
            }
        }
    }

    /// The same of messages about these topics, of which some cannot be read.
    pub(super) fn take_topics(&mut self, read: &[Topic], mut not: BTreeMap<Topic, StoreError>, now: DateTime<Utc>) {
        for topic in read {
            self.take(RecordName::Messages(topic.clone()), not.remove(topic).map_or(Ok(()), Err), now);
        }
    }

    /// The slots among them.
    pub(super) fn slots(&self) -> impl Iterator<Item = (&JobName, SlotKey)> {
        self.0.keys().filter_map(|name| match name {
            RecordName::Slot(job, key) => Some((job, *key)),
            RecordName::Latest(_) | RecordName::Messages(_) => None,
        })
    }

    /// Whether a slot is one of them.
    pub(super) fn has_slot(&self, job: &JobName, key: SlotKey) -> bool {
        // Mostly there are none, and this is asked of each slot that is read.
        !self.0.is_empty() && self.0.contains_key(&RecordName::Slot(job.clone(), key))
    }

    /// Forgets what is about jobs that there are no more, and slots that are not shown any more: nobody would look at them again.
    pub(super) fn keep(&mut self, is_known: impl Fn(&JobName) -> bool, is_shown: impl Fn(&JobName, SlotKey) -> bool) {
        self.0.retain(|name, _| match name {
            RecordName::Slot(job, key) => is_shown(job, *key),
            RecordName::Latest(job) | RecordName::Messages(Topic::Job(job)) => is_known(job),
            RecordName::Messages(Topic::Cluster) => true,
        });
    }

    /// One for each job, and one for the cluster: since when, how many, and the newest.
    pub(super) fn concerns(&self) -> impl Iterator<Item = Concern> {
        let mut by_job: BTreeMap<Option<&JobName>, Concern> = BTreeMap::new();
        for (name, (since, error)) in &self.0 {
            let slot = if let RecordName::Slot(_, key) = name { Some(*key) } else { None };
            let (job, error) = (name.job().cloned(), error.clone());
            let what = |records| ConcernKind::Unreadable { job, slot, records, error };
            let known = by_job.remove(&name.job());
            let (first, records) = match known {
                Some(Concern { since, what: ConcernKind::Unreadable { records, .. } }) => (since, records),
                _ => (*since, 0),
            };
            by_job.insert(name.job(), Concern { since: first.min(*since), what: what(records + 1) });
        }
        by_job.into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::store::{Applied, ErrorKind, Op};

    fn read(error: Option<&str>) -> Result<u8, StoreError> {
        error.map_or(Ok(7), |error| Err(StoreError::new(ErrorKind::Corrupt, Applied::No, Op::Inspect, "s", error)))
    }

    #[test]
    fn each_job_has_one_concern_with_its_newest_slot_since_the_first_was_met_and_until_all_can_be_read() {
        let at = |second: i64| DateTime::from_timestamp(second, 0).unwrap();
        let job = |name: &str| JobName::new(name).unwrap();
        let slot = |key: &str| RecordName::Slot(job("a"), key.parse().unwrap());
        let (newer, older) = (slot("2026-11-21T14Z"), slot("2026-11-21T13Z"));
        let mut unreadable = Unreadable::default();
        assert_eq!(unreadable.take(newer.clone(), read(Some("new")), at(20)), None);
        unreadable.take(newer.clone(), read(Some("new")), at(30));
        unreadable.take(older, read(Some("old")), at(10));
        unreadable.take(RecordName::Latest(job("a")), read(Some("latest")), at(40));
        let sent = BTreeMap::from([(Topic::Cluster, read(Some("sent")).unwrap_err())]);
        unreadable.take_topics(&[Topic::Job(job("a")), Topic::Cluster], sent, at(50));
        let concern = |since, job, slot, records, error: &str| {
            let error = format!("s: inspect: {error}");
            Concern { since: at(since), what: ConcernKind::Unreadable { job, slot, records, error } }
        };
        let key = |text: &str| text.parse().ok();
        let of_cluster = concern(50, None, None, 1, "sent");
        assert_eq!(
            unreadable.concerns().collect::<Vec<_>>(),
            [of_cluster.clone(), concern(10, Some(job("a")), key("2026-11-21T14Z"), 3, "new")]
        );
        assert_eq!(unreadable.take(newer, read(None), at(60)), Some(7));
        unreadable.take(RecordName::Latest(job("a")), read(None), at(60));
        assert_eq!(unreadable.slots().collect::<Vec<_>>(), [(&job("a"), "2026-11-21T13Z".parse().unwrap())]);
        unreadable.take(RecordName::Latest(job("gone")), read(Some("latest")), at(70));
        unreadable.take(RecordName::Messages(Topic::Job(job("gone"))), read(Some("sent")), at(70));
        unreadable.take(RecordName::Latest(job("a")), read(Some("latest")), at(80));
        unreadable.keep(|known| *known == job("a"), |_, _| false);
        assert_eq!(
            unreadable.concerns().collect::<Vec<_>>(),
            [of_cluster, concern(80, Some(job("a")), None, 1, "latest")]
        );
    }
}
