//! Slots and locks in etcd, version 3.4 or later: one atomic transaction per operation, one key per thing that a person looks for.
//!
//! - **Atomic steps.** Each operation reads the slot, lets a rule decide on its image, and writes what has changed under
//!   the condition that nothing of what was read has changed since (`mod_revision`; `create_revision` 0 for what was not
//!   there). Otherwise it begins anew: nothing was done yet. So of many claimers one wins (I1, I5). A first claim reads nothing
//!   before: it presumes a slot that nobody has touched, under the same condition.
//! - **A lease** is a mark that stands under an etcd lease of its own. The cluster removes it, by the leader's steady
//!   clock: no node's clock can shorten or lengthen it. A copy of it stands among the leases of its job, so that a slot that has to
//!   run alone is granted on the condition that none but its own is there. Counter, document and done marker are kept without.
//! - **Time** for everything else (when a slot begins and ends, how long a wait lasts) is the asking node's: etcd has no
//!   clock that can be asked ([`StoreClock::Node`](crate::store::StoreClock)).
//!   So do the entries of a lock end: its document is a key without a lease.
//! - **Hints** come by a watch, also when a lease lapses. After a broken connection it goes on where it was.
//! - **Bounded.** A call ends within `op_timeout`. A member that does not answer is left for the next one.
//! - **Applied.** Only the transaction that writes can be `Maybe`; it is never sent twice.
//! - **Values are not believed.** What cannot be read ends in [`ErrorKind::Corrupt`](crate::store::ErrorKind).

mod api;
mod backend;
mod changes;
mod fault;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod keys;
mod link;
mod locks;
mod messages;
mod read;
mod registry;
mod slots;
mod target;
mod watch;

pub(super) use backend::EtcdBackend;

use std::collections::HashSet;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::SubsecRound;

use crate::clock::Clock;
use crate::slot::Slot;
use crate::store::backend::Files;
use crate::store::keyed::{Call, Frame, Framed};
use crate::store::state::Moment;
use crate::store::{Capability, OpenError, Reach, StoreClock, StoreError, StoreOptions, redact};
use api::{LeaseId, Nothing, method};
use changes::ChangeWatch;
use fault::Fault;
use keys::Keys;
use link::Link;
use target::Target;
use watch::WatchListener;

/// How often somebody who waits looks again while there is no watch.
const POLL: Duration = Duration::from_secs(5);

/// What it can do.
const CAPABILITY: Capability = Capability {
    name: "etcd",
    reach: Reach::Network,
    clock: StoreClock::Node,
    push: true,
    poll: POLL,
    durable: true,
    expires_records: false,
    locks: true,
    tells_changes: true,
    output_bytes: 1_152 * 1_024,
    messages: true,
};

/// A store in one etcd cluster.
#[derive(Debug)]
pub struct EtcdStore {
    keys: Keys,
    link: Arc<Link>,
    listener: WatchListener,
    onlookers: ChangeWatch,
    options: StoreOptions,
    location: String,
    seen: SeenSlots,
    clock: Arc<dyn Clock>,
}

impl EtcdStore {
    /// Opens the store at `etcd://` or `etcds://` (docs/stores.md has the forms). Only the url is judged here: no connection
    /// is made before the first operation, so a cluster that is down is that one's error.
    ///
    /// # Errors
    /// [`OpenError::Url`] when the url cannot be used, or a file that it names cannot be read.
    #[allow(clippy::unused_async, reason = "every store is opened by awaiting; others do connect")]
    pub async fn open(url: &str, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let keys = Keys::new(&options.namespace);
        let link = Arc::new(Link::new(Target::parse(url, options.op_timeout, Files::Read)?, options.op_timeout));
        let listener = WatchListener::new(link.another(), keys.clone());
        let onlookers = ChangeWatch::new(link.another(), keys.clone());
        Ok(Self { keys, link, listener, onlookers, location: redact(url), seen: SeenSlots::default(), options, clock })
    }

    /// Now, as this node has it, in the milliseconds that are stored.
    fn moment(&self) -> Moment {
        Moment { now: self.clock.now().wall.trunc_subsecs(3), retention: self.options.retention }
    }

    /// Runs a call's work within the limit and gives its error the words of the contract.
    async fn within<T>(&self, call: &Call, work: impl Future<Output = Result<T, Fault>>) -> Result<T, StoreError> {
        call.within(self.frame(), work).await
    }

    /// Gives up an etcd lease that nothing stands under, in the background. Should that fail, it lapses by itself.
    fn revoke(&self, lease: i64) {
        let link = Arc::clone(&self.link);
        tokio::spawn(async move {
            if let Err(error) = link.call::<_, Nothing>(method::LEASE_REVOKE, LeaseId { id: lease }).await {
                tracing::debug!(lease, %error, "an etcd lease that is not needed is left to lapse");
            }
        });
    }
}

impl Framed for EtcdStore {
    fn frame(&self) -> Frame<'_> {
        Frame { location: &self.location, limit: self.options.op_timeout }
    }
}

/// So many are remembered; then all are forgotten, which costs the next claim of each one more round trip at the most.
const MOST_SEEN: usize = 1_000;

/// The slots that were claimed by this store, whatever came of it.
#[derive(Debug, Default)]
struct SeenSlots(Mutex<HashSet<Slot>>);

impl SeenSlots {
    /// True the first time that it is asked about a slot.
    fn is_new(&self, slot: &Slot) -> bool {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= MOST_SEEN {
            slots.clear();
        }
        slots.insert(slot.clone())
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn a_slot_is_new_once_and_what_is_remembered_is_bounded() {
        let first = Slot::parse("a", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
        let seen = SeenSlots::default();
        assert!(seen.is_new(&first) && !seen.is_new(&first));
        for hour in 1..3_000 {
            let span = TimeDelta::hours(hour);
            assert!(seen.is_new(&Slot::new(first.job().clone(), first.start() + span, first.end() + span).unwrap()));
        }
        assert!(seen.0.lock().unwrap().len() <= MOST_SEEN);
    }
}
