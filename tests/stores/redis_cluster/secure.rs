//! A cluster that speaks TLS and wants certificates, and a user with no more rights than the page on stores lists.

use std::time::Duration;

use cronward::slot::Outcome;
use cronward::store::{Claim, ErrorKind, Store, Wake};

use crate::redis_cluster::open;
use crate::redis_group::{ClusterGroup, PATIENCE};
use crate::redis_server::documented_permissions;
use crate::tls_files::TlsFiles;
use crate::words::{ended, granted, request, slot_of};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_used_over_tls_by_a_user_with_the_documented_rights_alone() {
    let files = TlsFiles::make();
    let group = ClusterGroup::start_with_tls(files.dir());
    let mut rules = documented_permissions();
    rules.extend(["+cluster|slots", "+asking"].map(str::to_owned));
    group.servers.iter().for_each(|server| server.allow(&rules));
    let hosts: Vec<_> = group.ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let url = format!("rediss+cluster://cronward:secret@{}{}&{}", hosts.join(","), files.trusted(), files.identity());
    let store = open(&url).await;
    let mut hints = store.subscribe();
    assert_eq!(tokio::time::timeout(PATIENCE, hints.recv()).await.unwrap().unwrap(), Wake::Resync);
    // Enough jobs for every master to have some.
    for job in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        let lease = granted(&store, &request(&slot_of(job), 1)).await;
        store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(60)).await.unwrap();
        assert!(matches!(store.claim(&request(&slot_of(job), 2)).await.unwrap(), Claim::Done(_)));
    }
    for server in &group.servers {
        assert_eq!(server.command(&["ACL", "LOG"]), redis::Value::Array(vec![]), "something was refused all the same");
    }
    let error = open(&url.replace(":secret@", ":guessed@")).await.jobs().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied, "{error}");
}
