//! The ephemeral node beside a lease: the servers remove it when the session ends that last wrote the lease. That it is gone, or
//! another session's, tells a holder that its session was lost and its lease is in doubt. It excludes nobody and grants
//! nothing: whose the lease is, and until when, stands in the mark alone.

use zookeeper_client::MultiWriter;

use super::fault::Fault;
use super::link::Session;
use super::slots::{Found, Loaded};
use super::store::ZookeeperStore;
use crate::store::Wake;
use crate::store::rules::MarkChange;
use crate::store::state::{MarkKind, StoredMark};

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
    pub(super) fn tending(self, loaded: &Loaded, change: &MarkChange) -> Tending {
        let after = match change {
            MarkChange::Keep => loaded.stored.mark.as_ref(),
            MarkChange::Remove => None,
            MarkChange::Prolong(mark) | MarkChange::Put(mark) => Some(mark),
        };
        let lease = |mark: &StoredMark| match mark.kind {
            MarkKind::Lease(token) => Some(token),
            MarkKind::Wait(_) | MarkKind::Done(_) => None,
        };
        match (after.filter(|mark| mark.until > loaded.at.now).and_then(lease), self) {
            // Whoever asks, a lease is its holder's to tend.
            (Some(held), _) if Some(held) != loaded.token => Tending::Leave,
            (Some(_), Self::Own) | (None, Self::Nobody) => Tending::Leave,
            (Some(_), Self::Nobody | Self::Other) => Tending::Take,
            (None, Self::Own | Self::Other) => Tending::Remove,
        }
    }
}

impl ZookeeperStore {
    pub(super) fn add_owner(
        &self,
        writer: &mut MultiWriter<'_>,
        loaded: &Loaded,
        tending: Tending,
    ) -> Result<(), Fault> {
        let path = self.paths.owner(&loaded.slot);
        // Should it go before the step does, the step begins anew.
        if tending == Tending::Remove || (tending == Tending::Take && loaded.owner == Owner::Other) {
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
        use std::sync::atomic::Ordering;
        if self.doubted.fetch_max(session.generation, Ordering::AcqRel) < session.generation {
            tracing::info!("a lease was another session's: leases are in doubt until they are renewed");
            self.listener.tell(Wake::Resync);
        }
    }
}
