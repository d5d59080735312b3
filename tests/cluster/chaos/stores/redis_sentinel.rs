//! Redis behind three sentinels: the master dies or stands still, and its replica takes over with what it knows.

use std::time::Duration;

use crate::chaos::backend::{Backend, Bears};
use crate::chaos::busy::{Busy, Over};
use crate::chaos::fault::ServerFault;
use crate::redis_group::{SentinelGroup, field, follows, until};
use crate::redis_server::RedisServer;
use crate::wait;

use super::redis::{drop_clients, run_id, version};
use super::{Store, names};

pub(super) const STORE: Store = Store {
    name: names::REDIS_SENTINEL,
    bears: Bears {
        // The sentinels tell where the master is, past every proxy.
        links: false,
        clocks: true,
        server: &[ServerFault::Failover, ServerFault::Frozen, ServerFault::Disconnect, ServerFault::ScriptFlush],
        // Two seconds until the sentinels miss the master, one for the election, and the old one has to follow.
        rests: Duration::from_secs(7),
        forgets: true,
        locks: true,
    },
    start: |_| Box::new(Sentinel(Busy::new(SentinelGroup::start()))),
};

/// A master that wakes up among sentinels that have left it takes writes for this long before it is told: a sentinel itself
/// takes up to ten seconds.
const SPLIT: Duration = Duration::from_millis(2_500);

/// Its `master` is always the one that leads.
struct Sentinel(Busy<SentinelGroup>);

fn info(server: &RedisServer, section: &str) -> String {
    let told = server.try_command(&["INFO", section]).and_then(|info| Ok(redis::from_redis_value::<String>(info)?));
    told.unwrap_or_default()
}

/// Every sentinel names the replica as the master, and it agrees.
fn wait_for_promotion(group: &SentinelGroup) {
    let port = group.replica.port().to_string();
    let named = |sentinel: &RedisServer| {
        let master = sentinel.try_command(&["SENTINEL", "MASTER", "mymaster"]);
        master.is_ok_and(|master| field(&master, "port") == port)
    };
    until("the replica has taken over", || {
        info(&group.replica, "replication").contains("role:master") && group.sentinels.iter().all(named)
    });
}

/// The old master follows the new one, and the sentinels know it as a replica that can take over.
fn wait_for_replica(group: &SentinelGroup) {
    let knows = |sentinel: &RedisServer| {
        let replicas = sentinel.try_command(&["SENTINEL", "REPLICAS", "mymaster"]);
        let replicas = replicas.and_then(|list| Ok(redis::from_redis_value::<Vec<redis::Value>>(list)?));
        // Not down, and not disconnected.
        replicas.is_ok_and(|list| list.iter().any(|replica| field(replica, "flags") == "slave"))
    };
    until("the old master follows the new one", || follows(&group.replica));
    until("the sentinels know the replica", || group.sentinels.iter().all(knows));
}

/// The replica takes over; the old master is gone, or wakes up some time later and has to be told.
fn take_over(group: &mut SentinelGroup, was_killed: bool, over: &Over) {
    wait_for_promotion(group);
    std::mem::swap(&mut group.master, &mut group.replica);
    group.master.command(&["CONFIG", "SET", "masterauth", ""]);
    if was_killed {
        group.replica.start_empty();
    } else {
        group.replica.unpause();
        wait::let_pass(SPLIT);
    }
    let port = group.master.port().to_string();
    until("the old master can be told", || group.replica.try_command(&["REPLICAOF", "127.0.0.1", &port]).is_ok());
    over.tell();
    wait_for_replica(group);
}

impl Backend for Sentinel {
    fn name(&self) -> String {
        format!("redis-sentinel {}", version(&self.0.master))
    }

    fn url(&self, _node: usize) -> String {
        self.0.url()
    }

    fn begin(&mut self, fault: ServerFault, _pick: u64) {
        match fault {
            ServerFault::Failover => self.0.cut_replication(),
            ServerFault::Frozen => self.0.master.pause(),
            ServerFault::Disconnect => drop_clients(&self.0.master),
            ServerFault::ScriptFlush => drop(self.0.master.command(&["SCRIPT", "FLUSH"])),
            other => panic!("{other:?} is not for sentinels"),
        }
    }

    fn end(&mut self, fault: ServerFault) {
        match fault {
            ServerFault::Failover => {
                self.0.master.kill();
                self.0.go(|group, over| take_over(group, true, over));
            }
            ServerFault::Frozen => self.0.go(|group, over| take_over(group, false, over)),
            _ => {}
        }
    }

    fn is_over(&mut self) -> bool {
        self.0.is_over()
    }

    fn is_ready(&mut self) -> bool {
        self.0.is_ready()
    }

    fn has_switched(&mut self) -> bool {
        let has = info(&self.0.replica, "replication").contains("role:master");
        if has {
            self.0.go(|group, over| take_over(group, false, over));
        }
        has
    }

    fn life(&self) -> String {
        run_id(&self.0.master)
    }
}
