//! What is kept, for how long, and by whose clock; and who is told.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use cronward::slot::{Mark, Outcome, OutputTail, RunRecord, Slot};
use cronward::store::{Claim, ClaimRequest, ErrorKind, Settlement, Store, Wake, WakeKind};

use crate::sqlite::bench::{DONE, audit, ended, fetch, grant, node, now, open, place, raw, request, slot, sql};

/// Nothing was changed for longer than anything is kept.
const OUTLASTED: &str = "UPDATE slots SET touched_ms = touched_ms - 400 * 86400000,
    document = json_set(document, '$.touched_ms', touched_ms - 400 * 86400000)";

#[tokio::test]
async fn the_clock_is_the_hosts_to_the_millisecond() {
    let place = place();
    let store = open(&place.path).await;
    let before = Utc::now();
    let (now, _) = store.inspect(&[]).await.unwrap();
    let after = Utc::now();
    let millisecond = TimeDelta::milliseconds(1);
    assert!(before - millisecond <= now && now <= after + millisecond, "{before} {now} {after}");
}

#[tokio::test]
async fn records_outlive_the_process_that_wrote_them() {
    let place = place();
    let store = open(&place.path).await;
    let lease = grant(&store, &slot("a")).await;
    store.complete(&lease, &ended(&lease, Outcome::Success), DONE).await.unwrap();
    drop(store);
    let again = open(&place.path).await;
    assert!(matches!(again.claim(&request(&slot("a"), "b")).await.unwrap(), Claim::Done(_)));
}

#[tokio::test]
async fn a_purge_keeps_what_a_job_has_come_to_for_longer_than_a_year() {
    let place = place();
    let store = open(&place.path).await;
    let lease = grant(&store, &slot("job")).await;
    store.fail(&lease, &ended(&lease, Outcome::Failure), Duration::ZERO).await.unwrap();
    let job = [slot("job").job().clone()];
    let known = store.latest(&job).await.unwrap();
    assert!(known[0].end.is_some());
    for (days, left) in [(399, true), (401, false)] {
        let then = (Utc::now() - TimeDelta::days(days)).timestamp_millis();
        sql(&mut raw(&place.path).await, &format!("UPDATE latest SET changed_ms = {then}")).await;
        store.purge().await.unwrap();
        assert_eq!(store.latest(&job).await.unwrap() == known, left, "{days} days");
    }
}

#[tokio::test]
async fn a_purge_takes_what_is_older_than_the_retention_and_nothing_else() {
    let place = place();
    let store = open(&place.path).await;
    for job in ["old", "new", "marked"] {
        let lease = grant(&store, &slot(job)).await;
        let output = Some(OutputTail { text: job.to_owned(), dropped_bytes: 0, loss: None });
        let run = RunRecord { output, ..ended(&lease, Outcome::Failure) };
        store.fail(&lease, &run, Duration::ZERO).await.unwrap();
    }
    store.mark_done(&slot("marked"), &audit("mark_done"), DONE).await.unwrap();
    let mut other = raw(&place.path).await;
    sql(&mut other, &format!("{OUTLASTED} WHERE job <> 'new'")).await;
    // Even before the purge, what is too old is not told any more; a mark has its own time.
    let (_, records) = store.inspect(&[slot("old"), slot("new"), slot("marked")]).await.unwrap();
    let attempts: Vec<u32> = records.iter().map(|record| record.attempts).collect();
    assert_eq!(attempts, [0, 1, 0]);
    assert!(matches!(records[2].mark, Mark::Done(_)));
    assert_eq!(store.purge().await.unwrap(), 1);
    assert_eq!(store.purge().await.unwrap(), 0);
    for (table, left) in [("slots", 2), ("outputs", 2)] {
        let count: i64 = fetch(&mut other, &format!("SELECT count(*) FROM {table}")).await;
        assert_eq!(count, left, "{table}");
    }
    let verbs: i64 =
        fetch(&mut other, "SELECT json_array_length(document -> 'audit') FROM slots WHERE job = 'marked'").await;
    assert_eq!(verbs, 1);
}

#[tokio::test]
async fn a_slot_whose_records_are_too_old_begins_anew() {
    let place = place();
    let store = open(&place.path).await;
    let lease = grant(&store, &slot("a")).await;
    store.fail(&lease, &ended(&lease, Outcome::Failure), Duration::ZERO).await.unwrap();
    sql(&mut raw(&place.path).await, OUTLASTED).await;
    assert_eq!(grant(&store, &slot("a")).await.attempt, 1);
    let (_, records) = store.inspect(&[slot("a")]).await.unwrap();
    assert_eq!(records[0].runs.len(), 1);
}

#[tokio::test]
async fn the_query_of_the_documents_finds_what_failed() {
    let place = place();
    let store = open(&place.path).await;
    let [failing, missing] = ["failing", "missing"].map(over);
    for slot in [&failing, &missing] {
        if slot == &failing {
            let request = ClaimRequest { past: true, ..request(slot, "a") };
            let lease = match store.claim(&request).await.unwrap() {
                Claim::Claimed { attempt, at, .. } => request.granted(attempt, at),
                other => panic!("{other:?}"),
            };
            let run = RunRecord { exit_code: Some(3), ..ended(&lease, Outcome::Failure) };
            store.fail(&lease, &run, Duration::ZERO).await.unwrap();
        }
        store.close(slot, 1, &node("a")).await.unwrap();
    }
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/stores.md")).unwrap();
    let section = page.split("\n## ").find(|section| section.starts_with("SQLite")).unwrap();
    let query = section.lines().find(|line| line.starts_with("SELECT ")).unwrap().to_owned();
    let mut file = raw(&place.path).await;
    let found: Vec<(String, String, i64, i64)> =
        sqlx::query_as(sqlx::AssertSqlSafe(query)).fetch_all(&mut file).await.unwrap();
    assert_eq!(found, [("failing".to_owned(), failing.key().to_string(), 1, 3)]);
}

/// A slot that is over, and was run all the same.
fn over(job: &str) -> Slot {
    let start = now() - TimeDelta::hours(2);
    Slot::new(slot(job).job().clone(), start, start + TimeDelta::hours(1)).unwrap()
}

#[tokio::test]
async fn this_process_is_told_of_its_own_changes_after_they_are_written() {
    let place = place();
    let store = open(&place.path).await;
    let mut wakes = store.subscribe();
    let lease = grant(&store, &slot("a")).await;
    store.complete(&lease, &ended(&lease, Outcome::Success), DONE).await.unwrap();
    store.pause(slot("b").job(), None, &audit("pause")).await.unwrap();
    let done = Wake::Slot { job: slot("a").job().clone(), key: slot("a").key(), what: WakeKind::Done };
    assert_eq!(wakes.try_recv().unwrap(), done);
    assert_eq!(wakes.try_recv().unwrap(), Wake::Job(slot("b").job().clone()));
    assert!(wakes.try_recv().is_err());
}

#[tokio::test]
async fn the_log_beside_the_file_stays_small() {
    let place = place();
    let store = open(&place.path).await;
    for index in 0..400 {
        grant(&store, &slot(&format!("a-{index}"))).await;
    }
    let log = std::fs::metadata(format!("{}-wal", place.path.display())).unwrap().len();
    assert!(log < 2 * 1_024 * 1_024, "{log} bytes");
}

/// It is told where it is asked for, and left as it is.
#[tokio::test]
async fn what_somebody_else_wrote_of_a_job_keeps_no_run_from_its_end() {
    let place = place();
    let store = open(&place.path).await;
    let lease = grant(&store, &slot("job")).await;
    store.fail(&lease, &ended(&lease, Outcome::Failure), Duration::ZERO).await.unwrap();
    sql(&mut raw(&place.path).await, r#"UPDATE latest SET latest = '{"end": 7}'"#).await;
    let lease = grant(&store, &slot("job")).await;
    let settled = store.complete(&lease, &ended(&lease, Outcome::Success), DONE).await.unwrap();
    assert_eq!(settled, Settlement::Recorded);
    let error = store.latest(&[slot("job").job().clone()]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
    let left: String = fetch(&mut raw(&place.path).await, "SELECT latest FROM latest").await;
    assert_eq!(left, r#"{"end": 7}"#);
    store.purge().await.unwrap();
}
