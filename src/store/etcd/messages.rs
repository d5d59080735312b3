//! Messages that are told once: a key with a document for each topic, compared by the revision of its last change.

use std::time::Duration;

use super::EtcdStore;
use super::api::{ASCEND, BY_CHANGE, RangeRequest, TxnRequest, delete, put, unchanged};
use super::fault::Fault;
use super::read::read_json;
use crate::store::keyed::{Call, Framed as _, json};
use crate::store::messages::{LoadedTopics, MessageShelf, TopicWrite};
use crate::store::ruled::Reply;
use crate::store::rules::TopicState;
use crate::store::{Op, Topic};

/// The most topics that one transaction reads, of which a server takes 128 operations (`--max-txn-ops`).
const AT_ONCE: usize = 100;

/// The most topics that one purge looks at, those that were changed the longest ago.
const PURGE_AT_ONCE: i64 = 100;

impl MessageShelf for EtcdStore {
    type Version = i64;

    fn kept_for(&self) -> Duration {
        self.options.retention
    }

    fn place(&self) -> &str {
        &self.location
    }

    async fn load_topics(&self, op: Op, topics: &[Topic]) -> Reply<LoadedTopics<i64>> {
        let call = Call::new(op);
        call.within(self.frame(), self.read_topics(topics)).await
    }

    async fn save_topic(&self, op: Op, write: TopicWrite<'_, i64>) -> Reply<bool> {
        let call = Call::new(op);
        let work = async {
            let key = self.keys.messages(write.topic);
            let compare = vec![unchanged(&key, write.read.unwrap_or(0))];
            let success = vec![put(&key, json(write.state)?, 0)];
            self.commit(&call, TxnRequest::when(compare, success)).await
        };
        call.within(self.frame(), work).await
    }
}

impl EtcdStore {
    async fn read_topics(&self, topics: &[Topic]) -> Result<LoadedTopics<i64>, Fault> {
        let mut found = Vec::with_capacity(topics.len());
        for part in topics.chunks(AT_ONCE) {
            let asked = part.iter().map(|topic| RangeRequest::key(&self.keys.messages(topic)));
            found.extend(self.read(asked.collect()).await?);
        }
        // After everything was read, as for slots.
        let now = self.moment().now;
        let known = topics.iter().zip(&found).filter_map(|(topic, kvs)| Some((topic, kvs.first()?)));
        let stored = known.map(|(topic, kv)| Ok((topic.clone(), (read_json(kv)?, kv.mod_revision))));
        Ok(LoadedTopics { now, stored: stored.collect::<Result<_, Fault>>()? })
    }

    /// Removes a batch of topics of which nothing was told for the retention.
    pub(super) async fn remove_old_messages(&self, call: &Call) -> Result<(), Fault> {
        let all = RangeRequest::prefix(&self.keys.all_messages());
        let oldest = RangeRequest { limit: PURGE_AT_ONCE, sort_order: ASCEND, sort_target: BY_CHANGE, ..all };
        let at = self.moment();
        let (mut compare, mut success) = (Vec::new(), Vec::new());
        for kv in self.read(vec![oldest]).await?.into_iter().flatten() {
            // What cannot be read stays: somebody else wrote it.
            if read_json::<TopicState>(&kv).is_ok_and(|state| state.needed_until(at.retention) <= at.now) {
                let key = String::from_utf8_lossy(&kv.key);
                compare.push(unchanged(&key, kv.mod_revision));
                success.push(delete(&key));
            }
        }
        if !success.is_empty() {
            // Where somebody came in between, the next purge will do.
            self.commit(call, TxnRequest::when(compare, success)).await?;
        }
        Ok(())
    }
}
