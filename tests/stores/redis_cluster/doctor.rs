//! `cronward doctor` in a cluster: each master is looked at, and what none of them keeps is told.

use crate::patient::{Told, doctor};
use crate::redis_group::{ClusterGroup, info, until};
use crate::redis_server::documented_permissions;

/// What is not well beside what these servers are started with: no disk, and no write that waits for a replica.
fn further(told: &Told) -> Vec<&str> {
    let expected = ["persistence warning", "replicas warning"];
    told.names().into_iter().filter(|name| !expected.contains(name)).collect()
}

#[tokio::test]
async fn each_master_is_looked_at_and_what_none_keeps_is_told() {
    let mut group = ClusterGroup::start();
    let told = doctor(&group.url()).await;
    assert_eq!((further(&told), told.code), (vec![], 1), "{:?}", told.bad);
    assert_eq!(told.found("slots"), ["all are kept, by 3 masters"]);
    let mut places: Vec<String> = (0..3).map(|n| format!("127.0.0.1:{}: it takes writes", group.ports[n])).collect();
    places.sort();
    assert_eq!(told.found("role"), places);
    assert_eq!((0..3).map(|n| group.servers[n].number(&["DBSIZE"])).sum::<i64>(), 0, "nothing is left");
    a_right_that_one_master_lacks_is_a_fault_that_names_it(&group).await;
    a_master_that_evicts_is_a_fault(&group).await;
    slots_that_nobody_keeps_are_a_fault(&group).await;
    a_master_that_is_away_is_a_fault(&mut group).await;
}

/// Each server has users of its own.
async fn a_right_that_one_master_lacks_is_a_fault_that_names_it(group: &ClusterGroup) {
    let rules = [documented_permissions(), ["+info", "+cluster|slots", "+asking"].map(str::to_owned).to_vec()].concat();
    group.servers.iter().for_each(|server| server.allow(&rules));
    let url = group.url().replace("://", "://cronward:secret@");
    let told = doctor(&url).await;
    assert_eq!(further(&told), [""; 0], "{:?}", told.bad);
    assert_eq!(told.found("rights"), ["all 28 operations are allowed: each was tried at each of 3 servers"]);

    for (lacks, op) in [("+incr", "claim"), ("+publish", ""), ("+hgetall", "inspect")] {
        let rest: Vec<String> = rules.iter().filter(|rule| *rule != lacks).cloned().collect();
        for master in 0..3 {
            group.servers[master].allow(&rest);
            let told = doctor(&url).await;
            group.servers[master].allow(&rules);
            let rights = told.found("rights");
            if op.is_empty() {
                assert_eq!(rights.len(), 1, "a hint is no right that anything needs: {rights:?}");
                continue;
            }
            let place = format!(": 127.0.0.1:{}: ", group.ports[master]);
            assert!(rights.iter().all(|found| found.contains(&place)), "{lacks} at {master}: {rights:?}");
            assert!(rights.iter().any(|found| found.starts_with(op)), "{lacks} at {master}: {rights:?}");
            assert_eq!(told.code, 2);
        }
    }
}

/// The one that keeps the last slots: no call without a key is sent there.
async fn a_master_that_evicts_is_a_fault(group: &ClusterGroup) {
    for (name, value) in [("maxmemory", "100mb"), ("maxmemory-policy", "allkeys-lru")] {
        group.servers[2].command(&["CONFIG", "SET", name, value]);
    }
    let told = doctor(&group.url()).await;
    assert_eq!((further(&told), told.code), (vec!["eviction error"], 2), "{:?}", told.bad);
    let place = format!("127.0.0.1:{}: maxmemory-policy allkeys-lru", group.ports[2]);
    assert_eq!(told.found_of("eviction error"), place);
    group.servers[2].command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
}

async fn slots_that_nobody_keeps_are_a_fault(group: &ClusterGroup) {
    let forgotten = || {
        until("nobody keeps the last slots", || {
            for server in group.servers.iter().rev() {
                // Whoever hears of them again from another forgets them again.
                let _ = server.try_command(&["CLUSTER", "DELSLOTSRANGE", "16000", "16383"]);
            }
            group.servers.iter().all(|server| info(server, "cluster_slots_assigned") == "16000")
        });
    };
    forgotten();
    let mut told = doctor(&group.url()).await;
    for _ in 0..10 {
        if told.names().contains(&"slots error") {
            break;
        }
        // What one had sent before it forgot them has come to another since.
        forgotten();
        told = doctor(&group.url()).await;
    }
    assert_eq!(told.found_of("slots error"), "384 of the cluster's slots are kept by nobody");
    assert!(told.fix_of("slots error").starts_with("redis-cli --cluster fix"));
    assert_eq!(told.code, 2);
}

async fn a_master_that_is_away_is_a_fault(group: &mut ClusterGroup) {
    group.servers[5].kill();
    group.servers[2].kill();
    let told = doctor(&group.url()).await;
    let place = format!("127.0.0.1:{}: no answer", group.ports[2]);
    assert!(told.found_of("server error").starts_with(&place), "{:?}", told.bad);
    assert!(told.fix_of("server error").contains("cluster-require-full-coverage no"), "{:?}", told.bad);
    assert_eq!(told.code, 2);
}
