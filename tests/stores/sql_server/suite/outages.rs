//! Servers and links that go away in the middle of a call, and come back.

use std::time::Duration;

use cronward::store::{Applied, Claim, ErrorKind, Renewal, Settlement};

use super::database::{Database, eventually, failed, granted, open, open_within, request, run, slot};
use super::dialect::{self, BROKEN_OFF, CLOSE_GATE, CONNECTIONS, OPEN_GATE, WAIT_AT_GATE, WAITING_SESSION};
use crate::proxy::{Mode, Proxy};

/// The answer to a commit is lost; the same request again reads it back.
#[tokio::test]
async fn a_lost_answer_to_a_commit_burns_no_attempt() {
    let database = Database::new().await;
    database.store().await;
    let proxy = Proxy::before(database.server.port()).await;
    let store = open_within(&database.url_by(proxy.port()), Duration::from_secs(5));
    store.inspect(&[]).await.unwrap();
    database.before_each("INSERT", WAIT_AT_GATE).await;
    let mut gate = database.connect().await;
    run(&mut gate, CLOSE_GATE).await;
    let first = request(&slot("job"), 1);
    let claiming = tokio::spawn({
        let (store, first) = (store.clone(), first.clone());
        async move { store.claim(&first).await }
    });
    // The write has arrived and waits; from here on nothing comes back.
    database.until_waiting(1).await;
    proxy.set(Mode::LoseReplies);
    run(&mut gate, OPEN_GATE).await;
    let error = claiming.await.unwrap().unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Timeout, Applied::Maybe), "{error}");
    assert_eq!(database.number("SELECT attempts FROM cronward_slots").await, 1);
    proxy.set(Mode::Pass);
    proxy.cut();
    assert!(matches!(store.claim(&first).await.unwrap(), Claim::Claimed { attempt: 1, used: 1, .. }));
}

/// A renewal is one statement and its own transaction.
#[tokio::test]
async fn a_lost_answer_to_a_renewal_is_found_out() {
    let database = Database::new().await;
    database.store().await;
    let proxy = Proxy::before(database.server.port()).await;
    let store = open_within(&database.url_by(proxy.port()), Duration::from_secs(10));
    let lease = granted(&*store, &request(&slot("job"), 1)).await;
    database.before_each("UPDATE", WAIT_AT_GATE).await;
    let mut gate = database.connect().await;
    run(&mut gate, CLOSE_GATE).await;
    let before = database.number("SELECT version FROM cronward_slots").await;
    let renewing = tokio::spawn({
        let (store, lease) = (store.clone(), lease.clone());
        async move { store.renew(&lease).await }
    });
    // The write has arrived and waits; from here on nothing comes back.
    database.until_waiting(1).await;
    proxy.set(Mode::LoseReplies);
    run(&mut gate, OPEN_GATE).await;
    let error = renewing.await.unwrap().unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Timeout, Applied::Maybe), "{error}");
    assert!(database.number("SELECT version FROM cronward_slots").await > before);
    proxy.set(Mode::Pass);
    proxy.cut();
    assert_eq!(store.renew(&lease).await.unwrap(), Renewal::Renewed);
}

/// Every place at which the answers can stop: whatever the caller is told, the same token is one grant in the end.
#[tokio::test]
async fn wherever_the_answers_stop_the_same_token_is_one_grant() {
    let database = Database::new().await;
    database.store().await;
    let proxy = Proxy::before(database.server.port()).await;
    for answers in 0..8 {
        let store = open_within(&database.url_by(proxy.port()), Duration::from_secs(5));
        let (warm, first) = (slot(&format!("warm-{answers}")), request(&slot(&format!("job-{answers}")), 1));
        granted(&*store, &request(&warm, 1)).await;
        proxy.set(Mode::CutAfter(answers));
        let outcome = store.claim(&first).await;
        proxy.set(Mode::Pass);
        if let Err(error) = &outcome {
            assert!(BROKEN_OFF.contains(&error.kind), "{answers}: {error}");
        }
        let lease = granted(&*open(&database.url()), &first).await;
        assert_eq!(lease.attempt, 1, "{answers}: {outcome:?}");
    }
}

/// The connection is closed before the commit: the outcome is not known to the caller, and nothing was written.
#[tokio::test]
async fn a_connection_that_ends_before_the_commit_leaves_nothing() {
    let database = Database::new().await;
    let store = database.store().await;
    database.before_each("INSERT", WAIT_AT_GATE).await;
    let mut gate = database.connect().await;
    run(&mut gate, CLOSE_GATE).await;
    let first = request(&slot("job"), 1);
    let claiming = tokio::spawn({
        let (store, first) = (store.clone(), first.clone());
        async move { store.claim(&first).await }
    });
    database.until_waiting(1).await;
    let session = database.number(WAITING_SESSION).await;
    database.sql(&dialect::kill(session)).await;
    let error = claiming.await.unwrap().unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Unavailable, Applied::Maybe), "{error}");
    run(&mut gate, OPEN_GATE).await;
    assert_eq!(database.number("SELECT count(*) FROM cronward_slots").await, 0);
    assert!(matches!(store.claim(&first).await.unwrap(), Claim::Claimed { attempt: 1, .. }));
}

#[tokio::test]
async fn a_restart_is_met_by_new_connections_and_keeps_every_lease() {
    let mut database = Database::alone_on(dialect::start_that_syncs()).await;
    let store = open(&database.url());
    let held = slot("held");
    let lease = granted(&*store, &request(&held, 1)).await;
    // Several connections that the restart breaks.
    let slots: Vec<_> = (0..6).map(|index| slot(&format!("job-{index}"))).collect();
    futures_util::future::join_all(slots.iter().map(|slot| store.inspect(std::slice::from_ref(slot)))).await;
    database.own_server().kill();
    let away = store.claim(&request(&held, 2)).await.unwrap_err();
    assert_eq!((away.kind, away.applied), (ErrorKind::Unavailable, Applied::No), "{away}");
    database.own_server().start_again();
    assert!(matches!(store.claim(&request(&held, 2)).await.unwrap(), Claim::Held { .. }));
    assert_eq!(store.complete(&lease, &failed(&lease), Duration::from_secs(60)).await.unwrap(), Settlement::Recorded);
}

/// A server that ends while a claim is under way: the same token finds out what became of it.
#[tokio::test]
async fn a_restart_in_the_middle_of_a_claim_is_one_grant_in_the_end() {
    let mut database = Database::alone_on(dialect::start()).await;
    let store = database.store().await;
    database.before_each("INSERT", WAIT_AT_GATE).await;
    let mut gate = database.connect().await;
    run(&mut gate, CLOSE_GATE).await;
    let first = request(&slot("job"), 1);
    let claiming = tokio::spawn({
        let (store, first) = (store.clone(), first.clone());
        async move { store.claim(&first).await }
    });
    database.until_waiting(1).await;
    database.own_server().kill();
    let error = claiming.await.unwrap().unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Unavailable, Applied::Maybe), "{error}");
    database.own_server().start_again();
    assert!(matches!(store.claim(&first).await.unwrap(), Claim::Claimed { attempt: 1, used: 1, .. }));
}

#[tokio::test]
async fn a_server_that_stands_still_ends_the_call_in_time_and_is_used_again() {
    let database = Database::alone_on(dialect::start()).await;
    let store = open_within(&database.url(), Duration::from_secs(2));
    store.inspect(&[]).await.unwrap();
    database.server.pause();
    let error = store.claim(&request(&slot("job"), 1)).await.unwrap_err();
    database.server.unpause();
    assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
    eventually("it answers again", async || store.claim(&request(&slot("job"), 1)).await.is_ok()).await;
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
    // The store's, the first store's, this question's, and where there is one, that for hints.
    assert!(database.number(CONNECTIONS).await <= 11);
    let _ = hints.try_recv();
}

#[tokio::test]
async fn a_server_that_is_away_is_told_without_the_password() {
    let store = open(&format!("{}://u:hunter2@127.0.0.1:1/d", dialect::SCHEME));
    let error = store.inspect(&[]).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Unavailable, Applied::No));
    let whole = format!("{error} {error:?} {store:?}");
    assert!(whole.contains("127.0.0.1:1") && !whole.contains("hunter2"), "{whole}");
}
