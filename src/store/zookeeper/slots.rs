//! One step on one slot: read it, let the rule decide, write what it changed if nothing that was read has changed since;
//! otherwise all over again. What is written goes in one request, and nothing is sent twice. Records are read many slots at once,
//! as people and dashboards ask for them.

use chrono::{DateTime, Utc};
use futures_util::future::try_join;

use super::batch::Batch;
use super::fault::{Fault, cause, is_overtaken};
use super::leases::{Asks, Leases, Owner, Tending};
use super::link::Session;
use super::nodes::{Found, NodeRequest, Paths, SlotText, outputs_of, read_json, read_latest, read_pauses, state};
use super::{CAPABILITY, ZookeeperStore};
use crate::slot::{Attempt, JobLatest, OutputTail, Slot, SlotRecord, Token};
use crate::store::codec::{LatestText, MarkText, PauseText};
use crate::store::keyed::{Call, Keyed, Records, json};
use crate::store::rules::{Change, MarkChange, SlotStep};
use crate::store::state::{Moment, SlotQuery, SlotState};
use crate::store::{Capability, Pause, StoreError, Wakeups};

/// How often a step is tried anew when others change the same slot meanwhile. Each time one of them has got through.
const MOST_TRIES: usize = 200;

/// Slots of one request.
const AT_ONCE: usize = 30;

/// A slot as it was read, and what must not have changed when it is written.
struct LoadedSlot {
    slot: Slot,
    stored: SlotState,
    text: SlotText,
    /// None when the node is not there.
    version: Option<i32>,
    /// Whether the job has a folder yet.
    folder: bool,
    /// The outputs that are there.
    outputs: Vec<String>,
    /// Whose session stands beside the lease.
    owner: Owner,
    /// Whose request this is.
    token: Option<Token>,
    at: Moment,
    pause: Option<Pause>,
    /// What is leased of the job.
    leases: Leases,
    /// What the job has come to lately, where that may change and can be read, and the version of its node; none when it is not there.
    latest: (Option<JobLatest>, Option<i32>),
    /// Other nodes that were read, with their versions.
    read: Vec<(String, i32)>,
}

impl LoadedSlot {
    fn step(&self) -> SlotStep {
        let (pause, other) = (self.pause.clone(), self.leases.other.clone());
        let step = SlotStep { pause, other, ..SlotStep::new(&self.slot, self.stored.current(self.at), self.at.now) };
        step.with_latest(self.latest.0.clone())
    }

    const fn asks(&self) -> Asks<'_> {
        Asks { mark: self.stored.mark.as_ref(), token: self.token, now: self.at.now }
    }
}

/// How a write ended that did not fail.
enum Written {
    Yes,
    /// Something that was read has changed.
    Overtaken,
}

impl Keyed for ZookeeperStore {
    fn capability() -> Capability {
        CAPABILITY
    }

    async fn on_slot<T: Send>(
        &self,
        call: Call,
        query: SlotQuery,
        rule: impl Fn(&mut SlotStep) -> T + Send + Sync,
    ) -> Result<T, StoreError> {
        let work = async {
            let session = self.link.session().await?;
            for _ in 0..MOST_TRIES {
                let Some(loaded) = self.load(&session, &query).await? else { continue };
                let mut step = loaded.step();
                let answer = rule(&mut step);
                let change = Change::between(&loaded.stored, step, loaded.at);
                if matches!(self.write(&call, &session, &loaded, &change).await?, Written::Yes) {
                    return Ok(answer);
                }
            }
            Err(Fault::contended())
        };
        self.within(&call, work).await
    }

    fn subscribe(&self) -> Wakeups {
        self.listener.subscribe()
    }
}

impl Records for ZookeeperStore {
    async fn records(&self, _call: &Call, slots: &[Slot]) -> Result<(DateTime<Utc>, Vec<SlotRecord>), Fault> {
        let session = self.link.session().await?;
        // An empty question asks for the clock, and whether the store is there.
        let mut now = self.moment(&session, slots.is_empty()).await?.now;
        let mut records = Vec::with_capacity(slots.len());
        for part in slots.chunks(AT_ONCE) {
            let asks = part.iter().map(|slot| NodeRequest::Data(self.paths.slot(slot)));
            let found = self.read(&session, asks.collect()).await?;
            let at = self.moment(&session, false).await?;
            now = at.now;
            for (slot, node) in part.iter().zip(&found) {
                let path = self.paths.slot(slot);
                let text: SlotText = match node {
                    Found::Data(data, _) => read_json(&path, data)?,
                    _ => SlotText::default(),
                };
                records.push(state(&path, &text)?.record(slot, at));
            }
        }
        Ok((now, records))
    }

    async fn output_kept(
        &self,
        _call: &Call,
        slot: &Slot,
        attempt: Attempt,
        token: Token,
    ) -> Result<Option<OutputTail>, Fault> {
        let session = self.link.session().await?;
        let path = format!("{}/{}", self.paths.slot(slot), Paths::output(attempt, token));
        match self.read(&session, vec![NodeRequest::Data(path.clone())]).await?.pop() {
            Some(Found::Data(data, _)) => read_json(&path, &data).map(Some),
            _ => Ok(None),
        }
    }

    async fn remove_old(&self, call: &Call) -> Result<u64, Fault> {
        self.purge_slots(call).await
    }
}

impl ZookeeperStore {
    /// Reads the slot; none when the namespace had to be made first.
    async fn load(&self, session: &Session, query: &SlotQuery) -> Result<Option<LoadedSlot>, Fault> {
        let (slot, pauses) = (&query.slot, self.paths.pauses());
        let path = self.paths.slot(slot);
        let mut asks = vec![
            NodeRequest::Data(path.clone()),
            NodeRequest::Children(path.clone()),
            NodeRequest::Data(self.paths.owner(slot)),
        ];
        asks.extend([self.paths.slots_of(slot.job().as_str()), pauses.clone()].map(NodeRequest::Data));
        let latest = self.paths.latest(slot.job());
        asks.extend(query.latest.then(|| NodeRequest::Data(latest.clone())));
        asks.extend(self.leases_asked(query));
        // At the same time, so that a clock that has to be asked costs no round trip of its own.
        let (found, at) = try_join(self.read(session, asks), self.moment(session, false)).await?;
        let mut found = found.into_iter();
        let (node, outputs, owner, folder) = (found.next(), found.next(), found.next(), found.next());
        let Some(Found::Data(text_of_pauses, stat)) = found.next() else {
            self.link.prepare(&session.client).await?;
            return Ok(None);
        };
        let (text, version) = match node {
            Some(Found::Data(data, stat)) => (read_json(&path, &data)?, Some(stat.version)),
            _ => (SlotText::default(), None),
        };
        let mut known = read_pauses(&pauses, &text_of_pauses)?;
        let read = vec![(pauses, stat.version)];
        let node = if query.latest { found.next() } else { None };
        let latest = query.latest.then(|| read_latest(&latest, node.as_ref()).ok()).flatten();
        let latest = latest.map_or((None, None), |(latest, version)| (Some(latest), version));
        let leases = self.leases_found(session, query, found, at).await?;
        Ok(Some(LoadedSlot {
            slot: slot.clone(),
            stored: state(&path, &text)?,
            text,
            version,
            folder: matches!(folder, Some(Found::Data(..))),
            outputs: outputs_of(outputs.as_ref()),
            owner: Owner::of(owner.as_ref(), session),
            token: query.token,
            at,
            pause: known.remove(slot.job()).filter(|_| query.pause).map(PauseText::pause),
            leases,
            latest,
            read,
        }))
    }

    async fn write(
        &self,
        call: &Call,
        session: &Session,
        loaded: &LoadedSlot,
        change: &Change,
    ) -> Result<Written, Fault> {
        let tending = loaded.owner.tending(loaded.asks(), &change.mark);
        if change.is_none() && tending != Tending::Take {
            return Ok(Written::Yes);
        }
        let mut writer = Batch::new(&session.client);
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
        self.add_latest(&mut writer, loaded, change.latest.as_ref())?;
        self.add_outputs(&mut writer, loaded, change)?;
        self.add_owner(&mut writer, (&loaded.slot, loaded.owner), tending)?;
        if let Some(wake) = &change.wake {
            // Those who watch are told of the node that comes; that it goes at once leaves nothing to clear up.
            self.add_passing(&mut writer, &self.paths.wake(wake))?;
        }
        if tending == Tending::Take && !matches!(change.mark, MarkChange::Put(_)) {
            self.doubt(session);
        }
        match self.commit(call, &mut writer).await? {
            Written::Overtaken => {
                let is_first = change.latest.is_some() && loaded.latest.1.is_none();
                if !(loaded.folder && loaded.leases.is_there()) || is_first {
                    // Another claim made the job's folders first, or no job has come to anything yet; or it was the namespace that went
                    // meanwhile.
                    let job = loaded.slot.job().as_str();
                    let latest = is_first.then(|| self.paths.all_latest());
                    for folder in [self.paths.slots_of(job), self.paths.leases_of(job)].into_iter().chain(latest) {
                        session.client.mkdir(&folder, &self.link.options()).await?;
                    }
                }
                Ok(Written::Overtaken)
            }
            written => Ok(written),
        }
    }

    fn add_slot(
        &self,
        writer: &mut Batch<'_>,
        loaded: &LoadedSlot,
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

    /// What the job has come to lately, where the step has changed that.
    fn add_latest(&self, writer: &mut Batch<'_>, loaded: &LoadedSlot, latest: Option<&JobLatest>) -> Result<(), Fault> {
        let Some(latest) = latest else { return Ok(()) };
        let (path, text) = (self.paths.latest(loaded.slot.job()), json(&LatestText::of(latest, loaded.at.now))?);
        match loaded.latest.1 {
            Some(version) => writer.add_set_data(&path, &text, Some(version))?,
            None => writer.add_create(&path, &text, &self.link.options())?,
        }
        Ok(())
    }

    /// A node that is made and removed in the same step.
    pub(super) fn add_passing(&self, writer: &mut Batch<'_>, path: &str) -> Result<(), Fault> {
        writer.add_create(path, b"", &self.link.options())?;
        Ok(writer.add_delete(path, None)?)
    }

    fn add_outputs(&self, writer: &mut Batch<'_>, loaded: &LoadedSlot, change: &Change) -> Result<(), Fault> {
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

    pub(super) async fn committed(&self, call: &Call, writer: &mut Batch<'_>) -> Result<bool, Fault> {
        Ok(matches!(self.commit(call, writer).await?, Written::Yes))
    }

    async fn commit(&self, call: &Call, writer: &mut Batch<'_>) -> Result<Written, Fault> {
        writer.check()?;
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
fn mark_after(loaded: &LoadedSlot, change: &MarkChange) -> Option<MarkText> {
    let stands = |mark: &MarkText| mark.until().is_none_or(|until| until > loaded.at.now);
    match change {
        MarkChange::Keep => loaded.text.mark.clone().filter(stands),
        MarkChange::Remove => None,
        MarkChange::Prolong(mark) | MarkChange::Put(mark) => Some(MarkText::of(mark)),
    }
}
