//! Messages that are told once: the one seam for stores that keep a document for each topic. What a claim comes to is decided by a
//! [rule](super::rules::MessageStep), here as in every store; nothing is sent here.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::error::Reply;
use crate::job::NodeName;
use crate::message::{Delivery, DeliveryReply, MessageKey, Telling, Topic, UntoldMessage};
use crate::slot::Token;
use crate::store::rules::{MessageStep, TopicState};
use crate::store::state::Moment;
use crate::store::{Applied, ErrorKind, Op, StoreError};

/// What a store does by itself that can do one [rule](MessageStep) on the messages of one topic in one atomic step.
pub(super) trait MessageRuled: Debug + Send + Sync + 'static {
    /// Reads what is known of the topic, lets the rule change it, and writes what it has changed under the condition that nothing of
    /// what was read has changed since; otherwise all over again. The rule is pure, and may be asked more than once.
    fn on_topic<T: Send + 'static>(
        &self,
        op: Op,
        topic: &Topic,
        rule: impl Fn(&mut MessageStep) -> T + Send + Sync + 'static,
    ) -> impl Future<Output = Reply<T>> + Send;

    /// [`Store::untold`](super::Store::untold).
    fn untold_known(&self, topics: &[Topic])
    -> impl Future<Output = Reply<(DateTime<Utc>, Vec<UntoldMessage>)>> + Send;
}

/// [`Store::tell`](super::Store::tell).
pub(super) async fn tell(
    store: &impl MessageRuled,
    message: &MessageKey,
    by: &NodeName,
    token: Token,
    lease: Duration,
) -> Reply<Telling> {
    let (own, by) = (message.clone(), by.clone());
    store.on_topic(Op::Tell, message.topic(), move |step| step.tell(&own, &by, token, lease)).await
}

/// [`Store::told`](super::Store::told).
pub(super) async fn told(
    store: &impl MessageRuled,
    message: &MessageKey,
    token: Token,
    delivery: &Delivery,
) -> Reply<DeliveryReply> {
    let (own, delivery) = (message.clone(), delivery.clone());
    store.on_topic(Op::Told, message.topic(), move |step| step.told(&own, token, &delivery)).await
}

/// The answer of a store that does not keep which messages were told.
#[cfg(feature = "redis-redlock")]
pub(super) fn unkept<T>(op: Op, place: &str) -> Reply<T> {
    let message = "this store does not keep which messages were told";
    Err(StoreError::new(ErrorKind::Unsupported, Applied::No, op, place, message))
}

/// Documents of topics as they were read, each with its version. One that nobody has told anything of is not there.
#[derive(Debug)]
pub(super) struct LoadedTopics<V> {
    /// The store's clock.
    pub(super) now: DateTime<Utc>,
    pub(super) stored: BTreeMap<Topic, (TopicState, V)>,
}

/// A topic's document to be written.
#[allow(dead_code, reason = "what of it is written is each store's own matter, and the one in memory writes nothing")]
#[derive(Debug)]
pub(super) struct TopicWrite<'w, V> {
    pub(super) topic: &'w Topic,
    pub(super) state: &'w TopicState,
    /// When it was read.
    pub(super) now: DateTime<Utc>,
    /// The version that was read; none where there was none.
    pub(super) read: Option<V>,
}

impl<V: Clone> LoadedTopics<V> {
    /// For a rule to decide.
    pub(super) fn step(&self, topic: &Topic, retention: Duration) -> MessageStep {
        let at = Moment { now: self.now, retention };
        self.stored
            .get(topic)
            .map_or_else(|| MessageStep::new(&TopicState::default(), at), |(stored, _)| MessageStep::new(stored, at))
    }

    /// What the rule has made of it; none where nothing is to be written.
    pub(super) fn write<'w>(&self, topic: &'w Topic, step: &'w MessageStep) -> Option<TopicWrite<'w, V>> {
        let read = self.stored.get(topic).map(|(_, version)| version.clone());
        step.is_changed().then_some(TopicWrite { topic, state: &step.state, now: self.now, read })
    }

    /// What was begun and is not told, with the clock.
    pub(super) fn untold(&self, topics: &[Topic], retention: Duration) -> (DateTime<Utc>, Vec<UntoldMessage>) {
        let at = Moment { now: self.now, retention };
        let of_topic = |topic: &Topic| self.stored.get(topic).map(|(state, _)| state.untold(topic, at));
        (self.now, topics.iter().filter_map(of_topic).flatten().collect())
    }
}

/// What a store that reads and writes documents one by one does by itself.
pub(super) trait MessageShelf: Debug + Send + Sync + 'static {
    type Version: Clone + Send + Sync + 'static;

    /// How long a message is kept after its last change.
    fn kept_for(&self) -> Duration;

    /// Where it is, for messages.
    fn place(&self) -> &str;

    /// Reads the documents of these topics, each by itself.
    fn load_topics(&self, op: Op, topics: &[Topic]) -> impl Future<Output = Reply<LoadedTopics<Self::Version>>> + Send;

    /// Writes a document if it is still as it was read. False when nothing was written.
    fn save_topic(&self, op: Op, write: TopicWrite<'_, Self::Version>) -> impl Future<Output = Reply<bool>> + Send;
}

/// How often a step is tried anew when others change the same topic meanwhile. Each time one of them has got through.
const MOST_TRIES: usize = 100;

impl<S: MessageShelf> MessageRuled for S {
    async fn on_topic<T: Send + 'static>(
        &self,
        op: Op,
        topic: &Topic,
        rule: impl Fn(&mut MessageStep) -> T + Send + Sync + 'static,
    ) -> Reply<T> {
        for _ in 0..MOST_TRIES {
            let loaded = self.load_topics(op, std::slice::from_ref(topic)).await;
            // Nothing was written yet.
            let loaded = loaded.map_err(|error| StoreError { applied: Applied::No, ..error })?;
            let mut step = loaded.step(topic, self.kept_for());
            let answer = rule(&mut step);
            let Some(write) = loaded.write(topic, &step) else { return Ok(answer) };
            if self.save_topic(op, write).await? {
                return Ok(answer);
            }
        }
        let message = format!("others changed the messages about {topic} each time before this could");
        Err(StoreError::new(ErrorKind::Overloaded, Applied::No, op, self.place(), message))
    }

    async fn untold_known(&self, topics: &[Topic]) -> Reply<(DateTime<Utc>, Vec<UntoldMessage>)> {
        Ok(self.load_topics(Op::Untold, topics).await?.untold(topics, self.kept_for()))
    }
}
