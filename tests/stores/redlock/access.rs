//! A user with the documented permissions, and what is missing without the one that a quorum needs besides.

use super::*;
use crate::redis_server::documented_permissions;

async fn as_user(servers: &[RedisServer]) -> RedlockStore {
    let hosts: Vec<String> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
    let options = StoreOptions::default().with_op_timeout(Duration::from_secs(80));
    let url = format!("redlock://cronward:secret@{}", hosts.join(","));
    RedlockStore::open(&url, options, Arc::new(SystemClock)).await.unwrap()
}

#[tokio::test]
async fn the_documented_permissions_and_info_are_enough() {
    let servers = masters(3);
    servers.iter().for_each(|server| server.allow(&documented_permissions()));
    let store = as_user(&servers).await;
    let lease = grant(&store, &request(&slot_of("job"), "a", 1)).await;
    store.renew(&lease).await.unwrap();
    store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(7_200)).await.unwrap();
    servers[0].command(&["DEL", &mark_of(&lease.slot), &format!("{}:log", mark_of(&lease.slot))]);
    assert!(matches!(store.claim(&request(&lease.slot, "b", 2)).await.unwrap(), Claim::Done(_)));
    assert_eq!(having(&servers.iter().collect::<Vec<_>>(), &lease.slot, "done"), 3);
}

#[tokio::test]
async fn without_info_a_claim_is_denied_and_nothing_is_granted() {
    let servers = masters(3);
    let rules: Vec<String> = documented_permissions().into_iter().filter(|rule| rule != "+info").collect();
    servers.iter().for_each(|server| server.allow(&rules));
    let store = as_user(&servers).await;
    let claim = request(&slot_of("job"), "a", 1);
    let error = store.claim(&claim).await.unwrap_err();
    assert_eq!(error.kind, cronward::store::ErrorKind::Denied, "{error}");
    assert_eq!(having(&servers.iter().collect::<Vec<_>>(), &claim.slot, "running"), 0);
    assert!(!error.to_string().contains("secret"), "{error}");
}
