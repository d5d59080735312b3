//! Locks: a node with a document for each, guarded by its version. Hints are nodes that are made and removed in the step that writes.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::try_join;

use super::ZookeeperStore;
use super::batch::Batch;
use super::fault::Fault;
use super::link::Session;
use super::nodes::{Found, NodeRequest, read_json};
use crate::job::LockName;
use crate::slot::Token;
use crate::store::keyed::Call;
use crate::store::locks::{LockWakeups, messages_to};
use crate::store::rules::LockState;
use crate::store::shelf::{LoadedLocks, LockDocument, LockShelf, StoredLock};

/// Locks of one request, where all are listed or looked at for the purge.
const AT_ONCE: usize = 30;

/// The most locks that one purge looks at. Names say nothing of their age: it begins where the last one ended.
const PURGE_AT_ONCE: usize = 300;

/// The most hints of one step, each a node; those who are more are all told to look.
const MOST_MESSAGES: usize = 30;

/// What guards a lock as it was read. A node that is made anew begins at version 0 again: so each purge moves the version of the
/// folder on, and who has read before that writes nothing.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct LockVersion {
    node: i32,
    folder: i32,
}

impl LockShelf for ZookeeperStore {
    type Version = LockVersion;

    /// Below what a server takes in one request (`jute.maxbuffer`), with the paths beside them.
    const MOST_BYTES: usize = 1_000 * 1_024;

    async fn load_locks(&self, names: &[LockName]) -> Result<LoadedLocks<LockVersion>, Fault> {
        let session = self.link.session().await?;
        let all = if names.is_empty() { self.lock_names(&session).await? } else { names.to_vec() };
        let mut stored = BTreeMap::new();
        let mut parts = all.chunks(AT_ONCE);
        // A clock that has to be asked costs no round trip of its own. What is not there is asked for as well.
        let first = self.read_locks(&session, parts.next().unwrap_or_default());
        let (found, at) = try_join(first, self.moment(&session, false)).await?;
        stored.extend(found);
        for part in parts {
            stored.extend(self.read_locks(&session, part).await?);
        }
        Ok(LoadedLocks { now: at.now, stored })
    }

    async fn save_locks(
        &self,
        call: &Call,
        documents: &[LockDocument<LockVersion>],
        wakes: &[(Token, Token)],
    ) -> Result<bool, Fault> {
        let session = self.link.session().await?;
        let mut writer = Batch::new(&session.client);
        // All of them were read at one moment.
        if let Some(version) = documents.iter().find_map(|document| document.read) {
            writer.add_check_version(&self.paths.locks(), version.folder)?;
        }
        for LockDocument { name, read, text } in documents {
            let path = self.paths.lock(name);
            match (text, read) {
                (Some(text), Some(version)) => writer.add_set_data(&path, text, Some(version.node))?,
                (Some(text), None) => writer.add_create(&path, text, &self.link.options())?,
                (None, Some(version)) => writer.add_check_version(&path, version.node)?,
                // It is not there, and nothing of the answer rests on that: no rule writes an entry without writing to all of its locks.
                (None, None) => {}
            }
        }
        for message in messages_to(wakes, MOST_MESSAGES) {
            self.add_passing(&mut writer, &self.paths.message(&message))?;
        }
        let done = self.committed(call, &mut writer).await?;
        if !done && documents.iter().any(|document| document.read.is_none()) {
            // The first lock of the namespace; or that went meanwhile.
            self.link.prepare(&session.client).await?;
        }
        Ok(done)
    }

    async fn load_names(&self) -> Result<Vec<LockName>, Fault> {
        self.lock_names(&self.link.session().await?).await
    }

    async fn purge_idle(&self, call: &Call) -> Result<u64, Fault> {
        let session = self.link.session().await?;
        let at = self.moment(&session, false).await?;
        let found = self.children(&session, self.paths.locks()).await?;
        // What somebody else made there stays, and keeps nothing else from being removed.
        let mut names: Vec<LockName> = found.iter().filter_map(|name| LockName::new(name).ok()).collect();
        names.sort();
        let from = self.purged_locks.fetch_add(PURGE_AT_ONCE, Ordering::Relaxed).checked_rem(names.len()).unwrap_or(0);
        let looked_at: Vec<LockName> =
            names.iter().cycle().skip(from).take(names.len().min(PURGE_AT_ONCE)).cloned().collect();
        let mut gone = 0;
        for part in looked_at.chunks(AT_ONCE) {
            let mut writer = Batch::new(&session.client);
            let mut count = 0;
            let (folder, found) = self.read_nodes(&session, part).await?;
            writer.add_set_data(&self.paths.locks(), b"", Some(folder))?;
            for (name, data, version) in found {
                let path = self.paths.lock(name);
                if read_json::<LockState>(&path, &data).is_ok_and(|state| state.is_idle(at.now, at.retention)) {
                    writer.add_delete(&path, Some(version))?;
                    count += 1;
                }
            }
            // Where somebody came in between, the next purge will do.
            if count > 0 && self.committed(call, &mut writer).await? {
                gone += count;
            }
        }
        Ok(gone)
    }

    fn listen_locks(&self, instance: Token) -> LockWakeups {
        self.listener.listen_locks(instance)
    }

    fn look_again(&self) -> Duration {
        super::POLL
    }
}

impl ZookeeperStore {
    /// Every lock that is known, by name.
    async fn lock_names(&self, session: &Session) -> Result<Vec<LockName>, Fault> {
        let folder = self.paths.locks();
        let found = self.children(session, folder.clone()).await?;
        let name = |name: &String| LockName::new(name).map_err(|error| Fault::foreign(&folder, &error.to_string()));
        let mut names = found.iter().map(name).collect::<Result<Vec<_>, _>>()?;
        names.sort();
        Ok(names)
    }

    /// Those of these locks that somebody has used, as they are at one moment.
    async fn read_locks(&self, session: &Session, names: &[LockName]) -> Result<Vec<StoredLock<LockVersion>>, Fault> {
        let (folder, found) = self.read_nodes(session, names).await?;
        let lock = |(name, data, node): (&LockName, Vec<u8>, i32)| {
            let state = read_json(&self.paths.lock(name), &data)?;
            Ok((name.clone(), (state, LockVersion { node, folder })))
        };
        found.into_iter().map(lock).collect()
    }

    /// The same as they are stored, each with its version; and that of the folder.
    async fn read_nodes<'a>(
        &self,
        session: &Session,
        names: &'a [LockName],
    ) -> Result<(i32, Vec<(&'a LockName, Vec<u8>, i32)>), Fault> {
        if names.is_empty() {
            return Ok((0, Vec::new()));
        }
        let of_locks = names.iter().map(|name| NodeRequest::Data(self.paths.lock(name)));
        let mut found = self.read(session, of_locks.chain([NodeRequest::Data(self.paths.locks())]).collect()).await?;
        // Without the folder nothing is in it.
        let Some(Found::Data(_, folder)) = found.pop() else { return Ok((0, Vec::new())) };
        let there = |(name, found)| match found {
            Found::Data(data, stat) => Some((name, data, stat.version)),
            _ => None,
        };
        Ok((folder.version, names.iter().zip(found).filter_map(there).collect()))
    }
}
