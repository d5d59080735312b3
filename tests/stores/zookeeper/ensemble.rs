//! Three servers: the leader dies in the middle of work.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cronward::slot::{Attempt, Lease, Outcome, Slot};
use cronward::store::{Claim, Renewal, Settlement, Store, StoreError};
use tokio::sync::Semaphore;

use crate::zookeeper::{ended, eventually, granted, open, open_within, request, slot_of};
use crate::zookeeper_server::ZookeeperServer;

/// As by default, so that sessions last through an election.
const TICK: Duration = Duration::from_secs(2);

/// A success, and when it was answered.
type Won = (Slot, Attempt, Instant);

async fn leader(servers: &[ZookeeperServer]) -> usize {
    let mut leads = None;
    eventually("the ensemble has a leader", async || {
        leads = servers.iter().position(ZookeeperServer::is_leader);
        leads.is_some()
    })
    .await;
    leads.unwrap()
}

/// Asks again with the same arguments while the answer is not known, as the guard does.
#[allow(clippy::disallowed_methods, reason = "the pause before a call is repeated")]
async fn answered<T, F: Future<Output = Result<T, StoreError>>>(mut ask: impl FnMut() -> F) -> T {
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Claims and completes every slot.
#[allow(clippy::disallowed_methods, reason = "the figure is a time")]
async fn work(
    url: String,
    node: u128,
    slots: Vec<Slot>,
    count: Arc<AtomicUsize>,
    leader_dead: Arc<Semaphore>,
) -> Vec<Won> {
    let store = open_within(&url, Duration::from_secs(1)).await;
    let (mut won, held_back) = (Vec::new(), slots.len() / 2);
    for (index, slot) in slots.into_iter().enumerate() {
        if index >= held_back {
            drop(leader_dead.acquire().await.unwrap());
        }
        let request = request(&slot, node);
        if let Claim::Claimed { attempt, at, .. } = answered(|| store.claim(&request)).await {
            let lease = request.granted(attempt, at);
            let run = ended(&lease, Outcome::Success);
            let settled = answered(|| store.complete(&lease, &run, Duration::from_secs(3_600))).await;
            assert_eq!(settled, Settlement::Recorded, "{slot}");
            won.push((slot, attempt, Instant::now()));
            count.fetch_add(1, Ordering::AcqRel);
        }
    }
    won
}

/// Renews all the time; answers everything that it was told.
async fn hold(url: String, lease: Lease, over: Arc<AtomicBool>) -> Vec<Renewal> {
    let store = open_within(&url, Duration::from_secs(1)).await;
    let mut told = Vec::new();
    while !over.load(Ordering::Acquire) {
        told.push(answered(|| store.renew(&lease)).await);
    }
    told
}

#[tokio::test(flavor = "multi_thread")]
#[allow(clippy::disallowed_methods, reason = "the figure is a time")]
async fn a_leader_that_dies_under_load_costs_no_slot_doubles_none_and_takes_no_lease() {
    let mut servers = ZookeeperServer::start_ensemble(TICK);
    let url = ZookeeperServer::url_of(&servers);
    let watcher = open(&url).await;
    let held = slot_of("held");
    let lease = granted(&watcher, &request(&held, 9)).await;
    let over = Arc::new(AtomicBool::new(false));
    let holder = tokio::spawn(hold(url.clone(), lease, Arc::clone(&over)));
    let slots: Vec<Slot> = (0..240).map(|index| slot_of(&format!("job-{index}"))).collect();
    let dead = leader(&servers).await;
    let count = Arc::new(AtomicUsize::new(0));
    // Nobody begins the second half of them before the leader is dead.
    let leader_dead = Arc::new(Semaphore::new(0));
    let worker =
        |node| tokio::spawn(work(url.clone(), node, slots.clone(), Arc::clone(&count), Arc::clone(&leader_dead)));
    let workers: Vec<_> = (1..=4).map(worker).collect();
    eventually("the work has begun", async || count.load(Ordering::Acquire) > 15).await;
    let killed = Instant::now();
    servers[dead].kill();
    leader_dead.add_permits(Semaphore::MAX_PERMITS);
    let mut won: Vec<Won> = Vec::new();
    for worker in workers {
        won.extend(worker.await.unwrap());
    }
    over.store(true, Ordering::Release);

    let mut attempts: BTreeMap<&Slot, Vec<Attempt>> = BTreeMap::new();
    for (slot, attempt, _) in &won {
        attempts.entry(slot).or_default().push(*attempt);
    }
    assert_eq!(attempts.len(), slots.len(), "every slot was done");
    let twice: Vec<_> = attempts.iter().filter(|(_, attempts)| **attempts != [1]).collect();
    assert!(twice.is_empty(), "done by two, or counted twice: {twice:?}");
    let (_, records) = answered(|| watcher.inspect(&slots)).await;
    let once = records.iter().filter(|record| record.verdict.is_some() && record.runs.len() == 1).count();
    assert_eq!(once, slots.len(), "each has its verdict and one run");

    let after: Vec<Duration> = won.iter().filter_map(|(.., at)| at.checked_duration_since(killed)).collect();
    assert!(after.len() >= slots.len() / 2, "only {} slots were left when the leader died", after.len());
    let outage = *after.iter().min().unwrap();
    assert!(outage < Duration::from_secs(20), "nothing was done for {outage:?}");
    println!("{} of {} slots after the leader's death, the first after {outage:?}", after.len(), slots.len());

    let told = holder.await.unwrap();
    assert!(told.iter().all(|renewal| *renewal == Renewal::Renewed), "{told:?}");
    let late = request(&held, 10);
    let other = answered(|| watcher.claim(&late)).await;
    assert!(matches!(other, Claim::Held { .. }), "{other:?}");
}
