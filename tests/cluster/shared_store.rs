//! Each store that keeps locks, alike for a trial: where it is, a way to it that can be cut, and the loss of what it keeps.

use std::path::PathBuf;

use sqlx::{Connection as _, SqliteConnection};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, SemaphorePermit};

#[cfg(feature = "etcd")]
use crate::etcd_server::EtcdServer;
use crate::link::Link;
#[cfg(feature = "mysql")]
use crate::mariadb_server::MariadbServer;
use crate::place::Place;
#[cfg(feature = "postgres")]
use crate::postgres_server::PostgresServer;
use crate::proxy::Mode;
use crate::redis_server::RedisServer;
#[cfg(feature = "zookeeper")]
use crate::zookeeper_server::{ZookeeperServer, remove_all};

/// Starts one for a trial.
type Start = fn(&Place) -> SharedStore;

/// Each by its name.
pub(crate) const ALL: &[(&str, Start)] = &[
    #[cfg(feature = "zookeeper")]
    ("zookeeper", |_| SharedStore::start(|| Server::Zookeeper(ZookeeperServer::start()))),
    #[cfg(feature = "mysql")]
    ("mariadb", |_| SharedStore::start(|| Server::Mariadb(MariadbServer::start()))),
    #[cfg(feature = "postgres")]
    ("postgresql", |_| SharedStore::start(|| Server::Postgres(PostgresServer::start()))),
    #[cfg(feature = "etcd")]
    ("etcd", |_| SharedStore::start(|| Server::Etcd(EtcdServer::start()))),
    ("redis", |_| SharedStore::start(|| Server::Redis(RedisServer::start()))),
    ("a_file", |place| SharedStore::start(|| Server::File(place.file("store.db")))),
];

#[cfg(any(feature = "postgres", feature = "mysql"))]
const DATABASE: &str = "shared";

/// So many servers at once: they compute while they start.
const SERVERS: usize = 8;

static ROOM: Semaphore = Semaphore::const_new(SERVERS);

/// A store of its own for a trial.
pub(crate) struct SharedStore {
    server: Server,
    url: String,
    runtime: Runtime,
    _room: SemaphorePermit<'static>,
}

enum Server {
    Redis(RedisServer),
    File(PathBuf),
    #[cfg(feature = "postgres")]
    Postgres(PostgresServer),
    #[cfg(feature = "mysql")]
    Mariadb(MariadbServer),
    #[cfg(feature = "etcd")]
    Etcd(EtcdServer),
    #[cfg(feature = "zookeeper")]
    Zookeeper(ZookeeperServer),
}

/// A way to a store that can be cut.
pub(crate) struct Way<'a> {
    store: &'a SharedStore,
    link: Option<Link>,
    url: String,
    /// Of a file: nobody else writes while this is there.
    writer: Option<SqliteConnection>,
}

impl SharedStore {
    fn start(server: impl FnOnce() -> Server) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let room = runtime.block_on(ROOM.acquire()).unwrap();
        let server = server();
        let url = match &server {
            Server::Redis(server) => server.url(),
            Server::File(path) => format!("sqlite:{}", path.display()),
            #[cfg(feature = "postgres")]
            Server::Postgres(server) => {
                runtime.block_on(server.database(DATABASE));
                server.url(DATABASE)
            }
            #[cfg(feature = "mysql")]
            Server::Mariadb(server) => {
                runtime.block_on(server.database(DATABASE));
                server.url(DATABASE)
            }
            #[cfg(feature = "etcd")]
            Server::Etcd(server) => server.url(),
            #[cfg(feature = "zookeeper")]
            Server::Zookeeper(server) => server.url(),
        };
        Self { server, url, runtime, _room: room }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Whether all who use it are on one host, so that none is cut off alone.
    pub(crate) const fn is_a_file(&self) -> bool {
        matches!(self.server, Server::File(_))
    }

    /// Its port; none of a file.
    fn port(&self) -> Option<u16> {
        match &self.server {
            Server::Redis(server) => Some(server.port()),
            Server::File(_) => None,
            #[cfg(feature = "postgres")]
            Server::Postgres(server) => Some(server.port()),
            #[cfg(feature = "mysql")]
            Server::Mariadb(server) => Some(server.port()),
            #[cfg(feature = "etcd")]
            Server::Etcd(server) => Some(server.port()),
            #[cfg(feature = "zookeeper")]
            Server::Zookeeper(server) => Some(server.port()),
        }
    }

    /// To a server it is a link of its own, and to a file the one that all share.
    pub(crate) fn way(&self) -> Way<'_> {
        let link = self.port().map(Link::to);
        let url = match (self.port(), &link) {
            (Some(port), Some(link)) => self.url.replace(&format!(":{port}"), &format!(":{}", link.port())),
            _ => self.url.clone(),
        };
        Way { store: self, link, url, writer: None }
    }

    /// The server stands still, with all of its connections; nobody writes to the file.
    pub(crate) fn stands_still(&self) -> Still<'_> {
        match &self.server {
            Server::Redis(server) => server.pause(),
            Server::File(_) => return Still { store: self, _writer: Some(self.only_writer()) },
            #[cfg(feature = "postgres")]
            Server::Postgres(server) => server.pause(),
            #[cfg(feature = "mysql")]
            Server::Mariadb(server) => server.pause(),
            #[cfg(feature = "etcd")]
            Server::Etcd(server) => server.pause(),
            #[cfg(feature = "zookeeper")]
            Server::Zookeeper(server) => server.pause(),
        }
        Still { store: self, _writer: None }
    }

    fn goes_on(&self) {
        match &self.server {
            Server::Redis(server) => server.unpause(),
            Server::File(_) => {}
            #[cfg(feature = "postgres")]
            Server::Postgres(server) => server.unpause(),
            #[cfg(feature = "mysql")]
            Server::Mariadb(server) => server.unpause(),
            #[cfg(feature = "etcd")]
            Server::Etcd(server) => server.unpause(),
            #[cfg(feature = "zookeeper")]
            Server::Zookeeper(server) => server.unpause(),
        }
    }

    /// Loses every lock.
    pub(crate) fn forgets_locks(&self) {
        match &self.server {
            Server::Redis(server) => drop(server.command(&["FLUSHALL"])),
            Server::File(_) => {
                self.runtime.block_on(async { run(&mut self.connect().await, "DELETE FROM locks").await });
            }
            #[cfg(feature = "postgres")]
            Server::Postgres(server) => self.runtime.block_on(server.sql(DATABASE, "DELETE FROM cronward_locks")),
            #[cfg(feature = "mysql")]
            Server::Mariadb(server) => self.runtime.block_on(server.sql(DATABASE, "DELETE FROM cronward_locks")),
            #[cfg(feature = "etcd")]
            Server::Etcd(server) => server.remove_all("/cronward/"),
            #[cfg(feature = "zookeeper")]
            Server::Zookeeper(server) => self.runtime.block_on(async {
                let client = server.connect().await;
                // Who writes meanwhile has folders that are not empty again.
                let _ = remove_all(&client, "/cronward").await;
            }),
        }
    }

    async fn connect(&self) -> SqliteConnection {
        let mut connection = SqliteConnection::connect(&self.url).await.unwrap();
        run(&mut connection, "PRAGMA busy_timeout = 10000").await;
        connection
    }

    fn only_writer(&self) -> SqliteConnection {
        self.runtime.block_on(async {
            let mut writer = self.connect().await;
            run(&mut writer, "BEGIN IMMEDIATE").await;
            writer
        })
    }
}

async fn run(connection: &mut SqliteConnection, sql: &'static str) {
    sqlx::raw_sql(sql).execute(connection).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// A store that stands still until this is dropped.
pub(crate) struct Still<'a> {
    store: &'a SharedStore,
    _writer: Option<SqliteConnection>,
}

impl Drop for Still<'_> {
    fn drop(&mut self) {
        self.store.goes_on();
    }
}

impl Way<'_> {
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// From now on nothing passes.
    pub(crate) fn cut(&mut self) {
        match &self.link {
            Some(link) => link.set(Mode::Refuse),
            None => self.writer = Some(self.store.only_writer()),
        }
    }

    /// Everything passes again.
    pub(crate) fn mend(&mut self) {
        self.writer = None;
        if let Some(link) = &self.link {
            link.set(Mode::Pass);
        }
    }
}
