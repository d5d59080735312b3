//! A connection that hears what is published. One that is silent is asked whether it still stands.

use std::time::Duration;

use futures_util::StreamExt;
use redis::aio::{PubSubSink, PubSubStream};
use redis::{Msg, RedisError};

use super::link::Endpoint;

/// After so long a silence.
const SILENCE: Duration = Duration::from_secs(5);

/// One connection.
pub(super) struct Subscription {
    sink: PubSubSink,
    messages: PubSubStream,
    /// The longest wait for an answer.
    limit: Duration,
}

impl Subscription {
    /// Connects, and hears this channel.
    pub(super) async fn open(endpoint: &Endpoint, channel: &str, limit: Duration) -> Result<Self, RedisError> {
        within(limit, async {
            let target = endpoint.target(limit).await?;
            let (mut sink, messages) = target.subscriber(limit).await?.split();
            sink.subscribe(channel).await?;
            Ok(Self { sink, messages, limit })
        })
        .await
    }

    /// Hears another channel, too.
    pub(super) async fn add(&mut self, channel: &str) -> Result<(), RedisError> {
        within(self.limit, self.sink.subscribe(channel)).await
    }

    /// Hears it no more.
    pub(super) async fn remove(&mut self, channel: &str) -> Result<(), RedisError> {
        within(self.limit, self.sink.unsubscribe(channel)).await
    }

    /// The next message; none once the connection is gone, or is silent also when asked. Nothing is lost where it is not waited for to the
    /// end.
    pub(super) async fn next(&mut self) -> Option<Msg> {
        loop {
            match tokio::time::timeout(SILENCE, self.messages.next()).await {
                Ok(message) => return message,
                Err(_) => drop(within(self.limit, self.sink.ping::<redis::Value>()).await.ok()?),
            }
        }
    }
}

async fn within<T>(limit: Duration, answer: impl Future<Output = Result<T, RedisError>>) -> Result<T, RedisError> {
    let silent = || RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
    tokio::time::timeout(limit, answer).await.unwrap_or_else(|_| Err(silent()))
}
