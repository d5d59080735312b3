//! What stands beside the slots: jobs, nodes, pauses; and the notes, one node for each slot, which no rule reads: those who note at
//! the same time take turns by its version.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;

use super::ZookeeperStore;
use super::batch::Batch;
use super::fault::Fault;
use super::link::Session;
use super::nodes::{Found, NodeRequest, read_json, read_latest, read_pauses};
use crate::clock::{earlier, later};
use crate::job::JobName;
use crate::slot::{Audit, JobLatest, NotePage, Slot};
use crate::store::codec::{LatestText, NodeText, NotesText, PauseText};
use crate::store::keyed::{Call, Notes, Registry, json};
use crate::store::{HeartbeatReply, Intervention, JobEntry, NodeEntry, NodeReport, Pause, Wake};

/// How often a change is tried anew when others change the same entries, or note on the same slots.
const MOST_TRIES: usize = 50;

/// Entries of one request.
const AT_ONCE: usize = 100;

/// Slots whose notes one request writes.
const NOTES_AT_ONCE: usize = 25;

/// The most slots whose notes one purge looks at.
const PURGED_AT_ONCE: usize = 500;

/// An entry that was read: its path, itself, its version.
type VersionedEntry<T> = (String, T, i32);

impl Registry for ZookeeperStore {
    async fn jobs_known(&self, _call: &Call) -> Result<Vec<JobEntry>, Fault> {
        let session = self.link.session().await?;
        let entries = self.entries::<JobEntry>(&session, &self.paths.jobs()).await?;
        Ok(entries.into_iter().map(|(_, entry, _)| entry).collect())
    }

    /// Writes only what is new or has changed: nodes say the same again and again.
    async fn register_jobs(&self, call: &Call, jobs: &[JobEntry]) -> Result<Vec<JobEntry>, Fault> {
        let session = self.link.session().await?;
        for _ in 0..MOST_TRIES {
            let known = self.entries::<JobEntry>(&session, &self.paths.jobs()).await?;
            if self.register_once(call, &session, jobs, &known).await? {
                return self.jobs_known(call).await;
            }
        }
        Err(Fault::contended())
    }

    async fn beat(&self, call: &Call, report: &NodeReport) -> Result<HeartbeatReply, Fault> {
        let session = self.link.session().await?;
        let own = self.paths.node(&report.name);
        for _ in 0..MOST_TRIES {
            let at = self.moment(&session, false).await?;
            let known = self.entries::<NodeText>(&session, &self.paths.nodes()).await?;
            let text = json(&NodeText::of(NodeEntry { report: report.clone(), seen: at.now }))?;
            let mut writer = Batch::new(&session.client);
            let was_known = known.iter().any(|(path, ..)| *path == own);
            if was_known {
                writer.add_set_data(&own, &text, None)?;
            } else {
                writer.add_create(&own, &text, &self.link.options())?;
            }
            for (path, text, version) in known {
                if path != own && !text.entry().is_kept(at) {
                    writer.add_delete(&path, Some(version))?;
                }
            }
            if self.committed_here(call, &session, &mut writer).await? {
                return Ok(HeartbeatReply { now: at.now, was_known });
            }
        }
        Err(Fault::contended())
    }

    async fn nodes_known(&self, _call: &Call) -> Result<(DateTime<Utc>, Vec<NodeEntry>), Fault> {
        let session = self.link.session().await?;
        let entries = self.entries::<NodeText>(&session, &self.paths.nodes()).await?;
        let at = self.moment(&session, false).await?;
        let entries = entries.into_iter().map(|(_, text, _)| text.entry());
        Ok((at.now, entries.filter(|entry| entry.is_kept(at)).collect()))
    }

    async fn pauses_known(&self, _call: &Call) -> Result<Vec<(JobName, Pause)>, Fault> {
        let session = self.link.session().await?;
        let (pauses, _) = self.pauses_read(&session).await?.unwrap_or_default();
        Ok(pauses.into_iter().map(|(job, text)| (job, text.pause())).collect())
    }

    async fn pause_known(&self, _call: &Call, job: &JobName) -> Result<(DateTime<Utc>, Option<Pause>), Fault> {
        let session = self.link.session().await?;
        let (mut pauses, _) = self.pauses_read(&session).await?.unwrap_or_default();
        let now = self.moment(&session, false).await?.now;
        Ok((now, pauses.remove(job).map(PauseText::pause)))
    }

    async fn set_pause(
        &self,
        call: &Call,
        job: &JobName,
        until: Option<DateTime<Utc>>,
        audit: &Audit,
    ) -> Result<Intervention, Fault> {
        self.change_pause(call, job, |_, now| Some(Pause::begun(until, audit, now))).await
    }

    async fn end_pause(&self, call: &Call, job: &JobName, audit: &Audit) -> Result<Intervention, Fault> {
        self.change_pause(call, job, |pause, now| pause?.end(audit, now)).await
    }

    async fn latest_known(&self, _call: &Call, jobs: &[JobName]) -> Result<Vec<JobLatest>, Fault> {
        let session = self.link.session().await?;
        let mut latest = Vec::with_capacity(jobs.len());
        for part in jobs.chunks(AT_ONCE) {
            let paths: Vec<String> = part.iter().map(|job| self.paths.latest(job)).collect();
            let found = self.read(&session, paths.iter().cloned().map(NodeRequest::Data).collect()).await?;
            for (path, found) in paths.iter().zip(&found) {
                latest.push(read_latest(path, Some(found))?.0);
            }
        }
        Ok(latest)
    }
}

impl ZookeeperStore {
    /// Every entry of a folder, by name.
    async fn entries<T: DeserializeOwned>(
        &self,
        session: &Session,
        folder: &str,
    ) -> Result<Vec<VersionedEntry<T>>, Fault> {
        let texts = self.texts(session, folder).await?.into_iter();
        texts.map(|(path, data, version)| read_json(&path, &data).map(|entry| (path, entry, version))).collect()
    }

    /// The nodes of a folder as they stand there, by name.
    async fn texts(&self, session: &Session, folder: &str) -> Result<Vec<VersionedEntry<Vec<u8>>>, Fault> {
        let found = self.read(session, vec![NodeRequest::Children(folder.to_owned())]).await?;
        let Some(Found::Children(mut names)) = found.into_iter().next() else { return Ok(Vec::new()) };
        names.sort();
        let paths: Vec<String> = names.iter().map(|name| format!("{folder}/{name}")).collect();
        let mut texts = Vec::with_capacity(paths.len());
        for part in paths.chunks(AT_ONCE) {
            let found = self.read(session, part.iter().cloned().map(NodeRequest::Data).collect()).await?;
            for (path, found) in part.iter().zip(found) {
                if let Found::Data(data, stat) = found {
                    texts.push((path.clone(), data, stat.version));
                }
            }
        }
        Ok(texts)
    }

    async fn register_once(
        &self,
        call: &Call,
        session: &Session,
        jobs: &[JobEntry],
        known: &[VersionedEntry<JobEntry>],
    ) -> Result<bool, Fault> {
        let now = self.moment(session, false).await?.now;
        let known: BTreeMap<&str, (&JobEntry, i32)> =
            known.iter().map(|(path, entry, version)| (path.as_str(), (entry, *version))).collect();
        let mut changed = Vec::new();
        for (name, job) in JobEntry::by_name(jobs) {
            let path = self.paths.job(name);
            let known = known.get(path.as_str());
            if let Some(entry) = job.registered(known.map(|(known, _)| *known), now) {
                changed.push((path, json(&entry)?, known.map(|(_, version)| *version)));
            }
        }
        // A request has a limit of its size, and a file of jobs has none that fits.
        for part in changed.chunks(AT_ONCE) {
            let mut writer = Batch::new(&session.client);
            for (path, text, version) in part {
                match version {
                    Some(version) => writer.add_set_data(path, text, Some(*version))?,
                    None => writer.add_create(path, text, &self.link.options())?,
                }
            }
            if !self.committed_here(call, session, &mut writer).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn pauses_read(&self, session: &Session) -> Result<Option<(BTreeMap<JobName, PauseText>, i32)>, Fault> {
        let path = self.paths.pauses();
        match self.read(session, vec![NodeRequest::Data(path.clone())]).await?.pop() {
            Some(Found::Data(data, stat)) => Ok(Some((read_pauses(&path, &data)?, stat.version))),
            _ => Ok(None),
        }
    }

    /// Changes a job's pause to what `next` makes of it; none leaves it as it is.
    async fn change_pause(
        &self,
        call: &Call,
        job: &JobName,
        next: impl Fn(Option<Pause>, DateTime<Utc>) -> Option<Pause> + Send + Sync,
    ) -> Result<Intervention, Fault> {
        let session = self.link.session().await?;
        for _ in 0..MOST_TRIES {
            let Some((mut pauses, version)) = self.pauses_read(&session).await? else {
                self.link.prepare(&session.client).await?;
                continue;
            };
            let now = self.moment(&session, false).await?.now;
            let Some(pause) = next(pauses.get(job).cloned().map(PauseText::pause), now) else {
                return Ok(Intervention::Unchanged);
            };
            pauses.insert(job.clone(), PauseText::of(pause));
            let mut writer = Batch::new(&session.client);
            writer.add_set_data(&self.paths.pauses(), &json(&pauses)?, Some(version))?;
            self.add_passing(&mut writer, &self.paths.wake(&Wake::Job(job.clone())))?;
            if self.committed_here(call, &session, &mut writer).await? {
                return Ok(Intervention::Applied);
            }
        }
        Err(Fault::contended())
    }

    /// Takes a job out of the pauses.
    pub(super) async fn forget_pause(&self, call: &Call, job: &JobName) -> Result<(), Fault> {
        let session = self.link.session().await?;
        for _ in 0..MOST_TRIES {
            let Some((mut pauses, version)) = self.pauses_read(&session).await? else { return Ok(()) };
            if pauses.remove(job).is_none() {
                return Ok(());
            }
            let mut writer = Batch::new(&session.client);
            writer.add_set_data(&self.paths.pauses(), &json(&pauses)?, Some(version))?;
            if self.committed_here(call, &session, &mut writer).await? {
                return Ok(());
            }
        }
        Err(Fault::contended())
    }

    /// Commits; where it fails, the folders may have been missing.
    async fn committed_here(&self, call: &Call, session: &Session, writer: &mut Batch<'_>) -> Result<bool, Fault> {
        let done = self.committed(call, writer).await?;
        if !done {
            self.link.prepare(&session.client).await?;
        }
        Ok(done)
    }
}

impl Notes for ZookeeperStore {
    async fn note_pages(&self, call: &Call, pages: &[(Slot, NotePage)]) -> Result<(), Fault> {
        let session = self.link.session().await?;
        // Pages of one slot go together: in one request a node is written once.
        let mut by_slot: Vec<(&Slot, Vec<&NotePage>)> = Vec::new();
        for (slot, page) in pages {
            match by_slot.iter_mut().find(|(known, _)| *known == slot) {
                Some((_, of_slot)) => of_slot.push(page),
                None => by_slot.push((slot, vec![page])),
            }
        }
        for part in by_slot.chunks(NOTES_AT_ONCE) {
            let mut tries = 0..MOST_TRIES;
            while !self.note_part(call, &session, part).await? {
                tries.next().ok_or_else(Fault::contended)?;
            }
        }
        Ok(())
    }

    async fn notes_known(&self, _call: &Call, slot: &Slot) -> Result<Vec<NotePage>, Fault> {
        let session = self.link.session().await?;
        let path = self.paths.note(slot);
        let Some(Found::Data(data, _)) = self.read(&session, vec![NodeRequest::Data(path.clone())]).await?.pop() else {
            return Ok(Vec::new());
        };
        let (mut text, at) = (read_json::<NotesText>(&path, &data)?, self.moment(&session, false).await?);
        if later(text.kept_from, at.retention) <= at.now {
            return Ok(Vec::new());
        }
        NotePage::sort(&mut text.pages);
        Ok(text.pages)
    }
}

impl ZookeeperStore {
    async fn note_part(&self, call: &Call, session: &Session, part: &[(&Slot, Vec<&NotePage>)]) -> Result<bool, Fault> {
        let asks = part.iter().map(|(slot, _)| NodeRequest::Data(self.paths.note(slot))).collect();
        let found = self.read(session, asks).await?;
        let at = self.moment(session, false).await?;
        let mut writer = Batch::new(&session.client);
        let mut first = Vec::new();
        for ((slot, pages), found) in part.iter().zip(found) {
            let path = self.paths.note(slot);
            let (mut text, version) = match found {
                Found::Data(data, stat) => (read_json::<NotesText>(&path, &data)?, Some(stat.version)),
                _ => (NotesText::default(), None),
            };
            if later(text.kept_from, at.retention) <= at.now {
                // What was kept for its time and is not purged yet.
                text = NotesText::default();
            }
            text.kept_from = at.now.max(slot.end());
            pages.iter().for_each(|page| text.put((*page).clone()));
            match version {
                Some(version) => writer.add_set_data(&path, &json(&text)?, Some(version))?,
                None => {
                    writer.add_create(&path, &json(&text)?, &self.link.options())?;
                    first.push(self.paths.notes_of(slot.job().as_str()));
                }
            }
        }
        let done = self.committed(call, &mut writer).await?;
        if !done {
            // The first notes on a job; or it was the namespace that went meanwhile.
            for folder in first {
                session.client.mkdir(&folder, &self.link.options()).await?;
            }
        }
        Ok(done)
    }

    /// Removes what jobs came to that have come to nothing since.
    pub(super) async fn remove_old_latest(&self, call: &Call, session: &Session) -> Result<(), Fault> {
        let now = self.moment(session, false).await?.now;
        let known = self.texts(session, &self.paths.all_latest()).await?;
        // What cannot be read stays: somebody else wrote it.
        let is_old =
            |path: &str, data: &[u8]| read_json::<LatestText>(path, data).is_ok_and(|text| text.is_outdated(now));
        let old: Vec<_> = known.into_iter().filter(|(path, data, _)| is_old(path, data)).collect();
        for part in old.chunks(AT_ONCE) {
            let mut writer = Batch::new(&session.client);
            for (path, _, version) in part {
                writer.add_delete(path, Some(*version))?;
            }
            // Where somebody came in between, the next purge will do.
            self.committed(call, &mut writer).await?;
        }
        Ok(())
    }

    /// Removes a batch of what is older than the retention.
    pub(super) async fn remove_old_notes(&self, call: &Call, session: &Session) -> Result<(), Fault> {
        let at = self.moment(session, false).await?;
        let jobs = self.children(session, self.paths.notes()).await?;
        let folders = jobs.iter().map(|job| self.paths.notes_of(job));
        let paths: Vec<String> =
            self.long_begun(session, folders, earlier(at.now, at.retention), PURGED_AT_ONCE).await?;
        for part in paths.chunks(NOTES_AT_ONCE) {
            let found = self.read(session, part.iter().cloned().map(NodeRequest::Data).collect()).await?;
            let mut writer = Batch::new(&session.client);
            let mut any = false;
            for (path, found) in part.iter().zip(found) {
                let Found::Data(data, stat) = found else { continue };
                let kept_until: DateTime<Utc> = later(read_json::<NotesText>(path, &data)?.kept_from, at.retention);
                if kept_until <= at.now {
                    writer.add_delete(path, Some(stat.version))?;
                    any = true;
                }
            }
            if any {
                // Where somebody came in between, the next purge will do.
                self.committed(call, &mut writer).await?;
            }
        }
        Ok(())
    }
}
