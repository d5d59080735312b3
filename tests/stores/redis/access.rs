//! Who may do what: the documented ACL line, each of its parts missing, wrong passwords, replicas.

use std::time::Duration;

use cronward::resource::Acquired;
use cronward::slot::{NotePage, Outcome};
use cronward::store::{Applied, Claim, ErrorKind, LockStore, Store, StoreError, Wake};

use crate::lock_words::{lock, request as locking, write};
use crate::proxy::Proxy;
use crate::redis::{LIMIT, audit, ended, eventually, granted, now, open, request, slot_of, store};
use crate::redis_server::{RedisServer, documented_permissions};

fn user_url(server: &RedisServer) -> String {
    format!("redis://cronward:secret@127.0.0.1:{}", server.port())
}

/// One of everything; the first error ends it.
async fn everything(store: &(impl Store + LockStore)) -> Result<(), StoreError> {
    let (a, b) = (slot_of("a"), slot_of("b"));
    let minute = Duration::from_secs(60);
    for (slot, claimer) in [(&a, 1), (&b, 2)] {
        let claim = request(slot, claimer);
        store.claim(&claim).await?;
        let lease = claim.granted(1, now());
        store.renew(&lease).await?;
        if claimer == 1 {
            store.complete(&lease, &ended(&lease, Outcome::Success), minute).await?;
        } else {
            store.fail(&lease, &ended(&lease, Outcome::Failure), Duration::ZERO).await?;
        }
    }
    store.reset(&b, &audit("reset")).await?;
    store.unlock(&b, &audit("unlock")).await?;
    store.mark_done(&b, &audit("mark_done"), minute).await?;
    store.close(&b, 3, &"n".parse().unwrap()).await?;
    store.pause(a.job(), None, &audit("pause")).await?;
    store.resume(a.job(), &audit("resume")).await?;
    store.pauses().await?;
    store.register(&[]).await?;
    store.jobs().await?;
    store.nodes().await?;
    let page = NotePage::new("a.1".to_owned(), "n".parse().unwrap(), None, now());
    store.note(&[(a.clone(), page)]).await?;
    store.notes(&a).await?;
    store.inspect(&[a, b]).await?;
    everything_about_locks(store).await
}

async fn everything_about_locks(store: &impl LockStore) -> Result<(), StoreError> {
    let first = locking(1, &[write("x"), write("y")]);
    let Acquired::Held { fence, places, .. } = store.acquire(&first).await? else { panic!("nobody is there") };
    let hold = first.granted(fence, places);
    store.renew_lock(&hold).await?;
    // The one behind what is read at once.
    for number in 2..=12 {
        store.acquire(&locking(number, &[write("x")])).await?;
    }
    store.acquire(&locking(12, &[write("x")])).await?;
    store.evict(&lock("x"), locking(2, &[write("x")]).token, &audit("unlock")).await?;
    store.release(&hold.exit(false)).await?;
    store.locks(&[]).await?;
    Ok(())
}

#[tokio::test]
async fn a_user_with_exactly_the_documented_permissions_can_do_everything() {
    let server = RedisServer::start();
    server.allow(&documented_permissions());
    let store = open(&user_url(&server)).await;
    let mut hints = store.subscribe();
    everything(&store).await.unwrap();
    assert_eq!(tokio::time::timeout(LIMIT, hints.recv()).await.unwrap().unwrap(), Wake::Resync);
    let log = server.command(&["ACL", "LOG"]);
    assert_eq!(log, redis::Value::Array(vec![]), "something was refused all the same");
}

#[tokio::test]
async fn each_missing_permission_is_one_clear_error() {
    let server = RedisServer::start();
    let rules = documented_permissions();
    // Hints and the connection's name are not worth an error.
    let optional = ["+publish", "+subscribe", "+ping", "+client|setname", "&cronward:*", "+info", "+select"];
    for missing in rules.iter().filter(|rule| rule.starts_with('+') || rule.starts_with('~') || rule.starts_with('&')) {
        server.command(&["FLUSHALL"]);
        let rest: Vec<String> = rules.iter().filter(|rule| *rule != missing).cloned().collect();
        server.allow(&rest);
        let result = everything(&open(&user_url(&server)).await).await;
        // Both are part of one fall-back: EVAL is needed only when the server does not know a script.
        if optional.contains(&missing.as_str()) {
            assert!(result.is_ok(), "without {missing}: {result:?}");
            continue;
        }
        server.command(&["SCRIPT", "FLUSH"]);
        let result = if result.is_ok() { everything(&open(&user_url(&server)).await).await } else { result };
        let error = result.expect_err(missing);
        assert_eq!(error.kind, ErrorKind::Denied, "without {missing}: {error}");
        assert!(error.to_string().contains("docs/stores.md"), "without {missing}: {error}");
        assert!(!error.to_string().contains('\n'));
    }
}

#[tokio::test]
async fn a_user_who_may_not_subscribe_waits_by_timers_until_it_may() {
    let server = RedisServer::start();
    for missing in ["+subscribe", "&cronward:*"] {
        let rest: Vec<String> = documented_permissions().into_iter().filter(|rule| rule != missing).collect();
        server.allow(&rest);
        let store = open(&user_url(&server)).await;
        assert!(store.capability().push, "until it is known");
        let mut hints = store.subscribe();
        eventually("the refusal is known", async || !store.capability().push).await;
        assert_eq!(tokio::time::timeout(LIMIT, hints.recv()).await.unwrap().unwrap(), Wake::Resync, "who waits looks");
        server.allow(&documented_permissions());
        eventually("the listener is let in", async || store.capability().push).await;
        assert_eq!(tokio::time::timeout(LIMIT, hints.recv()).await.unwrap().unwrap(), Wake::Resync);
    }
}

#[tokio::test]
async fn a_wrong_password_is_told_at_once_and_a_right_one_works_without_a_restart() {
    let server = RedisServer::start();
    server.allow(&documented_permissions());
    server.command(&["ACL", "SETUSER", "cronward", "resetpass", ">other"]);
    let store = open(&user_url(&server)).await;
    // A call that waited for its time limit would be a time-out.
    let error = store.claim(&request(&slot_of("a"), 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Denied, Applied::No), "{error}");
    assert_eq!(error.message, "wrong user or password");
    assert!(!format!("{error} {error:?}").contains("secret"));

    server.command(&["ACL", "SETUSER", "cronward", ">secret"]);
    granted(&store, &request(&slot_of("a"), 1)).await;
}

/// A script that is refused in its midst has done what stands before: here the mark, and no count.
#[tokio::test]
async fn a_grant_that_broke_off_without_a_right_gives_its_number_to_nobody_else() {
    let server = RedisServer::start();
    server.allow(&documented_permissions());
    let store = open(&user_url(&server)).await;
    let (slot, claim) = (slot_of("a"), request(&slot_of("a"), 1));
    server.command(&["ACL", "SETUSER", "cronward", "-incr"]);
    let error = store.claim(&claim).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Denied, Applied::Maybe), "{error}");

    server.command(&["ACL", "SETUSER", "cronward", "+incr"]);
    let told = store.claim(&claim).await.unwrap();
    assert!(matches!(told, Claim::Claimed { attempt: 1, used: 1, .. }), "{told:?}");
    let (_, known) = store.inspect(std::slice::from_ref(&slot)).await.unwrap();
    let runs: Vec<u32> = known[0].runs.iter().map(|run| run.attempt).collect();
    assert_eq!((known[0].attempts, runs), (1, vec![1]), "as after any grant");
    store.unlock(&slot, &audit("unlock")).await.unwrap();
    let next = store.claim(&request(&slot, 2)).await.unwrap();
    assert!(matches!(next, Claim::Claimed { attempt: 2, used: 2, .. }), "{next:?}");
}

#[tokio::test]
async fn a_server_that_wants_a_password_says_so() {
    let server = RedisServer::start_with(&[("requirepass", "hidden")]);
    let error = store(&server).await.claim(&request(&slot_of("a"), 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Denied, Applied::No), "{error}");
    assert!(error.message.contains("wants a password"), "{error}");
}

#[tokio::test]
async fn a_password_that_nobody_asked_for_says_so() {
    let server = RedisServer::start();
    let url = format!("redis://:secret@127.0.0.1:{}", server.port());
    let error = open(&url).await.claim(&request(&slot_of("a"), 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Denied, Applied::No), "{error}");
}

#[tokio::test]
async fn a_read_only_replica_is_told_as_one() {
    let primary = RedisServer::start();
    let replica = RedisServer::start_with(&[("repl-diskless-sync-delay", "0")]);
    replica.command(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    eventually("the replica follows", async || {
        replica.text(&["INFO", "replication"]).unwrap().contains("master_link_status:up")
    })
    .await;
    let store = store(&replica).await;
    let slot = slot_of("a");
    let error = store.claim(&request(&slot, 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::ReadOnly, Applied::No), "{error}");
    assert!(error.message.contains("name the primary"), "{error}");
    store.inspect(&[slot]).await.expect("a replica can be read");

    // Its name may lead to the new primary by now: each refusal makes a new connection.
    let proxy = Proxy::before(replica.port()).await;
    let store = open(&format!("redis://127.0.0.1:{}", proxy.port())).await;
    for connections in 1..=3 {
        store.claim(&request(&slot_of("a"), 1)).await.unwrap_err();
        assert_eq!(proxy.connections(), connections);
    }
}

#[tokio::test]
async fn a_database_of_its_own_is_used() {
    let server = RedisServer::start();
    let url = format!("{}/3", server.url());
    granted(&open(&url).await, &request(&slot_of("a"), 1)).await;
    assert_eq!(server.number(&["DBSIZE"]), 0);
    let error = open(&format!("{}/99", server.url())).await.claim(&request(&slot_of("a"), 1)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
}

#[tokio::test]
async fn a_server_without_room_for_one_more_client_is_overloaded() {
    let server = RedisServer::start();
    let _first = server.connect();
    let store = store(&server).await;
    server.command(&["CONFIG", "SET", "maxclients", "1"]);
    let error = store.claim(&request(&slot_of("a"), 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Overloaded, Applied::No), "{error}");
    drop(_first);
    eventually("room again", async || store.claim(&request(&slot_of("a"), 1)).await.is_ok()).await;
}

#[tokio::test]
async fn a_unix_socket_works_as_well() {
    let server = RedisServer::start();
    granted(&open(&server.unix_url()).await, &request(&slot_of("a"), 1)).await;
    // The mark, the counter, the log, and what runs of the job.
    assert_eq!(server.number(&["DBSIZE"]), 4);
}
