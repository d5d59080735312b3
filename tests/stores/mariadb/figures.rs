//! What a call costs: its round trips, counted by the time that a slow link adds to it.

use std::sync::Arc;
use std::time::Duration;

use cronward::store::{Claim, ClaimRequest, Store};

use crate::mariadb::bench::{Database, failed, granted, open, request, slot, slot_in};
use crate::mariadb_server::MariadbServer;
use crate::proxy::{Mode, Proxy};
use crate::round_trips::round_trips;

/// Added in each direction.
const DELAY: Duration = Duration::from_millis(40);

#[tokio::test]
async fn a_first_claim_costs_three_round_trips_a_later_one_two_a_renewal_two_and_a_refusal_one() {
    let database = Database::new().await;
    database.store().await;
    let proxy = Proxy::before(database.server.port()).await;
    let store: Arc<dyn Store> = open(&format!("mysql://owner:secret@127.0.0.1:{}/{}", proxy.port(), database.name));
    // The connection is made and has seen each statement once; an older slot is done, as a rule.
    let older = slot_in("job", -2);
    let done = granted(&*store, &ClaimRequest { past: true, ..request(&older, 1) }).await;
    store.complete(&done, &failed(&done), Duration::from_secs(60)).await.unwrap();
    let after = |job: &str, claimer| ClaimRequest { exclusive: true, ..request(&slot(job), claimer) };
    let warm = granted(&*store, &after("warm", 1)).await;
    store.fail(&warm, &failed(&warm), Duration::ZERO).await.unwrap();
    let lease = granted(&*store, &after("job", 1)).await;
    assert!(matches!(store.claim(&after("job", 2)).await.unwrap(), Claim::Held { .. }));
    for turn in 0..5 {
        // A job has a row of its own from its first claim on.
        let earlier = ClaimRequest { exclusive: true, past: true, ..request(&slot_in(&format!("job-{turn}"), -2), 1) };
        let lease = granted(&*store, &earlier).await;
        store.fail(&lease, &failed(&lease), Duration::ZERO).await.unwrap();
        let lease = granted(&*store, &after(&format!("again-{turn}"), 1)).await;
        store.fail(&lease, &failed(&lease), Duration::ZERO).await.unwrap();
    }
    proxy.set(Mode::Delay(DELAY));
    let claim = round_trips(DELAY, async |turn| {
        granted(&*store, &after(&format!("job-{turn}"), 1)).await;
    });
    assert_eq!(claim.await, 3, "a first claim that is granted, exclusively");
    let retry = round_trips(DELAY, async |turn| {
        granted(&*store, &after(&format!("again-{turn}"), 2)).await;
    });
    assert_eq!(retry.await, 2, "a later attempt");
    let renewal = round_trips(DELAY, async |_| {
        store.renew(&lease).await.unwrap();
    });
    assert_eq!(renewal.await, 2, "a renewal");
    let refusal = round_trips(DELAY, async |_| {
        assert!(matches!(store.claim(&after("job", 2)).await.unwrap(), Claim::Held { .. }));
    });
    assert_eq!(refusal.await, 1, "a refusal");
}

/// What runs of a job has an index, and its other slots are not looked at.
#[tokio::test]
async fn an_exclusive_claim_reads_no_more_however_many_slots_the_job_has_had() {
    let server = MariadbServer::start().await;
    server.database("own").await;
    let store = open(&server.url("own"));
    store.inspect(&[]).await.unwrap();
    let past = "INSERT INTO cronward_slots
        SELECT 'default', 'job', concat('2026-', seq), 'done', 'n', 1, 't', 1, 2, 1, 'done', 1, '{}', 1
        FROM seq_1_to_20000; ANALYZE TABLE cronward_slots";
    server.sql("own", past).await;
    let read = async || -> i64 {
        let rows = "SELECT CAST(variable_value AS SIGNED) FROM information_schema.global_status
            WHERE variable_name = 'HANDLER_READ_NEXT'";
        sqlx::query_scalar(rows).fetch_one(&mut server.connect("own").await).await.unwrap()
    };
    let before = read().await;
    granted(&*store, &ClaimRequest { exclusive: true, ..request(&slot("job"), 1) }).await;
    assert!(read().await - before < 1_000, "{} rows", read().await - before);
}
