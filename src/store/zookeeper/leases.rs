//! The slots of a job that are leased: a node for each, below one of the job, so that what runs is found without looking at the
//! job's other slots. A slot's node there is made and removed in the step that makes its mark a lease or no lease any more; whose
//! the lease is, and until when, stands in the mark alone.
//!
//! A grant of a slot that has to run alone changes the job's node under the condition of its version: of two at once one is made.
//! The others only make and remove nodes below it, and never come in each other's way.

use zookeeper_client::MultiWriter;

use super::fault::Fault;
use super::link::Session;
use super::paths::Paths;
use super::slots::{Ask, Found, SlotText, json, read_json, stored};
use super::store::ZookeeperStore;
use crate::slot::{Slot, SlotKey};
use crate::store::document::MarkText;
use crate::store::state::{Moment, SlotQuery, StoredMark};

/// Slots of one request, and the most leases that have run out that one grant clears up.
const AT_ONCE: usize = 30;

/// What was read of a job's leases for one slot.
pub(super) struct Leases {
    /// The version of the job's node; none when it is not there.
    version: Option<i32>,
    /// Whether the slot itself is among them.
    own: bool,
    /// Whether the slot has to run alone.
    exclusive: bool,
    /// The oldest of the job's other slots that is leased, where that counts.
    pub(super) other: Option<(SlotKey, StoredMark)>,
    /// Other slots whose leases have run out.
    lapsed: Vec<Lapsed>,
}

struct Lapsed {
    key: SlotKey,
    /// The slot's node and its version; none when it is not there.
    slot: Option<(SlotText, i32)>,
}

impl Leases {
    /// Whether the job has its node.
    pub(super) const fn is_there(&self) -> bool {
        self.version.is_some()
    }
}

impl ZookeeperStore {
    /// What is asked for with the slot.
    pub(super) fn leases_asked(&self, query: &SlotQuery) -> Vec<Ask> {
        let job = self.paths.leases_of(query.slot.job().as_str());
        let mut asks = vec![Ask::Data(job.clone()), Ask::Data(self.paths.lease(&query.slot))];
        asks.extend(query.exclusive.then_some(Ask::Children(job)));
        asks
    }

    /// What was found. Other slots that are leased are looked at in a request of their own: nobody knew of them before.
    pub(super) async fn leases_found(
        &self,
        session: &Session,
        query: &SlotQuery,
        mut found: impl Iterator<Item = Found>,
        at: Moment,
    ) -> Result<Leases, Fault> {
        let (job, own, names) = (found.next(), found.next(), found.next());
        let mut leases = Leases {
            version: if let Some(Found::Data(_, stat)) = job { Some(stat.version) } else { None },
            own: matches!(own, Some(Found::Data(..))),
            exclusive: query.exclusive,
            other: None,
            lapsed: Vec::new(),
        };
        let Some(Found::Children(names)) = names else { return Ok(leases) };
        let mut keys: Vec<SlotKey> = names.iter().filter_map(|name| Paths::key_of(name)).collect();
        keys.retain(|key| *key != query.slot.key());
        keys.sort_unstable();
        for part in keys.chunks(AT_ONCE) {
            self.look_at(session, &query.slot, part, at, &mut leases).await?;
            if leases.other.is_some() {
                break;
            }
        }
        Ok(leases)
    }

    async fn look_at(
        &self,
        session: &Session,
        slot: &Slot,
        keys: &[SlotKey],
        at: Moment,
        leases: &mut Leases,
    ) -> Result<(), Fault> {
        let path = |key: &SlotKey| self.paths.slot_at(slot.job().as_str(), *key);
        let found = self.read(session, keys.iter().map(|key| Ask::Data(path(key))).collect()).await?;
        for (key, found) in keys.iter().zip(found) {
            let path = path(key);
            let slot = match found {
                Found::Data(data, stat) => Some((read_json::<SlotText>(&path, &data)?, stat.version)),
                _ => None,
            };
            let mark = stored(&path, slot.as_ref().and_then(|(text, _)| text.mark.clone()))?;
            match mark.filter(|mark| mark.until > at.now && mark.is_lease()) {
                Some(mark) => {
                    leases.other = Some((*key, mark));
                    return Ok(());
                }
                None => leases.lapsed.push(Lapsed { key: *key, slot }),
            }
        }
        Ok(())
    }

    /// What a step adds that leaves this mark at the slot; `grants` where it puts a lease there, or prolongs one.
    pub(super) fn add_lease(
        &self,
        writer: &mut MultiWriter<'_>,
        (slot, leases): (&Slot, &Leases),
        mark: Option<&MarkText>,
        grants: bool,
    ) -> Result<(), Fault> {
        let job = self.paths.leases_of(slot.job().as_str());
        match leases.version {
            None => writer.add_create(&job, b"", &self.link.options())?,
            Some(version) if leases.exclusive && grants => writer.add_set_data(&job, b"", Some(version))?,
            Some(_) => {}
        }
        let path = self.paths.lease(slot);
        match (leases.own, mark.is_some_and(MarkText::is_lease)) {
            (false, true) => writer.add_create(&path, b"", &self.link.options())?,
            (true, false) => writer.add_delete(&path, None)?,
            _ => {}
        }
        if !grants {
            return Ok(());
        }
        for Lapsed { key, slot: found } in leases.lapsed.iter().take(AT_ONCE) {
            writer.add_delete(&format!("{job}/{key}"), None)?;
            if let Some((text, version)) = found {
                let text = SlotText { mark: text.mark.clone().filter(|mark| !mark.is_lease()), ..text.clone() };
                let path = self.paths.slot_at(slot.job().as_str(), *key);
                writer.add_set_data(&path, &json(&text)?, Some(*version))?;
            }
        }
        Ok(())
    }
}
