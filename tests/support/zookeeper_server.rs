//! Real ZooKeeper servers for a test, one alone or an ensemble: on free ports of 127.0.0.1, in temporary folders, killed by
//! their pids when dropped. Without the jar and Java the test fails; it is never skipped.
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
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use zookeeper_client::{Client, Error};

use super::ports;
use super::server_process::{ServerProcess, started};

/// Java may take so long to start, on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(180);

/// What Debian's package `zookeeper` brings; it names the other jars that it needs.
const JAR: &str = "/usr/share/java/zookeeper.jar";

/// A running server.
#[derive(Debug)]
pub struct ZookeeperServer {
    process: ServerProcess,
    dir: TempDir,
    port: u16,
}

/// A member of an ensemble listens at three; one alone uses the first.
#[derive(Clone, Copy, Debug)]
struct Ports {
    client: u16,
    quorum: u16,
    election: u16,
}

impl ZookeeperServer {
    /// A server that keeps sessions for up to 40 s, as by default.
    pub fn start() -> Self {
        Self::start_with_tick(Duration::from_secs(2))
    }

    /// A server that keeps sessions for 2 to 20 ticks.
    pub fn start_with_tick(tick: Duration) -> Self {
        Self::start_group(1, tick).pop().expect("it has one server")
    }

    /// Three servers that keep sessions for 2 to 20 ticks.
    pub fn start_ensemble(tick: Duration) -> Vec<Self> {
        Self::start_group(3, tick)
    }

    fn start_group(size: usize, tick: Duration) -> Vec<Self> {
        started(&format!("ZooKeeper, {size} of them,"), || {
            let ports: Vec<Ports> = (0..size).map(|_| free_ports()).collect();
            let servers: Vec<Self> = (0..size).map(|index| Self::spawned(index, &ports, tick)).collect();
            servers.iter().all(Self::answers).then_some(servers)
        })
    }

    fn spawned(index: usize, all: &[Ports], tick: Duration) -> Self {
        let dir = TempDir::with_prefix("cronward-zookeeper-").expect("a temporary folder");
        write_config(dir.path(), index, all, tick);
        Self { process: spawn(dir.path()), dir, port: all[index].client }
    }

    /// The url of several servers.
    pub fn url_of(servers: &[Self]) -> String {
        let hosts: Vec<String> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port)).collect();
        format!("zookeeper://{}", hosts.join(","))
    }

    /// Whether it leads an ensemble.
    pub fn is_leader(&self) -> bool {
        self.four_letters("srvr").is_some_and(|told| told.contains("Mode: leader"))
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

    /// Starts it again with its data after [`Self::kill`].
    pub fn start_again(&mut self) {
        self.process = spawn(self.dir.path());
        assert!(self.answers(), "ZooKeeper does not start again");
    }

    /// The process; another one after each start.
    pub fn process(&self) -> u32 {
        self.process.id()
    }

    /// `3.8.0`.
    pub fn version(&self) -> String {
        let told = self.four_letters("srvr").unwrap_or_default();
        let version = told.lines().find_map(|line| line.strip_prefix("Zookeeper version: "));
        version.and_then(|rest| rest.split(['-', ',']).next()).unwrap_or_default().to_owned()
    }

    /// How many sessions it has ended because it did not hear of them, since its start.
    pub fn expired_sessions(&self) -> u64 {
        let told = self.four_letters("mntr").unwrap_or_default();
        let line = told.lines().find_map(|line| line.strip_prefix("zk_stale_sessions_expired"));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
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

    /// False when it ended instead.
    fn answers(&self) -> bool {
        let what = || format!("an answer of ZooKeeper at port {}", self.port);
        self.process.wait_until(START_LIMIT, what, || {
            self.four_letters("ruok").is_some_and(|answer| answer == "imok")
                && self.four_letters("srvr").is_some_and(|answer| answer.contains("Mode:"))
        })
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

fn free_ports() -> Ports {
    let [client, quorum, election] = ports::free_ports();
    Ports { client, quorum, election }
}

fn write_config(dir: &Path, index: usize, all: &[Ports], tick: Duration) {
    let data = dir.join("data");
    let mut lines = format!(
        "tickTime={}\ndataDir={}\nclientPort={}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n\
         maxClientCnxns=0\n4lw.commands.whitelist=*\n",
        tick.as_millis(),
        data.display(),
        all[index].client,
    );
    if all.len() > 1 {
        // In ticks: a busy machine may take long over an election.
        lines += "initLimit=40\nsyncLimit=20\n";
        for (other, ports) in all.iter().enumerate() {
            lines += &format!("server.{}=127.0.0.1:{}:{}\n", other + 1, ports.quorum, ports.election);
        }
        std::fs::create_dir(&data).expect("the folder can be written");
        std::fs::write(data.join("myid"), (index + 1).to_string()).expect("the folder can be written");
    }
    std::fs::write(dir.join("zoo.cfg"), lines).expect("the folder can be written");
}

fn spawn(dir: &Path) -> ServerProcess {
    assert!(Path::new(JAR).exists(), "there is no {JAR}: apt-get install zookeeper");
    let mut command = Command::new("java");
    // It keeps its last 500 changes in memory, and a lock with 1,024 entries is 300 KiB.
    command.args(["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", JAR]);
    command.arg("org.apache.zookeeper.server.quorum.QuorumPeerMain").arg(dir.join("zoo.cfg"));
    ServerProcess::spawn(&mut command, "zookeeper")
}
