//! The Redis store in a real cluster: slots that move while they are used, a master that dies.

#![cfg(feature = "redis-cluster")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a test says what it expects"
)]

mod coverage;
#[cfg(feature = "daemon")]
mod daemon;
#[cfg(feature = "daemon")]
mod doctor;
mod latest;
mod locks;
#[cfg(feature = "daemon")]
#[path = "../../support/lost_success.rs"]
mod lost_success;
mod secure;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::redis_group::{ClusterGroup, PATIENCE, is_master, until};
use crate::words::{ended, granted, request, slot_of};
use cronward::slot::{Audit, Outcome, Slot, Verdict};
use cronward::store::redis::RedisStore;
use cronward::store::{Applied, Claim, ErrorKind, NodeReport, Settlement, Store, StoreOptions, Wake};

async fn open(url: &str) -> RedisStore {
    RedisStore::open(url, StoreOptions::default().with_op_timeout(Duration::from_secs(10))).await.unwrap()
}

#[allow(clippy::disallowed_methods, reason = "real servers: there is no signal to wait for but their answers")]
async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

#[allow(clippy::disallowed_methods, reason = "real servers are measured by the machine's clock")]
fn instant() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// The cluster's own idea of a key's slot.
fn cluster_slot(group: &ClusterGroup, job: &str) -> i64 {
    group.servers[0].number(&["CLUSTER", "KEYSLOT", &format!("{{{job}}}")])
}

/// How often the servers have answered so, all together.
fn answered(group: &ClusterGroup, error: &str) -> u64 {
    group.servers.iter().map(|server| server.errors(error)).sum()
}

/// Moves one slot with its keys from one master to another, as `redis-cli --cluster reshard` does. `meanwhile` is done while
/// new keys belong to the one and are not there yet.
fn reshard(group: &ClusterGroup, slot: i64, (from, to): (usize, usize), meanwhile: impl FnOnce()) {
    let (slot, source, target) = (slot.to_string(), group.id(from), group.id(to));
    let port = group.servers[to].port().to_string();
    group.servers[to].command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source]);
    group.servers[from].command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target]);
    meanwhile();
    loop {
        let keys = group.servers[from].command(&["CLUSTER", "GETKEYSINSLOT", &slot, "100"]);
        let keys: Vec<String> = redis::from_redis_value(keys).unwrap();
        if keys.is_empty() {
            break;
        }
        let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
        words.extend(keys.iter().map(String::as_str));
        group.servers[from].command(&words);
    }
    // All masters are told, as redis-cli does: gossip alone may still carry an older claim.
    for server in [to, from, 3 - to - from] {
        group.servers[server].command(&["CLUSTER", "SETSLOT", &slot, "NODE", &target]);
    }
}

/// Tells each master again whose the slots are that it takes for another's; answers of how many. A claim that was under way when it was
/// told may have come after that: two masters then send a call to each other for ever, until somebody does as `redis-cli --cluster
/// fix` does.
fn tell_again(group: &ClusterGroup, slots: &[i64], owner: usize) -> usize {
    let owner = group.id(owner);
    let mut told = 0;
    for server in &group.servers[..3] {
        let nodes = server.text(&["CLUSTER", "NODES"]).unwrap();
        let its = nodes.lines().find(|line| line.starts_with(&owner)).unwrap();
        let ranges: Vec<(i64, i64)> = its
            .split(' ')
            .skip(8)
            .filter_map(|range| {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                Some((first.parse().ok()?, last.parse().ok()?))
            })
            .collect();
        for slot in slots.iter().filter(|slot| !ranges.iter().any(|(first, last)| (first..=last).contains(slot))) {
            server.command(&["CLUSTER", "SETSLOT", &slot.to_string(), "NODE", &owner]);
            told += 1;
        }
    }
    told
}

/// Runs a slot as a node does: each call is repeated while the store says that it could not do it. Answers the errors.
async fn run_once(store: &RedisStore, slot: &Slot, claimer: u128) -> u32 {
    let (claim, mut errors) = (request(slot, claimer), 0);
    let mut refused = |error: cronward::store::StoreError| {
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
        assert_eq!(error.applied, Applied::No, "nothing fails half-way: {error}");
        errors += 1;
    };
    let lease = loop {
        match store.claim(&claim).await {
            Ok(Claim::Claimed { attempt, at, .. }) => break claim.granted(attempt, at),
            Ok(other) => panic!("{slot}: {other:?}"),
            Err(error) => refused(error),
        }
        a_moment().await;
    };
    loop {
        match store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(60)).await {
            Ok(settled) => {
                assert_eq!(settled, Settlement::Recorded);
                return errors;
            }
            Err(error) => refused(error),
        }
        a_moment().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_that_move_under_load_lose_nothing_and_repeat_nothing() {
    let group = ClusterGroup::start();
    let store = Arc::new(open(&group.url()).await);
    let (moving, ran) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU32::new(0)));
    let going_on = Arc::new(AtomicU32::new(0));
    let of_first = |job: &String| crc(job) <= 5_460;
    let mut jobs: Vec<String> = (0..).map(|index| format!("job-{index}")).filter(of_first).take(26).collect();
    // Not part of the load: of each nothing is known before its slot moves.
    let fresh = jobs.split_off(24);
    let load: Vec<_> = jobs
        .iter()
        .cloned()
        .map(|job| {
            let (store, moving, ran) = (Arc::clone(&store), Arc::clone(&moving), Arc::clone(&ran));
            let going_on = Arc::clone(&going_on);
            going_on.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let (mut slots, mut errors) = (Vec::new(), 0);
                let first = slot_of(&job);
                while moving.load(Ordering::Relaxed) {
                    // Ever earlier ones: each has begun, and lasts.
                    let start = first.start() - chrono::TimeDelta::seconds(i64::try_from(slots.len()).unwrap());
                    let slot = Slot::new(first.job().clone(), start, first.end()).unwrap();
                    errors += run_once(&store, &slot, 1).await;
                    ran.fetch_add(1, Ordering::Relaxed);
                    slots.push(slot);
                    a_moment().await;
                }
                going_on.fetch_sub(1, Ordering::Relaxed);
                (slots, errors)
            })
        })
        .collect();
    let (runtime, mut meeting) = (tokio::runtime::Handle::current(), Vec::new());
    let first_calls = Arc::clone(&store);
    let mover = tokio::task::spawn_blocking(move || {
        until("the load has begun", || ran.load(Ordering::Relaxed) > 40);
        // There and back. Only one master gains slots at a time: their claims to a slot are ordered by an epoch, and two that
        // gain at once need seconds to agree on theirs.
        for ((from, to), job) in [(0, 1), (1, 0)].into_iter().zip(fresh) {
            let slots: Vec<i64> = jobs.iter().map(|job| cluster_slot(&group, job)).collect();
            let first = cluster_slot(&group, &job);
            if from != 0 {
                reshard(&group, first, (0, from), || {});
            }
            // The first move takes until a call has met it. None of its keys is there: it is sent on, with leave, to where they are
            // not either, and refused until all has moved.
            let before = [answered(&group, "ASK"), answered(&group, "TRYAGAIN")];
            let met = || answered(&group, "ASK") > before[0] && answered(&group, "TRYAGAIN") > before[1];
            reshard(&group, first, (from, to), || {
                let (store, going_on) = (Arc::clone(&first_calls), Arc::clone(&going_on));
                going_on.fetch_add(1, Ordering::Relaxed);
                meeting.push(runtime.spawn(async move {
                    let slot = slot_of(&job);
                    let errors = run_once(&store, &slot, 1).await;
                    going_on.fetch_sub(1, Ordering::Relaxed);
                    (vec![slot], errors)
                }));
                let _ = until("a call meets a slot that moves", met);
            });
            slots.iter().for_each(|slot| reshard(&group, *slot, (from, to), || {}));
        }
        let slots: Vec<i64> = jobs.iter().map(|job| cluster_slot(&group, job)).collect();
        let before = ran.load(Ordering::Relaxed);
        until("the load goes on afterwards", || {
            tell_again(&group, &slots, 0);
            ran.load(Ordering::Relaxed) > before + 40
        });
        moving.store(false, Ordering::Relaxed);
        until("all of the load is over", || {
            tell_again(&group, &slots, 0);
            going_on.load(Ordering::Relaxed) == 0
        });
        (group, meeting)
    });
    let (group, meeting) = mover.await.unwrap();
    let (mut count, mut refused) = (0, 0);
    for task in load.into_iter().chain(meeting) {
        let (slots, errors) = task.await.unwrap();
        refused += errors;
        for part in slots.chunks(100) {
            for record in store.inspect(part).await.unwrap().1 {
                count += 1;
                let verdict = record.verdict.as_ref().map(|record| record.verdict);
                assert_eq!(
                    (verdict, record.attempts, record.runs.len()),
                    (Some(Verdict::Done), 1, 1),
                    "{}",
                    record.slot
                );
            }
        }
    }
    let [moved, ask, again] = ["MOVED", "ASK", "TRYAGAIN"].map(|error| answered(&group, error));
    println!(
        "{count} slots done once each while 51 cluster slots moved; {refused} calls were refused and repeated; the servers \
         answered MOVED {moved} times, ASK {ask}, TRYAGAIN {again}"
    );
    assert!(count > 80, "{count}");
    assert!(moved > 0 && ask > 0, "both redirections were followed: {moved}, {ask}");
    // What is refused is refused by a server, in the middle of a move; a redirection alone refuses nothing.
    assert!(0 < refused && u64::from(refused) <= again, "{refused} calls, {again} answers TRYAGAIN");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_dies_is_replaced_and_the_others_go_on_meanwhile() {
    let mut group = ClusterGroup::start();
    let store = open(&group.url()).await;
    let mut hints = store.subscribe();
    let resync = tokio::time::timeout(PATIENCE, hints.recv()).await.unwrap().unwrap();
    assert_eq!(resync, Wake::Resync);
    let on = |master: i64| {
        (0..).map(|index| format!("job-{index}")).find(move |job| i64::from(crc(job)) * 3 / 16_384 == master)
    };
    let (dying, living) = (on(0).unwrap(), on(2).unwrap());
    let lease = granted(&store, &request(&slot_of(&dying), 1)).await;
    until("its replica has the claim", || group.servers[3].number(&["DBSIZE"]) > 0);
    group.servers[0].kill();
    granted(&store, &request(&slot_of(&living), 1)).await;
    let failover = until("its replica has taken over", || is_master(&group.servers[3]));
    let began = instant();
    while store.renew(&lease).await.is_err() {
        assert!(began.elapsed() < PATIENCE);
        a_moment().await;
    }
    let switch = began.elapsed();
    println!("failover after {failover:?}, followed within {switch:?}");
    // What the interface promises, and what this machine takes now for fifty calls: a failover is followed in far fewer.
    let began = instant();
    for _ in 0..50 {
        store.renew(&lease).await.unwrap();
    }
    let limit = Duration::from_secs(5) + began.elapsed();
    assert!(switch <= limit, "{switch:?} of {limit:?}");
    assert!(
        matches!(store.claim(&request(&slot_of(&dying), 2)).await.unwrap(), Claim::Held { .. }),
        "its lease stands"
    );
    store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(60)).await.unwrap();
    let told = async {
        loop {
            // While the wake-ups are subscribed to anew none is heard.
            store.reset(&lease.slot, &audit()).await.unwrap();
            let hint = tokio::time::timeout(Duration::from_millis(200), hints.recv()).await;
            if matches!(hint, Ok(Ok(Wake::Slot { job, .. })) if job.as_str() == dying) {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, told).await.expect("a hint is heard at whichever server");
}

/// Wake-ups are heard at another server, so that nothing breaks there; and nothing is asked of the one that dies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_is_replaced_is_told_of_also_where_it_was_not_asked_anything() {
    let mut group = ClusterGroup::start();
    let store = open(&group.url()).await;
    let mut hints = store.subscribe();
    let first = tokio::time::timeout(PATIENCE, hints.recv()).await.unwrap().unwrap();
    assert_eq!(first, Wake::Resync);
    store.heartbeat(&report()).await.unwrap();
    let listens = |index: usize| {
        let channels = group.servers[index].command(&["PUBSUB", "CHANNELS"]);
        !redis::from_redis_value::<Vec<String>>(channels).unwrap().is_empty()
    };
    let keeps = |index: usize| group.servers[index].number(&["DBSIZE"]) > 0;
    let dying = (0..3).find(|index| !listens(*index) && !keeps(*index)).unwrap();
    group.servers[dying].kill();
    let began = instant();
    let told = async {
        loop {
            // As a node does every few seconds.
            store.heartbeat(&report()).await.unwrap();
            if let Ok(Ok(Wake::Resync)) = tokio::time::timeout(Duration::from_millis(200), hints.recv()).await {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, told)
        .await
        .expect("whoever has done something is to look whether it is still known");
    println!("told {:?} after the end of a master", began.elapsed());
}

fn audit() -> Audit {
    let word = || "test".to_owned();
    Audit { verb: "reset".to_owned(), who: word(), host: word(), why: word(), at: crate::words::now() }
}

fn report() -> NodeReport {
    NodeReport::new("n".parse().unwrap(), "", crate::words::now())
}

/// CRC16 as the cluster specification has it, written down once more: the store's own is under test.
fn crc(text: &str) -> u16 {
    let crc = text.bytes().fold(0_u16, |mut crc, byte| {
        crc ^= u16::from(byte) << 8;
        for _ in 0..8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
        }
        crc
    });
    crc % 16_384
}

#[tokio::test]
async fn a_node_of_a_cluster_asked_as_a_single_server_says_what_to_write() {
    let group = ClusterGroup::start();
    let store = open(&format!("redis://127.0.0.1:{}", group.servers[0].port())).await;
    let job = (0..).map(|index| format!("job-{index}")).find(|job| crc(job) > 8_000).unwrap();
    let error = store.claim(&request(&slot_of(&job), 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Unsupported, Applied::No), "{error}");
    assert!(error.message.contains("redis+cluster://"), "{error}");
}
