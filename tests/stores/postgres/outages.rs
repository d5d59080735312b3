//! Servers and links that go away in the middle of a call, and come back.

use std::time::Duration;

use cronward::store::{Applied, Claim, ErrorKind, Store};

use crate::postgres::bench::{Database, granted, open, open_within, request, run, slot};
use crate::postgres_server::PostgresServer;
use crate::proxy::{Mode, Proxy};

/// Connections to the database.
const CONNECTIONS: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'NAME'";

/// The answer to a commit is lost; the same request again reads it back.
#[tokio::test]
async fn a_lost_answer_to_a_commit_burns_no_attempt() {
    let database = Database::new().await;
    database.store().await;
    let proxy = Proxy::before(database.server.port()).await;
    let url = format!("postgres://owner:secret@127.0.0.1:{}/{}", proxy.port(), database.name);
    let store = open_within(&url, Duration::from_secs(5));
    store.inspect(&[]).await.unwrap();
    database.before_each_write("PERFORM pg_advisory_xact_lock(42);").await;
    let mut gate = database.connect().await;
    run(&mut gate, "SELECT pg_advisory_lock(42)").await;
    let first = request(&slot("job"), 1);
    let claiming = tokio::spawn({
        let (store, first) = (store.clone(), first.clone());
        async move { store.claim(&first).await }
    });
    // The write has arrived and waits; from here on nothing comes back.
    database.until_waiting(1).await;
    proxy.set(Mode::LoseReplies);
    run(&mut gate, "SELECT pg_advisory_unlock(42)").await;
    let error = claiming.await.unwrap().unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Timeout, Applied::Maybe), "{error}");
    assert_eq!(database.number("SELECT attempts FROM cronward_slots").await, 1);
    proxy.set(Mode::Pass);
    proxy.cut();
    assert!(matches!(store.claim(&first).await.unwrap(), Claim::Claimed { attempt: 1, used: 1, .. }));
}

/// The connection is closed before the commit: the outcome is not known to the caller, and nothing was written.
#[tokio::test]
async fn a_connection_that_ends_before_the_commit_leaves_nothing() {
    let database = Database::new().await;
    let store = database.store().await;
    database.sql("CREATE SEQUENCE tries").await;
    let once = "IF nextval('tries') <= 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;";
    database.before_each_write(once).await;
    let first = request(&slot("job"), 1);
    let error = store.claim(&first).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Unavailable, Applied::Maybe), "{error}");
    assert_eq!(database.number("SELECT count(*) FROM cronward_slots").await, 0);
    assert!(matches!(store.claim(&first).await.unwrap(), Claim::Claimed { attempt: 1, .. }));
}

#[tokio::test]
async fn a_restart_is_met_by_new_connections_and_keeps_every_lease() {
    let mut server = PostgresServer::start_with("fsync = on");
    server.database("own").await;
    let store = open(&server.url("own"));
    let held = slot("held");
    granted(&*store, &request(&held, 1)).await;
    // Several connections that the restart breaks.
    let slots: Vec<_> = (0..6).map(|index| slot(&format!("job-{index}"))).collect();
    futures_util::future::join_all(slots.iter().map(|slot| store.inspect(std::slice::from_ref(slot)))).await;
    server.kill();
    let away = store.claim(&request(&held, 2)).await.unwrap_err();
    assert_eq!((away.kind, away.applied), (ErrorKind::Unavailable, Applied::No), "{away}");
    server.start_again();
    assert!(matches!(store.claim(&request(&held, 2)).await.unwrap(), Claim::Held { .. }));
}

/// A server that stops while a claim is under way: the call ends in time, and the same token finds out what became of it.
#[tokio::test]
async fn a_restart_in_the_middle_of_a_claim_is_one_grant_in_the_end() {
    let mut server = PostgresServer::start();
    server.database("own").await;
    let store = open(&server.url("own"));
    store.inspect(&[]).await.unwrap();
    server
        .sql(
            "own",
            "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN PERFORM pg_advisory_xact_lock_shared(42); RETURN new; END $$;
             CREATE TRIGGER wait BEFORE INSERT ON cronward_slots FOR EACH ROW EXECUTE FUNCTION wait()",
        )
        .await;
    let mut gate = server.connect("own").await;
    run(&mut gate, "SELECT pg_advisory_lock(42)").await;
    let first = request(&slot("job"), 1);
    let claiming = tokio::spawn({
        let (store, first) = (store.clone(), first.clone());
        async move { store.claim(&first).await }
    });
    crate::postgres::bench::eventually("the claim is under way", async || {
        let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
        sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut server.connect("own").await).await.unwrap() == 1
    })
    .await;
    server.kill();
    let error = claiming.await.unwrap().unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Unavailable, Applied::Maybe), "{error}");
    server.start_again();
    assert!(matches!(store.claim(&first).await.unwrap(), Claim::Claimed { attempt: 1, used: 1, .. }));
}

#[tokio::test]
async fn a_server_that_stands_still_ends_the_call_in_time_and_is_used_again() {
    let server = PostgresServer::start();
    server.database("own").await;
    let store = open_within(&server.url("own"), Duration::from_secs(2));
    store.inspect(&[]).await.unwrap();
    server.pause();
    let error = store.claim(&request(&slot("job"), 1)).await.unwrap_err();
    server.unpause();
    assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
    crate::postgres::bench::eventually("it answers again", async || {
        store.claim(&request(&slot("job"), 1)).await.is_ok()
    })
    .await;
}

/// More calls at once than there are connections, and no limit that a number could not hold.
#[tokio::test]
async fn many_calls_at_once_share_the_connections() {
    let database = Database::new().await;
    database.store().await;
    let store = open_within(&database.url(), Duration::MAX);
    let mut hints = store.subscribe();
    let claims: Vec<_> = (0..100).map(|index| request(&slot(&format!("job-{index}")), 1)).collect();
    let answers = futures_util::future::join_all(claims.iter().map(|request| store.claim(request))).await;
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Claim::Claimed { attempt: 1, .. }))), "{answers:?}");
    let connections = CONNECTIONS.replace("NAME", &database.name);
    // The store's, the first store's, this question's, and where there is one, that for hints.
    assert!(database.number(&connections).await <= 11);
    let _ = hints.try_recv();
}

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
    database.before_each_write("PERFORM pg_sleep(0.2);").await;
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

#[tokio::test]
async fn a_server_that_is_away_is_told_without_the_password() {
    let store: std::sync::Arc<dyn Store> = open("postgres://u:hunter2@127.0.0.1:1/d");
    let error = store.inspect(&[]).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Unavailable, Applied::No));
    let whole = format!("{error} {error:?}");
    assert!(whole.contains("127.0.0.1:1") && !whole.contains("hunter2"), "{whole}");
    assert!(!format!("{store:?}").contains("hunter2"), "{store:?}");
}
