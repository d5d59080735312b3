//! PostgreSQL under chaos: the server crashes and recovers, stands still, or ends every connection.

use std::time::Duration;

use tokio::runtime::Runtime;

use crate::chaos::backend::{Backend, Bears};
use crate::chaos::busy::Busy;
use crate::chaos::fault::ServerFault;
use crate::chaos::links::Links;
use crate::postgres_server::PostgresServer;

use super::{Store, names, runtime};

pub(super) const STORE: Store = Store {
    name: names::POSTGRES,
    bears: Bears {
        links: true,
        clocks: true,
        server: &[ServerFault::Crash, ServerFault::Stop, ServerFault::Disconnect],
        rests: Duration::from_millis(2_200),
        forgets: false,
    },
    start: |nodes| Box::new(Postgres::new(nodes)),
};

const DATABASE: &str = "chaos";

struct Postgres {
    server: Busy<PostgresServer>,
    links: Links,
    runtime: Runtime,
}

impl Postgres {
    fn new(nodes: usize) -> Self {
        // A page that is half written when the server is killed has to be made good.
        let server = PostgresServer::start_believing("full_page_writes = on");
        let runtime = runtime();
        runtime.block_on(server.database(DATABASE));
        Self { links: Links::new(nodes, &[server.port()]), server: Busy::new(server), runtime }
    }

    fn ask<T>(&self, sql: &'static str) -> T
    where
        T: Send + Unpin + for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
    {
        self.runtime.block_on(async {
            let mut connection = self.server.connect(DATABASE).await;
            sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
        })
    }
}

impl Backend for Postgres {
    fn name(&self) -> String {
        let version: String = self.ask("SELECT split_part(current_setting('server_version'), ' ', 1)");
        format!("postgresql {version}")
    }

    fn url(&self, node: usize) -> String {
        format!("postgres://owner:secret@{}/{DATABASE}", self.links.hosts(node))
    }

    fn links(&self) -> Option<&Links> {
        Some(&self.links)
    }

    fn begin(&mut self, fault: ServerFault, _pick: u64) {
        match fault {
            ServerFault::Crash => self.server.crash(),
            ServerFault::Stop => self.server.pause(),
            ServerFault::Disconnect => {
                let ended: i64 = self.ask(
                    "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity \
                     WHERE datname = current_database() AND pid <> pg_backend_pid()",
                );
                assert!(ended > 0, "no connection was ended");
            }
            other => panic!("{other:?} is not for PostgreSQL"),
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
        self.ask("SELECT pg_postmaster_start_time()::text")
    }
}
