//! Users: one whose role is limited to cronward's keys is enough; a refused one is told what to do.

use std::time::Duration;

use cronward::slot::Outcome;
use cronward::store::{Applied, ErrorKind, Renewal, Store, Wake};

use crate::etcd::{LIMIT, ended, granted, open, request, slot_of, store};
use crate::etcd_server::EtcdServer;
use crate::rotating::rotating;

fn as_user(server: &EtcdServer, login: &str) -> String {
    server.url().replace("etcd://", &format!("etcd://{login}@"))
}

#[tokio::test]
async fn a_user_with_the_documented_role_can_do_everything() {
    let server = EtcdServer::start();
    server.want_users("/cronward/");
    let store = open(&as_user(&server, "cronward:secret")).await;
    let mut hints = store.subscribe();
    assert_eq!(tokio::time::timeout(LIMIT, hints.recv()).await.unwrap().unwrap(), Wake::Resync);
    let slot = slot_of("push");
    let first = granted(&store, &request(&slot, 1)).await;
    assert_eq!(store.renew(&first).await.unwrap(), Renewal::Renewed);
    store.fail(&first, &ended(&first, Outcome::Failure), Duration::ZERO).await.unwrap();
    let hint = tokio::time::timeout(LIMIT, hints.recv()).await.unwrap().unwrap();
    assert_eq!(hint.to_string(), format!("released {slot}"));
    let second = granted(&store, &request(&slot, 2)).await;
    store.complete(&second, &ended(&second, Outcome::Success), Duration::from_secs(60)).await.unwrap();
    assert_eq!(store.purge().await.unwrap(), 0);
    assert_eq!(store.jobs().await.unwrap(), []);
}

#[tokio::test]
async fn a_login_that_the_server_has_forgotten_is_made_again() {
    let mut server = EtcdServer::start();
    server.want_users("/cronward/");
    let store = open(&as_user(&server, "cronward:secret")).await;
    let lease = granted(&store, &request(&slot_of("push"), 1)).await;
    // Simple tokens live in the memory of the member.
    server.kill();
    server.start_again();
    crate::etcd::eventually("the lease is renewed", async || store.renew(&lease).await.is_ok()).await;
}

#[tokio::test]
async fn a_new_password_is_taken_once_the_old_one_is_refused_and_the_lease_goes_on() {
    let server = EtcdServer::start();
    server.want_users("/cronward/");
    let (store, written) = rotating(&as_user(&server, "cronward:secret")).await;
    let lease = granted(&*store, &request(&slot_of("push"), 1)).await;
    let login = serde_json::json!({ "name": "root", "password": "root" });
    let token = server.ask("auth/authenticate", &login)["token"].as_str().unwrap().to_owned();
    let change = serde_json::json!({ "name": "cronward", "password": "fresh" });
    server.ask_as("auth/user/changepw", &change, Some(&token)).unwrap();
    *written.lock().unwrap() = as_user(&server, "cronward:fresh");
    let renewed = async || matches!(store.renew(&lease).await, Ok(Renewal::Renewed));
    crate::etcd::eventually("the lease is renewed", renewed).await;
    let other = granted(&*store, &request(&slot_of("pull"), 2)).await;
    assert_eq!(store.renew(&other).await.unwrap(), Renewal::Renewed);
}

#[tokio::test]
async fn each_refusal_says_what_to_do() {
    let server = EtcdServer::start();
    server.want_users("/cronward/other/");
    for (url, way_out) in [
        (server.url(), "user:password"),
        (as_user(&server, "cronward:wrong"), "wrong user or password"),
        (as_user(&server, "cronward:secret"), "docs/stores.md"),
    ] {
        let error = open(&url).await.claim(&request(&slot_of("a"), 1)).await.unwrap_err();
        assert_eq!((error.kind, error.applied), (ErrorKind::Denied, Applied::No), "{error}");
        assert!(error.message.contains(way_out), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn a_user_where_none_is_known_is_refused() {
    let server = EtcdServer::start();
    let error = open(&as_user(&server, "cronward:secret")).await.jobs().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied, "{error}");
    assert!(error.message.contains("leave user and password out"), "{error}");
    assert!(store(&server).await.jobs().await.is_ok());
}
