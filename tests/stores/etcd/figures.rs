//! What a call costs: its round trips, counted by the time that a slow link adds to it.

use std::time::Duration;

use cronward::resource::{AcquireRequest, Acquired, LockRenewal};
use cronward::slot::{Outcome, Slot};
use cronward::store::{Claim, ClaimRequest, Store, StoreOptions, open_locks};

use crate::etcd::{ended, granted, open, request, slot_of, store};
use crate::etcd_server::EtcdServer;
use crate::lock_words::{asking, held};
use crate::proxy::{Mode, Proxy};
use crate::round_trips::round_trips;

/// Added in each direction. Each write is a sync to disk besides.
const DELAY: Duration = Duration::from_millis(120);

/// Each claim is exclusive.
#[tokio::test]
async fn a_first_claim_costs_two_round_trips_a_renewal_four_and_a_refusal_two() {
    let server = EtcdServer::start();
    let direct = store(&server).await;
    let older = slot_of("older");
    let done = granted(&direct, &request(&older, 1)).await;
    direct.complete(&done, &ended(&done, Outcome::Success), Duration::from_secs(600)).await.unwrap();
    let after = |job: &str, claimer| {
        let slot = Slot::new(job.parse().unwrap(), older.start(), older.end()).unwrap();
        ClaimRequest { exclusive: true, ..request(&slot, claimer) }
    };
    for turn in 0..5 {
        granted(&direct, &after(&format!("held-{turn}"), 1)).await;
        let lease = granted(&direct, &after(&format!("again-{turn}"), 1)).await;
        direct.fail(&lease, &ended(&lease, Outcome::Failure), Duration::ZERO).await.unwrap();
    }
    let link = Proxy::before(server.port()).await;
    let store = open(&format!("etcd://127.0.0.1:{}", link.port())).await;
    let lease = granted(&store, &after("warm", 2)).await;
    link.set(Mode::Delay(DELAY));
    let claim = round_trips(DELAY, async |turn| {
        granted(&store, &after(&format!("job-{turn}"), 2)).await;
    });
    assert_eq!(claim.await, 2, "a first claim: the lease, and the transaction");
    let retry = round_trips(DELAY, async |turn| {
        granted(&store, &after(&format!("again-{turn}"), 2)).await;
    });
    assert_eq!(retry.await, 3, "the second attempt: its transaction, told what is there, is sent once more");
    let renewal = round_trips(DELAY, async |_| {
        store.renew(&lease).await.unwrap();
    });
    assert_eq!(renewal.await, 4, "a renewal: read, what is left, kept alive, still there");
    let held = async |turn| {
        let claim = store.claim(&after(&format!("held-{turn}"), 2)).await.unwrap();
        assert!(matches!(claim, Claim::Held { .. }), "{claim:?}");
    };
    assert_eq!(round_trips(DELAY, held).await, 3, "a first refusal: as a claim, and what is left");
    assert_eq!(round_trips(DELAY, held).await, 2, "a refusal: read, and what is left");
    let done = async |_| {
        assert!(matches!(store.claim(&request(&older, 2)).await.unwrap(), Claim::Done(_)));
    };
    done(0).await;
    assert_eq!(round_trips(DELAY, done).await, 1, "done");
}

/// However many are named.
#[tokio::test]
async fn a_step_on_locks_costs_two_round_trips_and_a_look_one() {
    let server = EtcdServer::start();
    let link = Proxy::before(server.port()).await;
    let options = StoreOptions::default().with_op_timeout(Duration::from_secs(30));
    let store = open_locks(&format!("etcd://127.0.0.1:{}", link.port()), options).await.unwrap();
    let (one, several) = (held(&*store, &asking(1, &["one"])).await, held(&*store, &asking(2, &["p", "q", "r"])).await);
    let busy = AcquireRequest { queue: false, ..asking(3, &["one"]) };
    link.set(Mode::Delay(DELAY));
    let first = round_trips(DELAY, async |turn| {
        held(&*store, &asking(u128::from(turn) + 10, &[&format!("new-{turn}")])).await;
    });
    assert_eq!(first.await, 2, "a lock that nobody had used");
    for hold in [&one, &several] {
        let renewal = round_trips(DELAY, async |_| {
            assert_eq!(store.renew_lock(hold).await.unwrap(), LockRenewal::Renewed);
        });
        assert_eq!(renewal.await, 2, "a renewal");
    }
    let refusal = round_trips(DELAY, async |_| {
        assert!(matches!(store.acquire(&busy).await.unwrap(), Acquired::Busy { .. }));
    });
    assert_eq!(refusal.await, 1, "one that is taken");
}
