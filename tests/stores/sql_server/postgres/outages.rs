//! Backends that hang: PostgreSQL has one for each connection.

use std::time::Duration;

use super::suite::database::{Database, open_within, request, slot};

/// One connection hangs while others are answered: the server is slow there, and no other connection is given up.
#[tokio::test]
async fn a_connection_that_hangs_takes_none_of_the_others_with_it() {
    let database = Database::new().await;
    database.store().await;
    let store = open_within(&database.url(), Duration::from_secs(3));
    let backends = format!(
        "SELECT {{}} FROM pg_stat_activity WHERE datname = '{}' AND usename = 'owner' AND pid <> pg_backend_pid()",
        database.name
    );
    let count = |of: &str| backends.replace("{}", of);
    database.before_each("INSERT OR UPDATE", "PERFORM pg_sleep(0.2);").await;
    // Each of them has a connection of its own meanwhile.
    let at_once = async |first: u128| {
        let requests: Vec<_> = (first..first + 4).map(|n| request(&slot(&format!("job-{n}")), n)).collect();
        futures_util::future::join_all(requests.iter().map(|request| store.claim(request))).await
    };
    assert!(at_once(1).await.iter().all(Result::is_ok));
    let hanging = database.number(&count("max(pid)::bigint")).await;
    let oldest = format!("{} AND pid <> {hanging}", count("count(*)"));
    // In microseconds, as the server keeps it: rounded, the newest would be younger than itself.
    let newest = count("max(extract(epoch FROM backend_start) * 1000000)::bigint");
    let (before, made) = (database.number(&oldest).await, database.number(&newest).await);
    database.server.stop_one(hanging);
    let answers = at_once(11).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_err()).count(), 1, "{answers:?}");
    database.server.unpause();
    let kept = format!("{oldest} AND extract(epoch FROM backend_start) * 1000000 <= {made}");
    assert_eq!(database.number(&kept).await, before);
    assert!(at_once(21).await.iter().all(Result::is_ok));
}
