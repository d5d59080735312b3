//! What a job has come to lately: its key and for how long that is kept, what somebody else wrote there, and that the scripts
//! follow the rules of the stores that do not write their own.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DurationRound, TimeDelta};
use cronward::clock::SystemClock;
use cronward::job::{JobName, NodeName};
use cronward::slot::{JobLatest, Outcome, Slot};
use cronward::store::memory::MemoryStore;
use cronward::store::{
    Applied, Claim, ClaimRequest, ErrorKind, LATEST_KEPT, Op, Release, Settlement, Store, StoreOptions,
};

use crate::redis::{audit, ended, granted, mark_of, now, request, slot_of, store};
use crate::redis_server::RedisServer;

const KEY: &str = "cronward:default:{billing}:last";
const DONE: Duration = Duration::from_secs(7_200);

fn billing() -> JobName {
    "billing".parse().unwrap()
}

async fn latest(store: &impl Store) -> JobLatest {
    store.latest(&[billing()]).await.unwrap().remove(0)
}

#[tokio::test]
async fn it_is_one_text_a_job_and_is_kept_for_400_days_after_its_last_change() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let slot = slot_of("billing");
    let lease = granted(&store, &request(&slot, 1)).await;
    assert_eq!((server.number(&["EXISTS", KEY]), latest(&store).await), (0, JobLatest::default()));
    store.complete(&lease, &ended(&lease, Outcome::Success), DONE).await.unwrap();
    let known = latest(&store).await;
    let at = known.success.unwrap().at.timestamp_millis();
    let stored: serde_json::Value = serde_json::from_str(&server.text(&["GET", KEY]).unwrap()).unwrap();
    let key = slot.key().to_string();
    let told = serde_json::json!({
        "success": { "slot": key, "at_ms": at },
        "end": { "slot": key, "at_ms": at, "outcome": "success" },
    });
    assert_eq!(stored, told);

    let whole = i64::try_from(LATEST_KEPT.as_secs()).unwrap();
    assert!((whole - 1_000..=whole).contains(&server.number(&["TTL", KEY])));
    server.command(&["EXPIRE", KEY, "5000"]);
    store.complete(&lease, &ended(&lease, Outcome::Success), DONE).await.unwrap();
    assert_eq!(latest(&store).await, known, "a repetition is no change");
    assert!(server.number(&["TTL", KEY]) <= 5_000);
    // Newer, and begun: one that is marked in advance is no change.
    let next = Slot::new(slot.job().clone(), slot.start() + TimeDelta::seconds(1), slot.end()).unwrap();
    store.mark_done(&next, &audit("mark_done"), DONE).await.unwrap();
    assert_eq!(latest(&store).await.success.map(|success| success.slot), Some(next.key()));
    assert!(server.number(&["TTL", KEY]) > 5_000);
}

#[tokio::test]
async fn what_somebody_else_wrote_there_is_told_and_left_and_keeps_no_run_from_its_end() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let slot = slot_of("billing");
    for words in [
        &["SET", KEY, "somebody else's"][..],
        &["SET", KEY, "7"],
        &["SET", KEY, r#""a text""#],
        &["SET", KEY, r#"{"success":{"slot":7,"at_ms":1}}"#],
        &["SET", KEY, r#"{"end":{"slot":"2026-11-21T14Z","at_ms":"then"}}"#],
        &["SET", KEY, r#"{"end":{"slot":"2026-11-21T14Z","at_ms":1e999}}"#],
        &["SADD", KEY, "x"],
        &["LPUSH", KEY, "x"],
    ] {
        server.command(&["FLUSHALL"]);
        server.command(words);
        let before = server.command(&["DUMP", KEY]);
        let first = granted(&store, &request(&slot, 1)).await;
        let failed = store.fail(&first, &ended(&first, Outcome::Failure), Duration::ZERO).await;
        assert_eq!(failed.unwrap(), Release::Released, "{words:?}");
        let second = granted(&store, &request(&slot, 2)).await;
        let done = store.complete(&second, &ended(&second, Outcome::Success), DONE).await;
        assert_eq!(done.unwrap(), Settlement::Recorded, "{words:?}");
        store.reset(&slot, &audit("reset")).await.unwrap();
        assert_eq!(server.command(&["DUMP", KEY]), before, "{words:?}");
        let error = store.latest(&["other".parse().unwrap(), billing()]).await.unwrap_err();
        assert_eq!((error.kind, error.applied, error.op), (ErrorKind::Corrupt, Applied::No, Op::Latest), "{error}");
        assert!(error.to_string().contains(KEY), "{error}");
    }
}

/// Slots that are long over, with keys of each length, in the order of their starts.
fn over() -> Vec<Slot> {
    let day = now().duration_trunc(TimeDelta::days(1)).unwrap() - TimeDelta::days(2);
    [0, 1_800, 1_815, 3_600, 5_400, 7_215]
        .map(|second| {
            let start = day + TimeDelta::seconds(second);
            Slot::new(billing(), start, start + TimeDelta::seconds(15)).unwrap()
        })
        .to_vec()
}

/// Something that changes what a job has come to, or nearly so: answers whether it was carried out.
async fn change(store: &dyn Store, what: u64, slot: &Slot, claimer: u128) -> String {
    let node = NodeName::new("closer").unwrap();
    match what {
        0..3 => format!("{:?}", store.close(slot, 1, &node).await.unwrap()),
        3 => format!("{:?}", store.reset(slot, &audit("reset")).await.unwrap()),
        4 if claimer.is_multiple_of(3) => {
            format!("{:?}", store.mark_done(slot, &audit("mark_done"), DONE).await.unwrap())
        }
        _ => {
            let request = ClaimRequest { past: true, max_attempts: 2, ..request(slot, claimer) };
            let Claim::Claimed { attempt, at, .. } = store.claim(&request).await.unwrap() else { return String::new() };
            let lease = request.granted(attempt, at);
            if what == 5 && claimer.is_multiple_of(2) {
                let run = ended(&lease, Outcome::Success);
                store.complete(&lease, &run, DONE).await.unwrap();
            }
            // Also late, after the success of the same run.
            let run = ended(&lease, if what == 6 { Outcome::Timeout } else { Outcome::Failure });
            format!("{:?}", store.fail(&lease, &run, Duration::ZERO).await.unwrap())
        }
    }
}

/// All but the times, which are each store's own.
fn without_times(latest: &JobLatest) -> String {
    let success = latest.success.map(|success| success.slot);
    let end = latest.end.map(|end| (end.slot, end.outcome));
    format!("{success:?} {end:?} {:?}", latest.failing)
}

#[tokio::test]
async fn the_scripts_follow_the_rules_of_the_other_stores() {
    let server = RedisServer::start();
    let redis = store(&server).await;
    let (slots, mut random, mut longest) = (over(), 0x9E37_79B9_7F4A_7C15_u64, 0);
    for round in 0..20 {
        server.command(&["FLUSHALL"]);
        let memory = MemoryStore::new(StoreOptions::default(), Arc::new(SystemClock));
        for step in 0..60 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (what, slot) = ((random >> 33) % 7, &slots[usize::try_from(random >> 40).unwrap() % slots.len()]);
            let in_redis = change(&redis, what, slot, step + 1).await;
            let told = format!("round {round}, step {step}: {what} on {slot}");
            assert_eq!(in_redis, change(&memory, what, slot, step + 1).await, "{told}");
            let known = latest(&redis).await;
            assert_eq!(without_times(&known), without_times(&latest(&memory).await), "{told}");
            longest = longest.max(known.failing.map_or(0, |failing| failing.slots));
        }
    }
    assert!(longest >= 3, "no row of failures was longer than {longest}: little was tried");
}

#[tokio::test]
async fn a_slot_that_is_closed_again_after_its_records_are_gone_counts_once() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let (slot, node) = (over().remove(0), NodeName::new("closer").unwrap());
    for _ in 0..2 {
        store.close(&slot, 1, &node).await.unwrap();
        assert_eq!(latest(&store).await.failing.map(|failing| failing.slots), Some(1));
        server.command(&["DEL", &format!("{}:log", mark_of(&slot))]);
    }
}
