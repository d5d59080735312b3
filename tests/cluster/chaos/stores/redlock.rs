//! Five independent Redis masters under chaos, one at a time: it dies and comes back without its data, stands still, drops its
//! connections. Nothing of it may cost a slot anything.

use std::time::Duration;

use crate::chaos::backend::{Backend, Bears};
use crate::chaos::fault::ServerFault;
use crate::chaos::links::Links;
use crate::redis_server::RedisServer;

use super::redis::{drop_clients, run_id, version};
use super::{Store, names};

pub(super) const STORE: Store = Store {
    name: names::REDLOCK,
    bears: Bears {
        links: true,
        clocks: true,
        server: &[ServerFault::Crash, ServerFault::Stop, ServerFault::Disconnect, ServerFault::ScriptFlush],
        // One that has begun anew counts again only after a lease.
        rests: Duration::from_millis(2_500),
        forgets: false,
        locks: false,
    },
    start: |nodes| Box::new(Redlock::new(nodes)),
};

const MASTERS: usize = 5;

struct Redlock {
    masters: Vec<RedisServer>,
    links: Links,
    struck: usize,
}

impl Redlock {
    fn new(nodes: usize) -> Self {
        let masters: Vec<_> = (0..MASTERS).map(|_| RedisServer::start_dying_with_its_starter(&[])).collect();
        masters.iter().for_each(RedisServer::make_old);
        let ports: Vec<u16> = masters.iter().map(RedisServer::port).collect();
        Self { masters, links: Links::new(nodes, &ports), struck: 0 }
    }
}

impl Backend for Redlock {
    fn name(&self) -> String {
        format!("redlock of {MASTERS}, redis {}", version(&self.masters[0]))
    }

    fn url(&self, node: usize) -> String {
        format!("redlock://{}", self.links.hosts(node))
    }

    fn links(&self) -> Option<&Links> {
        Some(&self.links)
    }

    fn begin(&mut self, fault: ServerFault, pick: u64) {
        self.struck = usize::try_from(pick % 97).unwrap() % MASTERS;
        let master = &mut self.masters[self.struck];
        match fault {
            ServerFault::Crash => master.kill(),
            ServerFault::Stop => master.pause(),
            ServerFault::Disconnect => drop_clients(master),
            ServerFault::ScriptFlush => {
                master.command(&["SCRIPT", "FLUSH"]);
            }
            other => panic!("{other:?} is not for independent masters"),
        }
    }

    fn end(&mut self, fault: ServerFault) {
        let master = &mut self.masters[self.struck];
        match fault {
            ServerFault::Crash => master.start_empty(),
            ServerFault::Stop => master.unpause(),
            _ => {}
        }
    }

    fn life(&self) -> String {
        self.masters.iter().map(run_id).collect::<Vec<_>>().join(" ")
    }
}
