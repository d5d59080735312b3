//! The messages of the ledger: plain data, decided on by `store::rules`; and the store's part of the contract.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::error::Reply;
use crate::job::NodeName;
use crate::slot::Token;
use crate::store::memory::{Ledger, MemoryStore};
use crate::store::messages::MessageRuled;
use crate::store::rules::MessageStep;
use crate::store::{Delivery, DeliveryReply, MessageKey, Op, Telling, Topic, UntoldMessage};

impl Ledger {
    /// Claims a message ([`crate::store::Store::tell`]).
    pub fn tell(
        &mut self,
        key: &MessageKey,
        (by, token): (&NodeName, Token),
        lease: Duration,
        now: DateTime<Utc>,
    ) -> Telling {
        self.on_topic(key.topic(), now, |step| step.tell(key, by, token, lease))
    }

    /// Records what became of a try ([`crate::store::Store::told`]).
    pub fn told(&mut self, key: &MessageKey, token: Token, delivery: &Delivery, now: DateTime<Utc>) -> DeliveryReply {
        self.on_topic(key.topic(), now, |step| step.told(key, token, delivery))
    }

    /// What was begun and is not told ([`crate::store::Store::untold`]).
    pub fn untold(&self, topics: &[Topic], now: DateTime<Utc>) -> Vec<UntoldMessage> {
        let of_topic = |topic: &Topic| self.topics.get(topic).map(|state| state.untold(topic, self.at(now)));
        topics.iter().filter_map(of_topic).flatten().collect()
    }

    /// All that is known of the topic's messages is gone, as by an eviction: for probes.
    pub fn forget_messages(&mut self, topic: &Topic) {
        self.topics.remove(topic);
    }

    /// One rule on one topic.
    pub(super) fn on_topic<T>(
        &mut self,
        topic: &Topic,
        now: DateTime<Utc>,
        rule: impl FnOnce(&mut MessageStep) -> T,
    ) -> T {
        let at = self.at(now);
        let stored = self.topics.entry(topic.clone()).or_default();
        let mut step = MessageStep::new(stored, at);
        let answer = rule(&mut step);
        *stored = step.state;
        answer
    }

    /// Removes topics of which nothing was told for the retention.
    pub(super) fn purge_messages(&mut self, now: DateTime<Utc>) {
        let retention = self.retention();
        self.topics.retain(|_, state| state.needed_until(retention) > now);
    }
}

impl MessageRuled for MemoryStore {
    async fn on_topic<T: Send + 'static>(
        &self,
        _op: Op,
        topic: &Topic,
        rule: impl Fn(&mut MessageStep) -> T + Send + Sync + 'static,
    ) -> Reply<T> {
        Ok(self.with_ledger(|ledger, now| ledger.on_topic(topic, now, rule)))
    }

    async fn untold_known(&self, topics: &[Topic]) -> Reply<(DateTime<Utc>, Vec<UntoldMessage>)> {
        Ok(self.with_ledger(|ledger, now| (now, ledger.untold(topics, now))))
    }
}
