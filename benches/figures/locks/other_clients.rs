//! Lock clients of other languages, as processes that measure themselves: on each line with a number they do so many cycles.
//!
//! `CRONWARD_BENCH_PYTHON` names a Python that has redis-py (`python3` if not set), `CRONWARD_BENCH_NODE_PATH` the folder of node modules
//! that has `redlock` and `ioredis`. Where one is missing its rows say so.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// A running one; killed when dropped.
pub(super) struct OtherClient {
    child: Child,
    orders: ChildStdin,
    told: BufReader<ChildStdout>,
    pub(super) version: String,
}

impl OtherClient {
    /// redis-py's `Lock`.
    pub(super) fn redis_py(port: u16) -> Option<Self> {
        let python = std::env::var_os("CRONWARD_BENCH_PYTHON").unwrap_or_else(|| "python3".into());
        let mut command = Command::new(python);
        command.args(["-u", "-c", include_str!("lock.py"), &port.to_string()]);
        Self::start(command)
    }

    /// node-redlock with one server, on these locks in one call.
    pub(super) fn node_redlock(port: u16, locks: &[&str]) -> Option<Self> {
        let mut command = Command::new("node");
        command.args(["-e", include_str!("lock.js"), "lock.js", &port.to_string()]).args(locks);
        if let Some(path) = std::env::var_os("CRONWARD_BENCH_NODE_PATH") {
            command.env("NODE_PATH", path);
        }
        Self::start(command)
    }

    fn start(mut command: Command) -> Option<Self> {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.ok()?;
        let (orders, told) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        let mut other = Self { child, orders, told, version: String::new() };
        let line = other.line();
        other.version = line.strip_prefix("ready ")?.to_owned();
        Some(other)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.told.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// How long each of so many cycles took, by its own clock.
    pub(super) fn cycles(&mut self, count: usize) -> Vec<Duration> {
        writeln!(self.orders, "{count}").unwrap();
        let line = self.line();
        let spans: Vec<Duration> =
            line.split(' ').map(|micros| Duration::from_micros(micros.parse().unwrap())).collect();
        assert_eq!(spans.len(), count, "another client has stopped");
        spans
    }
}

impl Drop for OtherClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
