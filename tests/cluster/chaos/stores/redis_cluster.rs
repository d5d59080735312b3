//! A Redis Cluster of three masters with a replica each: a master dies or stands still and its replica is elected, or the two
//! change places as an operator asks them to.

use std::time::Duration;

use crate::chaos::backend::{Backend, Bears};
use crate::chaos::busy::{Busy, Over};
use crate::chaos::fault::ServerFault;
use crate::redis_group::{ClusterGroup, follows, info, until};
use crate::redis_server::RedisServer;

use super::redis::{drop_clients, run_id, version};
use super::{Store, names};

pub(super) const STORE: Store = Store {
    name: names::REDIS_CLUSTER,
    bears: Bears {
        // The servers tell of each other, past every proxy.
        links: false,
        clocks: true,
        server: &[ServerFault::Failover, ServerFault::Frozen, ServerFault::Switch, ServerFault::Disconnect],
        // One and a half seconds until a master is missed, one for the election, and the old one has to follow.
        rests: Duration::from_secs(6),
        forgets: true,
        locks: true,
    },
    start: |_| Box::new(Cluster { group: Busy::new(ClusterGroup::start()), masters: [0, 1, 2], struck: 0 }),
};

struct Cluster {
    group: Busy<ClusterGroup>,
    /// Which server leads each third of the slots.
    masters: [usize; 3],
    /// The third that is struck.
    struck: usize,
}

/// Of a master and its replica the one is the other, three servers apart.
const fn partner(server: usize) -> usize {
    (server + 3) % 6
}

fn leads(server: &RedisServer) -> bool {
    let told = server.try_command(&["ROLE"]).and_then(|role| Ok(redis::from_redis_value::<Vec<redis::Value>>(role)?));
    told.is_ok_and(|role| matches!(role.first(), Some(redis::Value::BulkString(word)) if word == b"master"))
}

/// The old master's replica leads; the old one comes back, or is there again, and follows.
fn take_over(group: &mut ClusterGroup, old: usize, was_killed: bool, over: &Over) {
    let new = partner(old);
    until("the replica is elected", || leads(&group.servers[new]));
    group.servers[new].command(&["CONFIG", "SET", "masterauth", ""]);
    if was_killed {
        // Its data is gone, what it knew of the cluster is not.
        group.servers[old].start_empty();
    } else {
        group.servers[old].unpause();
    }
    until("the old master has stepped down", || !leads(&group.servers[old]));
    over.tell();
    wait_until_whole(group, old);
}

fn wait_until_whole(group: &ClusterGroup, replica: usize) {
    until("the old master follows the new one", || follows(&group.servers[replica]));
    for server in &group.servers {
        until("the cluster is whole", || {
            info(server, "cluster_state") == "ok" && info(server, "cluster_slots_ok") == "16384"
        });
    }
}

impl Cluster {
    fn master(&self) -> usize {
        self.masters[self.struck]
    }

    fn switch_roles(&mut self, was_killed: bool) {
        let old = self.master();
        self.masters[self.struck] = partner(old);
        self.group.go(move |group, over| take_over(group, old, was_killed, over));
    }
}

impl Backend for Cluster {
    fn name(&self) -> String {
        format!("redis-cluster {}", version(&self.group.servers[0]))
    }

    fn url(&self, _node: usize) -> String {
        self.group.url()
    }

    fn begin(&mut self, fault: ServerFault, pick: u64) {
        self.struck = usize::try_from(pick % 3).unwrap();
        let (master, replica) = (self.master(), partner(self.master()));
        let servers = &self.group.servers;
        match fault {
            ServerFault::Failover => {
                servers[replica].command(&["CONFIG", "SET", "masterauth", "wrong"]);
                servers[master].command(&["CLIENT", "KILL", "TYPE", "replica"]);
                until("the replica has lost its master", || !follows(&servers[replica]));
            }
            ServerFault::Frozen => servers[master].pause(),
            ServerFault::Switch => drop(servers[replica].command(&["CLUSTER", "FAILOVER"])),
            ServerFault::Disconnect => servers.iter().for_each(drop_clients),
            other => panic!("{other:?} is not for a cluster"),
        }
    }

    fn end(&mut self, fault: ServerFault) {
        match fault {
            ServerFault::Failover => {
                let master = self.master();
                self.group.servers[master].kill();
                self.switch_roles(true);
            }
            ServerFault::Frozen => self.switch_roles(false),
            ServerFault::Switch => {
                let old = self.master();
                self.masters[self.struck] = partner(old);
                self.group.go(move |group, over| {
                    until("the two have changed places", || {
                        leads(&group.servers[partner(old)]) && !leads(&group.servers[old])
                    });
                    over.tell();
                    wait_until_whole(group, old);
                });
            }
            _ => {}
        }
    }

    fn is_over(&mut self) -> bool {
        self.group.is_over()
    }

    fn is_ready(&mut self) -> bool {
        self.group.is_ready()
    }

    fn has_switched(&mut self) -> bool {
        let servers = &self.group.servers;
        let gone =
            self.masters.iter().position(|master| !leads(&servers[*master]) && leads(&servers[partner(*master)]));
        if let Some(third) = gone {
            let old = self.masters[third];
            self.masters[third] = partner(old);
            self.group.go(move |group, over| {
                over.tell();
                wait_until_whole(group, old);
            });
        }
        gone.is_some()
    }

    fn life(&self) -> String {
        let masters = self.masters.iter().map(|master| run_id(&self.group.servers[*master]));
        masters.collect::<Vec<_>>().join(" ")
    }
}
