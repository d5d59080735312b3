//! Redis under chaos: a primary and its replica, a proxy before each node's view of the primary, and one between the two.

use std::time::Duration;

use crate::link::Link;
use crate::proxy::Mode;
use crate::redis_server::{RedisServer, documented_permissions};
use crate::wait;

use crate::chaos::backend::{Backend, Bears};
use crate::chaos::fault::{LinkFault, ServerFault};

pub(in crate::chaos) const BEARS: Bears = Bears {
    links: true,
    clocks: true,
    server: FAULTS,
    rests: Duration::from_millis(2_200),
    forgets: false,
    locks: true,
};

/// All that it knows.
const FAULTS: &[ServerFault] = &[
    ServerFault::Stop,
    ServerFault::Restart,
    ServerFault::Flush,
    ServerFault::Evict,
    ServerFault::ScriptFlush,
    ServerFault::Disconnect,
    ServerFault::OutOfMemory,
    ServerFault::Deny,
    ServerFault::Failover,
];

pub(in crate::chaos) struct Redis {
    servers: [RedisServer; 2],
    primary: usize,
    links: Vec<Link>,
    /// By which the replica follows the primary.
    replication: Link,
}

/// What the nodes' user may lose: everything, or one command in the midst of a script.
const LOSSES: &[&str] = &["-@all", "-eval -evalsha", "-set", "-hset", "-publish", "-incr", "-pexpire", "-time"];

impl Redis {
    pub(in crate::chaos) fn new(nodes: usize) -> Self {
        let user = format!("cronward on >secret {}", documented_permissions().join(" "));
        // Without it a replica takes five seconds to follow.
        let config = [("user", user.as_str()), ("repl-diskless-sync-delay", "0")];
        let servers = [(); 2].map(|()| RedisServer::start_dying_with_its_starter(&config));
        let links = (0..nodes).map(|_| Link::to(servers[0].port())).collect();
        let replication = Link::to(servers[0].port());
        let redis = Self { servers, primary: 0, links, replication };
        redis.follow();
        redis.wait_for_replica();
        redis
    }

    fn primary(&self) -> &RedisServer {
        &self.servers[self.primary]
    }

    fn replica(&self) -> &RedisServer {
        &self.servers[1 - self.primary]
    }

    /// The replica follows the primary, from scratch if it has to.
    fn follow(&self) {
        self.replication.aim(self.primary().port());
        self.replication.set(Mode::Pass);
        let port = self.replication.port().to_string();
        self.replica().command(&["REPLICAOF", "127.0.0.1", &port]);
    }

    fn wait_for_replica(&self) {
        wait::until_true("the replica follows", || {
            let info = self.replica().text(&["INFO", "replication"]).unwrap_or_default();
            info.contains("master_link_status:up")
        });
    }

    /// The replica takes over as it is; the old primary follows it and forgets what only it knew.
    fn fail_over(&mut self) {
        self.replica().command(&["REPLICAOF", "NO", "ONE"]);
        self.primary = 1 - self.primary;
        let port = self.primary().port();
        self.links.iter().for_each(|link| link.aim(port));
        self.follow();
    }

    fn command(&self, words: &str) {
        self.primary().command(&words.split(' ').collect::<Vec<_>>());
    }

    /// Whichever keys, leases and done markers among them: half of what it keeps has to go at once.
    fn begin_to_evict(&self) {
        let told = |name: &str| told(self.primary(), "memory", name).parse::<u64>().unwrap();
        let room = told("used_memory") - told("used_memory_dataset") / 2;
        self.command("CONFIG SET maxmemory-policy allkeys-random");
        self.command(&format!("CONFIG SET maxmemory {room}"));
    }
}

impl Backend for Redis {
    fn name(&self) -> String {
        format!("redis {}", version(self.primary()))
    }

    fn url(&self, node: usize) -> String {
        format!("redis://cronward:secret@127.0.0.1:{}", self.links[node].port())
    }

    fn spoil(&mut self, node: usize, fault: LinkFault, pick: u64) {
        self.links[node].set(fault.mode(pick));
    }

    fn mend(&mut self, node: usize) {
        self.links[node].set(Mode::Pass);
    }

    fn begin(&mut self, fault: ServerFault, pick: u64) {
        match fault {
            ServerFault::Stop => self.primary().pause(),
            ServerFault::Restart => self.servers[self.primary].kill(),
            ServerFault::Flush => self.command("FLUSHALL"),
            ServerFault::Evict => self.begin_to_evict(),
            ServerFault::ScriptFlush => self.command("SCRIPT FLUSH"),
            ServerFault::Disconnect => drop_clients(self.primary()),
            ServerFault::OutOfMemory => self.command("CONFIG SET maxmemory 1"),
            ServerFault::Deny => {
                let loss = LOSSES[usize::try_from(pick).unwrap_or(usize::MAX) % LOSSES.len()];
                self.command(&format!("ACL SETUSER cronward {loss}"));
            }
            ServerFault::Failover => {
                self.wait_for_replica();
                self.replication.set(Mode::Refuse);
            }
            other => panic!("{other:?} is not for one Redis"),
        }
    }

    fn end(&mut self, fault: ServerFault) {
        match fault {
            ServerFault::Stop => self.primary().unpause(),
            ServerFault::Restart => self.servers[self.primary].start_empty(),
            ServerFault::OutOfMemory => self.command("CONFIG SET maxmemory 0"),
            ServerFault::Evict => {
                self.command("CONFIG SET maxmemory 0");
                self.command("CONFIG SET maxmemory-policy noeviction");
            }
            ServerFault::Deny => self.primary().allow(&documented_permissions()),
            ServerFault::Failover => self.fail_over(),
            _ => {}
        }
    }

    fn life(&self) -> String {
        run_id(self.primary())
    }

    fn trace(&self, of: ServerFault) -> String {
        if of == ServerFault::Evict { told(self.primary(), "stats", "evicted_keys") } else { self.life() }
    }
}

/// What a server tells of itself: a line of a section of INFO.
fn told(server: &RedisServer, section: &str, name: &str) -> String {
    let info = server.text(&["INFO", section]).unwrap();
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap().to_owned()
}

pub(super) fn version(server: &RedisServer) -> String {
    told(server, "server", "redis_version")
}

/// Fresh at each start of a server.
pub(super) fn run_id(server: &RedisServer) -> String {
    told(server, "server", "run_id")
}

/// Closes every connection of a client.
pub(super) fn drop_clients(server: &RedisServer) {
    server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
}
