//! Messages that are told once: a node with a document for each topic, guarded by its version.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::ZookeeperStore;
use super::batch::Batch;
use super::fault::Fault;
use super::link::Session;
use super::nodes::{Found, NodeRequest, read_json};
use crate::store::keyed::{Call, Framed as _, json};
use crate::store::messages::{LoadedTopics, MessageShelf, TopicWrite};
use crate::store::ruled::Reply;
use crate::store::rules::TopicState;
use crate::store::{Op, Topic};

/// Topics of one request, each of a hundred kilobytes at the most.
const AT_ONCE: usize = 30;

/// The most topics that one purge looks at. Names say nothing of their age: it begins where the last one ended.
const PURGE_AT_ONCE: usize = 300;

/// What guards a topic as it was read. A node that is made anew begins at version 0 again: so each purge moves the version of the
/// folder on, and who has read before that writes nothing.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct TopicVersion {
    node: i32,
    folder: i32,
}

impl MessageShelf for ZookeeperStore {
    type Version = TopicVersion;

    fn kept_for(&self) -> Duration {
        self.options.retention
    }

    fn place(&self) -> &str {
        &self.location
    }

    async fn load_topics(&self, op: Op, topics: &[Topic]) -> Reply<LoadedTopics<TopicVersion>> {
        let call = Call::new(op);
        call.within(self.frame(), self.read_topics(topics)).await
    }

    async fn save_topic(&self, op: Op, write: TopicWrite<'_, TopicVersion>) -> Reply<bool> {
        let call = Call::new(op);
        call.within(self.frame(), self.write_topic(&call, write)).await
    }
}

impl ZookeeperStore {
    async fn read_topics(&self, topics: &[Topic]) -> Result<LoadedTopics<TopicVersion>, Fault> {
        let session = self.link.session().await?;
        let mut stored = BTreeMap::new();
        for part in topics.chunks(AT_ONCE) {
            let paths: Vec<String> = part.iter().map(|topic| self.paths.messages(topic)).collect();
            for ((topic, path), found) in part.iter().zip(&paths).zip(self.read_documents(&session, &paths).await?) {
                let Some((data, version)) = found else { continue };
                stored.insert(topic.clone(), (read_json(path, &data)?, version));
            }
        }
        // An empty question asks for the clock, and whether the store is there.
        let now = self.moment(&session, topics.is_empty()).await?.now;
        Ok(LoadedTopics { now, stored })
    }

    /// What stands at these paths, in their order, each with what guards it.
    async fn read_documents(
        &self,
        session: &Session,
        paths: &[String],
    ) -> Result<Vec<Option<(Vec<u8>, TopicVersion)>>, Fault> {
        let asked = paths.iter().cloned().chain([self.paths.all_messages()]).map(NodeRequest::Data);
        let mut found = self.read(session, asked.collect()).await?;
        // Without the folder nothing is in it.
        let Some(Found::Data(_, folder)) = found.pop() else { return Ok(Vec::new()) };
        let there = |found| match found {
            Found::Data(data, stat) => Some((data, TopicVersion { node: stat.version, folder: folder.version })),
            _ => None,
        };
        Ok(found.into_iter().map(there).collect())
    }

    async fn write_topic(&self, call: &Call, write: TopicWrite<'_, TopicVersion>) -> Result<bool, Fault> {
        let session = self.link.session().await?;
        let (folder, path) = (self.paths.all_messages(), self.paths.messages(write.topic));
        let text = json(write.state)?;
        let mut writer = Batch::new(&session.client);
        match write.read {
            Some(version) => {
                writer.add_check_version(&folder, version.folder)?;
                writer.add_set_data(&path, &text, Some(version.node))?;
            }
            None => writer.add_create(&path, &text, &self.link.options())?,
        }
        let done = self.committed(call, &mut writer).await?;
        if !done && write.read.is_none() {
            // The first message of the namespace; or that went meanwhile.
            session.client.mkdir(&folder, &self.link.options()).await?;
        }
        Ok(done)
    }

    /// Removes a batch of topics of which nothing was told for the retention.
    pub(super) async fn remove_old_messages(&self, call: &Call, session: &Session) -> Result<(), Fault> {
        let at = self.moment(session, false).await?;
        let folder = self.paths.all_messages();
        let mut names = self.children(session, folder.clone()).await?;
        names.sort();
        let from = self.purged_topics.fetch_add(PURGE_AT_ONCE, Ordering::Relaxed).checked_rem(names.len()).unwrap_or(0);
        let looked_at = names.iter().cycle().skip(from).take(names.len().min(PURGE_AT_ONCE));
        let paths: Vec<String> = looked_at.map(|name| format!("{folder}/{name}")).collect();
        for part in paths.chunks(AT_ONCE) {
            let mut writer = Batch::new(&session.client);
            let mut guard = None;
            for (path, found) in part.iter().zip(self.read_documents(session, part).await?) {
                let Some((data, version)) = found else { continue };
                // What cannot be read stays: somebody else wrote it.
                let state = read_json::<TopicState>(path, &data);
                if state.is_ok_and(|state| state.needed_until(at.retention) <= at.now) {
                    writer.add_delete(path, Some(version.node))?;
                    guard = Some(version.folder);
                }
            }
            if let Some(version) = guard {
                writer.add_set_data(&folder, b"", Some(version))?;
                // Where somebody came in between, the next purge will do.
                self.committed(call, &mut writer).await?;
            }
        }
        Ok(())
    }
}
