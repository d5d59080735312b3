//! MariaDB under chaos: the server crashes and recovers, stands still, or ends every connection.

use std::time::Duration;

use tokio::runtime::Runtime;

use crate::chaos::backend::{Backend, Bears};
use crate::chaos::busy::Busy;
use crate::chaos::fault::ServerFault;
use crate::chaos::links::Links;
use crate::mariadb_server::MariadbServer;

use super::{Store, names, runtime};

pub(super) const STORE: Store = Store {
    name: names::MARIADB,
    bears: Bears {
        links: true,
        clocks: true,
        server: &[ServerFault::Crash, ServerFault::Stop, ServerFault::Disconnect],
        rests: Duration::from_millis(2_200),
        forgets: false,
    },
    start: |nodes| Box::new(Mariadb::new(nodes)),
};

const DATABASE: &str = "chaos";

struct Mariadb {
    server: Busy<MariadbServer>,
    links: Links,
    runtime: Runtime,
}

impl Mariadb {
    fn new(nodes: usize) -> Self {
        let runtime = runtime();
        // A page that is half written when the server is killed has to be made good.
        let server = runtime.block_on(MariadbServer::start_with(&["--innodb-doublewrite=1"]));
        runtime.block_on(server.database(DATABASE));
        Self { links: Links::new(nodes, &[server.port()]), server: Busy::new(server), runtime }
    }

    fn ask<T>(&self, sql: &'static str) -> Vec<T>
    where
        T: Send + Unpin + for<'r> sqlx::Decode<'r, sqlx::MySql> + sqlx::Type<sqlx::MySql>,
    {
        self.runtime.block_on(async {
            let mut connection = self.server.connect(DATABASE).await;
            sqlx::query_scalar(sql).fetch_all(&mut connection).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
        })
    }

    /// Ends every connection of the nodes' user; one may have ended by itself.
    fn disconnect(&self) {
        self.runtime.block_on(async {
            let mut connection = self.server.connect(DATABASE).await;
            let found = "SELECT id FROM information_schema.processlist WHERE user = 'owner'";
            let ids: Vec<i64> = sqlx::query_scalar(found).fetch_all(&mut connection).await.unwrap();
            assert!(!ids.is_empty(), "no connection is there to be ended");
            for id in ids {
                let kill = sqlx::AssertSqlSafe(format!("KILL CONNECTION {id}"));
                let _ = sqlx::raw_sql(kill).execute(&mut connection).await;
            }
        });
    }
}

impl Backend for Mariadb {
    fn name(&self) -> String {
        let version: Vec<String> = self.ask("SELECT substring_index(version(), '-', 1)");
        format!("mariadb {}", version[0])
    }

    fn url(&self, node: usize) -> String {
        format!("mysql://owner:secret@{}/{DATABASE}", self.links.hosts(node))
    }

    fn links(&self) -> Option<&Links> {
        Some(&self.links)
    }

    fn begin(&mut self, fault: ServerFault, _pick: u64) {
        match fault {
            ServerFault::Crash => self.server.kill(),
            ServerFault::Stop => self.server.pause(),
            ServerFault::Disconnect => self.disconnect(),
            other => panic!("{other:?} is not for MariaDB"),
        }
    }

    fn end(&mut self, fault: ServerFault) {
        match fault {
            ServerFault::Crash => self.server.go(|server, _| runtime().block_on(server.start_again())),
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
