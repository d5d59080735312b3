//! A success that is lost in a failover that sentinels make.

use crate::redis_group::SentinelGroup;
use crate::redis_sentinel::lost_success::{
    Failover, what_a_node_has_done_stays_done, what_only_the_dead_knew_is_done_once_more,
};
use crate::redis_server::RedisServer;

impl Failover for SentinelGroup {
    fn url(&self) -> String {
        Self::url(self)
    }

    fn master(&self) -> &RedisServer {
        &self.master
    }

    fn replica(&self) -> &RedisServer {
        &self.replica
    }

    fn cut_replication(&self) {
        Self::cut_replication(self);
    }

    fn fail_over(&mut self) {
        self.master.kill();
        self.wait_for_failover();
    }

    fn log_of(&self, slot: &str) -> String {
        format!("cronward:default:{{once@{slot}}}:log")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_node_has_done_stays_done_where_a_failover_has_lost_it() {
    what_a_node_has_done_stays_done(SentinelGroup::start()).await;
}

#[test]
fn what_only_a_dead_node_and_a_dead_master_knew_is_done_once_more_and_the_failover_explains_it() {
    what_only_the_dead_knew_is_done_once_more(SentinelGroup::start());
}
