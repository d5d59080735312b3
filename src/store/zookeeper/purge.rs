//! Removes what was kept for its time. Slots are listed by their names, which tell when they began, so only those that may
//! be old enough are read.

use chrono::{DateTime, Utc};

use super::fault::Fault;
use super::link::Session;
use super::paths::Paths;
use super::slots::{Ask, Found, SlotText, read_json};
use super::store::{Call, ZookeeperStore};
use crate::clock::{earlier, later};
use crate::store::document::Moment;

/// The most slots that one purge looks at.
const AT_ONCE: usize = 200;

/// Slots of one request.
const IN_ONE: usize = 20;

impl ZookeeperStore {
    /// Removes a batch of what is older than the retention; answers how many slots went. A slot whose marker lasts longer
    /// than its records is left until that has ended.
    pub(super) async fn remove_old(&self, call: &Call) -> Result<u64, Fault> {
        let session = self.link.session().await?;
        let at = self.moment(&session, false).await?;
        let paths = self.long_begun(&session, earlier(at.now, at.retention)).await?;
        let mut gone = 0;
        for part in paths.chunks(IN_ONE) {
            let asks = part.iter().flat_map(|path| [Ask::Data(path.clone()), Ask::Children(path.clone())]);
            let found = self.read(&session, asks.collect()).await?;
            for (path, found) in part.iter().zip(found.chunks(2)) {
                gone += u64::from(self.remove(call, &session, path, found, at).await?);
            }
        }
        Ok(gone)
    }

    /// Slots that began before this; the oldest of each job first.
    async fn long_begun(&self, session: &Session, before: DateTime<Utc>) -> Result<Vec<String>, Fault> {
        let mut paths = Vec::new();
        for job in self.children(session, self.paths.slots()).await? {
            let folder = self.paths.slots_of(&job);
            let mut old: Vec<(DateTime<Utc>, String)> = Vec::new();
            for name in self.children(session, folder.clone()).await? {
                let start = Paths::key_of(&name).map(|key| key.start()).filter(|start| *start <= before);
                old.extend(start.map(|start| (start, format!("{folder}/{name}"))));
            }
            old.sort();
            paths.extend(old.into_iter().map(|(_, path)| path).take(AT_ONCE - paths.len()));
            if paths.len() == AT_ONCE {
                break;
            }
        }
        Ok(paths)
    }

    async fn children(&self, session: &Session, folder: String) -> Result<Vec<String>, Fault> {
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
        let [Found::Data(data, stat), Found::Children(outputs)] = found else { return Ok(false) };
        let text: SlotText = read_json(path, data)?;
        let stands = text.mark.is_some_and(|mark| mark.until().is_none_or(|until| until > at.now));
        let kept = text.log.is_some_and(|log| later(log.touched, at.retention) > at.now);
        if stands || kept {
            return Ok(false);
        }
        let mut writer = session.client.new_multi_writer();
        for name in outputs {
            writer.add_delete(&format!("{path}/{name}"), None)?;
        }
        writer.add_delete(path, Some(stat.version))?;
        self.committed(call, &mut writer).await
    }
}
