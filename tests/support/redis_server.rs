//! A real `redis-server` for a test: on a free port of 127.0.0.1 and on a unix socket, in a temporary folder, killed by its
//! pid when dropped. Without the binary the test fails; it is never skipped.
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
use std::process::Command;
use std::time::Duration;

use redis::{Connection, RedisResult, Value};
use tempfile::TempDir;

use super::ports::free_port;
use super::server_process::{ServerProcess, started};

/// A server may take so long to answer its first PING, on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(20);

/// A running server.
#[derive(Debug)]
pub struct RedisServer {
    process: ServerProcess,
    dir: TempDir,
    port: u16,
    config: Vec<(String, String)>,
    dies_with_its_starter: bool,
}

impl RedisServer {
    /// A server with nothing but the defaults: it keeps its data in memory only.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// A server with further lines of configuration, as pairs of a directive and its value.
    pub fn start_with(config: &[(&str, &str)]) -> Self {
        Self::start_as(config, false)
    }

    /// The same for a test that runs so long that somebody may kill it: the server dies with the *thread* that started it.
    pub fn start_dying_with_its_starter(config: &[(&str, &str)]) -> Self {
        Self::start_as(config, true)
    }

    fn start_as(config: &[(&str, &str)], dies_with_its_starter: bool) -> Self {
        let config: Vec<_> = config.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        started(&format!("redis-server with {config:?}"), || {
            let dir = TempDir::with_prefix("cronward-redis-").expect("a temporary folder");
            let port = free_port();
            let process = spawn(&dir, port, &config, dies_with_its_starter);
            let server = Self { process, dir, port, config: config.clone(), dies_with_its_starter };
            server.answers().then_some(server)
        })
    }

    /// A sentinel: lines of configuration that begin with `sentinel` make it one.
    pub fn start_sentinel(master: u16, name: &str, quorum: u16) -> Self {
        let of = |rest: &str| format!("{name} {rest}");
        Self::start_with(&[
            ("sentinel monitor", &of(&format!("127.0.0.1 {master} {quorum}"))),
            ("sentinel down-after-milliseconds", &of("2000")),
            ("sentinel failover-timeout", &of("10000")),
        ])
    }

    /// A server that also speaks TLS, with `ca.pem`, `cert.pem` and `key.pem` from a folder; and the port for it.
    pub fn start_with_tls(files: &Path) -> (Self, u16) {
        Self::start_with_tls_and(files, &[])
    }

    /// The same with further lines of configuration.
    pub fn start_with_tls_and(files: &Path, config: &[(&str, &str)]) -> (Self, u16) {
        let port = free_port();
        let file = |name: &str| files.join(name).display().to_string();
        let (number, cert, key, ca) = (port.to_string(), file("cert.pem"), file("key.pem"), file("ca.pem"));
        let tls = [
            ("tls-port", &*number),
            ("tls-cert-file", &cert),
            ("tls-key-file", &key),
            ("tls-ca-cert-file", &ca),
            ("tls-auth-clients", "no"),
        ];
        (Self::start_with(&[&tls[..], config].concat()), port)
    }

    /// Makes the user `cronward` with the password `secret` and these permissions, whatever it had before.
    pub fn allow(&self, permissions: &[String]) {
        let mut words = vec!["ACL", "SETUSER", "cronward", "reset", "on", ">secret"];
        words.extend(permissions.iter().map(String::as_str));
        self.command(&words);
    }

    /// `redis://127.0.0.1:port`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// `redis+unix:///…`.
    pub fn unix_url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    /// Its TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its folder, for certificates and the like.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("redis.sock")
    }

    /// A plain connection, past everything that is tested.
    pub fn connect(&self) -> Connection {
        self.try_connect().expect("the server accepts a connection")
    }

    fn try_connect(&self) -> RedisResult<Connection> {
        let connection = redis::Client::open(self.unix_url())?.get_connection_with_timeout(START_LIMIT)?;
        connection.set_read_timeout(Some(START_LIMIT))?;
        Ok(connection)
    }

    /// Sends one command and answers what came back, as `redis-cli` would. Panics on an error.
    pub fn command(&self, words: &[&str]) -> Value {
        self.try_command(words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// Sends one command and answers what came back.
    pub fn try_command(&self, words: &[&str]) -> RedisResult<Value> {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query(&mut self.try_connect()?)
    }

    /// The answer as a text; none for nil.
    pub fn text(&self, words: &[&str]) -> Option<String> {
        redis::from_redis_value(self.command(words)).expect("a text")
    }

    /// The answer as a number.
    pub fn number(&self, words: &[&str]) -> i64 {
        redis::from_redis_value(self.command(words)).expect("a number")
    }

    /// As a Redlock sees it: a master that has kept its data for ever.
    pub fn make_old(&self) {
        let info = self.text(&["INFO", "server"]).unwrap_or_default();
        let run = info.lines().find_map(|line| line.strip_prefix("run_id:")).expect("a run id").trim().to_owned();
        self.command(&["SET", "cronward::since", &format!("{run} 0")]);
    }

    /// How often a command was called since the last CONFIG RESETSTAT.
    pub fn calls(&self, command: &str) -> u64 {
        let info = self.text(&["INFO", "commandstats"]).unwrap_or_default();
        let line = info.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
        line.and_then(|rest| rest.split(',').next()?.parse().ok()).unwrap_or(0)
    }

    /// How often it has answered with this error since the last CONFIG RESETSTAT.
    pub fn errors(&self, code: &str) -> u64 {
        let info = self.text(&["INFO", "errorstats"]).unwrap_or_default();
        let line = info.lines().find_map(|line| line.strip_prefix(&format!("errorstat_{code}:count=")));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
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

    /// Starts it again at the same port after [`Self::kill`]. What was not saved is gone.
    pub fn start_again(&mut self) {
        self.process = spawn(&self.dir, self.port, &self.config, self.dies_with_its_starter);
        assert!(self.answers(), "redis-server does not start again");
    }

    /// Crashes and starts again without its data.
    pub fn restart_empty(&mut self) {
        self.kill();
        self.start_empty();
    }

    /// Starts again after [`Self::kill`], without its data.
    pub fn start_empty(&mut self) {
        let _ = std::fs::remove_file(self.dir.path().join("dump.rdb"));
        self.start_again();
    }

    /// Saves, ends and starts again, and is in the middle of loading its data: until [`Self::end_loading`], or a minute at the
    /// least, for it stands still at each of so many keys that it has besides.
    pub fn restart_loading(&mut self) {
        let fill = "for i = 1, 1200 do redis.call('SET', 'filler:' .. i, string.rep(i .. '-', 400)) end";
        self.command(&["EVAL", fill, "0"]);
        self.command(&["CONFIG", "SET", "rdbcompression", "no"]);
        self.command(&["SAVE"]);
        self.kill();
        let slow = [("key-load-delay", "50000"), ("loading-process-events-interval-bytes", "1024")];
        let slow = slow.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let config = [&self.config[..], &slow[..]].concat();
        self.process = spawn(&self.dir, self.port, &config, self.dies_with_its_starter);
        self.wait_until(|answer| answer.is_err_and(|error| error.code() == Some("LOADING")));
    }

    /// What is left is loaded at once.
    pub fn end_loading(&mut self) {
        self.command(&["CONFIG", "SET", "key-load-delay", "0"]);
        assert!(self.answers(), "redis-server ends when its data is loaded");
    }

    /// Saves, ends and starts again with its data.
    pub fn restart_with_data(&mut self) {
        self.command(&["SAVE"]);
        self.kill();
        self.start_again();
    }

    /// False when it ended instead.
    fn answers(&self) -> bool {
        // A password of its own is for the test to know.
        self.wait_until(|answer| answer.map_or_else(|error| error.code() == Some("NOAUTH"), |_| true))
    }

    /// Waits until it answers a PING so. False when it ended instead.
    fn wait_until(&self, is_so: impl Fn(RedisResult<Value>) -> bool) -> bool {
        let what = || format!("the right answer of redis-server at port {}", self.port);
        // Its own socket, so that no other server can answer for it.
        self.process.wait_until(START_LIMIT, what, || is_so(self.try_command(&["PING"])))
    }
}

/// The permissions in docs/stores.md: what follows the password in its ACL line.
pub fn documented_permissions() -> Vec<String> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/stores.md")).expect("docs/stores.md");
    let line = page.lines().find_map(|line| line.strip_prefix("ACL SETUSER cronward on >PASSWORD "));
    line.expect("an ACL line in docs/stores.md").split(' ').map(str::to_owned).collect()
}

fn spawn(dir: &TempDir, port: u16, config: &[(String, String)], dies_with_its_starter: bool) -> ServerProcess {
    let socket = dir.path().join("redis.sock");
    let _ = std::fs::remove_file(&socket);
    if config.iter().any(|(name, _)| name.starts_with("sentinel ")) {
        // A sentinel keeps what it learns in its file of configuration.
        let dir = dir.path().display();
        let mut lines = format!("port {port}\nbind 127.0.0.1\ndir {dir}\nunixsocket {}\n", socket.display());
        config.iter().for_each(|(name, value)| lines.push_str(&format!("{name} {value}\n")));
        let file = socket.with_file_name("sentinel.conf");
        std::fs::write(&file, lines).expect("a file in a temporary folder");
        let mut command = Command::new("redis-server");
        command.arg(file).arg("--sentinel");
        return ServerProcess::spawn(&mut command, "redis-server");
    }
    let mut command = Command::new(if dies_with_its_starter { "setpriv" } else { "redis-server" });
    if dies_with_its_starter {
        command.args(["--pdeathsig", "KILL", "redis-server"]);
    }
    command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"]);
    command.arg("--port").arg(port.to_string()).arg("--dir").arg(dir.path()).arg("--unixsocket").arg(&socket);
    for (name, value) in config {
        command.arg(format!("--{name}"));
        // As redis-server reads its own command line: a value of several words is several arguments.
        command.args(value.split(' '));
    }
    ServerProcess::spawn(&mut command, "redis-server")
}
