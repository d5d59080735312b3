//! A success that is lost where a master of the cluster dies and its replica, which lacks it, takes over.

use crate::redis_cluster::lost_success::{
    Failover, what_a_node_has_done_stays_done, what_only_the_dead_knew_is_done_once_more,
};
use crate::redis_group::{ClusterGroup, is_master, until};
use crate::redis_server::RedisServer;

/// The cluster, and which of its masters keeps the job `once`.
struct Keeper {
    group: ClusterGroup,
    index: usize,
}

impl Keeper {
    fn start() -> Self {
        let group = ClusterGroup::start();
        let index = group.keeper_of("{once}");
        Self { group, index }
    }
}

impl Failover for Keeper {
    fn url(&self) -> String {
        self.group.url()
    }

    fn master(&self) -> &RedisServer {
        &self.group.servers[self.index]
    }

    fn replica(&self) -> &RedisServer {
        &self.group.servers[self.index + 3]
    }

    fn cut_replication(&self) {
        self.group.cut_replication(self.index);
    }

    fn fail_over(&mut self) {
        self.group.servers[self.index].kill();
        until("the replica has taken over", || is_master(self.replica()));
    }

    fn log_of(&self, slot: &str) -> String {
        format!("cronward:default:{{once}}@{slot}:log")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_node_has_done_stays_done_where_a_failover_has_lost_it() {
    what_a_node_has_done_stays_done(Keeper::start()).await;
}

#[test]
fn what_only_a_dead_node_and_a_dead_master_knew_is_done_once_more_and_the_failover_explains_it() {
    what_only_the_dead_knew_is_done_once_more(Keeper::start());
}
