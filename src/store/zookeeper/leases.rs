//! What stands beside the mark of a leased slot.
//!
//! - Of each job the slots that are leased: a node for each, below one of the job, so that what runs is found without looking at
//!   the job's other slots. A slot's node there is made and removed in the step that makes its mark a lease or no lease any more.
//!   A grant of a slot that has to run alone changes the job's node under the condition of its version: of two at once one is
//!   made. The others only make and remove nodes below it, and never come in each other's way.
//! - Of each lease its owner, an ephemeral node: the servers remove it when the session ends that last wrote the lease. That it is
//!   gone, or another session's, tells a holder that its session was lost and its lease is in doubt.
//!
//! Neither excludes anybody or grants anything: whose a lease is, and until when, stands in the mark alone.

use std::sync::atomic::Ordering;

use chrono::{DateTime, Utc};

use super::ZookeeperStore;
use super::batch::Batch;
use super::fault::Fault;
use super::link::Session;
use super::nodes::{Found, NodeRequest, Paths, SlotText, read_json, stored};
use crate::slot::{Slot, SlotKey, Token};
use crate::store::Wake;
use crate::store::codec::MarkText;
use crate::store::keyed::json;
use crate::store::rules::MarkChange;
use crate::store::state::{MarkKind, Moment, SlotQuery, StoredMark};

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

/// Whose session it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Nobody,
    Own,
    Other,
}

/// What a step does with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tending {
    Leave,
    /// It becomes one of this session.
    Take,
    /// The step leaves no lease: where it writes anything, the node goes with it.
    Remove,
}

impl Owner {
    pub(super) fn of(found: Option<&Found>, session: &Session) -> Self {
        match found {
            Some(Found::Data(_, stat)) if stat.ephemeral_owner == session.client.session_id().0 => Self::Own,
            Some(Found::Data(..)) => Self::Other,
            _ => Self::Nobody,
        }
    }

    /// What a step does with it that does this to the mark.
    pub(super) fn tending(self, asks: Asks<'_>, change: &MarkChange) -> Tending {
        let after = match change {
            MarkChange::Keep => asks.mark,
            MarkChange::Remove => None,
            MarkChange::Prolong(mark) | MarkChange::Put(mark) => Some(mark),
        };
        let lease = |mark: &StoredMark| match mark.kind {
            MarkKind::Lease(token) => Some(token),
            MarkKind::Wait(_) | MarkKind::Done(_) => None,
        };
        match (after.filter(|mark| mark.until > asks.now).and_then(lease), self) {
            // Whoever asks, a lease is its holder's to tend.
            (Some(held), _) if Some(held) != asks.token => Tending::Leave,
            (Some(_), Self::Own) | (None, Self::Nobody) => Tending::Leave,
            (Some(_), Self::Nobody | Self::Other) => Tending::Take,
            (None, Self::Own | Self::Other) => Tending::Remove,
        }
    }
}

/// Who asks for a step on what.
pub(super) struct Asks<'a> {
    /// The mark that was stored.
    pub(super) mark: Option<&'a StoredMark>,
    /// Whose request this is.
    pub(super) token: Option<Token>,
    pub(super) now: DateTime<Utc>,
}

impl ZookeeperStore {
    /// What is asked for with the slot.
    pub(super) fn leases_asked(&self, query: &SlotQuery) -> Vec<NodeRequest> {
        let job = self.paths.leases_of(query.slot.job().as_str());
        let mut asks = vec![NodeRequest::Data(job.clone()), NodeRequest::Data(self.paths.lease(&query.slot))];
        asks.extend(query.exclusive.then_some(NodeRequest::Children(job)));
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
        let found = self.read(session, keys.iter().map(|key| NodeRequest::Data(path(key))).collect()).await?;
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
        writer: &mut Batch<'_>,
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

    pub(super) fn add_owner(
        &self,
        writer: &mut Batch<'_>,
        (slot, owner): (&Slot, Owner),
        tending: Tending,
    ) -> Result<(), Fault> {
        let path = self.paths.owner(slot);
        // Should it go before the step does, the step begins anew.
        if tending == Tending::Remove || (tending == Tending::Take && owner == Owner::Other) {
            writer.add_delete(&path, None)?;
        }
        if tending == Tending::Take {
            writer.add_create(&path, b"", &self.link.ephemeral())?;
        }
        Ok(())
    }

    /// The session that held a lease was lost. So it was for every lease that it held: each is in doubt until it is renewed, and
    /// holders are told to do that at once. Told once for each session that comes after.
    pub(super) fn doubt(&self, session: &Session) {
        if self.doubted.fetch_max(session.generation, Ordering::AcqRel) < session.generation {
            tracing::info!("a lease was another session's: leases are in doubt until they are renewed");
            self.listener.tell(Wake::Resync);
        }
    }
}
