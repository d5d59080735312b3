//! `cronward doctor` before masters that a majority stands for: each is looked at, so that none hides behind the others.

use super::*;
use crate::patient::doctor;
use crate::redis_server::documented_permissions;

fn url(servers: &[RedisServer]) -> String {
    let hosts: Vec<String> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
    format!("redlock://{}", hosts.join(","))
}

#[tokio::test]
async fn each_master_is_looked_at_and_none_hides_behind_the_others() {
    let mut servers = masters(3);
    servers.iter().for_each(|server| drop(server.command(&["CONFIG", "SET", "appendonly", "yes"])));
    let keys = |server: &RedisServer| server.number(&["DBSIZE"]);
    let before: Vec<i64> = servers.iter().map(keys).collect();
    let told = doctor(&url(&servers)).await;
    assert_eq!(told.names(), [""; 0], "{:?}", told.bad);
    assert_eq!(told.found("role").len(), 3);
    assert_eq!(servers.iter().map(keys).collect::<Vec<_>>(), before, "nothing is left");

    for (name, value) in [("maxmemory", "100mb"), ("maxmemory-policy", "allkeys-lru")] {
        servers[2].command(&["CONFIG", "SET", name, value]);
    }
    let told = doctor(&url(&servers)).await;
    assert_eq!((told.names(), told.code), (vec!["eviction error"], 2), "{:?}", told.bad);
    assert!(told.found_of("eviction error").contains(&servers[2].port().to_string()), "{:?}", told.bad);

    let place = servers[1].port().to_string();
    servers[1].kill();
    let told = doctor(&url(&servers)).await;
    assert!(told.found_of("server warning").contains(&place), "{:?}", told.bad);
    assert!(told.names().contains(&"eviction error"), "{:?}", told.bad);
}

/// Each master has users of its own, and the others outvote what one refuses.
#[tokio::test]
async fn a_right_that_one_master_lacks_is_told_with_its_name_and_is_a_fault_once_most_lack_it() {
    let servers = masters(3);
    servers.iter().for_each(|server| drop(server.command(&["CONFIG", "SET", "appendonly", "yes"])));
    let rules = [documented_permissions(), vec!["+info".to_owned()]].concat();
    servers.iter().for_each(|server| server.allow(&rules));
    let url = url(&servers).replace("://", "://cronward:secret@");
    let told = doctor(&url).await;
    assert_eq!(told.names(), [""; 0], "{:?}", told.bad);
    assert_eq!(told.found("rights"), ["all 20 operations are allowed: each was tried at each of 3 servers"]);

    let rest: Vec<String> = rules.iter().filter(|rule| *rule != "+hset").cloned().collect();
    servers[1].allow(&rest);
    let told = doctor(&url).await;
    let names = |index: usize| format!("127.0.0.1:{}", servers[index].port());
    let rights = told.found("rights");
    assert!(rights.iter().all(|found| found.contains(&names(1))), "{rights:?}");
    assert!(rights.iter().any(|found| found.starts_with("claim: ")), "{rights:?}");
    assert!(told.bad.iter().all(|(name, _)| name == "rights warning" || name == "latency warning"), "{:?}", told.bad);

    servers[2].allow(&rest);
    let told = doctor(&url).await;
    let claims: Vec<_> = told.found("rights").into_iter().filter(|found| found.starts_with("claim: ")).collect();
    assert!(claims.len() == 2 && claims[0].contains(&names(1)) && claims[1].contains(&names(2)), "{claims:?}");
    assert_eq!((told.names().contains(&"rights error"), told.code), (true, 2));
}
