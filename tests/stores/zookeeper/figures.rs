//! What a call costs: its round trips, counted by the time that a slow link adds to it.

use std::sync::Arc;
use std::time::Duration;

use cronward::clock::{Clock, ManualClock};
use cronward::resource::{AcquireRequest, Acquired, LockRenewal};
use cronward::slot::Outcome;
use cronward::store::zookeeper::ZookeeperStore;
use cronward::store::{Claim, ClaimRequest, Renewal, Store, StoreOptions, open_locks};

use crate::lock_words::{asking, held};
use crate::proxy::{Mode, Proxy};
use crate::round_trips::round_trips;
use crate::zookeeper::{ended, granted, request, slot_of};
use crate::zookeeper_server::ZookeeperServer;

/// Added in each direction to what passes at once; answers that come one after the other may be held up half a round trip
/// more. Much more than a call takes on a fast link, also on a busy machine.
const DELAY: Duration = Duration::from_millis(150);

/// Also where the leader's clock has to be measured each time: the store's own clock is moved on by a minute for that.
#[tokio::test]
async fn a_step_costs_two_round_trips_and_a_refusal_one() {
    let server = ZookeeperServer::start();
    let link = Proxy::before(server.port()).await;
    let clock = ManualClock::at(crate::zookeeper::now());
    let own: Arc<dyn Clock> = Arc::new(clock.clone());
    let options = StoreOptions::default().with_op_timeout(Duration::from_secs(30));
    let url = format!("zookeeper://127.0.0.1:{}", link.port());
    let store = ZookeeperStore::open(&url, options, own).await.unwrap();
    // The session is begun and the namespace made.
    let held = slot_of("held");
    let lease = granted(&store, &request(&held, 1)).await;
    link.set(Mode::Delay(DELAY));
    let pass = || clock.advance(Duration::from_secs(60));
    // Each the first slot of its job.
    let first = |turn: u32| {
        let slot = slot_of(&format!("job-{turn}"));
        ClaimRequest { exclusive: true, ..request(&slot, 1) }
    };
    let claim = round_trips(DELAY, async |turn| {
        pass();
        granted(&store, &first(turn)).await;
    });
    assert_eq!(claim.await, 2, "a claim that is granted");
    let renewal = round_trips(DELAY, async |_| {
        pass();
        assert_eq!(store.renew(&lease).await.unwrap(), Renewal::Renewed);
    });
    assert_eq!(renewal.await, 2, "a renewal");
    let refusal = round_trips(DELAY, async |_| {
        pass();
        assert!(matches!(store.claim(&request(&held, 2)).await.unwrap(), Claim::Held { .. }));
    });
    assert_eq!(refusal.await, 1, "a refusal");
    let settlement = round_trips(DELAY, async |turn| {
        let lease = first(turn).granted(1, lease.claimed_at);
        store.fail(&lease, &ended(&lease, Outcome::Failure), Duration::ZERO).await.unwrap();
    });
    assert_eq!(settlement.await, 2, "a settlement");
}

/// However many are named.
#[tokio::test]
async fn a_step_on_locks_costs_two_round_trips_and_a_look_one() {
    let server = ZookeeperServer::start();
    let link = Proxy::before(server.port()).await;
    let options = StoreOptions::default().with_op_timeout(Duration::from_secs(30));
    let store = open_locks(&format!("zookeeper://127.0.0.1:{}", link.port()), options).await.unwrap();
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
