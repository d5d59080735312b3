//! What a call costs the server.

use cronward::store::ClaimRequest;

use super::suite::database::{granted, open, request, slot};
use crate::mariadb_server::MariadbServer;

/// What runs of a job has an index, and its other slots are not looked at.
#[tokio::test]
async fn an_exclusive_claim_reads_no_more_however_many_slots_the_job_has_had() {
    let server = MariadbServer::start();
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
