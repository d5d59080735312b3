//! A real PostgreSQL for a test: a cluster of its own in a temporary folder, on a free port of 127.0.0.1 and on a unix socket,
//! stopped by its pid when dropped. Without the binaries the test fails; it is never skipped.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a test says what it expects; no test uses all of it"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use tempfile::TempDir;

use super::ports::free_port;
use super::server_process::{ServerProcess, pid, started};
use super::sql_server::{self, Programs};

/// A server may take so long to start, on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(60);

/// It kills what does not end with it after five seconds.
const END_LIMIT: Duration = Duration::from_secs(20);

/// Nothing in a test outlives its server, so the disk is not waited for. Without a limit a test that waits for a lock would
/// wait for ever.
const CONFIG: &str = "listen_addresses = '127.0.0.1'\nfsync = off\nfull_page_writes = off\nmax_connections = 600\n\
                      shared_buffers = 64MB\njit = off\nlog_min_messages = fatal\nlock_timeout = 100s\n";

const PROGRAMS: Programs = Programs { user: "postgres", package: "postgresql" };

/// A running server.
#[derive(Debug)]
pub struct PostgresServer {
    process: ServerProcess,
    dir: TempDir,
    port: u16,
}

impl PostgresServer {
    /// A server with the superuser `owner`, whose password is `secret`.
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// A server with further lines of configuration.
    pub fn start_with(config: &str) -> Self {
        Self::start_asking(config, "scram-sha-256")
    }

    /// A server that believes who says that he is `owner`: to prove a password takes a client without optimisation so long that
    /// a busy machine cannot connect within the time limit of an operation.
    pub fn start_believing(config: &str) -> Self {
        Self::start_asking(config, "trust")
    }

    fn start_asking(config: &str, for_what: &str) -> Self {
        let dir = PROGRAMS.folder();
        let (data, password) = (dir.path().join("data"), dir.path().join("password"));
        std::fs::write(&password, "secret").unwrap();
        let mut initdb = PROGRAMS.command("initdb", folders());
        initdb.arg("-D").arg(&data).args(["-U", "owner", "--no-sync", "--no-locale", "-E", "UTF8"]);
        initdb.args(["--auth-local=trust", &format!("--auth-host={for_what}")]).arg("--pwfile").arg(&password);
        PROGRAMS.make(&mut initdb);
        let more = format!("{CONFIG}unix_socket_directories = '{}'\n{config}\n", dir.path().display());
        let file = data.join("postgresql.conf");
        let standard = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, standard + &more).unwrap();
        let (process, port) = started(&format!("postgres with {more}"), || {
            let port = free_port();
            let process = spawn(&data, port);
            answers(&process, dir.path(), port).then_some((process, port))
        });
        Self { process, dir, port }
    }

    /// `postgres://owner:secret@127.0.0.1:port/database`.
    pub fn url(&self, database: &str) -> String {
        self.url_of("owner", database)
    }

    /// The same for another user with the same password.
    pub fn url_of(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}:secret@127.0.0.1:{}/{database}", self.port)
    }

    /// The url of the unix socket.
    pub fn unix_url(&self, database: &str) -> String {
        format!("postgres:///{database}?host={}&port={}&user=owner", self.dir.path().display(), self.port)
    }

    /// Its TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its folder, for certificates and the like.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A plain connection of the superuser, past everything that is tested.
    pub async fn connect(&self, database: &str) -> PgConnection {
        connect(self.dir.path(), self.port, database).await.expect("the server accepts a connection")
    }

    /// Runs SQL as the superuser.
    pub async fn sql(&self, database: &str, sql: &str) {
        let mut connection = self.connect(database).await;
        let done = sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(&mut connection).await;
        done.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let _ = connection.close().await;
    }

    /// Makes an empty database.
    pub async fn database(&self, name: &str) {
        self.sql("postgres", &format!("CREATE DATABASE {name}")).await;
    }

    /// The process; another one after each start.
    pub fn process(&self) -> u32 {
        self.process.id()
    }

    /// Stops the process where it is, with all that serve connections.
    pub fn pause(&self) {
        // First the one that starts others.
        self.process.pause();
        self.backends().into_iter().for_each(stop);
    }

    /// Stops one of the processes that serve connections, until [`Self::unpause`].
    pub fn stop_one(&self, backend: i64) {
        stop(u32::try_from(backend).expect("a process id"));
    }

    /// Lets a stopped server go on.
    pub fn unpause(&self) {
        self.signal_all(Signal::CONT);
    }

    /// Ends it at once, as a crash.
    pub fn kill(&mut self) {
        if self.process.has_ended() {
            return;
        }
        let _ = kill_process(pid(self.process.id()), Signal::QUIT);
        // A test may have failed while the server stood still.
        self.unpause();
        self.process.ends_within(END_LIMIT);
        self.crash();
    }

    /// kill -9, of the server and of all that serve connections.
    pub fn crash(&mut self) {
        self.signal_all(Signal::KILL);
        self.process.kill();
    }

    /// Starts it again at the same port after [`Self::kill`] or [`Self::crash`], with what was committed.
    pub fn start_again(&mut self) {
        self.process = spawn(&self.dir.path().join("data"), self.port);
        assert!(answers(&self.process, self.dir.path(), self.port), "postgres does not start again");
    }

    /// False when the server has ended.
    fn signal_all(&self, signal: Signal) -> bool {
        for child in self.backends() {
            let _ = kill_process(pid(child), signal);
        }
        kill_process(pid(self.process.id()), signal).is_ok()
    }

    /// The processes that it has started.
    fn backends(&self) -> Vec<u32> {
        let children = format!("/proc/{0}/task/{0}/children", self.process.id());
        let children = std::fs::read_to_string(children).unwrap_or_default();
        children.split_whitespace().filter_map(|child| child.parse().ok()).collect()
    }
}

/// Stops a process that has one thread and is no child of this one, and waits until it stands still, or has ended.
#[allow(clippy::disallowed_methods, reason = "the kernel tells only its parent")]
fn stop(process: u32) {
    let _ = kill_process(pid(process), Signal::STOP);
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    };
    while state().is_some_and(|state| !"TtZX".contains(state)) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The statements in docs/stores.md that give a user all it needs.
pub fn documented_grants() -> Vec<String> {
    sql_server::documented_grants("PostgreSQL", "CREATE ROLE ")
}

/// On PATH, or where Debian has them: the newest.
fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|versions| versions.flatten().map(|version| version.path().join("bin")).collect())
        .unwrap_or_default();
    folders.sort();
    folders.extend(sql_server::path());
    folders.reverse();
    folders
}

fn spawn(data: &Path, port: u16) -> ServerProcess {
    let mut command = PROGRAMS.command("postgres", folders());
    ServerProcess::spawn(command.arg("-D").arg(data).arg("-p").arg(port.to_string()), PROGRAMS.package)
}

async fn connect(folder: &Path, port: u16, database: &str) -> Result<PgConnection, sqlx::Error> {
    // Its own socket, so that no other server can answer for it.
    PgConnectOptions::new_without_pgpass()
        .socket(folder)
        .port(port)
        .username("owner")
        .database(database)
        .connect()
        .await
}

/// False when it ended instead.
fn answers(process: &ServerProcess, dir: &Path, port: u16) -> bool {
    let what = || format!("an answer of postgres at port {port}");
    process.wait_until(START_LIMIT, what, || sql_server::answers(connect(dir, port, "postgres")))
}
