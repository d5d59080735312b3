//! What is there is not what cronward wrote. Every case ends in an error that names the file; none in a panic.

use std::os::unix::fs::FileExt;
use std::time::Duration;

use cronward::slot::{Outcome, OutputTail, RunRecord};
use cronward::store::{Applied, ErrorKind, Store};

use crate::sqlite::bench::{
    assert_clear, audit, ended, fetch, grant, open, open_error, place, raw, request, slot, sql,
};

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let place = place();
    let text = "not a database, but somebody's notes\n".repeat(100);
    std::fs::write(&place.path, &text).unwrap();
    assert_clear(&open_error(&place.path).await, ErrorKind::Corrupt, &place.path, "choose another path");
    assert_eq!(std::fs::read_to_string(&place.path).unwrap(), text);
}

#[tokio::test]
async fn the_database_of_another_program_is_refused_and_left_alone() {
    let place = place();
    let mut other = raw_new(&place.path).await;
    sql(&mut other, "CREATE TABLE slots (a)").await;
    assert_clear(&open_error(&place.path).await, ErrorKind::Unsupported, &place.path, "choose another path");
    let tables: i64 = fetch(&mut other, "SELECT count(*) FROM sqlite_schema").await;
    let mode: String = fetch(&mut other, "PRAGMA journal_mode").await;
    assert_eq!((tables, mode.as_str()), (1, "delete"));
}

async fn raw_new(path: &std::path::Path) -> sqlx::SqliteConnection {
    std::fs::File::create(path).unwrap();
    raw(path).await
}

#[tokio::test]
async fn a_schema_newer_than_this_program_is_refused() {
    let place = place();
    drop(open(&place.path).await);
    sql(&mut raw(&place.path).await, "PRAGMA user_version = 99").await;
    assert_clear(&open_error(&place.path).await, ErrorKind::Unsupported, &place.path, "run the newer cronward");
}

#[tokio::test]
async fn a_file_of_a_version_that_was_never_released_is_refused_and_left_alone() {
    let place = place();
    drop(open(&place.path).await);
    for version in 1..5_i64 {
        sql(&mut raw(&place.path).await, &format!("PRAGMA user_version = {version}")).await;
        let error = open_error(&place.path).await;
        assert_clear(&error, ErrorKind::Unsupported, &place.path, "move the file away");
        assert!(error.message.contains(&format!("version {version}, which was never released")), "{error}");
        assert_eq!(fetch::<i64>(&mut raw(&place.path).await, "PRAGMA user_version").await, version);
    }
}

#[tokio::test]
async fn an_empty_file_becomes_a_store() {
    let place = place();
    std::fs::write(&place.path, "").unwrap();
    grant(&open(&place.path).await, &slot("a")).await;
}

#[tokio::test]
async fn a_damaged_page_is_told_as_corrupt() {
    let place = place();
    let store = open(&place.path).await;
    for index in 0..50 {
        grant(&store, &slot(&format!("a-{index}"))).await;
    }
    drop(store);
    let mut conn = raw(&place.path).await;
    sql(&mut conn, "PRAGMA wal_checkpoint(TRUNCATE)").await;
    let page: i64 = fetch(&mut conn, "SELECT rootpage FROM sqlite_schema WHERE name = 'slots'").await;
    drop(conn);
    let file = std::fs::OpenOptions::new().write(true).open(&place.path).unwrap();
    let start = u64::try_from(page - 1).unwrap() * 4_096;
    file.write_all_at(&[0xff; 4_096], start).unwrap();
    let store = open(&place.path).await;
    let error = store.claim(&request(&slot("a-7"), "b")).await.unwrap_err();
    assert_clear(&error, ErrorKind::Corrupt, &place.path, "move it away");
    assert_eq!(error.applied, Applied::No);
}

#[tokio::test]
async fn garbage_in_a_slots_row_is_corrupt_and_names_the_slot() {
    for garbage in [
        "attempts = -1",
        "attempts = 9000000000",
        "state = 'nonsense'",
        "token = 'short'",
        "token = NULL",
        "node = 'no node!'",
        "node = NULL",
        "attempt = -1",
        "since_ms = 9223372036854775807",
        "until_ms = NULL",
        "document = ''",
        "document = '{'",
        "document = '[]'",
        "document = '\u{1b}[31m\n'",
        "document = json_set(document, '$.forgiven', -7)",
        "document = json_set(document, '$.verdict', '{')",
        "document = json_set(document, '$.verdict', json('{\"verdict\":\"perhaps\",\"by\":\"a\",\"at_ms\":1}'))",
        "document = json_set(document, '$.runs', json('[[]]'))",
        "document = json_set(document, '$.audit', json('[{}]'))",
        "document = json_set(document, '$.touched_ms', 9223372036854775807)",
    ] {
        let place = place();
        let store = open(&place.path).await;
        let lease = grant(&store, &slot("a")).await;
        sql(&mut raw(&place.path).await, &format!("UPDATE slots SET {garbage}")).await;
        let run = ended(&lease, Outcome::Success);
        for error in [
            store.claim(&request(&slot("a"), "b")).await.unwrap_err(),
            store.renew(&lease).await.unwrap_err(),
            store.complete(&lease, &run, crate::sqlite::bench::DONE).await.unwrap_err(),
            store.reset(&slot("a"), &audit("reset")).await.unwrap_err(),
            store.inspect(&[slot("a")]).await.unwrap_err(),
        ] {
            assert_clear(&error, ErrorKind::Corrupt, &place.path, &slot("a").to_string());
            assert_eq!(error.applied, Applied::No, "{garbage}");
        }
        // Another slot of the same file is not concerned.
        grant(&store, &slot("b")).await;
    }
}

#[tokio::test]
async fn garbage_in_a_record_is_corrupt_and_names_the_slot_or_the_table() {
    let place = place();
    let store = open(&place.path).await;
    let lease = grant(&store, &slot("a")).await;
    let told = RunRecord { output: Some(OutputTail::default()), ..ended(&lease, Outcome::Failure) };
    store.fail(&lease, &told, Duration::ZERO).await.unwrap();
    let mut other = raw(&place.path).await;
    sql(&mut other, "UPDATE outputs SET output = '[]'").await;
    let error = store.output(&slot("a"), lease.attempt, lease.token).await.unwrap_err();
    assert_clear(&error, ErrorKind::Corrupt, &place.path, &slot("a").to_string());
    // No rule and no list asks for it.
    grant(&store, &slot("a")).await;
    assert_eq!(store.inspect(&[slot("a")]).await.unwrap().1[0].runs.len(), 2);
    for (table, columns) in [("jobs", "0, '{}'"), ("nodes", "'i', 99999999999999, '{}'"), ("pauses", "0, 0, '{}'")] {
        sql(&mut other, &format!("INSERT INTO {table} VALUES ('default', 'b', {columns})")).await;
    }
    assert_clear(&store.jobs().await.unwrap_err(), ErrorKind::Corrupt, &place.path, "table jobs");
    assert_clear(&store.nodes().await.unwrap_err(), ErrorKind::Corrupt, &place.path, "table nodes");
    assert_clear(&store.pauses().await.unwrap_err(), ErrorKind::Corrupt, &place.path, "table pauses");
}

#[tokio::test]
async fn a_table_that_was_dropped_is_told_as_corrupt() {
    let place = place();
    let store = open(&place.path).await;
    sql(&mut raw(&place.path).await, "DROP TABLE pauses").await;
    let error = store.claim(&request(&slot("a"), "a")).await.unwrap_err();
    assert_clear(&error, ErrorKind::Corrupt, &place.path, "move it away");
}
