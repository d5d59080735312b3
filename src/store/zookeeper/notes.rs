//! Notes on slots: one node for each slot, beside the slot's own. No rule reads it. Those who note at the same time take turns
//! by its version.

use chrono::{DateTime, Utc};

use super::fault::Fault;
use super::link::Session;
use super::slots::{Ask, Found, json, read_json};
use super::store::{Call, ZookeeperStore};
use crate::clock::{earlier, later};
use crate::slot::{NotePage, Slot};
use crate::store::document::NotesText;
use crate::store::shelf::Notes;

/// Slots of one request.
const AT_ONCE: usize = 25;

/// How often a request is tried anew when others note on the same slots.
const MOST_TRIES: usize = 50;

/// The most slots whose notes one purge looks at.
const PURGE_AT_ONCE: usize = 500;

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
        for part in by_slot.chunks(AT_ONCE) {
            let mut tries = 0..MOST_TRIES;
            while !self.note_part(call, &session, part).await? {
                tries.next().ok_or_else(Fault::contended)?;
            }
        }
        Ok(())
    }

    async fn notes_known(&self, slot: &Slot) -> Result<Vec<NotePage>, Fault> {
        let session = self.link.session().await?;
        let path = self.paths.note(slot);
        let Some(Found::Data(data, _)) = self.read(&session, vec![Ask::Data(path.clone())]).await?.pop() else {
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
        let asks = part.iter().map(|(slot, _)| Ask::Data(self.paths.note(slot))).collect();
        let found = self.read(session, asks).await?;
        let at = self.moment(session, false).await?;
        let mut writer = session.client.new_multi_writer();
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

    /// Removes a batch of what is older than the retention.
    pub(super) async fn remove_old_notes(&self, call: &Call, session: &Session) -> Result<(), Fault> {
        let at = self.moment(session, false).await?;
        let jobs = self.children(session, self.paths.notes()).await?;
        let folders = jobs.iter().map(|job| self.paths.notes_of(job));
        let paths: Vec<String> =
            self.long_begun(session, folders, earlier(at.now, at.retention), PURGE_AT_ONCE).await?;
        for part in paths.chunks(AT_ONCE) {
            let found = self.read(session, part.iter().cloned().map(Ask::Data).collect()).await?;
            let mut writer = session.client.new_multi_writer();
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
