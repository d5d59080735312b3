//! A real ZooKeeper server for a test: on a free port of 127.0.0.1, in a temporary folder, killed by its pid when dropped.
//! Without its jar and Java the test fails; it is never skipped.
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

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use zookeeper_client::{Client, Error};

/// Java may take so long to start, on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(180);

/// What Debian's package `zookeeper` brings; it names the other jars that it needs.
const JAR: &str = "/usr/share/java/zookeeper.jar";

/// A running server.
#[derive(Debug)]
pub struct ZookeeperServer {
    child: Child,
    dir: TempDir,
    port: u16,
}

impl ZookeeperServer {
    /// A server that keeps sessions for up to 40 s, as by default.
    pub fn start() -> Self {
        Self::start_with_tick(Duration::from_secs(2))
    }

    /// A server that keeps sessions for 2 to 20 ticks.
    pub fn start_with_tick(tick: Duration) -> Self {
        // Another process may take the port between its choice and its use.
        for _ in 0..5 {
            let dir = TempDir::with_prefix("cronward-zookeeper-").expect("a temporary folder");
            let port =
                TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
            write_config(dir.path(), port, tick);
            let child = spawn(dir.path());
            let mut server = Self { child, dir, port };
            if server.wait_until_it_answers() {
                return server;
            }
        }
        panic!("ZooKeeper does not start");
    }

    /// `zookeeper://127.0.0.1:port`.
    pub fn url(&self) -> String {
        format!("zookeeper://127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A session past everything that is tested.
    pub async fn connect(&self) -> Client {
        let connector = Client::connector().with_session_timeout(Duration::from_secs(40));
        connector.connect(&format!("127.0.0.1:{}", self.port)).await.expect("the server accepts a session")
    }

    /// Stops the process where it is: it keeps its connections and answers nothing.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets a stopped process go on.
    pub fn unpause(&self) {
        self.signal(Signal::CONT);
    }

    /// Ends it at once, as a crash.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again with its data after [`Self::kill`].
    pub fn start_again(&mut self) {
        self.child = spawn(self.dir.path());
        assert!(self.wait_until_it_answers(), "ZooKeeper does not start again");
    }

    /// How many sessions it keeps.
    pub fn sessions(&self) -> usize {
        let told = self.four_letters("srvr").unwrap_or_default();
        let line = told.lines().find_map(|line| line.strip_prefix("Connections: "));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }

    fn four_letters(&self, word: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        stream.write_all(word.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a pid");
        kill_process(pid, signal).expect("the server is there to be signalled");
    }

    /// False when it ended instead.
    #[allow(clippy::disallowed_methods, reason = "a real process: there is no signal to wait for but its answer")]
    fn wait_until_it_answers(&mut self) -> bool {
        let limit = Instant::now() + START_LIMIT;
        while Instant::now() < limit {
            if self.child.try_wait().expect("the child can be asked").is_some() {
                return false;
            }
            if self.four_letters("ruok").is_some_and(|answer| answer == "imok")
                && self.four_letters("srvr").is_some_and(|answer| answer.contains("Mode:"))
            {
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("ZooKeeper at port {} does not answer within {START_LIMIT:?}", self.port);
    }
}

impl Drop for ZookeeperServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Removes a node and all below it.
pub async fn remove_all(client: &Client, path: &str) -> Result<(), Error> {
    let mut folders = vec![path.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        match client.list_children(&folder).await {
            Ok(names) => folders.extend(names.into_iter().map(|name| format!("{folder}/{name}"))),
            Err(Error::NoNode) => continue,
            Err(error) => return Err(error),
        }
        found.push(folder);
    }
    // What is below was found after what is above.
    for path in found.into_iter().rev() {
        match client.delete(&path, None).await {
            Ok(()) | Err(Error::NoNode) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn write_config(dir: &Path, port: u16, tick: Duration) {
    let lines = format!(
        "tickTime={}\ndataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n\
         maxClientCnxns=0\n4lw.commands.whitelist=*\n",
        tick.as_millis(),
        dir.join("data").display(),
    );
    std::fs::write(dir.join("zoo.cfg"), lines).expect("the folder can be written");
}

fn spawn(dir: &Path) -> Child {
    assert!(Path::new(JAR).exists(), "there is no {JAR}: apt-get install zookeeper");
    let mut command = Command::new("java");
    command.args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", JAR]);
    command.arg("org.apache.zookeeper.server.quorum.QuorumPeerMain").arg(dir.join("zoo.cfg"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap_or_else(|error| panic!("cannot run java ({error}): apt-get install zookeeper"))
}
