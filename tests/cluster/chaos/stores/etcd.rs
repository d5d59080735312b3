//! Three members of etcd under chaos: it is always the leader that dies or stands still, so that another is elected.

use std::time::Duration;

use serde_json::json;

use crate::chaos::backend::{Backend, Bears};
use crate::chaos::busy::Busy;
use crate::chaos::fault::ServerFault;
use crate::chaos::links::Links;
use crate::etcd_server::EtcdServer;
use crate::wait;

use super::{Store, names};

pub(super) const STORE: Store = Store {
    name: names::ETCD,
    bears: Bears {
        links: true,
        // It has no clock to be asked: slots are judged by each node's own.
        clocks: false,
        server: &[ServerFault::Crash, ServerFault::Stop, ServerFault::Switch],
        // An election takes one to two seconds.
        rests: Duration::from_secs(4),
        forgets: false,
        locks: true,
    },
    start: |nodes| Box::new(Etcd::new(nodes)),
};

struct Etcd {
    members: Busy<Vec<EtcdServer>>,
    links: Links,
    struck: usize,
}

/// Who leads in which term, if all agree.
fn leader(members: &[EtcdServer]) -> Option<String> {
    let named = |member: &EtcdServer| {
        let status = member.try_ask("maintenance/status", &json!({})).ok()?;
        let leader = status["leader"].as_str().filter(|leader| *leader != "0")?;
        Some(format!("{leader} in term {}", status["raftTerm"].as_str()?))
    };
    let first = named(members.first()?)?;
    members.iter().all(|member| named(member).as_ref() == Some(&first)).then_some(first)
}

fn wait_for_leader(members: &[EtcdServer]) -> String {
    wait::until("all members agree on a leader", || leader(members))
}

impl Etcd {
    fn new(nodes: usize) -> Self {
        let members = EtcdServer::start_cluster();
        wait_for_leader(&members);
        let ports: Vec<u16> = members.iter().map(EtcdServer::port).collect();
        Self { members: Busy::new(members), links: Links::new(nodes, &ports), struck: 0 }
    }

    /// Hands the lead to the next member.
    fn hand_over(&self) {
        let next = &self.members[(self.struck + 1) % self.members.len()];
        let status = next.ask("maintenance/status", &json!({}));
        let order = json!({ "targetID": status["header"]["member_id"] });
        let leads = &self.members[self.struck];
        wait::until_true("the lead is handed over", || {
            leads.try_ask("maintenance/transfer-leadership", &order).is_ok() || !leads.is_leader()
        });
    }
}

impl Backend for Etcd {
    fn name(&self) -> String {
        let status = self.members[0].ask("maintenance/status", &json!({}));
        format!("etcd {}", status["version"].as_str().unwrap())
    }

    fn url(&self, node: usize) -> String {
        format!("etcd://{}", self.links.hosts(node))
    }

    fn links(&self) -> Option<&Links> {
        Some(&self.links)
    }

    fn begin(&mut self, fault: ServerFault, _pick: u64) {
        self.struck = wait::until("a member leads", || self.members.iter().position(EtcdServer::is_leader));
        let struck = self.struck;
        match fault {
            ServerFault::Crash => self.members[struck].kill(),
            ServerFault::Stop => self.members[struck].pause(),
            ServerFault::Switch => self.hand_over(),
            other => panic!("{other:?} is not for etcd"),
        }
    }

    fn end(&mut self, fault: ServerFault) {
        let struck = self.struck;
        self.members.go(move |members, over| {
            match fault {
                ServerFault::Crash => members[struck].start_again(),
                ServerFault::Stop => members[struck].unpause(),
                _ => {}
            }
            over.tell();
            wait_for_leader(members);
        });
    }

    fn is_over(&mut self) -> bool {
        self.members.is_over()
    }

    fn is_ready(&mut self) -> bool {
        self.members.is_ready()
    }

    fn life(&self) -> String {
        wait_for_leader(&self.members)
    }
}
