//! What the dashboard costs a daemon with 1,000 jobs: memory, a page, the way of an event to the page, and what viewers ask of the store.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use chrono::{DurationRound, TimeDelta};
use cronward::clock::{Clock, Mono, SystemClock};
use cronward::slot::Slot;
use cronward::store::{Claim, ClaimRequest};

use crate::idle::{Daemon, client_calls, jobs, less};
use crate::redis_server::RedisServer;
use crate::sample::Sample;
use crate::table::{Table, span};
use crate::{block_on, work};

const SETTLING: Duration = Duration::from_secs(6);
/// The board's long rounds are a minute apart: one falls into any such span.
const WATCHED: Duration = Duration::from_secs(60);
const STREAMS: usize = 50;
const PAGES: usize = 50;
const EVENTS: usize = 100;
/// No answer takes longer.
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) fn measure(table: &mut Table) {
    memory_and_calls(table);
    way_of_an_event(table);
}

fn memory_and_calls(table: &mut Table) {
    let redis = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let (daemon, address) = serve(folder.path(), &jobs(&redis.url()));
    let resident = |daemon: &Daemon| daemon.status("VmRSS") as f64 / 1_024.0;
    std::thread::sleep(SETTLING);
    table.at_most("[http] on, 1,000 jobs, nobody looks: resident memory", 24.0, resident(&daemon), "MiB");
    let page = get(address, "/", true);
    let packed = page.len() as f64 / 1_024.0;
    let one = Stream::open(address);
    // The hours of the page are read once, at first.
    counted(&redis);
    let calls = counted(&redis);
    table.at_most("one page open: resident memory", 26.0, resident(&daemon), "MiB");
    table.at_most("`/` with 1,000 jobs, gzip", 40.0, packed, "KiB");
    let pages = Sample::of((0..PAGES).map(|_| {
        let begun = SystemClock.now().mono;
        assert!(get(address, "/", true).len() > 1_000, "a page");
        SystemClock.now().mono.since(begun)
    }));
    let bound = Duration::from_millis(10);
    table.within("`/` with 1,000 jobs, with its connection, p50", bound, pages.median(), &pages.words());
    let many: Vec<Stream> = (1..STREAMS).map(|_| Stream::open(address)).collect();
    let with_many = counted(&redis);
    table.at_most("50 streams open: resident memory", 27.0, resident(&daemon), "MiB");
    table.is_so(
        "store calls in a minute, 1 viewer against 50",
        "the same, but for one beat",
        format!("{calls} against {with_many}"),
        with_many <= calls + 2,
    );
    drop((one, many));
}

/// What the daemon asks of the store while nothing happens.
fn counted(redis: &RedisServer) -> u64 {
    let before = client_calls(redis);
    std::thread::sleep(WATCHED);
    less(&client_calls(redis), &before).values().sum()
}

/// From before another node's claim is sent until the page of a daemon is told of that job.
fn way_of_an_event(table: &mut Table) {
    let redis = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let mut text = format!("[node]\nname = \"bench\"\n\n[store]\nurl = \"{}\"\n", redis.url());
    for number in 0..EVENTS {
        text += &format!("\n[jobs.job-{number}]\nschedule = \"0 * * * *\"\ncommand = [\"true\"]\n");
        // This daemon leaves them to others.
        text += "only_on = { at = \"elsewhere\" }\n";
    }
    let (_daemon, address) = serve(folder.path(), &text);
    let stream = Stream::open(address);
    assert!(get(address, "/", true).len() > 1_000, "somebody looks");
    std::thread::sleep(SETTLING);
    let sample = block_on(async {
        let store = work::open(&redis.url()).await;
        let start = work::wall().duration_trunc(TimeDelta::hours(1)).unwrap();
        let mut spans = Vec::new();
        for number in 0..EVENTS {
            let slot = Slot::new(work::job_name(number), start, start + TimeDelta::hours(1)).unwrap();
            let request = ClaimRequest { slot, ..work::claim(number) };
            while stream.lines.try_recv().is_ok() {}
            let begun = SystemClock.now().mono;
            assert!(matches!(store.claim(&request).await.unwrap(), Claim::Claimed { .. }));
            spans.push(stream.told_of(&format!("\"job\":\"job-{number}\"")).since(begun));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Sample::of(spans)
    });
    let p95 = sample.percentile(95);
    table.within("an event on Redis → told to a page, p95", Duration::from_millis(500), p95, &sample.words());
    table.told("the same, p99", span(sample.p99()));
}

/// A daemon with a port, once it is ready.
fn serve(folder: &Path, jobs: &str) -> (Daemon, SocketAddr) {
    let file = folder.join("jobs.toml");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    std::fs::write(&file, format!("{jobs}\n[http]\nlisten = \"{free}\"\n")).unwrap();
    let daemon = Daemon::serving(&file);
    let begun = SystemClock.now().mono;
    while !is_ready(free) {
        assert!(SystemClock.now().mono.since(begun) < LIMIT, "the daemon is not ready");
        std::thread::sleep(Duration::from_millis(50));
    }
    (daemon, free)
}

fn is_ready(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_ok() && get(address, "/readyz", false).starts_with(b"HTTP/1.1 200")
}

/// The whole answer, as it was sent.
fn get(address: SocketAddr, path: &str, packed: bool) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let packed = if packed { "Accept-Encoding: gzip\r\n" } else { "" };
    let accept = "Accept: text/html\r\n";
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{accept}{packed}\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

/// What is told to one who looks, line by line, each with the instant at which it came.
struct Stream {
    lines: Receiver<(Mono, String)>,
}

impl Stream {
    fn open(address: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                if sender.send((SystemClock.now().mono, line)).is_err() {
                    return;
                }
            }
        });
        Self { lines }
    }

    fn told_of(&self, words: &str) -> Mono {
        loop {
            let (at, line) = self.lines.recv_timeout(LIMIT).expect("the page is told");
            if line.starts_with("data:") && line.contains(words) {
                return at;
            }
        }
    }
}
