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
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::unistd::{Uid, User};
use rustix::process::{Pid, Signal, kill_process};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use tempfile::TempDir;

use self::ports::free_port;

#[allow(clippy::duplicate_mod, reason = "each kind of server can be had alone")]
#[path = "ports.rs"]
mod ports;

/// A server may take so long to start, on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(60);

/// A server that is there answers so soon; one that takes longer is asked again.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// It kills what does not end with it after five seconds.
const END_LIMIT: Duration = Duration::from_secs(20);

/// Nothing in a test outlives its server, so the disk is not waited for. Without a limit a test that waits for a lock would
/// wait for ever.
const CONFIG: &str = "listen_addresses = '127.0.0.1'\nfsync = off\nfull_page_writes = off\nmax_connections = 600\n\
                      shared_buffers = 64MB\njit = off\nlog_min_messages = fatal\nlock_timeout = 100s\n";

/// A running server.
#[derive(Debug)]
pub struct PostgresServer {
    child: Child,
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
        let dir = TempDir::with_prefix("cronward-postgres-").expect("a temporary folder");
        let user = unprivileged();
        if let Some(user) = &user {
            std::os::unix::fs::chown(dir.path(), Some(user.uid.as_raw()), Some(user.gid.as_raw())).unwrap();
        }
        let (data, password) = (dir.path().join("data"), dir.path().join("password"));
        std::fs::write(&password, "secret").unwrap();
        let mut initdb = program("initdb");
        initdb.arg("-D").arg(&data).args(["-U", "owner", "--no-sync", "--no-locale", "-E", "UTF8"]);
        initdb.args(["--auth-local=trust", &format!("--auth-host={for_what}")]).arg("--pwfile").arg(&password);
        let made = initdb.output().unwrap_or_else(|error| panic!("cannot run initdb ({error}): {HINT}"));
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let more = format!("{CONFIG}unix_socket_directories = '{}'\n{config}\n", dir.path().display());
        let file = data.join("postgresql.conf");
        let standard = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, standard + &more).unwrap();
        // Another process may take the port between its choice and its use.
        for _ in 0..5 {
            let port = free_port();
            let mut child = spawn(&data, port);
            if wait_until_it_answers(&mut child, dir.path(), port) {
                return Self { child, dir, port };
            }
        }
        panic!("postgres does not start with {more}");
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

    /// Stops the process where it is, with all that serve connections.
    pub fn pause(&self) {
        assert!(self.signal_all(Signal::STOP), "the server is there to be stopped");
    }

    /// Stops one of the processes that serve connections, until [`Self::unpause`].
    pub fn stop_one(&self, backend: i64) {
        kill_process(pid(u32::try_from(backend).expect("a process id")), Signal::STOP).expect("the backend is there");
    }

    /// Lets a stopped server go on.
    pub fn unpause(&self) {
        self.signal_all(Signal::CONT);
    }

    /// Ends it at once, as a crash.
    #[allow(clippy::disallowed_methods, reason = "a real process: there is no signal to wait for but its end")]
    pub fn kill(&mut self) {
        let ended = |child: &mut Child| child.try_wait().is_ok_and(|ended| ended.is_some());
        if ended(&mut self.child) {
            return;
        }
        let _ = kill_process(pid(self.child.id()), Signal::QUIT);
        // A test may have failed while the server stood still.
        self.unpause();
        let limit = Instant::now() + END_LIMIT;
        while !ended(&mut self.child) && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(5));
        }
        if !ended(&mut self.child) {
            self.crash();
        }
    }

    /// kill -9, of the server and of all that serve connections.
    pub fn crash(&mut self) {
        self.signal_all(Signal::KILL);
        let _ = self.child.wait();
    }

    /// Starts it again at the same port after [`Self::kill`] or [`Self::crash`], with what was committed.
    pub fn start_again(&mut self) {
        self.child = spawn(&self.dir.path().join("data"), self.port);
        assert!(wait_until_it_answers(&mut self.child, self.dir.path(), self.port), "postgres does not start again");
    }

    /// False when the server has ended.
    fn signal_all(&self, signal: Signal) -> bool {
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        let children = std::fs::read_to_string(children).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
            let _ = kill_process(pid(child), signal);
        }
        kill_process(pid(self.child.id()), signal).is_ok()
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The statements in docs/stores.md that give a user all it needs.
pub fn documented_grants() -> Vec<String> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/stores.md")).expect("docs/stores.md");
    let section = page.split("\n## ").find(|section| section.starts_with("PostgreSQL")).expect("a section");
    let grants = section.lines().filter(|line| line.starts_with("GRANT ") || line.starts_with("CREATE ROLE "));
    grants.map(str::to_owned).collect()
}

const HINT: &str = "apt-get install postgresql";

fn pid(id: u32) -> Pid {
    i32::try_from(id).ok().and_then(Pid::from_raw).expect("a pid")
}

/// PostgreSQL refuses to run as root.
fn unprivileged() -> Option<User> {
    let named = |name| User::from_name(name).ok().flatten();
    Uid::effective().is_root().then(|| named("postgres").or_else(|| named("nobody")).expect("a user for the server"))
}

/// A program of PostgreSQL, run as a user that it accepts: on PATH, or where Debian has it.
fn program(name: &str) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|versions| versions.flatten().map(|version| version.path().join("bin")).collect())
        .unwrap_or_default();
    folders.sort();
    folders.extend(std::env::split_paths(&path));
    let found = folders.iter().rev().map(|folder| folder.join(name)).find(|program| program.is_file());
    let found = found.unwrap_or_else(|| panic!("there is no {name}: {HINT}"));
    let Some(user) = unprivileged() else { return Command::new(found) };
    let mut command = Command::new("setpriv");
    command.arg(format!("--reuid={}", user.uid)).arg(format!("--regid={}", user.gid)).arg("--clear-groups").arg(found);
    command.current_dir("/");
    command
}

fn spawn(data: &Path, port: u16) -> Child {
    let mut command = program("postgres");
    command.arg("-D").arg(data).arg("-p").arg(port.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap_or_else(|error| panic!("cannot run postgres ({error}): {HINT}"))
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
#[allow(clippy::disallowed_methods, reason = "a real process: there is no signal to wait for but its answer")]
fn wait_until_it_answers(child: &mut Child, folder: &Path, port: u16) -> bool {
    let (folder, limit) = (folder.to_owned(), Instant::now() + START_LIMIT);
    while Instant::now() < limit {
        if child.try_wait().expect("the child can be asked").is_some() {
            return false;
        }
        let folder = folder.clone();
        // Tests call this with a runtime and without one.
        let asked = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let asked = connect(&folder, port, "postgres");
            runtime.block_on(async { tokio::time::timeout(ANSWER_LIMIT, asked).await.is_ok_and(|made| made.is_ok()) })
        });
        if asked.join().unwrap_or(false) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("postgres at port {port} does not answer within {START_LIMIT:?}");
}
