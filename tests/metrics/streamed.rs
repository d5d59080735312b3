//! A stream of events on a real node: what another node does on the same Redis is told there, and goodbye when the node leaves.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::support::ports::free_port;
use crate::support::redis_server::RedisServer;
use crate::support::server_process::ServerProcess;

/// Nothing here takes so long, on however busy a machine.
const LIMIT: Duration = Duration::from_secs(120);

/// Which the watched node does not have.
const JOBS: &str =
    "[jobs.push]\nslot = \"tick\"\nlease_ttl = \"2s\"\nschedule = \"*/2 * * * * *\"\ncommand = [\"true\"]\n";
const OTHER: &str = "[jobs.yearly]\nschedule = \"0 0 1 1 *\"\ncommand = [\"true\"]\n";

fn node(folder: &Path, name: &str, jobs: &str, store: &str, port: u16) -> ServerProcess {
    let own = folder.join(name);
    std::fs::create_dir(&own).unwrap();
    std::fs::write(own.join("jobs.toml"), jobs).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cronward"));
    command.args(["run", "--node", name, "--store", store, "--listen", &format!("127.0.0.1:{port}")]);
    let log = File::create(folder.join(format!("{name}.log"))).unwrap();
    ServerProcess::spawn_with_log(command.current_dir(own), "nothing", log)
}

/// A stream, once the node listens.
fn stream(port: u16, process: &ServerProcess) -> TcpStream {
    let begun = Instant::now();
    loop {
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
            stream.set_read_timeout(Some(LIMIT)).unwrap();
            write!(stream, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            return stream;
        }
        assert!(begun.elapsed() < LIMIT && !process.has_ended(), "the node does not listen");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Reads until it is so.
fn until(stream: &mut TcpStream, heard: &mut String, is_so: impl Fn(&str) -> bool) {
    let (begun, mut part) = (Instant::now(), [0; 4_096]);
    while !is_so(heard) {
        let length = stream.read(&mut part).unwrap();
        heard.push_str(&String::from_utf8_lossy(&part[..length]));
        assert!(length > 0 && begun.elapsed() < LIMIT, "{heard}");
    }
}

#[test]
fn what_another_node_does_is_told_to_a_stream_which_says_goodbye_when_its_node_leaves() {
    let (redis, folder) = (RedisServer::start(), TempDir::with_prefix("cronward-streamed-").unwrap());
    let port = free_port();
    let watched = node(folder.path(), "a", OTHER, &redis.url(), port);
    let _works = node(folder.path(), "b", JOBS, &redis.url(), free_port());
    let (mut stream, mut heard) = (stream(port, &watched), String::new());
    until(&mut stream, &mut heard, |heard| heard.contains("retry: 3000"));
    assert!(heard.starts_with("HTTP/1.1 200 ") && heard.contains("x-accel-buffering: no"), "{heard}");
    let done = |row: &str| {
        row.contains("\"job\":\"push\"") && row.contains("\"state\":\"done\"") && row.contains("\"node\":\"b\"")
    };
    until(&mut stream, &mut heard, |heard| {
        heard.lines().any(|line| line.starts_with("data: ") && line.contains("\"rows\":") && done(line))
    });
    watched.signal(Signal::TERM);
    until(&mut stream, &mut heard, |heard| heard.contains("event: bye\ndata: {}\n\n"));
}
