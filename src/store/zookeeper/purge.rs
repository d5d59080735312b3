//! Removes what was kept for its time. Slots are listed by their names, which tell when they began, so only those that may
//! be old enough are read.

use chrono::{DateTime, Utc};

use super::ZookeeperStore;
use super::fault::Fault;
use super::link::Session;
use super::nodes::Paths;
use super::nodes::{Ask, Found, SlotText, read_json};
use crate::clock::earlier;
use crate::store::keyed::Call;
use crate::store::state::Moment;

/// The most slots that one purge looks at.
const AT_ONCE: usize = 200;

/// Slots of one request.
const IN_ONE: usize = 20;

impl ZookeeperStore {
    /// Removes a batch of what is older than the retention; answers how many slots went. A slot whose marker lasts longer
    /// than its records is left until that has ended.
    pub(super) async fn purge_slots(&self, call: &Call) -> Result<u64, Fault> {
        let session = self.link.session().await?;
        let at = self.moment(&session, false).await?;
        self.remove_old_notes(call, &session).await?;
        self.remove_old_latest(call, &session).await?;
        let jobs = self.children(&session, self.paths.slots()).await?;
        let folders = jobs.iter().map(|job| self.paths.slots_of(job));
        let paths = self.long_begun(&session, folders, earlier(at.now, at.retention), AT_ONCE).await?;
        let mut gone = 0;
        for part in paths.chunks(IN_ONE) {
            let asks = part.iter().flat_map(|path| {
                let lease = self.paths.lease_of(path).unwrap_or_default();
                [Ask::Data(path.clone()), Ask::Children(path.clone()), Ask::Data(lease)]
            });
            let found = self.read(&session, asks.collect()).await?;
            for (path, found) in part.iter().zip(found.chunks(3)) {
                gone += u64::from(self.remove(call, &session, path, found, at).await?);
            }
        }
        Ok(gone)
    }

    /// Nodes in these folders of slots that began before this, so many at most; the oldest of each folder first.
    pub(super) async fn long_begun(
        &self,
        session: &Session,
        folders: impl Iterator<Item = String> + Send,
        before: DateTime<Utc>,
        most: usize,
    ) -> Result<Vec<String>, Fault> {
        let mut paths = Vec::new();
        for folder in folders {
            let mut old: Vec<(DateTime<Utc>, String)> = Vec::new();
            for name in self.children(session, folder.clone()).await? {
                let start = Paths::key_of(&name).map(|key| key.start()).filter(|start| *start <= before);
                old.extend(start.map(|start| (start, format!("{folder}/{name}"))));
            }
            old.sort();
            paths.extend(old.into_iter().map(|(_, path)| path).take(most - paths.len()));
            if paths.len() == most {
                break;
            }
        }
        Ok(paths)
    }

    pub(super) async fn children(&self, session: &Session, folder: String) -> Result<Vec<String>, Fault> {
        match self.read(session, vec![Ask::Children(folder)]).await?.pop() {
            Some(Found::Children(names)) => Ok(names),
            _ => Ok(Vec::new()),
        }
    }

    async fn remove(
        &self,
        call: &Call,
        session: &Session,
        path: &str,
        found: &[Found],
        at: Moment,
    ) -> Result<bool, Fault> {
        let [Found::Data(data, stat), Found::Children(outputs), lease] = found else { return Ok(false) };
        let text: SlotText = read_json(path, data)?;
        let stands = text.mark.is_some_and(|mark| mark.until().is_none_or(|until| until > at.now));
        let kept = text.log.is_some_and(|log| !log.is_outdated(at));
        if stands || kept {
            return Ok(false);
        }
        let mut writer = session.client.new_multi_writer();
        for name in outputs {
            writer.add_delete(&format!("{path}/{name}"), None)?;
        }
        if let (Found::Data(..), Some(lease)) = (lease, self.paths.lease_of(path)) {
            writer.add_delete(&lease, None)?;
        }
        writer.add_delete(path, Some(stat.version))?;
        self.committed(call, &mut writer).await
    }
}
