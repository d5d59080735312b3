//! Messages that are told once: a text for each topic, read by one script and written by another under the condition that it is still
//! the one that was read. What a claim comes to is decided by the rules that every store has, and not in Lua.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::try_join_all;
use redis::Value;

use super::decode::{Corrupt, instant, integer, json, list, text};
use super::script::{self, Args};
use super::store::{RedisStore, ttl};
use crate::error::Reply;
use crate::store::messages::{LoadedTopics, MessageShelf, TopicWrite};
use crate::store::rules::TopicState;
use crate::store::{Op, Topic};

/// One topic's text as it was read: the server's clock, the text, its digest.
type ReadTopic = (DateTime<Utc>, Option<TopicState>, String);

/// The answer of `read_messages` in `lua/message.lua`.
pub(super) fn topic(reply: &Value, key: &str) -> Result<ReadTopic, Corrupt> {
    let [now, known, digest] = list(reply)? else { return Err(Corrupt::at(key, "its answer has another form")) };
    let digest = text(digest)?.to_owned();
    let state = match known {
        Value::Nil => None,
        known => Some(json(text(known).map_err(|_| Corrupt::at(key, "no text"))?, key, "the messages")?),
    };
    Ok((instant(integer(now)?)?, state, digest))
}

/// The answer of `write_messages` there.
fn is_written(reply: &Value, key: &str) -> Result<bool, Corrupt> {
    match list(reply)? {
        [word] => Ok(text(word)? == "written"),
        _ => Err(Corrupt::at(key, "its answer has another form")),
    }
}

impl RedisStore {
    async fn load_topic(&self, op: Op, topic: &Topic) -> Reply<ReadTopic> {
        let key = self.keys.messages(topic);
        let args = Args::keys([key.clone()]);
        self.ask((op, &key), &script::MESSAGES_READ, &args, |reply| self::topic(reply, &key)).await
    }
}

impl MessageShelf for RedisStore {
    /// The digest of the text.
    type Version = String;

    fn kept_for(&self) -> Duration {
        self.options.retention
    }

    fn place(&self) -> &str {
        &self.location
    }

    async fn load_topics(&self, op: Op, topics: &[Topic]) -> Reply<LoadedTopics<String>> {
        // An empty question still asks for the clock. All are sent before the first is answered, each to the server that keeps it.
        let clock = topics.is_empty().then_some(&Topic::Cluster);
        let asked = topics.iter().chain(clock);
        let answers = try_join_all(asked.map(async |topic| Ok((topic, self.load_topic(op, topic).await?)))).await?;
        let now = answers.iter().map(|(_, (now, ..))| *now).min().unwrap_or_default();
        let known = |(topic, (_, state, digest)): (&Topic, ReadTopic)| Some((topic.clone(), (state?, digest)));
        let stored = answers.into_iter().filter_map(known).collect::<BTreeMap<_, _>>();
        Ok(LoadedTopics { now, stored })
    }

    async fn save_topic(&self, op: Op, write: TopicWrite<'_, String>) -> Reply<bool> {
        let key = self.keys.messages(write.topic);
        let text = serde_json::to_string(write.state).unwrap_or_default();
        let read = write.read.unwrap_or_else(|| NOTHING.to_owned());
        let args = Args::keys([key.clone()]).arg(read).arg(text).arg(ttl(self.options.retention));
        self.ask((op, &key), &script::MESSAGES_WRITE, &args, |reply| is_written(reply, &key)).await
    }
}

/// The digest of what is not there: that of an empty text.
const NOTHING: &str = "da39a3ee5e6b4b0d3255bfef95601890afd80709";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_that_nobody_has_told_of_has_the_digest_of_nothing() {
        assert_eq!(::redis::Script::new("").get_hash(), NOTHING);
    }

    #[test]
    fn what_is_no_text_of_messages_is_refused_with_its_key() {
        let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let answer = |known: Value| Value::Array(vec![Value::Int(1_000), known, bulk("d")]);
        let read = topic(&answer(bulk(r#"{"messages":[]}"#)), "k").unwrap();
        assert_eq!((read.1, read.2), (Some(TopicState::default()), "d".to_owned()));
        assert_eq!(topic(&answer(Value::Nil), "k").unwrap().1, None);
        for known in [bulk("{}"), bulk("x"), bulk(r#"{"messages":[{}]}"#), Value::Int(7)] {
            let corrupt = topic(&answer(known), "the-key").unwrap_err();
            assert!(format!("{corrupt:?}").contains("the-key"), "{corrupt:?}");
        }
        assert!(topic(&Value::Nil, "k").is_err() && topic(&Value::Array(Vec::new()), "k").is_err());
    }
}
