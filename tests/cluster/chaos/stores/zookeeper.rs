//! ZooKeeper under chaos: the server crashes and comes back with its data, stands still, or every session expires.

use std::sync::Arc;
use std::time::Duration;

use crate::chaos::backend::{Backend, Bears};
use crate::chaos::busy::Busy;
use crate::chaos::fault::ServerFault;
use crate::chaos::links::Links;
use crate::link::Link;
use crate::proxy::Mode;
use crate::wait;
use crate::zookeeper_server::ZookeeperServer;

use super::{Store, names};

pub(super) const STORE: Store = Store {
    name: names::ZOOKEEPER,
    bears: Bears {
        links: true,
        clocks: true,
        server: &[ServerFault::Crash, ServerFault::Stop, ServerFault::Expire],
        // Java takes its time to start.
        rests: Duration::from_millis(4_500),
        forgets: false,
        locks: true,
    },
    start: |nodes| Box::new(Zookeeper::new(nodes)),
};

/// The server keeps sessions for twenty of these at the most: a storm has room for all to expire.
const TICK: Duration = Duration::from_millis(100);

struct Zookeeper {
    server: Busy<ZookeeperServer>,
    /// Through which every link goes.
    gate: Arc<Link>,
    links: Links,
    /// How many sessions had expired when the gate was shut.
    expired: u64,
}

impl Zookeeper {
    fn new(nodes: usize) -> Self {
        let server = ZookeeperServer::start_with_tick(TICK);
        let gate = Arc::new(Link::to(server.port()));
        Self { links: Links::new(nodes, &[gate.port()]), server: Busy::new(server), gate, expired: 0 }
    }
}

impl Backend for Zookeeper {
    fn name(&self) -> String {
        format!("zookeeper {}", self.server.version())
    }

    fn url(&self, node: usize) -> String {
        format!("zookeeper://{}", self.links.hosts(node))
    }

    fn links(&self) -> Option<&Links> {
        Some(&self.links)
    }

    fn begin(&mut self, fault: ServerFault, _pick: u64) {
        match fault {
            ServerFault::Crash => self.server.kill(),
            ServerFault::Stop => self.server.pause(),
            ServerFault::Expire => {
                self.expired = self.server.expired_sessions();
                self.gate.set(Mode::Refuse);
            }
            other => panic!("{other:?} is not for ZooKeeper"),
        }
    }

    fn end(&mut self, fault: ServerFault) {
        match fault {
            ServerFault::Crash => self.server.go(|server, _| server.start_again()),
            ServerFault::Stop => self.server.unpause(),
            ServerFault::Expire => {
                let (gate, before) = (Arc::clone(&self.gate), self.expired);
                self.server.go(move |server, _| {
                    wait::until_true("a session has expired", || server.expired_sessions() > before);
                    gate.set(Mode::Pass);
                });
            }
            _ => {}
        }
    }

    fn is_over(&mut self) -> bool {
        self.server.is_over()
    }

    fn is_ready(&mut self) -> bool {
        self.server.is_ready()
    }

    fn life(&self) -> String {
        self.server.process().to_string()
    }
}
