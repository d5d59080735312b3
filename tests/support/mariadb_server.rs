//! A real MariaDB for a test: a data directory of its own in a temporary folder, on a free port of 127.0.0.1 and on a unix
//! socket, stopped by its pid when dropped. Without the binaries the test fails; it is never skipped.
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
use sqlx::mysql::MySqlConnectOptions;
use sqlx::{ConnectOptions, Connection, MySqlConnection};
use tempfile::TempDir;

use self::ports::free_port;

#[allow(clippy::duplicate_mod, reason = "each kind of server can be had alone")]
#[path = "ports.rs"]
mod ports;

/// A server may take so long to start, on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(90);

/// A server that is there answers so soon; one that takes longer is asked again.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

const HINT: &str = "apt-get install mariadb-server";

/// A running server.
#[derive(Debug)]
pub struct MariadbServer {
    child: Child,
    dir: TempDir,
    port: u16,
    options: Vec<String>,
}

impl MariadbServer {
    /// A server with the user `owner`, who may do everything and whose password is `secret`. What it commits is lost in a power
    /// cut, and survives its own end.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// A server with further options of its command line.
    pub async fn start_with(options: &[&str]) -> Self {
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let dir = TempDir::with_prefix("cronward-mariadb-").expect("a temporary folder");
        if let Some(user) = unprivileged() {
            std::os::unix::fs::chown(dir.path(), Some(user.uid.as_raw()), Some(user.gid.as_raw())).unwrap();
        }
        let mut install = program("mariadb-install-db");
        install.args([
            "--no-defaults",
            "--skip-test-db",
            "--auth-root-authentication-method=normal",
            "--skip-name-resolve",
        ]);
        install.arg(format!("--datadir={}", dir.path().join("data").display()));
        install.env("TMPDIR", dir.path());
        let made = install.output().unwrap_or_else(|error| panic!("cannot run mariadb-install-db ({error}): {HINT}"));
        assert!(made.status.success(), "mariadb-install-db: {}", String::from_utf8_lossy(&made.stderr));
        let port = free_port();
        let child = spawn(dir.path(), port, &options);
        let mut server = Self { child, dir, port, options };
        // Another process may take the port between its choice and its use.
        for _ in 0..5 {
            if server.answers().await {
                server
                    .sql("mysql", "CREATE USER owner@'%' IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO owner@'%'")
                    .await;
                return server;
            }
            server.port = free_port();
            server.child = spawn(server.dir.path(), server.port, &server.options);
        }
        panic!("mariadbd does not start with {:?}: {}", server.options, server.log());
    }

    /// `mysql://owner:secret@127.0.0.1:port/database`.
    pub fn url(&self, database: &str) -> String {
        self.url_of("owner", database)
    }

    /// The same for another user with the same password.
    pub fn url_of(&self, user: &str, database: &str) -> String {
        format!("mysql://{user}:secret@127.0.0.1:{}/{database}", self.port)
    }

    /// The url of the unix socket.
    pub fn unix_url(&self, database: &str) -> String {
        format!("mysql://owner:secret@localhost/{database}?socket={}", self.socket().display())
    }

    /// Its TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("server.sock")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// A plain connection of the superuser, past everything that is tested.
    pub async fn connect(&self, database: &str) -> MySqlConnection {
        self.try_connect(database).await.expect("the server accepts a connection")
    }

    async fn try_connect(&self, database: &str) -> Result<MySqlConnection, sqlx::Error> {
        // Its own socket, so that no other server can answer for it.
        MySqlConnectOptions::new().socket(self.socket()).username("root").database(database).connect().await
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
        self.sql("mysql", &format!("CREATE DATABASE {name}")).await;
    }

    /// The process; another one after each start.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Stops the process where it is.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets a stopped server go on.
    pub fn unpause(&self) {
        self.signal(Signal::CONT);
    }

    /// Ends it at once, as a crash.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again at the same port after [`Self::kill`], with what was committed.
    pub async fn start_again(&mut self) {
        self.child = spawn(self.dir.path(), self.port, &self.options);
        assert!(self.answers().await, "mariadbd does not start again: {}", self.log());
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a pid");
        kill_process(pid, signal).expect("the server is there to be signalled");
    }

    /// False when it ended instead.
    #[allow(clippy::disallowed_methods, reason = "a real process: there is no signal to wait for but its answer")]
    async fn answers(&mut self) -> bool {
        let limit = Instant::now() + START_LIMIT;
        while Instant::now() < limit {
            if self.child.try_wait().expect("the child can be asked").is_some() {
                return false;
            }
            if tokio::time::timeout(ANSWER_LIMIT, self.try_connect("mysql")).await.is_ok_and(|made| made.is_ok()) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("mariadbd at port {} does not answer within {START_LIMIT:?}: {}", self.port, self.log());
    }
}

impl Drop for MariadbServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The statements in docs/stores.md that give a user all it needs.
pub fn documented_grants() -> Vec<String> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/stores.md")).expect("docs/stores.md");
    let section = page.split("\n## ").find(|section| section.starts_with("MySQL")).expect("a section");
    let grants = section.lines().filter(|line| line.starts_with("GRANT ") || line.starts_with("CREATE USER "));
    grants.map(|line| line.trim_end_matches(';').to_owned()).collect()
}

/// The server refuses to run as root.
fn unprivileged() -> Option<User> {
    let named = |name| User::from_name(name).ok().flatten();
    Uid::effective().is_root().then(|| named("mysql").or_else(|| named("nobody")).expect("a user for the server"))
}

/// A program of MariaDB, run as a user that it accepts: on PATH, or where Debian has it.
fn program(name: &str) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend([PathBuf::from("/usr/sbin"), PathBuf::from("/usr/local/sbin")]);
    let found = folders.iter().map(|folder| folder.join(name)).find(|program| program.is_file());
    let found = found.unwrap_or_else(|| panic!("there is no {name}: {HINT}"));
    let Some(user) = unprivileged() else { return Command::new(found) };
    let mut command = Command::new("setpriv");
    command.arg(format!("--reuid={}", user.uid)).arg(format!("--regid={}", user.gid)).arg("--clear-groups").arg(found);
    command.current_dir("/");
    command
}

fn spawn(dir: &Path, port: u16, options: &[String]) -> Child {
    let mut command = program("mariadbd");
    command.args(["--no-defaults", "--bind-address=127.0.0.1", "--skip-name-resolve", "--skip-log-bin"]);
    // A day by default: a test that waits for a lock of a table would wait for ever.
    command.arg("--lock-wait-timeout=100");
    // In the operating system's hands is enough: nothing in a test outlives the machine.
    command.args(["--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync", "--innodb-doublewrite=0"]);
    command.args(["--innodb-buffer-pool-size=64M", "--max-connections=600", "--innodb-use-native-aio=0"]);
    command.arg(format!("--port={port}")).arg(format!("--datadir={}", dir.join("data").display()));
    command.arg(format!("--socket={}", dir.join("server.sock").display()));
    command.arg(format!("--pid-file={}", dir.join("pid").display())).args(options);
    // A server that starts clears its folder of temporary tables, also of those of another server that shares it.
    command.env("TMPDIR", dir);
    let log = std::fs::File::create(dir.join("log")).expect("the folder can be written");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().unwrap_or_else(|error| panic!("cannot run mariadbd ({error}): {HINT}"))
}
