//! Outputs of a megabyte each, and a server that they fill: neither keeps a job from being claimed or looked at.

use std::time::Duration;

use cronward::slot::{Outcome, OutputTail, RunRecord};
use cronward::store::{Claim, Release, Settlement, Store};

use crate::redis::{ended, granted, mark_of, request, slot_of, store};
use crate::redis_server::RedisServer;

/// As long as `output_limit` may be.
const LONGEST: usize = 1024 * 1024;

fn chatty(run: RunRecord) -> RunRecord {
    RunRecord { output: Some(OutputTail { text: "x".repeat(LONGEST), dropped_bytes: 7, loss: None }), ..run }
}

#[tokio::test]
async fn outputs_stand_beside_the_log_which_stays_short() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let slot = slot_of("billing");
    for claimer in 1..=2 {
        let lease = granted(&store, &request(&slot, claimer)).await;
        let run = chatty(ended(&lease, Outcome::Failure));
        assert_eq!(store.fail(&lease, &run, Duration::ZERO).await.unwrap(), Release::Released);
    }
    let log = server.number(&["MEMORY", "USAGE", &format!("{}:log", mark_of(&slot))]);
    assert!(log < 4_096, "the log has {log} bytes");
}

#[tokio::test]
async fn a_server_that_may_not_evict_is_never_filled_by_outputs() {
    let mib = 1024 * 1024;
    let server = RedisServer::start_with(&[("maxmemory", "32mb"), ("maxmemory-policy", "noeviction")]);
    let store = store(&server).await;
    for n in 0..64_u128 {
        let slot = slot_of(&format!("job{n}"));
        let answer = store.claim(&request(&slot, n + 1)).await;
        assert!(matches!(answer, Ok(Claim::Claimed { .. })), "claim {n}: {answer:?}");
        let lease = request(&slot, n + 1).granted(1, slot.start());
        let run = chatty(ended(&lease, Outcome::Success));
        let minute = Duration::from_secs(60);
        assert_eq!(store.complete(&lease, &run, minute).await.unwrap(), Settlement::Recorded, "{n}");
    }
    let used = server.text(&["INFO", "memory"]).unwrap();
    let used = used.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap().to_owned();
    assert!(used.parse::<usize>().unwrap() < 32 * mib, "{used} bytes");
}

#[tokio::test]
async fn an_output_that_a_nearly_full_server_drops_is_told_in_its_record() {
    let server = RedisServer::start_with(&[("maxmemory", "64mb"), ("maxmemory-policy", "noeviction")]);
    let store = store(&server).await;
    let (kept, dropped) = (slot_of("kept"), slot_of("dropped"));
    let end = async |slot: &cronward::slot::Slot| {
        let lease = granted(&store, &request(slot, 1)).await;
        store.fail(&lease, &chatty(ended(&lease, Outcome::Failure)), Duration::ZERO).await.unwrap();
        let (_, records) = store.inspect(std::slice::from_ref(slot)).await.unwrap();
        let run = records[0].runs[0].clone();
        let output = store.output(slot, run.attempt, run.token).await.unwrap();
        (run, output)
    };
    let (run, output) = end(&kept).await;
    assert_eq!(run.output, None, "only `output` reads outputs");
    assert_eq!(output.map(|output| (output.text.len(), output.dropped_bytes)), Some((LONGEST, 7)));

    // Leases and records still have room; outputs no longer.
    server.command(&["SETRANGE", "filler", &(54 * 1024 * 1024).to_string(), "x"]);
    let (run, output) = end(&dropped).await;
    assert_eq!(output, None);
    assert_eq!(run.outcome, Some(Outcome::Failure));
    let told = run.output.unwrap();
    assert_eq!((told.text.as_str(), told.dropped_bytes), ("", LONGEST as u64 + 7));
    granted(&store, &request(&slot_of("next"), 9)).await;
}
