//! Three members: the leader dies in the middle of work, a member falls silent, the majority is lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cronward::slot::{Attempt, Outcome, Slot};
use cronward::store::{Applied, Claim, ErrorKind, Renewal, Settlement, Store};

use crate::etcd::{ended, eventually, granted, open, open_within, request, slot_of};
use crate::etcd_server::EtcdServer;
use crate::proxy::{Mode, Proxy};

async fn leader(members: &[EtcdServer]) -> usize {
    let mut leads = None;
    eventually("the cluster has a leader", async || {
        leads = members.iter().position(EtcdServer::is_leader);
        leads.is_some()
    })
    .await;
    leads.unwrap()
}

/// How far the workers are.
struct Progress {
    /// Slots that a worker is through with, whoever did them.
    through: AtomicUsize,
    /// Nobody begins a slot of the last quarter before the leader is dead.
    leader_dead: tokio::sync::Semaphore,
}

/// Claims and completes every slot, asking again with the same token while the answer is not known, as the guard does.
async fn work(url: String, node: u128, slots: Vec<Slot>, progress: Arc<Progress>) -> Vec<(Slot, Attempt)> {
    let store = open_within(&url, Duration::from_millis(1_000)).await;
    let mut won = Vec::new();
    let held_back = slots.len() * 3 / 4;
    for (index, slot) in slots.into_iter().enumerate() {
        if index >= held_back {
            drop(progress.leader_dead.acquire().await.unwrap());
        }
        let request = request(&slot, node);
        let claim = loop {
            match store.claim(&request).await {
                Ok(claim) => break claim,
                Err(error) => assert!(error.is_transient(), "{error}"),
            }
        };
        if let Claim::Claimed { attempt, at, .. } = claim {
            let lease = request.granted(attempt, at);
            let settled = loop {
                match store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(3_600)).await {
                    Ok(settled) => break settled,
                    Err(error) => assert!(error.is_transient(), "{error}"),
                }
            };
            assert_eq!(settled, Settlement::Recorded, "{slot}");
            won.push((slot, attempt));
        }
        progress.through.fetch_add(1, Ordering::Relaxed);
    }
    won
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_dies_under_load_costs_no_slot_and_doubles_none() {
    let mut members = EtcdServer::start_cluster();
    let url = EtcdServer::url_of(&members);
    let slots: Vec<Slot> = (0..150).map(|index| slot_of(&format!("job-{index}"))).collect();
    let progress = Arc::new(Progress { through: AtomicUsize::new(0), leader_dead: tokio::sync::Semaphore::new(0) });
    let worker = |node| tokio::spawn(work(url.clone(), node, slots.clone(), Arc::clone(&progress)));
    let workers: Vec<_> = (1..=4).map(worker).collect();
    eventually("the work has begun", async || progress.through.load(Ordering::Relaxed) > 15).await;
    let dead = leader(&members).await;
    members[dead].kill();
    let left = 4 * slots.len() - progress.through.load(Ordering::Relaxed);
    assert!(left >= slots.len(), "only {left} steps were left when the leader died");
    progress.leader_dead.add_permits(4);
    let mut done: BTreeMap<Slot, Vec<Attempt>> = BTreeMap::new();
    for worker in workers {
        for (slot, attempt) in worker.await.unwrap() {
            done.entry(slot).or_default().push(attempt);
        }
    }
    assert_eq!(done.len(), slots.len(), "every slot was done");
    let twice: Vec<_> = done.iter().filter(|(_, attempts)| **attempts != [1]).collect();
    assert!(twice.is_empty(), "done by two, or counted twice: {twice:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_outlives_the_leader_and_ends_after_it() {
    let mut members = EtcdServer::start_cluster();
    let store = open(&EtcdServer::url_of(&members)).await;
    let slot = slot_of("push");
    let short = cronward::store::ClaimRequest { lease_ttl: Duration::from_secs(4), ..request(&slot, 1) };
    let lease = granted(&store, &short).await;
    let dead = leader(&members).await;
    members[dead].kill();
    let mut renewed = None;
    eventually("the lease can be renewed", async || {
        renewed = store.renew(&lease).await.ok();
        renewed.is_some()
    })
    .await;
    assert_eq!(renewed, Some(Renewal::Renewed), "a new leader lets leases last longer, not shorter");
    let mut next = None;
    eventually("the lease lapses", async || {
        next = store.claim(&request(&slot, 2)).await.ok().filter(|claim| matches!(claim, Claim::Claimed { .. }));
        next.is_some()
    })
    .await;
    assert!(matches!(next, Some(Claim::Claimed { attempt: 2, .. })), "{next:?}");
}

#[tokio::test]
async fn a_member_that_does_not_answer_is_left_for_another_within_one_call() {
    let server = EtcdServer::start();
    let silent = Proxy::before(server.port()).await;
    let url = format!("etcd://127.0.0.1:{},127.0.0.1:{}", silent.port(), server.port());
    let store = open_within(&url, Duration::from_secs(10)).await;
    let lease = granted(&store, &request(&slot_of("a"), 1)).await;
    assert_eq!(silent.connections(), 1);
    silent.set(Mode::BlackHole);
    assert_eq!(store.renew(&lease).await.unwrap(), Renewal::Renewed);
    granted(&store, &request(&slot_of("b"), 1)).await;
}

#[tokio::test]
async fn a_lost_reply_may_have_been_applied_and_burns_no_attempt() {
    let server = EtcdServer::start();
    let link = Proxy::before(server.port()).await;
    let store = Arc::new(open_within(&format!("etcd://127.0.0.1:{}", link.port()), Duration::from_secs(5)).await);
    let slot = slot_of("push");
    granted(&*store, &request(&slot_of("first"), 1)).await;
    let request = request(&slot, 1);
    // The read and the lease are answered; the answer to the write is held up until the call has given up.
    let asked = tokio::spawn({
        let (store, request) = (Arc::clone(&store), request.clone());
        async move { store.claim(&request).await }
    });
    eventually("the slot is granted in the cluster", async || {
        if server.leases() > 1 {
            link.set(Mode::LoseReplies);
        }
        server.get(&format!("/cronward/default/attempts/{slot}")).is_some() || asked.is_finished()
    })
    .await;
    let first = asked.await.unwrap();
    if let Err(error) = &first {
        assert!(error.is_transient(), "{error}");
    }
    link.set(Mode::Pass);
    eventually("the cluster can be reached again", async || store.jobs().await.is_ok()).await;
    let again = store.claim(&request).await.unwrap();
    assert!(matches!(again, Claim::Claimed { attempt: 1, used: 1, .. }), "{first:?}, then {again:?}");
}

#[tokio::test]
async fn a_cluster_that_is_down_is_unavailable_and_nothing_was_applied() {
    let mut server = EtcdServer::start();
    server.kill();
    let store = open_within(&server.url(), Duration::from_secs(10)).await;
    let error = store.claim(&request(&slot_of("a"), 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Unavailable, Applied::No), "{error}");
    server.start_again();
    granted(&store, &request(&slot_of("a"), 1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_a_majority_grants_nothing() {
    let mut members = EtcdServer::start_cluster();
    let url = EtcdServer::url_of(&members);
    let store = open_within(&url, Duration::from_secs(10)).await;
    granted(&store, &request(&slot_of("a"), 1)).await;
    members[0].kill();
    members[1].kill();
    let request = request(&slot_of("b"), 1);
    let error = store.claim(&request).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    members[0].start_again();
    eventually("the majority is back", async || {
        matches!(store.claim(&request).await, Ok(Claim::Claimed { attempt: 1, .. }))
    })
    .await;
}
