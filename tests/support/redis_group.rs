//! Several real `redis-server`s that belong together: a master with a replica and sentinels, or a cluster of three masters
//! with a replica each.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a test says what it expects; no test uses all of it"
)]

use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use redis::Value;

use super::ports;
use super::redis_server::RedisServer;

/// Elections and first syncs take seconds, on a busy machine more.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until it is so.
#[allow(clippy::disallowed_methods, reason = "real processes: there is no signal to wait for but their answers")]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
    began.elapsed()
}

pub fn follows(replica: &RedisServer) -> bool {
    says(replica, "master_link_status:up")
}

/// The replica gets nothing more, and cannot come back: the master refuses the password that it did not ask for.
fn cut(master: &RedisServer, replica: &RedisServer) {
    replica.command(&["CONFIG", "SET", "masterauth", "wrong"]);
    master.command(&["CLIENT", "KILL", "TYPE", "replica"]);
    until("the replica has lost its master", || !follows(replica));
}

/// Whether it calls itself a master.
pub fn is_master(server: &RedisServer) -> bool {
    says(server, "role:master")
}

fn says(server: &RedisServer, line: &str) -> bool {
    // A sentinel that gives a server another role cuts its connections.
    let info =
        server.try_command(&["INFO", "replication"]).and_then(|info| Ok(redis::from_redis_value::<String>(info)?));
    info.is_ok_and(|info| info.contains(line))
}

/// A master, its replica and three sentinels that watch them as `mymaster`.
#[derive(Debug)]
pub struct SentinelGroup {
    pub master: RedisServer,
    pub replica: RedisServer,
    pub sentinels: Vec<RedisServer>,
}

impl SentinelGroup {
    pub fn start() -> Self {
        let quick = [("repl-diskless-sync-delay", "0")];
        let (master, replica) = (RedisServer::start_with(&quick), RedisServer::start_with(&quick));
        replica.command(&["REPLICAOF", "127.0.0.1", &master.port().to_string()]);
        until("the replica follows", || follows(&replica));
        let sentinels: Vec<_> = (0..3).map(|_| RedisServer::start_sentinel(master.port(), "mymaster", 2)).collect();
        let group = Self { master, replica, sentinels };
        for sentinel in &group.sentinels {
            until("the sentinels know of each other and of the replica", || {
                let master = sentinel.command(&["SENTINEL", "MASTER", "mymaster"]);
                field(&master, "num-other-sentinels") == "2" && field(&master, "num-slaves") == "1"
            });
        }
        group
    }

    /// `redis+sentinel://…/mymaster`.
    pub fn url(&self) -> String {
        let hosts: Vec<_> = self.sentinels.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
        format!("redis+sentinel://{}/mymaster", hosts.join(","))
    }

    /// One more replica, which never takes over; the sentinels know of it.
    pub fn add_replica(&self) -> RedisServer {
        let replica = RedisServer::start_with(&[("repl-diskless-sync-delay", "0"), ("replica-priority", "0")]);
        replica.command(&["REPLICAOF", "127.0.0.1", &self.master.port().to_string()]);
        until("the replica follows", || follows(&replica));
        for sentinel in &self.sentinels {
            // A sentinel asks the master for its replicas every ten seconds.
            until("the sentinels know of the replica", || {
                field(&sentinel.command(&["SENTINEL", "MASTER", "mymaster"]), "num-slaves") == "2"
            });
        }
        replica
    }

    /// The replica gets nothing more.
    pub fn cut_replication(&self) {
        cut(&self.master, &self.replica);
    }

    /// Waits until every sentinel names the replica as the master, and it agrees.
    pub fn wait_for_failover(&self) -> Duration {
        let port = self.replica.port().to_string();
        until("the replica has taken over", || {
            let named =
                |sentinel: &RedisServer| field(&sentinel.command(&["SENTINEL", "MASTER", "mymaster"]), "port") == port;
            is_master(&self.replica) && self.sentinels.iter().any(named)
        })
    }
}

/// A field of an answer that is a list of names and values.
pub fn field(answer: &Value, name: &str) -> String {
    let items: Vec<String> = redis::from_redis_value(answer.clone()).expect("a list of texts");
    items.chunks(2).find(|pair| pair[0] == name).map(|pair| pair[1].clone()).unwrap_or_default()
}

/// Three masters and a replica of each: servers 0 to 2, and 3 to 5 behind them in the same order.
#[derive(Debug)]
pub struct ClusterGroup {
    pub servers: Vec<RedisServer>,
    /// By which they know each other.
    pub ports: Vec<u16>,
}

/// The last slot of each master.
const ENDS: [u16; 3] = [5_460, 10_922, 16_383];

impl ClusterGroup {
    pub fn start() -> Self {
        Self::start_plain("no")
    }

    /// As Redis is by default: while some slots have no master, nothing is answered about any.
    pub fn start_with_full_coverage() -> Self {
        Self::start_plain("yes")
    }

    fn start_plain(full_coverage: &str) -> Self {
        Self::start_as(full_coverage, |config| {
            let server = RedisServer::start_with(config);
            let port = server.port();
            (server, port)
        })
    }

    /// All of it over TLS, with certificates of the clients: clients, replication and the bus; with `ca.pem`, `cert.pem` and `key.pem` from a folder.
    pub fn start_with_tls(files: &Path) -> Self {
        let tls = [("tls-cluster", "yes"), ("tls-replication", "yes"), ("tls-auth-clients", "yes")];
        Self::start_as("no", |config| RedisServer::start_with_tls_and(files, &[config, &tls[..]].concat()))
    }

    /// `start` answers a server and the port by which the others know it.
    fn start_as(full_coverage: &str, start: impl Fn(&[(&str, &str)]) -> (RedisServer, u16)) -> Self {
        // Kept until the server starts whose bus it is: others draw their ports meanwhile.
        let kept: Vec<_> = (0..6).map(|_| ports::held()).collect();
        let buses: Vec<u16> = kept.iter().map(ports::port_of).collect();
        let start = |(kept, bus): (TcpListener, &u16)| {
            drop(kept);
            start(&[
                ("cluster-enabled", "yes"),
                ("cluster-port", &bus.to_string()),
                ("cluster-node-timeout", "1500"),
                ("cluster-require-full-coverage", full_coverage),
                ("cluster-replica-validity-factor", "0"),
                ("repl-diskless-sync-delay", "0"),
            ])
        };
        let (servers, ports): (Vec<_>, Vec<_>) = kept.into_iter().zip(&buses).map(start).unzip();
        let mut first = 0;
        for (index, last) in ENDS.into_iter().enumerate() {
            servers[index].command(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]);
            first = last + 1;
        }
        for (index, server) in servers.iter().enumerate() {
            server.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
        }
        for (port, bus) in ports.iter().zip(&buses).skip(1) {
            servers[0].command(&["CLUSTER", "MEET", "127.0.0.1", &port.to_string(), &bus.to_string()]);
        }
        let group = Self { servers, ports };
        for server in &group.servers {
            until("the nodes know each other", || info(server, "cluster_known_nodes") == "6");
        }
        for (master, replica) in (0..3).zip(3..6) {
            let id = group.id(master);
            let replica = &group.servers[replica];
            until("the replica knows its master", || replica.try_command(&["CLUSTER", "REPLICATE", &id]).is_ok());
            until("the replica follows", || follows(replica));
        }
        for server in &group.servers {
            until("the cluster is ready", || info(server, "cluster_state") == "ok");
            until("all slots are known", || info(server, "cluster_slots_ok") == "16384");
        }
        group
    }

    /// The id by which the others know a server.
    pub fn id(&self, index: usize) -> String {
        self.servers[index].text(&["CLUSTER", "MYID"]).unwrap()
    }

    /// Which master keeps this key, as long as no slot has moved.
    pub fn keeper_of(&self, key: &str) -> usize {
        let slot = self.servers[0].number(&["CLUSTER", "KEYSLOT", key]);
        ENDS.iter().position(|last| slot <= i64::from(*last)).expect("all slots are kept")
    }

    /// The replica of a master gets nothing more.
    pub fn cut_replication(&self, master: usize) {
        cut(&self.servers[master], &self.servers[master + 3]);
    }

    /// No replica takes over, until [`Self::let_take_over`].
    pub fn hold_failovers(&self) {
        self.servers.iter().for_each(|server| no_failover(server, "yes"));
    }

    /// The replica of a master may take over.
    pub fn let_take_over(&self, master: usize) {
        no_failover(&self.servers[master + 3], "no");
    }

    /// `redis+cluster://…`.
    pub fn url(&self) -> String {
        let hosts: Vec<_> = self.servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
        format!("redis+cluster://{}", hosts.join(","))
    }
}

fn no_failover(server: &RedisServer, yes: &str) {
    server.command(&["CONFIG", "SET", "cluster-replica-no-failover", yes]);
}

/// A line of `CLUSTER INFO`.
pub fn info(server: &RedisServer, name: &str) -> String {
    let info = server.text(&["CLUSTER", "INFO"]).unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix(&format!("{name}:")).map(str::to_owned));
    line.unwrap_or_default()
}
