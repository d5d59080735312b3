//! `cronward doctor` behind sentinels.

use crate::patient::doctor;
use crate::redis_group::SentinelGroup;

#[tokio::test]
async fn behind_sentinels_the_master_is_looked_at() {
    let group = SentinelGroup::start();
    let told = doctor(&group.url()).await;
    // As these servers are: nothing is written to their disks, and no write waits for a replica.
    assert_eq!(told.names(), ["persistence warning", "replicas warning"], "{:?}", told.bad);
    assert_eq!(told.code, 1);
    for (name, value) in [("appendonly", "yes"), ("min-replicas-to-write", "1")] {
        group.master.command(&["CONFIG", "SET", name, value]);
    }
    let told = doctor(&group.url()).await;
    assert_eq!(told.names(), [""; 0], "{:?}", told.bad);
    assert_eq!(group.master.number(&["DBSIZE"]), 0, "nothing is left");

    for (name, value) in [("maxmemory", "100mb"), ("maxmemory-policy", "volatile-lru")] {
        group.master.command(&["CONFIG", "SET", name, value]);
    }
    let told = doctor(&group.url()).await;
    assert_eq!((told.names(), told.code), (vec!["eviction error"], 2), "{:?}", told.bad);
}
