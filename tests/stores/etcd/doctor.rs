//! `cronward doctor` before etcd: members, alarms, users.

use serde_json::json;

use crate::etcd_server::EtcdServer;
use crate::patient::doctor;

#[tokio::test]
async fn a_cluster_of_three_is_well_and_one_without_a_majority_is_a_fault() {
    let mut members = EtcdServer::start_cluster();
    let told = doctor(&EtcdServer::url_of(&members)).await;
    assert_eq!(told.names(), [""; 0], "{:?}", told.bad);
    assert_eq!((told.found("members"), told.found("leader")), (vec!["3"], vec!["there is one"]));
    assert_eq!(told.found("rights"), ["all 29 operations are allowed: each was tried"]);
    // The last hints stay at their keys, whoever gave them.
    let hints = ["/mark/wake", "/mark/lock-wake"];
    let left = members[0].get_all("/cronward/").into_iter();
    let left = left.filter(|found| !hints.iter().any(|hint| found.key.ends_with(hint)));
    assert_eq!(left.collect::<Vec<_>>(), []);

    members[2].kill();
    members[1].kill();
    let told = crate::patient::hasty(&members[0].url()).await;
    assert_eq!((told.names(), told.code), (vec!["reachable error"], 2), "{:?}", told.bad);
}

#[tokio::test]
async fn one_member_is_warned_of_and_an_alarm_is_a_fault_with_the_way_out() {
    let server = EtcdServer::start();
    let told = doctor(&server.url()).await;
    assert_eq!((told.names(), told.code), (vec!["members warning"], 1), "{:?}", told.bad);
    let alarm = json!({ "action": "ACTIVATE", "memberID": "0", "alarm": "NOSPACE" });
    server.ask("maintenance/alarm", &alarm);
    let told = doctor(&server.url()).await;
    assert!(told.fix_of("alarms error").contains("etcdctl alarm disarm"), "{:?}", told.bad);
    assert_eq!(told.code, 2);
}

#[tokio::test]
async fn a_user_for_another_namespace_is_told_of_the_right_that_is_missing() {
    let server = EtcdServer::start();
    server.want_users("/cronward/default/slot/");
    let url = server.url().replace("etcd://", "etcd://cronward:secret@");
    let told = doctor(&url).await;
    assert!(told.fix_of("reachable error").contains("docs/stores.md"), "{:?}", told.bad);
    assert!(told.found_of("reachable error").contains("may not use the keys /cronward/"), "{:?}", told.bad);
    assert_eq!(told.code, 2);
}

#[tokio::test]
async fn the_documented_user_is_told_what_it_may_not_ask() {
    let server = EtcdServer::start();
    server.want_users("/cronward/");
    let told = doctor(&server.url().replace("etcd://", "etcd://cronward:secret@")).await;
    assert_eq!(told.found("rights"), ["all 29 operations are allowed: each was tried"], "{:?}", told.bad);
    assert!(told.code <= 1, "{:?}", told.bad);
}
