//! Locks: a node with a document for each, guarded by its version. Hints are nodes that are made and removed in the step that writes.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::try_join;

use super::ZookeeperStore;
use super::fault::Fault;
use super::link::Session;
use super::nodes::{Found, NodeRequest, read_json};
use crate::job::LockName;
use crate::slot::Token;
use crate::store::keyed::Call;
use crate::store::locks::{LockWakeups, messages_to};
use crate::store::shelf::{LoadedLocks, LockDocument, LockShelf, StoredLock};

/// Locks of one request, where all are listed or looked at for the purge.
const AT_ONCE: usize = 30;

/// The most locks that one purge looks at. Names say nothing of their age: it begins where the last one ended.
const PURGE_AT_ONCE: usize = 300;

/// The most hints of one step, each a node; those who are more are all told to look.
const MOST_MESSAGES: usize = 30;

impl LockShelf for ZookeeperStore {
    type Version = i32;

    /// Below what a server takes in one request (`jute.maxbuffer`), with the paths beside them.
    const MOST_BYTES: usize = 1_000 * 1_024;

    async fn load_locks(&self, names: &[LockName]) -> Result<LoadedLocks<i32>, Fault> {
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
        documents: &[LockDocument<i32>],
        wakes: &[(Token, Token)],
    ) -> Result<bool, Fault> {
        let session = self.link.session().await?;
        let mut writer = session.client.new_multi_writer();
        for LockDocument { name, read, text } in documents {
            let path = self.paths.lock(name);
            match (text, read) {
                (Some(text), Some(version)) => writer.add_set_data(&path, text, Some(*version))?,
                (Some(text), None) => writer.add_create(&path, text, &self.link.options())?,
                (None, Some(version)) => writer.add_check_version(&path, *version)?,
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

    async fn purge_idle(&self, call: &Call) -> Result<u64, Fault> {
        let session = self.link.session().await?;
        let at = self.moment(&session, false).await?;
        let names = self.lock_names(&session).await?;
        let from = self.purged_locks.fetch_add(PURGE_AT_ONCE, Ordering::Relaxed).checked_rem(names.len()).unwrap_or(0);
        let looked_at: Vec<LockName> =
            names.iter().cycle().skip(from).take(names.len().min(PURGE_AT_ONCE)).cloned().collect();
        let mut gone = 0;
        for part in looked_at.chunks(AT_ONCE) {
            let mut writer = session.client.new_multi_writer();
            let mut count = 0;
            for (name, (state, version)) in self.read_locks(&session, part).await? {
                if state.is_idle(at.now, at.retention) {
                    writer.add_delete(&self.paths.lock(&name), Some(version))?;
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
    async fn read_locks(&self, session: &Session, names: &[LockName]) -> Result<Vec<StoredLock<i32>>, Fault> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let asks = names.iter().map(|name| NodeRequest::Data(self.paths.lock(name))).collect();
        let found = self.read(session, asks).await?;
        let mut stored = Vec::with_capacity(names.len());
        for (name, found) in names.iter().zip(found) {
            if let Found::Data(data, stat) = found {
                stored.push((name.clone(), (read_json(&self.paths.lock(name), &data)?, stat.version)));
            }
        }
        Ok(stored)
    }
}
