//! What one step writes: all of it in one request, under the condition that nothing of what was read has changed. It decides
//! nothing about slots, and sends nothing twice.

use zookeeper_client::MultiWriter;

use super::fault::{Fault, cause, is_overtaken};
use super::link::Session;
use super::owner::Tending;
use super::paths::Paths;
use super::slots::{Loaded, SlotText, json};
use super::store::{Call, ZookeeperStore};
use crate::store::document::MarkText;
use crate::store::rules::{Change, MarkChange};

/// How a write ended that did not fail.
pub(super) enum Written {
    Yes,
    /// Something that was read has changed.
    Overtaken,
}

impl ZookeeperStore {
    pub(super) async fn write(
        &self,
        call: &Call,
        session: &Session,
        loaded: &Loaded,
        change: &Change,
    ) -> Result<Written, Fault> {
        let tending = loaded.owner.tending(loaded, &change.mark);
        if change.is_none() && tending != Tending::Take {
            return Ok(Written::Yes);
        }
        let mut writer = session.client.new_multi_writer();
        if !loaded.folder {
            // The first slot of a job.
            let folder = self.paths.slots_of(loaded.slot.job().as_str());
            writer.add_create(&folder, b"", &self.link.options())?;
        }
        for (path, version) in &loaded.read {
            writer.add_check_version(path, *version)?;
        }
        let mark = mark_after(loaded, &change.mark);
        let grants = matches!(change.mark, MarkChange::Put(_) | MarkChange::Prolong(_));
        self.add_lease(&mut writer, (&loaded.slot, &loaded.leases), mark.as_ref(), grants)?;
        self.add_slot(&mut writer, loaded, mark, change)?;
        self.add_outputs(&mut writer, loaded, change)?;
        self.add_owner(&mut writer, loaded, tending)?;
        if let Some(wake) = &change.wake {
            // Those who watch are told of the node that comes; that it goes at once leaves nothing to clear up.
            self.add_passing(&mut writer, &self.paths.wake(wake))?;
        }
        if tending == Tending::Take && !matches!(change.mark, MarkChange::Put(_)) {
            self.doubt(session);
        }
        match self.commit(call, &mut writer).await? {
            Written::Overtaken if !(loaded.folder && loaded.leases.is_there()) => {
                // Another claim made the job's folders first; or it was the namespace that went meanwhile.
                let job = loaded.slot.job().as_str();
                for folder in [self.paths.slots_of(job), self.paths.leases_of(job)] {
                    session.client.mkdir(&folder, &self.link.options()).await?;
                }
                Ok(Written::Overtaken)
            }
            written => Ok(written),
        }
    }

    fn add_slot(
        &self,
        writer: &mut MultiWriter<'_>,
        loaded: &Loaded,
        mark: Option<MarkText>,
        change: &Change,
    ) -> Result<(), Fault> {
        let text = SlotText {
            mark,
            attempts: change.counter.unwrap_or(loaded.text.attempts),
            log: if change.log { Some(change.state.clone()) } else { loaded.text.log.clone() },
        };
        let path = self.paths.slot(&loaded.slot);
        if let Some(version) = loaded.version {
            return Ok(writer.add_set_data(&path, &json(&text)?, Some(version))?);
        }
        Ok(writer.add_create(&path, &json(&text)?, &self.link.options())?)
    }

    /// A node that is made and removed in the same step.
    pub(super) fn add_passing(&self, writer: &mut MultiWriter<'_>, path: &str) -> Result<(), Fault> {
        writer.add_create(path, b"", &self.link.options())?;
        Ok(writer.add_delete(path, None)?)
    }

    fn add_outputs(&self, writer: &mut MultiWriter<'_>, loaded: &Loaded, change: &Change) -> Result<(), Fault> {
        let folder = self.paths.slot(&loaded.slot);
        let written = change.run.as_ref().map(|run| (Paths::output(run.attempt, run.token), &run.output));
        let is_written = |name: &String| written.as_ref().is_some_and(|(own, _)| own == name);
        for name in loaded.outputs.iter().filter(|name| change.forgets && !is_written(name)) {
            writer.add_delete(&format!("{folder}/{name}"), None)?;
        }
        let Some((name, output)) = &written else { return Ok(()) };
        let path = format!("{folder}/{name}");
        match (output, loaded.outputs.contains(name)) {
            (Some(output), true) => writer.add_set_data(&path, &json(output)?, None)?,
            (Some(output), false) => writer.add_create(&path, &json(output)?, &self.link.options())?,
            (None, true) => writer.add_delete(&path, None)?,
            (None, false) => {}
        }
        Ok(())
    }

    pub(super) async fn committed(&self, call: &Call, writer: &mut MultiWriter<'_>) -> Result<bool, Fault> {
        Ok(matches!(self.commit(call, writer).await?, Written::Yes))
    }

    async fn commit(&self, call: &Call, writer: &mut MultiWriter<'_>) -> Result<Written, Fault> {
        call.sending();
        let answer = writer.commit().await.map_err(cause);
        match answer {
            Ok(_) => {
                call.answered();
                Ok(Written::Yes)
            }
            Err(error) if is_overtaken(&error) => {
                call.answered();
                Ok(Written::Overtaken)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The slot's mark after the step. What has run out is nothing any more.
fn mark_after(loaded: &Loaded, change: &MarkChange) -> Option<MarkText> {
    let stands = |mark: &MarkText| mark.until().is_none_or(|until| until > loaded.at.now);
    match change {
        MarkChange::Keep => loaded.text.mark.clone().filter(stands),
        MarkChange::Remove => None,
        MarkChange::Prolong(mark) | MarkChange::Put(mark) => Some(MarkText::of(mark)),
    }
}
