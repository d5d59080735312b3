//! The Redis store behind real sentinels: failovers, also ones that lose writes, and sentinels that are away.

#![cfg(feature = "redis-sentinel")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a test says what it expects"
)]

#[cfg(feature = "daemon")]
#[path = "../../support/lost_success.rs"]
mod lost_success;

#[cfg(feature = "daemon")]
mod daemon;
#[cfg(feature = "daemon")]
mod doctor;
mod locks;
#[cfg(feature = "daemon")]
mod replicas;
mod secure;

use std::time::{Duration, Instant};

use crate::redis_group::{PATIENCE, SentinelGroup, field, follows, until};
use crate::redis_server::RedisServer;
use crate::words::{ended, granted, mark_of, request, slot_of};
use cronward::slot::{Outcome, Verdict};
use cronward::store::redis::RedisStore;
use cronward::store::{Claim, ErrorKind, Store, StoreOptions, Wake};

/// What the interface promises after the end of a failover.
const SWITCH: Duration = Duration::from_secs(5);

async fn open(url: &str) -> RedisStore {
    RedisStore::open(url, StoreOptions::default().with_op_timeout(Duration::from_secs(2))).await.unwrap()
}

#[allow(clippy::disallowed_methods, reason = "real servers are measured by the machine's clock")]
fn instant() -> Instant {
    Instant::now()
}

/// The same, and it has found the master: on a busy machine that takes longer than a call may.
#[allow(clippy::disallowed_methods, reason = "real servers: there is no signal to wait for but their answers")]
async fn open_to_master(url: &str) -> RedisStore {
    let store = open(url).await;
    let began = instant();
    while store.inspect(&[]).await.is_err() {
        assert!(began.elapsed() < PATIENCE, "no master within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    store
}

/// Claims one slot after the other until one is granted; how long that took.
#[allow(clippy::disallowed_methods, reason = "real servers: there is no signal to wait for but their answers")]
async fn until_granted(store: &RedisStore, job: &str) -> Duration {
    let began = instant();
    while !matches!(store.claim(&request(&slot_of(job), 1)).await, Ok(Claim::Claimed { .. })) {
        assert!(began.elapsed() < PATIENCE, "no grant within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    began.elapsed()
}

/// What the interface promises, and what this machine takes now for fifty calls: a failover is followed in far fewer.
async fn limit_of_switch(store: &RedisStore) -> Duration {
    let began = instant();
    for number in 0..50 {
        until_granted(store, &format!("measured-{number}")).await;
    }
    SWITCH + began.elapsed()
}

fn master_of(sentinel: &RedisServer) -> redis::Value {
    sentinel.command(&["SENTINEL", "MASTER", "mymaster"])
}

/// The store's connections to a server.
fn connection_ids(server: &RedisServer) -> Vec<String> {
    let clients = server.text(&["CLIENT", "LIST"]).unwrap();
    let of_store = clients.lines().filter(|line| line.contains("name=cronward:default"));
    of_store.filter_map(|line| line.split(' ').next().map(str::to_owned)).collect()
}

async fn hears(hints: &mut cronward::store::Wakeups, wanted: impl Fn(&Wake) -> bool) {
    let heard = async { while !wanted(&hints.recv().await.unwrap()) {} };
    tokio::time::timeout(PATIENCE, heard).await.expect("the hint comes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_is_followed_within_five_seconds_of_its_end() {
    let mut group = SentinelGroup::start();
    let store = open_to_master(&group.url()).await;
    let mut hints = store.subscribe();
    hears(&mut hints, |wake| *wake == Wake::Resync).await;
    granted(&store, &request(&slot_of("before"), 1)).await;
    until("the replica has the claim", || {
        group.replica.number(&["EXISTS", &mark_of(&slot_of("before"))]) == 1 || group.replica.number(&["DBSIZE"]) > 0
    });

    group.master.kill();
    let failover = group.wait_for_failover();
    let switch = until_granted(&store, "after").await;
    println!("failover after {failover:?}, followed within {switch:?}");
    assert!(switch <= SWITCH || switch <= limit_of_switch(&store).await, "{switch:?}");
    hears(&mut hints, |wake| *wake == Wake::Resync).await;
    let lease = granted(&store, &request(&slot_of("told"), 1)).await;
    store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(60)).await.unwrap();
    hears(&mut hints, |wake| matches!(wake, Wake::Slot { job, .. } if job.as_str() == "told")).await;

    // The old master comes back as a replica, and nothing is written to it meanwhile.
    group.master.start_again();
    until_granted(&store, "later").await;
    until("the old master follows", || follows(&group.master));
    granted(&store, &request(&slot_of("last"), 1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_that_somebody_ordered_is_followed_and_the_old_master_is_left() {
    let group = SentinelGroup::start();
    let store = open_to_master(&group.url()).await;
    granted(&store, &request(&slot_of("before"), 1)).await;
    group.sentinels[0].command(&["SENTINEL", "FAILOVER", "mymaster"]);
    group.wait_for_failover();
    // The old master is well, and takes what it is sent until the store has heard of the other one.
    let began = instant();
    for number in 0.. {
        let job = format!("after-{number}");
        until_granted(&store, &job).await;
        let switch = began.elapsed();
        if group.replica.number(&["EXISTS", &mark_of(&slot_of(&job))]) == 1 {
            println!("followed within {switch:?}");
            break;
        }
        let in_time = switch <= SWITCH || switch <= limit_of_switch(&store).await;
        assert!(in_time, "{switch:?}: the claim stands at the old master");
    }
}

/// Until each replica follows the new master, the sentinel that leads names the old one, of the new epoch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_is_slow_to_follow_keeps_nobody_at_the_old_master() {
    let mut group = SentinelGroup::start();
    let slow = group.add_replica();
    let store = open_to_master(&group.url()).await;
    granted(&store, &request(&slot_of("before"), 1)).await;
    slow.command(&["CONFIG", "SET", "masterauth", "wrong"]);
    // The failover is to be under way for as long as this looks.
    for sentinel in &group.sentinels {
        sentinel.command(&["SENTINEL", "SET", "mymaster", "failover-timeout", "60000"]);
    }
    let old = group.master.port().to_string();
    group.master.kill();
    group.wait_for_failover();
    let all_but_one = |named: usize| named + 1 == group.sentinels.len();
    until("two sentinels name the new master", || {
        all_but_one(group.sentinels.iter().filter(|sentinel| field(&master_of(sentinel), "port") != old).count())
    });
    until_granted(&store, "after").await;
    let before = connection_ids(&group.replica);
    // Long enough for each sentinel to be asked several times.
    let began = instant();
    for index in 0.. {
        granted(&store, &request(&slot_of(&format!("job-{index}")), 1)).await;
        if began.elapsed() > Duration::from_secs(4) {
            break;
        }
    }
    let leads = |sentinel: &RedisServer| {
        let master = master_of(sentinel);
        field(&master, "port") == old && field(&master, "flags").contains("failover_in_progress")
    };
    assert!(group.sentinels.iter().any(leads), "the failover is not over");
    assert_eq!(connection_ids(&group.replica), before, "no connection was made anew");
}

/// The sentinels are lost with what they have learnt, and others begin at epoch 0.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_that_are_set_up_afresh_are_believed() {
    let mut group = SentinelGroup::start();
    let store = open_to_master(&group.url()).await;
    group.sentinels[0].command(&["SENTINEL", "FAILOVER", "mymaster"]);
    group.wait_for_failover();
    until_granted(&store, "before").await;
    // As it was before the failover, which had made an epoch of its own.
    group.sentinels.iter_mut().for_each(RedisServer::kill);
    group.master.command(&["REPLICAOF", "NO", "ONE"]);
    group.replica.kill();
    group.sentinels.iter_mut().for_each(RedisServer::start_again);
    until_granted(&store, "after").await;
    let keys: Vec<String> = redis::from_redis_value(group.master.command(&["KEYS", "*{after@*"])).unwrap();
    assert!(!keys.is_empty(), "the claim stands at the master that the new sentinels name");
}

#[tokio::test]
async fn a_server_that_turns_into_a_replica_is_no_reason_to_give_up() {
    let group = SentinelGroup::start();
    let store = open_to_master(&group.url()).await;
    granted(&store, &request(&slot_of("before"), 1)).await;
    let other = RedisServer::start();
    // The sentinels put that right in a while; nothing breaks the connection meanwhile.
    group.master.command(&["REPLICAOF", "127.0.0.1", &other.port().to_string()]);
    let error = store.register(&[]).await.err();
    let error = match error {
        Some(error) => error,
        None => store.claim(&request(&slot_of("after"), 1)).await.unwrap_err(),
    };
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    assert!(error.is_transient(), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_success_whose_write_was_lost_can_be_told_again() {
    let mut group = SentinelGroup::start();
    let store = open_to_master(&group.url()).await;
    let slot = slot_of("job");
    let claim = request(&slot, 1);
    group.cut_replication();
    let lease = granted(&store, &claim).await;
    let run = ended(&lease, Outcome::Success);
    store.complete(&lease, &run, Duration::from_secs(60)).await.unwrap();
    group.master.kill();
    group.wait_for_failover();
    until_granted(&store, "other").await;
    let (_, records) = store.inspect(std::slice::from_ref(&slot)).await.unwrap();
    assert_eq!((records[0].attempts, records[0].runs.len()), (0, 0), "the writes are lost");
    store.complete(&lease, &run, Duration::from_secs(60)).await.unwrap();
    let (_, records) = store.inspect(std::slice::from_ref(&slot)).await.unwrap();
    assert_eq!(records[0].verdict.as_ref().map(|record| record.verdict), Some(Verdict::Done));
    assert!(matches!(store.claim(&request(&slot, 2)).await.unwrap(), Claim::Done(_)));
}

#[tokio::test]
async fn sentinels_that_are_away_or_stand_still_cost_nothing_while_one_answers() {
    let mut group = SentinelGroup::start();
    group.sentinels[0].kill();
    group.sentinels[1].pause();
    let store = open(&group.url()).await;
    granted(&store, &request(&slot_of("a"), 1)).await;
    group.sentinels[1].unpause();
}

#[tokio::test]
async fn a_master_that_no_sentinel_knows_is_told_with_its_name() {
    let group = SentinelGroup::start();
    let store = open(&group.url().replace("mymaster", "other")).await;
    let error = store.jobs().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    assert!(error.message.contains("\"other\"") && error.message.contains("No such master"), "{error}");
    let nobody = RedisServer::start();
    let store = open(&format!("redis+sentinel://127.0.0.1:{}/mymaster", nobody.port())).await;
    assert!(store.jobs().await.unwrap_err().message.contains("\"mymaster\""));
}

#[tokio::test]
async fn the_sentinels_may_want_a_password_of_their_own() {
    let group = SentinelGroup::start();
    for sentinel in &group.sentinels {
        sentinel.command(&["ACL", "SETUSER", "default", "resetpass", ">hidden"]);
    }
    let refused = open(&group.url()).await;
    let error = refused.jobs().await.unwrap_err();
    assert!(error.message.contains("sentinel_pass"), "{error}");
    // What is to be mended is still told when nobody answers any more.
    for sentinel in &group.sentinels {
        sentinel.pause();
    }
    // Longer than a sentinel's answer is waited for: by then each has been given up.
    let began = instant();
    while began.elapsed() < Duration::from_secs(4) {
        let error = refused.jobs().await.unwrap_err();
        assert!(error.message.contains("sentinel_pass"), "{error}");
    }
    for sentinel in &group.sentinels {
        sentinel.unpause();
    }
    let store = open(&format!("{}?sentinel_pass=hidden", group.url())).await;
    granted(&store, &request(&slot_of("a"), 1)).await;
}
