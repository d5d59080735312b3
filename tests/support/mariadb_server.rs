//! A real MariaDB for a test: a data directory of its own in a temporary folder, on a free port of 127.0.0.1 and on a unix
//! socket, stopped by its pid when dropped. Without the binaries the test fails; it is never skipped.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a test says what it expects; no test uses all of it"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::mysql::MySqlConnectOptions;
use sqlx::{ConnectOptions, Connection, MySqlConnection};
use tempfile::TempDir;

use super::ports::free_port;
use super::server_process::{ServerProcess, started};
use super::sql_server::{self, Programs};

/// A server may take so long to start, on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(90);

const PROGRAMS: Programs = Programs { user: "mysql", package: "mariadb-server" };

/// A running server.
#[derive(Debug)]
pub struct MariadbServer {
    process: ServerProcess,
    dir: TempDir,
    port: u16,
    options: Vec<String>,
}

impl MariadbServer {
    /// A server with the user `owner`, who may do everything and whose password is `secret`. What it commits is lost in a power
    /// cut, and survives its own end.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// A server with further options of its command line.
    pub fn start_with(options: &[&str]) -> Self {
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let dir = PROGRAMS.folder();
        let mut install = PROGRAMS.command("mariadb-install-db", folders());
        install.args([
            "--no-defaults",
            "--skip-test-db",
            "--auth-root-authentication-method=normal",
            "--skip-name-resolve",
        ]);
        install.arg(format!("--datadir={}", dir.path().join("data").display()));
        PROGRAMS.make(install.env("TMPDIR", dir.path()));
        let (process, port) = started(&format!("mariadbd with {options:?}"), || {
            let port = free_port();
            let process = spawn(dir.path(), port, &options);
            answers(&process, dir.path(), port).then_some((process, port))
        });
        let server = Self { process, dir, port, options };
        let owner = "CREATE USER owner@'%' IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO owner@'%'";
        sql_server::waited(server.sql("mysql", owner));
        server
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
        format!("mysql://owner:secret@localhost/{database}?socket={}", socket(self.dir.path()).display())
    }

    /// Its TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A plain connection of the superuser, past everything that is tested.
    pub async fn connect(&self, database: &str) -> MySqlConnection {
        connect(self.dir.path(), database).await.expect("the server accepts a connection")
    }

    /// Runs SQL as the superuser. A statement that the server gives up for others that run beside it is repeated, as the server asks.
    pub async fn sql(&self, database: &str, sql: &str) {
        let mut connection = self.connect(database).await;
        for left in (0..100).rev() {
            let done = sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(&mut connection).await;
            match done {
                Ok(_) => break,
                Err(error) if left > 0 && is_deadlock(&error) => {}
                Err(error) => panic!("{sql}: {error}"),
            }
        }
        let _ = connection.close().await;
    }

    /// Makes an empty database.
    pub async fn database(&self, name: &str) {
        self.sql("mysql", &format!("CREATE DATABASE {name}")).await;
    }

    /// The process; another one after each start.
    pub fn process(&self) -> u32 {
        self.process.id()
    }

    /// Stops the process where it is: it keeps its connections and answers nothing.
    pub fn pause(&self) {
        self.process.pause();
    }

    /// Lets a stopped process go on.
    pub fn unpause(&self) {
        self.process.unpause();
    }

    /// Ends it at once, as a crash.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again at the same port after [`Self::kill`], with what was committed.
    pub fn start_again(&mut self) {
        self.process = spawn(self.dir.path(), self.port, &self.options);
        assert!(answers(&self.process, self.dir.path(), self.port), "mariadbd does not start again");
    }
}

/// The statements in docs/stores.md that give a user all it needs.
pub fn documented_grants() -> Vec<String> {
    sql_server::documented_grants("MySQL", "CREATE USER ")
}

/// On PATH, or where Debian has them.
fn folders() -> Vec<PathBuf> {
    [sql_server::path(), vec![PathBuf::from("/usr/sbin"), PathBuf::from("/usr/local/sbin")]].concat()
}

fn socket(dir: &Path) -> PathBuf {
    dir.join("server.sock")
}

async fn connect(dir: &Path, database: &str) -> Result<MySqlConnection, sqlx::Error> {
    // Its own socket, so that no other server can answer for it.
    MySqlConnectOptions::new().socket(socket(dir)).username("root").database(database).connect().await
}

/// False when it ended instead.
fn answers(process: &ServerProcess, dir: &Path, port: u16) -> bool {
    let log = || std::fs::read_to_string(dir.join("log")).unwrap_or_default();
    let what = || format!("an answer of mariadbd at port {port}: {}", log());
    let is_there = process.wait_until(START_LIMIT, what, || sql_server::answers(connect(dir, "mysql")));
    if !is_there {
        eprintln!("mariadbd has ended: {}", log());
    }
    is_there
}

fn spawn(dir: &Path, port: u16, options: &[String]) -> ServerProcess {
    let mut command = PROGRAMS.command("mariadbd", folders());
    command.args(["--no-defaults", "--bind-address=127.0.0.1", "--skip-name-resolve", "--skip-log-bin"]);
    // A day by default: a test that waits for a lock of a table would wait for ever.
    command.arg("--lock-wait-timeout=100");
    // In the operating system's hands is enough: nothing in a test outlives the machine.
    command.args(["--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync", "--innodb-doublewrite=0"]);
    command.args(["--innodb-buffer-pool-size=64M", "--max-connections=600", "--innodb-use-native-aio=0"]);
    command.arg(format!("--port={port}")).arg(format!("--datadir={}", dir.join("data").display()));
    command.arg(format!("--socket={}", socket(dir).display()));
    command.arg(format!("--pid-file={}", dir.join("pid").display())).args(options);
    // A server that starts clears its folder of temporary tables, also of those of another server that shares it.
    command.env("TMPDIR", dir);
    let log = std::fs::File::create(dir.join("log")).expect("the folder can be written");
    ServerProcess::spawn_with_log(&mut command, PROGRAMS.package, log)
}

fn is_deadlock(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).is_some_and(|state| state == "40001")
}
