//! Real `etcd` members for a test: on free ports of 127.0.0.1, in temporary folders, killed by their pids when dropped.
//! Without the binary the test fails; it is never skipped. Beside the store's own way (gRPC) a test reaches the data by
//! etcd's JSON gateway.
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

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::ports;
use super::server_process::{ServerProcess, started};

/// What members write, many at a time, has room there.
const ROOM_KIB: u64 = 4 * 1_024 * 1_024;

/// A temporary folder, in memory where there is room: a member answers when it has synced, and a disk that others write to lets it wait
/// for longer than a store may take. A member that is killed leaves its files there as well.
fn folder() -> TempDir {
    let shared = Path::new("/dev/shm");
    let asked = Command::new("df").args(["--output=avail", "-k"]).arg(shared).output();
    let free: Option<u64> =
        asked.ok().and_then(|told| String::from_utf8(told.stdout).ok()?.lines().nth(1)?.trim().parse().ok());
    let made = match free {
        Some(free) if free > ROOM_KIB => TempDir::with_prefix_in("cronward-etcd-", shared),
        _ => TempDir::with_prefix("cronward-etcd-"),
    };
    made.expect("a temporary folder")
}

/// A cluster may take so long to answer first, on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(60);

/// A running member.
#[derive(Debug)]
pub struct EtcdServer {
    process: ServerProcess,
    dir: TempDir,
    ports: Ports,
    arguments: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct Ports {
    client: u16,
    peer: u16,
    /// Where TLS is spoken, if it is.
    tls: u16,
}

/// A value as it stands at its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub key: String,
    pub value: String,
    pub lease: i64,
    pub mod_revision: i64,
}

impl EtcdServer {
    /// One member alone.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// One member alone, with further arguments.
    pub fn start_with(arguments: &[&str]) -> Self {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        started(&format!("etcd with {arguments:?}"), || {
            let ports = free_ports();
            let server = Self::spawned("m0", ports, &format!("m0=http://127.0.0.1:{}", ports.peer), &arguments);
            server.answers().then_some(server)
        })
    }

    /// One member that also speaks TLS, with `ca.pem`, `cert.pem` and `key.pem` from a folder.
    pub fn start_with_tls(files: &Path, asks_for_certificates: bool) -> Self {
        let file = |name: &str| files.join(name).display().to_string();
        let (cert, key, ca) = (file("cert.pem"), file("key.pem"), file("ca.pem"));
        let mut arguments = vec!["--cert-file", &cert, "--key-file", &key];
        if asks_for_certificates {
            arguments.extend(["--trusted-ca-file", &ca, "--client-cert-auth"]);
        }
        Self::start_with(&arguments)
    }

    /// Three members.
    pub fn start_cluster() -> Vec<Self> {
        started("a cluster of three etcd members", || {
            let ports: Vec<Ports> = (0..3).map(|_| free_ports()).collect();
            let name = |index: usize| format!("m{index}");
            let cluster: Vec<String> = ports
                .iter()
                .enumerate()
                .map(|(index, ports)| format!("{}=http://127.0.0.1:{}", name(index), ports.peer))
                .collect();
            let cluster = cluster.join(",");
            let members = ports.iter().enumerate();
            let members: Vec<Self> =
                members.map(|(index, ports)| Self::spawned(&name(index), *ports, &cluster, &[])).collect();
            members.iter().all(Self::answers).then_some(members)
        })
    }

    fn spawned(name: &str, ports: Ports, cluster: &str, arguments: &[String]) -> Self {
        let dir = folder();
        let (client, peer) = (format!("http://127.0.0.1:{}", ports.client), format!("http://127.0.0.1:{}", ports.peer));
        let listens = if arguments.iter().any(|argument| argument == "--cert-file") {
            format!("{client},https://127.0.0.1:{}", ports.tls)
        } else {
            client.clone()
        };
        let mut all: Vec<String> = Vec::new();
        for (name, value) in [
            ("--name", name),
            ("--data-dir", &dir.path().join("data").display().to_string()),
            ("--listen-client-urls", &listens),
            ("--advertise-client-urls", &client),
            ("--listen-peer-urls", &peer),
            ("--initial-advertise-peer-urls", &peer),
            ("--initial-cluster", cluster),
            ("--logger", "zap"),
            ("--log-level", "error"),
        ] {
            all.extend([name.to_owned(), value.to_owned()]);
        }
        all.extend(arguments.iter().cloned());
        Self { process: spawn(&all), dir, ports, arguments: all }
    }

    /// `etcd://127.0.0.1:port`.
    pub fn url(&self) -> String {
        format!("etcd://127.0.0.1:{}", self.ports.client)
    }

    /// The url of several members.
    pub fn url_of(members: &[Self]) -> String {
        let hosts: Vec<String> = members.iter().map(|member| format!("127.0.0.1:{}", member.ports.client)).collect();
        format!("etcd://{}", hosts.join(","))
    }

    /// Its port for clients.
    pub fn port(&self) -> u16 {
        self.ports.client
    }

    /// Its port for clients over TLS.
    pub fn tls_port(&self) -> u16 {
        self.ports.tls
    }

    /// Asks the JSON gateway. Panics on anything but an answer.
    pub fn ask(&self, method: &str, body: &Value) -> Value {
        self.try_ask(method, body).unwrap_or_else(|error| panic!("{method} {body}: {error}"))
    }

    /// Asks the JSON gateway.
    pub fn try_ask(&self, method: &str, body: &Value) -> Result<Value, String> {
        self.ask_as(method, body, None)
    }

    /// Asks as a user, by a token of `auth/authenticate`.
    pub fn ask_as(&self, method: &str, body: &Value, token: Option<&str>) -> Result<Value, String> {
        let told = |error: std::io::Error| error.to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", self.ports.client)).map_err(told)?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).map_err(told)?;
        let body = body.to_string();
        let login = token.map(|token| format!("Authorization: {token}\r\n")).unwrap_or_default();
        let head = format!(
            "POST /v3/{method} HTTP/1.1\r\nHost: etcd\r\n{login}Connection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).map_err(told)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).map_err(told)?;
        let (status, body) = http_answer(&answer).ok_or("no answer in HTTP")?;
        let value: Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        if status == 200 { Ok(value) } else { Err(value.to_string()) }
    }

    /// What stands at a key.
    pub fn get(&self, key: &str) -> Option<Found> {
        found(&self.ask("kv/range", &json!({ "key": encoded(key) }))).pop()
    }

    /// What stands at every key that begins so.
    pub fn get_all(&self, prefix: &str) -> Vec<Found> {
        found(&self.ask("kv/range", &json!({ "key": encoded(prefix), "range_end": after(prefix) })))
    }

    /// Sets a key, under the same lease as before.
    pub fn set(&self, key: &str, value: &str, keeps_lease: bool) {
        self.ask("kv/put", &json!({ "key": encoded(key), "value": encoded(value), "ignore_lease": keeps_lease }));
    }

    /// Sets a key if another was last changed at this revision; false where it was not.
    pub fn set_while(&self, other: &str, revision: u64, (key, value): (&str, &str)) -> bool {
        let unchanged = json!({
            "key": encoded(other), "target": "MOD", "result": "EQUAL", "mod_revision": revision.to_string() });
        let put = json!({ "request_put": { "key": encoded(key), "value": encoded(value) } });
        let answer = self.ask("kv/txn", &json!({ "compare": [unchanged], "success": [put] }));
        answer["succeeded"].as_bool().unwrap_or(false)
    }

    /// Removes a key.
    pub fn remove(&self, key: &str) {
        self.ask("kv/deleterange", &json!({ "key": encoded(key) }));
    }

    /// Removes every key that begins so.
    pub fn remove_all(&self, prefix: &str) {
        self.ask("kv/deleterange", &json!({ "key": encoded(prefix), "range_end": after(prefix) }));
    }

    /// Ends a lease, as if its time had come. False when there is none.
    pub fn revoke(&self, lease: i64) -> bool {
        self.try_ask("lease/revoke", &json!({ "ID": lease.to_string() })).is_ok()
    }

    /// Seconds that a lease has left; negative when there is none.
    pub fn time_to_live(&self, lease: i64) -> i64 {
        number(&self.ask("lease/timetolive", &json!({ "ID": lease.to_string() }))["TTL"])
    }

    /// How many leases there are.
    pub fn leases(&self) -> usize {
        self.ask("lease/leases", &json!({}))["leases"].as_array().map_or(0, Vec::len)
    }

    /// The revision of the last change.
    pub fn revision(&self) -> i64 {
        number(&self.ask("kv/range", &json!({ "key": encoded("none") }))["header"]["revision"])
    }

    /// Forgets everything before the last change.
    pub fn compact(&self) {
        self.ask("kv/compaction", &json!({ "revision": self.revision().to_string(), "physical": true }));
    }

    /// True when this member leads the cluster.
    pub fn is_leader(&self) -> bool {
        let status = self.try_ask("maintenance/status", &json!({})).unwrap_or_default();
        !status["leader"].is_null() && status["leader"] == status["header"]["member_id"]
    }

    /// Makes the user `root`, and the user `cronward` with the password `secret` who may only read and write keys that
    /// begin so; then users are asked for.
    pub fn want_users(&self, prefix: &str) {
        for (method, body) in [
            ("auth/user/add", json!({ "name": "root", "password": "root" })),
            ("auth/user/grant", json!({ "user": "root", "role": "root" })),
            ("auth/role/add", json!({ "name": "cronward" })),
            (
                "auth/role/grant",
                json!({ "name": "cronward", "perm": {
                    "permType": "READWRITE", "key": encoded(prefix), "range_end": after(prefix) } }),
            ),
            ("auth/user/add", json!({ "name": "cronward", "password": "secret" })),
            ("auth/user/grant", json!({ "user": "cronward", "role": "cronward" })),
        ] {
            // The role `root` is made only on the first way to it.
            if method == "auth/user/grant" && body["role"] == "root" {
                let _ = self.try_ask("auth/role/add", &json!({ "name": "root" }));
            }
            self.ask(method, &body);
        }
        self.ask("auth/enable", &json!({}));
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
        self.process = spawn(&self.arguments);
        assert!(self.answers(), "etcd does not start again");
    }

    /// False when it ended instead.
    fn answers(&self) -> bool {
        let what = || format!("an answer of etcd at port {}", self.ports.client);
        self.process.wait_until(START_LIMIT, what, || {
            let asked = self.try_ask("kv/range", &json!({ "key": encoded("none") }));
            // It wants to know who asks: it is there.
            asked.map_or_else(|error| error.contains("user name is empty"), |_| true)
        })
    }
}

fn http_answer(answer: &[u8]) -> Option<(u16, Vec<u8>)> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = &answer[end + 4..];
    if !head.contains("transfer-encoding: chunked") {
        return Some((status, body.to_vec()));
    }
    let (mut whole, mut rest) = (Vec::new(), body);
    loop {
        let line = rest.windows(2).position(|window| window == b"\r\n")?;
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..line]).ok()?, 16).ok()?;
        if length == 0 {
            return Some((status, whole));
        }
        whole.extend_from_slice(rest.get(line + 2..line + 2 + length)?);
        rest = rest.get(line + 2 + length + 2..)?;
    }
}

fn encoded(text: &str) -> String {
    STANDARD.encode(text)
}

/// The end of the range of keys with this prefix.
fn after(prefix: &str) -> String {
    let mut end = prefix.as_bytes().to_vec();
    *end.last_mut().expect("a prefix") += 1;
    STANDARD.encode(end)
}

/// The gateway writes 64-bit numbers as texts.
fn number(value: &Value) -> i64 {
    value.as_str().and_then(|text| text.parse().ok()).or_else(|| value.as_i64()).unwrap_or(0)
}

fn found(answer: &Value) -> Vec<Found> {
    let text = |value: &Value| {
        let bytes = STANDARD.decode(value.as_str().unwrap_or("")).expect("base64");
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let kvs = answer["kvs"].as_array().cloned().unwrap_or_default();
    let read = |kv: &Value| Found {
        key: text(&kv["key"]),
        value: text(&kv["value"]),
        lease: number(&kv["lease"]),
        mod_revision: number(&kv["mod_revision"]),
    };
    kvs.iter().map(read).collect()
}

fn free_ports() -> Ports {
    let [client, peer, tls] = ports::free_ports();
    Ports { client, peer, tls }
}

fn spawn(arguments: &[String]) -> ServerProcess {
    ServerProcess::spawn(Command::new("etcd").args(arguments), "etcd-server")
}
