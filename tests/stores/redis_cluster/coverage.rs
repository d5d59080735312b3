//! A cluster as Redis is by default (`cluster-require-full-coverage yes`): while a master is away and nobody has taken its place,
//! the others answer nothing either. Claims fail as calls to a store that is away do, and what was done stays done.

use std::time::Duration;

use cronward::slot::{Lease, Outcome};
use cronward::store::redis::RedisStore;
use cronward::store::{Applied, Claim, ErrorKind, Renewal, Settlement, Store, StoreError};

use crate::redis_cluster::{crc, open};
use crate::redis_group::{ClusterGroup, is_master, until};
use crate::words::{ended, eventually, granted, request, slot_of};

const DONE_TTL: Duration = Duration::from_secs(3_600);

/// What one master keeps: a slot that is done, one that is held, one that nobody has asked for.
struct Kept {
    done: String,
    held: Lease,
    fresh: String,
}

impl Kept {
    /// On the master of this number, with a lease that outlasts the test.
    async fn on(store: &RedisStore, master: i64) -> Self {
        let mut jobs =
            (0..).map(|index| format!("job-{index}")).filter(|job| i64::from(crc(job)) * 3 / 16_384 == master);
        let mut job = || jobs.next().unwrap();
        let (done, held, fresh) = (job(), job(), job());
        let lease = granted(store, &request(&slot_of(&done), 1)).await;
        store.complete(&lease, &ended(&lease, Outcome::Success), DONE_TTL).await.unwrap();
        let mut claim = request(&slot_of(&held), 1);
        claim.lease_ttl = DONE_TTL;
        Self { done, held: granted(store, &claim).await, fresh }
    }

    /// Each call that would grant, keep or tell something.
    async fn ask(&self, store: &RedisStore) -> [Result<(), StoreError>; 5] {
        [
            store.claim(&request(&slot_of(&self.fresh), 1)).await.map(drop),
            store.claim(&request(&slot_of(&self.done), 2)).await.map(drop),
            store.claim(&request(&self.held.slot, 2)).await.map(drop),
            store.renew(&self.held).await.map(drop),
            store.inspect(std::slice::from_ref(&self.held.slot)).await.map(drop),
        ]
    }

    async fn is_as_it_was(&self, store: &RedisStore) {
        assert!(matches!(store.claim(&request(&slot_of(&self.done), 2)).await.unwrap(), Claim::Done(_)));
        assert!(matches!(store.claim(&request(&self.held.slot, 2)).await.unwrap(), Claim::Held { .. }));
        assert_eq!(store.renew(&self.held).await.unwrap(), Renewal::Renewed);
        let run = ended(&self.held, Outcome::Success);
        assert_eq!(store.complete(&self.held, &run, DONE_TTL).await.unwrap(), Settlement::Recorded);
        // Asked for in vain again and again: not one attempt was counted.
        let claim = store.claim(&request(&slot_of(&self.fresh), 2)).await.unwrap();
        assert!(matches!(claim, Claim::Claimed { attempt: 1, used: 1, .. }), "{claim:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_master_is_missed_nothing_is_granted_anywhere_and_afterwards_all_is_as_it_was() {
    let mut group = ClusterGroup::start_with_full_coverage();
    // The outage lasts until the test has seen it.
    group.hold_failovers();
    let store = open(&group.url()).await;
    let (dying, living) = (Kept::on(&store, 0).await, Kept::on(&store, 2).await);
    let size = |index: usize| group.servers[index].number(&["DBSIZE"]);
    until("its replica has all of it", || size(3) == size(0));
    group.servers[0].kill();
    eventually("the others answer nothing about their own slots", async || {
        let told = store.inspect(std::slice::from_ref(&living.held.slot)).await;
        told.is_err_and(|error| error.message.contains("the cluster is not ready"))
    })
    .await;

    for error in living.ask(&store).await.map(Result::unwrap_err) {
        assert_eq!((error.kind, error.applied), (ErrorKind::Unavailable, Applied::No), "{error}");
        assert!(error.is_transient() && error.message.contains("the cluster is not ready"), "{error}");
    }
    assert!(group.servers[2].errors("CLUSTERDOWN") >= 5);
    for error in dying.ask(&store).await.map(Result::unwrap_err) {
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
        assert!(error.is_transient(), "{error}");
    }

    group.let_take_over(0);
    until("its replica has taken over", || is_master(&group.servers[3]));
    for kept in [&dying, &living] {
        eventually("it is answered again", async || store.inspect(std::slice::from_ref(&kept.held.slot)).await.is_ok())
            .await;
    }
    dying.is_as_it_was(&store).await;
    living.is_as_it_was(&store).await;
}
