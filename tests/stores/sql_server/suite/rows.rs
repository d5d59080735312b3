//! A slot on a database server is one row: each run is there once, as it was written last, and its output stands apart.

use std::time::Duration;

use cronward::slot::{Lease, Outcome, OutputTail, RunRecord};
use cronward::store::{Applied, Claim, ClaimRequest, ErrorKind, Settlement, Store};

use super::database::{Database, audit, failed, granted, open, request, run, slot, slot_in};
use super::dialect::{OUTLASTED, SECTION};
use crate::words::ended;

const SLOTS: &str = "SELECT count(*) FROM cronward_slots";
const TURNS: &str = "SELECT count(*) FROM cronward_turns";
const OUTPUTS: &str = "SELECT count(*) FROM cronward_outputs";

/// Each run of the slot `job`: attempt, outcome.
async fn runs(store: &dyn Store) -> Vec<(u32, Option<Outcome>)> {
    let (_, records) = store.inspect(&[slot("job")]).await.unwrap();
    records[0].runs.iter().map(|run| (run.attempt, run.outcome)).collect()
}

fn told(run: RunRecord, text: &str) -> RunRecord {
    RunRecord { output: Some(OutputTail { text: text.to_owned(), dropped_bytes: 0, loss: None }), ..run }
}

async fn output(store: &dyn Store, lease: &Lease) -> Option<String> {
    store.output(&lease.slot, lease.attempt, lease.token).await.unwrap().map(|output| output.text)
}

#[tokio::test]
async fn a_slot_that_is_done_at_once_is_one_row() {
    let database = Database::new().await;
    let store = database.store().await;
    let lease = granted(&*store, &request(&slot("job"), 1)).await;
    assert_eq!(runs(&*store).await, [(1, None)]);
    store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(60)).await.unwrap();
    assert_eq!(runs(&*store).await, [(1, Some(Outcome::Success))]);
    assert_eq!((database.number(SLOTS).await, database.number(OUTPUTS).await), (1, 0));
}

/// The first holder comes back after others have run: its end displaces none of theirs, nor their outputs.
#[tokio::test]
async fn ends_that_come_late_displace_no_other() {
    let database = Database::new().await;
    let store = database.store().await;
    let mut leases = Vec::new();
    for claimer in 1..=3 {
        let lease = granted(&*store, &request(&slot("job"), claimer)).await;
        database.sql("UPDATE cronward_slots SET until_ms = 0, version = version + 1").await;
        leases.push(lease);
    }
    assert_eq!(runs(&*store).await, [(1, None), (2, None), (3, None)]);
    for lease in &leases {
        store.fail(lease, &told(failed(lease), &lease.attempt.to_string()), Duration::ZERO).await.unwrap();
        let outcome = |attempt| (attempt <= lease.attempt).then_some(Outcome::Failure);
        assert_eq!(runs(&*store).await, [1, 2, 3].map(|attempt| (attempt, outcome(attempt))));
        assert_eq!(database.number(OUTPUTS).await, i64::from(lease.attempt));
    }
    for lease in &leases {
        assert_eq!(output(&*store, lease).await, Some(lease.attempt.to_string()));
    }
}

/// An output belongs to its record: it stays with one that is told again, and goes with one that takes its place.
#[tokio::test]
async fn an_output_goes_with_the_record_that_it_belonged_to() {
    let database = Database::new().await;
    let store = database.store().await;
    let lease = granted(&*store, &request(&slot("job"), 1)).await;
    store.fail(&lease, &told(failed(&lease), "first"), Duration::ZERO).await.unwrap();
    store.fail(&lease, &failed(&lease), Duration::ZERO).await.unwrap();
    assert_eq!(output(&*store, &lease).await.as_deref(), Some("first"));
    let done = store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(60)).await.unwrap();
    assert_eq!((done, output(&*store, &lease).await), (Settlement::Recorded, None));
    // A success is not overwritten, and its output neither.
    open(&database.url()).fail(&lease, &told(failed(&lease), "late"), Duration::ZERO).await.unwrap();
    assert_eq!((runs(&*store).await, output(&*store, &lease).await), (vec![(1, Some(Outcome::Success))], None));
}

/// What is outlasted goes with the first write after it, the outputs too; but for that of the run that is written.
#[tokio::test]
async fn an_outlasted_run_is_forgotten_with_its_output() {
    let database = Database::new().await;
    let store = database.store().await;
    let over = slot_in("job", -3);
    let past = |claimer| ClaimRequest { past: true, ..request(&over, claimer) };
    let mut last = None;
    for claimer in 1..=3 {
        // Numbers begin anew, because nothing of the run before is known.
        let lease = granted(&*store, &past(claimer)).await;
        assert_eq!((lease.attempt, database.number(OUTPUTS).await), (1, 0));
        store.fail(&lease, &told(failed(&lease), "old"), Duration::ZERO).await.unwrap();
        assert_eq!(database.number(OUTPUTS).await, 1);
        database.sql(OUTLASTED).await;
        last = Some(lease);
    }
    let last = last.unwrap();
    store.fail(&last, &told(failed(&last), "told again"), Duration::ZERO).await.unwrap();
    assert_eq!(output(&*store, &last).await.as_deref(), Some("told again"));
    // An operator's verb writes no run.
    database.sql(OUTLASTED).await;
    store.reset(&over, &audit("reset")).await.unwrap();
    assert_eq!((database.number(SLOTS).await, database.number(OUTPUTS).await), (1, 0));
    assert_eq!(store.inspect(std::slice::from_ref(&over)).await.unwrap().1[0].runs, []);
}

#[tokio::test]
async fn a_purge_takes_outputs_with_their_slots() {
    let database = Database::new().await;
    let store = database.store().await;
    for job in ["old", "new"] {
        let lease = granted(&*store, &request(&slot(job), 1)).await;
        store.fail(&lease, &told(failed(&lease), job), Duration::ZERO).await.unwrap();
    }
    database.sql(&format!("{OUTLASTED} WHERE job = 'old'")).await;
    assert_eq!(store.purge().await.unwrap(), 1);
    assert_eq!((database.number(SLOTS).await, database.number(OUTPUTS).await), (1, 1));
}

/// A slot of `job` that has to run alone.
fn alone(hours: i64, claimer: u128) -> ClaimRequest {
    ClaimRequest { exclusive: true, past: true, ..request(&slot_in("job", hours), claimer) }
}

/// Turns are the server's, and are not kept for ever.
#[tokio::test]
async fn a_purge_takes_the_old_turns_of_jobs_that_have_no_slots() {
    let database = Database::new().await;
    let store = database.store().await;
    for hours in [-1, 0] {
        let lease = granted(&*store, &alone(hours, 1)).await;
        store.fail(&lease, &failed(&lease), Duration::ZERO).await.unwrap();
    }
    database.sql(OUTLASTED).await;
    assert_eq!((store.purge().await.unwrap(), database.number(TURNS).await), (2, 1), "the turn is of just now");
    database.sql("UPDATE cronward_turns SET turn = 1").await;
    granted(&*store, &request(&slot("job"), 2)).await;
    assert_eq!((store.purge().await.unwrap(), database.number(TURNS).await), (0, 1), "the job has a slot");
    database.sql("DELETE FROM cronward_slots").await;
    assert_eq!((store.purge().await.unwrap(), database.number(TURNS).await), (0, 0));
    granted(&*store, &alone(0, 3)).await;
}

/// A claim that stands still between its reading and its writing is not granted beside another slot of the job, however often that
/// one was claimed and given back meanwhile.
#[tokio::test]
async fn a_claim_that_stalled_is_judged_anew_when_another_slot_of_the_job_was_claimed_twice() {
    let database = Database::new().await;
    let store = database.store().await;
    for hours in [-1, 0] {
        let lease = granted(&*store, &alone(hours, 1)).await;
        store.fail(&lease, &failed(&lease), Duration::ZERO).await.unwrap();
    }
    let mut other = database.connect().await;
    run(&mut other, "BEGIN").await;
    run(&mut other, "SELECT * FROM cronward_slots ORDER BY namespace, job, slot LIMIT 1 FOR UPDATE").await;
    let stalled = tokio::spawn({
        let store = database.store().await;
        async move { store.claim(&alone(-1, 2)).await.unwrap() }
    });
    // It has read that nothing runs.
    database.until_waiting(1).await;
    let beside = tokio::spawn(async move {
        let first = alone(0, 3);
        let Claim::Claimed { attempt, at, .. } = store.claim(&first).await.unwrap() else { return false };
        let lease = first.granted(attempt, at);
        store.fail(&lease, &failed(&lease), Duration::ZERO).await.unwrap();
        granted(&*store, &alone(0, 4)).await;
        true
    });
    database.until_waiting_or(2, || beside.is_finished()).await;
    run(&mut other, "COMMIT").await;
    let stalled = stalled.await.unwrap();
    assert_ne!(beside.await.unwrap(), matches!(stalled, Claim::Claimed { .. }), "{stalled:?}");
    let running = "SELECT count(*) FROM cronward_slots WHERE state = 'running'";
    assert_eq!(database.number(running).await, 1);
}

/// What is no document is told with the slot that it is of, and concerns no other slot.
#[tokio::test]
async fn a_document_that_nobody_can_read_names_its_slot() {
    let database = Database::new().await;
    let store = database.store().await;
    let lease = granted(&*store, &request(&slot("job"), 1)).await;
    for document in ["", "{", "[]", "null", "{\"touched_ms\":\"then\"}", "{\"touched_ms\":1,\"runs\":[{}]}"] {
        database.sql(&format!("UPDATE cronward_slots SET document = '{document}', version = version + 1")).await;
        for error in [store.renew(&lease).await.unwrap_err(), store.inspect(&[slot("job")]).await.unwrap_err()] {
            assert_eq!((error.kind, error.applied), (ErrorKind::Corrupt, Applied::No), "{document}: {error}");
            assert!(error.message.contains(&slot("job").to_string()), "{error}");
        }
    }
    granted(&*store, &request(&slot("other"), 1)).await;
}

/// Of many slots of a job the one that is leased is found, and it is the oldest that is told.
#[tokio::test]
async fn an_exclusive_claim_is_told_the_oldest_lease_of_the_job() {
    let database = Database::new().await;
    let store = database.store().await;
    for hours in [-1, -3, -2] {
        granted(&*store, &ClaimRequest { past: true, ..request(&slot_in("job", hours), 1) }).await;
    }
    let newer = ClaimRequest { exclusive: true, ..request(&slot("job"), 2) };
    match store.claim(&newer).await.unwrap() {
        Claim::Blocked { key, .. } => assert_eq!(key, slot_in("job", -3).key()),
        other => panic!("{other:?}"),
    }
}

/// A person finds what failed, and why, without cronward.
#[tokio::test]
async fn the_query_of_the_documents_finds_what_failed() {
    let database = Database::new().await;
    let store = database.store().await;
    for job in ["failing", "missing"] {
        let over = slot_in(job, -3);
        if job == "failing" {
            let lease = granted(&*store, &ClaimRequest { past: true, ..request(&over, 1) }).await;
            store.fail(&lease, &failed(&lease), Duration::ZERO).await.unwrap();
        }
        store.close(&over, 1, &request(&over, 1).node).await.unwrap();
    }
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/stores.md")).unwrap();
    let section = page.split("\n## ").find(|section| section.starts_with(SECTION)).unwrap();
    let query = section.lines().find(|line| line.starts_with("SELECT ")).unwrap().to_owned();
    let found: Vec<(String, String, i64, String)> =
        sqlx::query_as(sqlx::AssertSqlSafe(query)).fetch_all(&mut database.connect().await).await.unwrap();
    let key = slot_in("failing", -3).key().to_string();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((&*found[0].0, &found[0].1, found[0].2), ("failing", &key, 1));
    assert!(found[0].3.contains('1'), "its exit code: {found:?}");
}

/// It outlasts the slots that it tells of.
#[tokio::test]
async fn a_purge_keeps_what_a_job_has_come_to_for_longer_than_a_year() {
    let database = Database::new().await;
    let store = database.store().await;
    let job = [slot("job").job().clone()];
    let lease = granted(&*store, &request(&slot("job"), 1)).await;
    store.fail(&lease, &failed(&lease), Duration::ZERO).await.unwrap();
    let known = store.latest(&job).await.unwrap();
    assert!(known[0].end.is_some());
    database.sql("DELETE FROM cronward_slots").await;
    let (now, _) = store.inspect(&[]).await.unwrap();
    for (days, left) in [(399, 1), (401, 0)] {
        let then = (now - chrono::TimeDelta::days(days)).timestamp_millis();
        database.sql(&format!("UPDATE cronward_turns SET turn = {then}")).await;
        store.purge().await.unwrap();
        assert_eq!(database.number(TURNS).await, left, "{days} days");
        assert_eq!(store.latest(&job).await.unwrap() == known, left == 1, "{days} days");
    }
}

/// It is told where it is asked for, and left as it is.
#[tokio::test]
async fn what_somebody_else_wrote_of_a_job_keeps_no_run_from_its_end() {
    let database = Database::new().await;
    let store = database.store().await;
    let lease = granted(&*store, &request(&slot("job"), 1)).await;
    store.fail(&lease, &failed(&lease), Duration::ZERO).await.unwrap();
    database.sql(r#"UPDATE cronward_turns SET latest = '{"end": 7}'"#).await;
    let lease = granted(&*store, &request(&slot("job"), 2)).await;
    assert_eq!(
        store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(60)).await.unwrap(),
        Settlement::Recorded
    );
    let error = store.latest(&[slot("job").job().clone()]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
    assert_eq!(database.number("SELECT count(*) FROM cronward_turns WHERE latest IS NOT NULL").await, 1);
    store.purge().await.unwrap();
}
