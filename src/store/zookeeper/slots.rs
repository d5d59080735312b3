//! One step on one slot: read it, let the rule decide, write what it changed if nothing that was read has changed since;
//! otherwise all over again. All of a slot but the outputs is one node, so that one version guards it.

use std::collections::BTreeMap;

use futures_util::future::try_join;
use serde::{Deserialize, Serialize};
use zookeeper_client::{Error, MultiReadResult, MultiWriter, Stat};

use super::fault::{Fault, cause, is_overtaken};
use super::link::Session;
use super::paths::Paths;
use super::store::{Call, ZookeeperStore};
use crate::job::JobName;
use crate::slot::Slot;
use crate::store::document::{Change, Document, Kept, MarkChange, MarkText, Moment, PauseText, Subject};
use crate::store::image::{Image, StoredMark};
use crate::store::{Pause, StoreError};

/// How often a step is tried anew when others change the same slot meanwhile. Each time one of them has got through.
const MOST_TRIES: usize = 200;

/// The node of a slot.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SlotText {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mark: Option<MarkText>,
    /// The attempt counter.
    #[serde(default)]
    pub(super) attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) log: Option<Document>,
}

/// What is asked of one node.
pub(super) enum Ask {
    Data(String),
    Children(String),
}

/// What was found there; nothing where the node is not there.
pub(super) enum Found {
    Data(Vec<u8>, Stat),
    Children(Vec<String>),
    Nothing,
}

/// A slot as it was read, and what must not have changed when it is written.
struct Loaded {
    kept: Kept,
    text: SlotText,
    /// None when the node is not there.
    version: Option<i32>,
    /// The outputs that are there.
    outputs: Vec<String>,
    at: Moment,
    pause: Option<Pause>,
    older: Vec<(Slot, StoredMark)>,
    /// Other nodes that were read, with their versions; none of one that is not there.
    read: Vec<(String, Option<i32>)>,
}

enum Written {
    Yes,
    /// Something that was read has changed.
    Overtaken,
}

impl ZookeeperStore {
    /// One rule on one slot, in one atomic step.
    pub(super) async fn on_slot<T: Send>(
        &self,
        call: Call,
        subject: Subject,
        rule: impl Fn(&mut Image) -> T + Send + Sync,
    ) -> Result<T, StoreError> {
        let work = async {
            let session = self.link.session().await?;
            for _ in 0..MOST_TRIES {
                let Some(loaded) = self.load(&session, &subject).await? else { continue };
                let mut image = loaded.kept.image(&subject, loaded.at, loaded.pause.clone(), loaded.older.clone());
                let answer = rule(&mut image);
                let change = loaded.kept.change(image, loaded.at);
                if matches!(self.write(&call, &session, &loaded, change).await?, Written::Yes) {
                    return Ok(answer);
                }
            }
            Err(Fault::contended())
        };
        self.within(&call, work).await
    }

    /// Reads the slot; none when the namespace had to be made first.
    async fn load(&self, session: &Session, subject: &Subject) -> Result<Option<Loaded>, Fault> {
        let path = self.paths.slot(&subject.slot);
        let mut asks = vec![Ask::Data(path.clone()), Ask::Children(path.clone()), Ask::Data(self.paths.pauses())];
        asks.extend(subject.older.iter().map(|older| Ask::Data(self.paths.slot(older))));
        let mut found = self.read(session, asks).await?.into_iter();
        let (slot, outputs, pauses) = (found.next(), found.next(), found.next());
        let Some(Found::Data(pauses, pauses_stat)) = pauses else {
            self.link.prepare(&session.client).await?;
            return Ok(None);
        };
        let mut read = vec![(self.paths.pauses(), Some(pauses_stat.version))];
        let (text, version) = match slot {
            Some(Found::Data(data, stat)) => (read_json(&path, &data)?, Some(stat.version)),
            _ => (SlotText::default(), None),
        };
        let mut older = Vec::new();
        for (slot, found) in subject.older.iter().zip(found) {
            let path = self.paths.slot(slot);
            let Found::Data(data, stat) = found else {
                read.push((path, None));
                continue;
            };
            let text: SlotText = read_json(&path, &data)?;
            older.extend(stored(&path, text.mark)?.map(|mark| (slot.clone(), mark)));
            read.push((path, Some(stat.version)));
        }
        let kept = Kept {
            slot: subject.slot.clone(),
            mark: stored(&path, text.mark.clone())?,
            counter: text.attempts,
            document: text.log.clone(),
        };
        let mut pauses = read_pauses(&self.paths.pauses(), &pauses)?;
        let pause = pauses.remove(subject.slot.job()).filter(|_| subject.pause).map(PauseText::pause);
        let outputs = match outputs {
            Some(Found::Children(names)) => names,
            _ => Vec::new(),
        };
        let at = self.moment(session, false).await?;
        Ok(Some(Loaded { kept, text, version, outputs, at, pause, older, read }))
    }

    /// Reads several nodes as they are at one moment, and not before this call.
    pub(super) async fn read(&self, session: &Session, asks: Vec<Ask>) -> Result<Vec<Found>, Fault> {
        // Asked before the reading, on the same connection: a server that lags behind the leader catches up first.
        let caught_up = session.client.sync(&self.paths.pauses());
        let mut reader = session.client.new_multi_reader();
        for ask in asks {
            match ask {
                Ask::Data(path) => reader.add_get_data(&path)?,
                Ask::Children(path) => reader.add_get_children(&path)?,
            }
        }
        let ((), results) = try_join(caught_up, reader.commit()).await?;
        let found = results.into_iter().map(|result| match result {
            MultiReadResult::Data { data, stat } => Ok(Found::Data(data, stat)),
            MultiReadResult::Children { children } => Ok(Found::Children(children)),
            MultiReadResult::Error { err: Error::NoNode } => Ok(Found::Nothing),
            MultiReadResult::Error { err } => Err(err.into()),
            _ => Err(Fault::odd_answer()),
        });
        found.collect()
    }

    async fn write(&self, call: &Call, session: &Session, loaded: &Loaded, change: Change) -> Result<Written, Fault> {
        let mark = match &change.mark {
            MarkChange::Keep => loaded.text.mark.clone(),
            MarkChange::Remove => None,
            MarkChange::Prolong(mark) | MarkChange::Put(mark) => Some(MarkText::of(mark)),
        };
        if change.mark == MarkChange::Keep && change.counter.is_none() && change.document.is_none() {
            return Ok(Written::Yes);
        }
        let text = SlotText {
            mark,
            attempts: change.counter.unwrap_or(loaded.text.attempts),
            log: change.document.clone().or_else(|| loaded.text.log.clone()),
        };
        let mut writer = session.client.new_multi_writer();
        for (path, version) in &loaded.read {
            match version {
                Some(version) => writer.add_check_version(path, *version)?,
                // There is no check for what is not there, but nothing can be made that is.
                None => self.add_passing(&mut writer, path)?,
            }
        }
        let path = self.paths.slot(&loaded.kept.slot);
        match loaded.version {
            Some(version) => writer.add_set_data(&path, &json(&text)?, Some(version))?,
            None => writer.add_create(&path, &json(&text)?, &self.link.options())?,
        }
        self.add_outputs(&mut writer, loaded, &change)?;
        if let Some(wake) = &change.wake {
            // Those who watch are told of the node that comes; that it goes at once leaves nothing to clear up.
            self.add_passing(&mut writer, &self.paths.wake(wake))?;
        }
        match self.commit(call, &mut writer).await? {
            Written::Overtaken if loaded.version.is_none() => {
                // The first slot of a job; or it was the namespace that went meanwhile.
                let folder = self.paths.slots_of(loaded.kept.slot.job().as_str());
                session.client.mkdir(&folder, &self.link.options()).await?;
                Ok(Written::Overtaken)
            }
            written => Ok(written),
        }
    }

    /// A node that is made and removed in the same step.
    pub(super) fn add_passing(&self, writer: &mut MultiWriter<'_>, path: &str) -> Result<(), Fault> {
        writer.add_create(path, b"", &self.link.options())?;
        Ok(writer.add_delete(path, None)?)
    }

    fn add_outputs(&self, writer: &mut MultiWriter<'_>, loaded: &Loaded, change: &Change) -> Result<(), Fault> {
        let folder = self.paths.slot(&loaded.kept.slot);
        let written = change.output.as_ref().map(|run| (Paths::output(run.attempt, run.token), &run.output));
        let is_written = |name: &String| written.as_ref().is_some_and(|(own, _)| own == name);
        for name in loaded.outputs.iter().filter(|name| change.forgets_outputs && !is_written(name)) {
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

/// A mark as a rule sees it.
pub(super) fn stored(path: &str, text: Option<MarkText>) -> Result<Option<StoredMark>, Fault> {
    let Some(text) = text else { return Ok(None) };
    let until = text.until().ok_or_else(|| Fault::foreign(path, "a mark without an end"))?;
    text.stored(until).map(Some).map_err(|why| Fault::foreign(path, &why))
}

/// Every job's pause.
pub(super) fn read_pauses(path: &str, data: &[u8]) -> Result<BTreeMap<JobName, PauseText>, Fault> {
    read_json(path, data)
}

/// A node in JSON.
pub(super) fn read_json<T: serde::de::DeserializeOwned>(path: &str, data: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(data).map_err(|error| Fault::foreign(path, &error.to_string()))
}

/// A record's JSON. Its types have no key or number that JSON lacks.
pub(super) fn json<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, Fault> {
    serde_json::to_vec(value).map_err(|error| Fault::foreign("a record", &error.to_string()))
}
