//! What it can do, and where its steps are: the slots' in `slots`, those of many slots in `inspect`, what is removed in
//! `purge`. The contract's methods are those of every [`Shelf`].

use std::future::Future;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::fault::Fault;
use super::store::{Call, ZookeeperStore};
use crate::slot::{Attempt, OutputTail, Slot, SlotRecord, Token};
use crate::store::rules::SlotStep;
use crate::store::shelf::{Frame, Framed, Shelf};
use crate::store::state::SlotQuery;
use crate::store::{Capability, Reach, StoreClock, StoreError, Wakeups};

/// How often somebody who waits looks again while there is no session.
const POLL: Duration = Duration::from_secs(5);

/// What it can do.
pub(in crate::store) const CAPABILITY: Capability = Capability {
    name: "zookeeper",
    reach: Reach::Network,
    clock: StoreClock::Server,
    push: true,
    poll: POLL,
    durable: true,
    expires_records: false,
};

impl Framed for ZookeeperStore {
    type Fault = Fault;

    fn frame(&self) -> Frame<'_> {
        Frame { location: &self.location, limit: self.options.op_timeout }
    }
}

impl Shelf for ZookeeperStore {
    fn capability() -> Capability {
        CAPABILITY
    }

    fn on_slot<T: Send>(
        &self,
        call: Call,
        query: SlotQuery,
        rule: impl Fn(&mut SlotStep) -> T + Send + Sync,
    ) -> impl Future<Output = Result<T, StoreError>> + Send {
        self.on_slot(call, query, rule)
    }

    async fn records(&self, slots: &[Slot]) -> Result<(DateTime<Utc>, Vec<SlotRecord>), Fault> {
        self.records(slots).await
    }

    async fn output_kept(&self, slot: &Slot, attempt: Attempt, token: Token) -> Result<Option<OutputTail>, Fault> {
        self.output_of(slot, attempt, token).await
    }

    async fn remove_old(&self, call: &Call) -> Result<u64, Fault> {
        self.remove_old(call).await
    }

    fn subscribe(&self) -> Wakeups {
        self.listener.subscribe()
    }
}
