//! A database server under chaos: it crashes and recovers, stands still, or ends every connection. What a dialect has of its own is
//! in the module that takes this one in.

use std::time::Duration;

use tokio::runtime::Runtime;

use crate::chaos::backend::{Backend, Bears};
use crate::chaos::busy::Busy;
use crate::chaos::fault::ServerFault;
use crate::chaos::links::Links;

use super::super::runtime;
use super::{SCHEME, SESSIONS, Server, VERSION, crash, kill, start};

pub(super) const BEARS: Bears = Bears {
    links: true,
    clocks: true,
    server: &[ServerFault::Crash, ServerFault::Stop, ServerFault::Disconnect],
    rests: Duration::from_millis(2_200),
    forgets: false,
    locks: true,
};

const DATABASE: &str = "chaos";

pub(super) struct Struck {
    server: Busy<Server>,
    links: Links,
    runtime: Runtime,
}

impl Struck {
    pub(super) fn boxed(nodes: usize) -> Box<dyn Backend> {
        let (server, runtime) = (start(), runtime());
        runtime.block_on(server.database(DATABASE));
        Box::new(Self { links: Links::new(nodes, &[server.port()]), server: Busy::new(server), runtime })
    }

    /// Ends every connection of the nodes' user; one may have ended by itself.
    fn disconnect(&self) {
        self.runtime.block_on(async {
            let mut connection = self.server.connect(DATABASE).await;
            let sessions: Vec<i64> = sqlx::query_scalar(SESSIONS).fetch_all(&mut connection).await.unwrap();
            assert!(!sessions.is_empty(), "no connection is there to be ended");
            for session in sessions {
                let _ = sqlx::raw_sql(sqlx::AssertSqlSafe(kill(session))).execute(&mut connection).await;
            }
        });
    }
}

impl Backend for Struck {
    fn name(&self) -> String {
        self.runtime.block_on(async {
            let mut connection = self.server.connect(DATABASE).await;
            sqlx::query_scalar(VERSION).fetch_one(&mut connection).await.unwrap()
        })
    }

    fn url(&self, node: usize) -> String {
        format!("{SCHEME}://owner:secret@{}/{DATABASE}", self.links.hosts(node))
    }

    fn links(&self) -> Option<&Links> {
        Some(&self.links)
    }

    fn begin(&mut self, fault: ServerFault, _pick: u64) {
        match fault {
            ServerFault::Crash => crash(&mut self.server),
            ServerFault::Stop => self.server.pause(),
            ServerFault::Disconnect => self.disconnect(),
            other => panic!("{other:?} is not for a database server"),
        }
    }

    fn end(&mut self, fault: ServerFault) {
        match fault {
            ServerFault::Crash => self.server.go(|server, _| server.start_again()),
            ServerFault::Stop => self.server.unpause(),
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
