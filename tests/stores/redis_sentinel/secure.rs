//! Sentinels and servers that speak TLS only to each other, and users with no more rights than the page on stores lists.

use std::path::Path;

use cronward::slot::Outcome;
use cronward::store::redis::RedisStore;
use cronward::store::{Claim, Store, StoreOptions, Wake};

use crate::redis_group::{field, follows, is_master, until};
use crate::redis_sentinel::{Duration, hears, until_granted};
use crate::redis_server::{RedisServer, documented_permissions};
use crate::tls_files::TlsFiles;
use crate::words::{ended, granted, request, slot_of};

/// With time for TLS on a busy machine.
async fn open(url: &str) -> RedisStore {
    let options = StoreOptions::default().with_op_timeout(Duration::from_secs(10));
    RedisStore::open(url, options).await.unwrap()
}

/// A master, its replica and three sentinels; whoever talks to one of them does so over TLS, with a certificate.
struct SecureGroup {
    master: RedisServer,
    replica: (RedisServer, u16),
    sentinels: Vec<(RedisServer, u16)>,
}

impl SecureGroup {
    fn start(files: &Path) -> Self {
        let config = [("tls-replication", "yes"), ("repl-diskless-sync-delay", "0"), ("tls-auth-clients", "yes")];
        let (master, port) = RedisServer::start_with_tls_and(files, &config);
        let replica = RedisServer::start_with_tls_and(files, &config);
        replica.0.command(&["REPLICAOF", "127.0.0.1", &port.to_string()]);
        until("the replica follows", || follows(&replica.0));
        let monitor = format!("mymaster 127.0.0.1 {port} 2");
        let watch = [
            ("tls-replication", "yes"),
            ("tls-auth-clients", "yes"),
            ("sentinel monitor", &*monitor),
            ("sentinel down-after-milliseconds", "mymaster 2000"),
            ("sentinel failover-timeout", "mymaster 10000"),
        ];
        let sentinels: Vec<_> = (0..3).map(|_| RedisServer::start_with_tls_and(files, &watch)).collect();
        for (sentinel, _) in &sentinels {
            until("the sentinels know of each other and of the replica", || {
                let master = sentinel.command(&["SENTINEL", "MASTER", "mymaster"]);
                field(&master, "num-other-sentinels") == "2" && field(&master, "num-slaves") == "1"
            });
        }
        Self { master, replica, sentinels }
    }

    /// The least that the page on stores lists, for servers and for sentinels.
    fn allow_only_what_is_documented(&self, further: &[&str]) {
        let mut rules = documented_permissions();
        rules.extend(["+role"].iter().chain(further).map(|rule| (*rule).to_owned()));
        self.master.allow(&rules);
        self.replica.0.allow(&rules);
        for (sentinel, _) in &self.sentinels {
            let words = ["ACL", "SETUSER", "watcher", "reset", "on", ">seen", "-@all"];
            let rules = ["+sentinel|master", "+sentinel|get-master-addr-by-name", "+subscribe", "&+switch-master"];
            sentinel.command(&[&words[..], &rules].concat());
        }
    }

    fn url(&self, parameters: &str) -> String {
        let hosts: Vec<_> = self.sentinels.iter().map(|(_, port)| format!("127.0.0.1:{port}")).collect();
        let hosts = hosts.join(",");
        format!(
            "rediss+sentinel://cronward:secret@{hosts}/mymaster?sentinel_user=watcher&sentinel_pass=seen{parameters}"
        )
    }

    fn wait_for_failover(&self) {
        let port = self.replica.1.to_string();
        until("the replica has taken over", || {
            let named = |sentinel: &RedisServer| field(&sentinel.command(&["SENTINEL", "MASTER", "mymaster"]), "port");
            is_master(&self.replica.0) && self.sentinels.iter().any(|(sentinel, _)| named(sentinel) == port)
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_is_followed_over_tls_by_users_with_the_documented_rights_alone() {
    let files = TlsFiles::make();
    let mut group = SecureGroup::start(files.dir());
    group.allow_only_what_is_documented(&["+wait"]);
    let store = open(&group.url(&format!("&wait=1&ca={}&{}", files.ca().display(), files.identity()))).await;
    let mut hints = store.subscribe();
    hears(&mut hints, |wake| *wake == Wake::Resync).await;
    let lease = granted(&store, &request(&slot_of("before"), 1)).await;
    store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(60)).await.unwrap();
    hears(&mut hints, |wake| matches!(wake, Wake::Slot { job, .. } if job.as_str() == "before")).await;

    // A success that a replica has acknowledged outlives its master.
    group.master.kill();
    group.wait_for_failover();
    until_granted(&store, "after").await;
    assert!(matches!(store.claim(&request(&slot_of("before"), 2)).await.unwrap(), Claim::Done(_)));
    for server in [&group.replica.0].into_iter().chain(group.sentinels.iter().map(|(sentinel, _)| sentinel)) {
        assert_eq!(server.command(&["ACL", "LOG"]), redis::Value::Array(vec![]), "something was refused all the same");
    }
}
