//! Messages that are told once in their table, a row with a document for each topic: read as of one instant, decided on by a rule, and
//! written on the condition that the row still has the version that was read; removed once nobody needs them.

use std::collections::BTreeMap;

use super::fault::SqlFault;
use super::row;
use super::session::{Session, Why, values};
use super::slots::Scope;
use crate::store::Topic;
use crate::store::messages::{LoadedTopics, TopicWrite};

/// The most topics that one purge removes.
const PURGE_AT_ONCE: i64 = 500;

fn odd(topic: &str) -> impl Fn(Why) -> SqlFault + '_ {
    move |why| SqlFault::Row(format!("table messages: topic {topic}: {why}"))
}

/// What is known of these topics.
pub(super) async fn load<S: Session>(
    session: &mut S,
    scope: &Scope,
    topics: &[Topic],
) -> Result<LoadedTopics<i64>, SqlFault> {
    // An empty question still asks for the clock.
    let by_name: BTreeMap<&str, &Topic> = topics
        .iter()
        .chain(topics.is_empty().then_some(&Topic::Cluster))
        .map(|topic| (topic.as_str(), topic))
        .collect();
    let names: Vec<&str> = by_name.keys().copied().collect();
    let asked = values![scope.namespace.as_str(), row::json(&names).map_err(odd("-"))?];
    let rows = session.fetch(session.texts().messages_read, asked).await?;
    // Each has a row, also one that nobody has told anything of.
    let first = rows.first().ok_or(sqlx::Error::RowNotFound)?;
    let now = session.read_at(first).map_err(odd("-"))?;
    let mut stored = BTreeMap::new();
    for found in &rows {
        let Some(name) = row::text(found, "topic").map_err(odd("-"))? else { continue };
        let Some(topic) = by_name.get(name.as_str()) else { continue };
        let read = || {
            let version = row::there(row::number(found, "version")?, "version")?;
            Ok((row::there(row::record(found, "document")?, "document")?, version))
        };
        stored.insert((*topic).clone(), read().map_err(odd(&name))?);
    }
    Ok(LoadedTopics { now, stored })
}

/// Writes what is known of a topic. False when another change came first.
pub(super) async fn save<S: Session>(
    session: &mut S,
    scope: &Scope,
    write: &TopicWrite<'_, i64>,
) -> Result<bool, SqlFault> {
    let topic = write.topic.as_str();
    // Larger than any version that a row of this topic has had, also one that was purged: it is never below the clock.
    let version = write.read.map_or(i64::MIN, |read| read.saturating_add(1)).max(write.now.timestamp_millis());
    let needed = write.state.needed_until(scope.retention).timestamp_millis();
    let document = row::json(write.state).map_err(odd(topic))?;
    let texts = session.texts();
    let changed = match write.read {
        Some(read) => {
            let values = values![needed, document, version, scope.namespace.as_str(), topic, read];
            session.execute(texts.messages_update, values).await?
        }
        None => {
            let values = values![scope.namespace.as_str(), topic, needed, document, version];
            session.execute(texts.messages_insert, values).await?
        }
    };
    Ok(changed > 0)
}

/// Removes topics of which nothing was told for the retention.
pub(super) async fn purge<S: Session>(tx: &mut S, scope: &Scope) -> Result<u64, SqlFault> {
    let values = values![scope.namespace.as_str(), tx.now(), PURGE_AT_ONCE];
    Ok(tx.execute(tx.texts().messages_purge, values).await?)
}
