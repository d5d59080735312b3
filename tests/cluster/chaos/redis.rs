//! Redis under chaos: a primary and its replica, a proxy before each node's view of the primary, and one between the two.

use crate::link::Link;
use crate::proxy::Mode;
use crate::redis_server::{RedisServer, documented_permissions};
use crate::wait;

use super::backend::Backend;
use super::fault::{LinkFault, ServerFault};

/// All that it knows.
pub(super) const FAULTS: &[ServerFault] = &[
    ServerFault::Stop,
    ServerFault::Restart,
    ServerFault::Flush,
    ServerFault::ScriptFlush,
    ServerFault::Disconnect,
    ServerFault::OutOfMemory,
    ServerFault::Deny,
    ServerFault::Failover,
];

pub(super) struct Redis {
    servers: [RedisServer; 2],
    primary: usize,
    links: Vec<Link>,
    /// By which the replica follows the primary.
    replication: Link,
}

/// What the nodes' user may lose: everything, or one command in the midst of a script.
const LOSSES: &[&str] = &["-@all", "-eval -evalsha", "-set", "-hset", "-publish", "-incr", "-pexpire", "-time"];

impl Redis {
    pub(super) fn new(nodes: usize) -> Self {
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
}

impl Backend for Redis {
    fn name(&self) -> String {
        let info = self.primary().text(&["INFO", "server"]).unwrap();
        let version = info.lines().find_map(|line| line.strip_prefix("redis_version:")).unwrap();
        format!("redis {version}")
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
            ServerFault::ScriptFlush => self.command("SCRIPT FLUSH"),
            ServerFault::Disconnect => {
                self.command("CLIENT KILL TYPE normal");
                self.command("CLIENT KILL TYPE pubsub");
            }
            ServerFault::OutOfMemory => self.command("CONFIG SET maxmemory 1"),
            ServerFault::Deny => {
                let loss = LOSSES[usize::try_from(pick).unwrap_or(usize::MAX) % LOSSES.len()];
                self.command(&format!("ACL SETUSER cronward {loss}"));
            }
            ServerFault::Failover => {
                self.wait_for_replica();
                self.replication.set(Mode::Refuse);
            }
        }
    }

    fn end(&mut self, fault: ServerFault) {
        match fault {
            ServerFault::Stop => self.primary().unpause(),
            ServerFault::Restart => self.servers[self.primary].start_empty(),
            ServerFault::OutOfMemory => self.command("CONFIG SET maxmemory 0"),
            ServerFault::Deny => self.primary().allow(&documented_permissions()),
            ServerFault::Failover => self.fail_over(),
            ServerFault::Flush | ServerFault::ScriptFlush | ServerFault::Disconnect => {}
        }
    }
}
