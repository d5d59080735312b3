//! A daemon with too many jobs, watched from outside: its log, its memory.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::bare::program;
use crate::redis_server::RedisServer;

/// Runs are counted in pieces of this length.
const PIECE: Duration = Duration::from_secs(30);
/// How long the end of the load is watched.
const AFTERWARDS: Duration = Duration::from_secs(30);

/// What was seen.
pub(crate) struct Watched {
    /// Runs per second, in each piece.
    pub(crate) each: Vec<f64>,
    /// The most resident memory.
    pub(crate) memory_mib: u64,
    /// Lines of the log that are not of a run, without those of the start.
    pub(crate) lines: usize,
    /// Those of them that are warnings or errors.
    pub(crate) warnings: usize,
    /// From the end of the load until every job of a light load ran in each second.
    pub(crate) recovered: Option<Duration>,
}

#[derive(Debug, Default)]
struct Log {
    /// When runs ended.
    ended: Vec<Instant>,
    lines: usize,
    warnings: usize,
    reloaded: Option<Instant>,
}

/// Runs a daemon for so long with jobs of each second, then with `light` of them.
pub(crate) fn watch(mode: &str, jobs: usize, light: usize, span: Duration) -> Watched {
    let redis = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.toml");
    write(&path, &redis.url(), mode, jobs);
    let log = Arc::new(Mutex::new(Log::default()));
    let mut daemon = start(&path, &log);
    let pid = Pid::from_child(&daemon);
    // What is current at the start comes late.
    std::thread::sleep(Duration::from_secs(5));
    *log.lock().unwrap() = Log::default();
    let begun = Instant::now();
    let mut memory_mib = 0;
    while begun.elapsed() < span {
        std::thread::sleep(Duration::from_secs(1));
        memory_mib = memory_mib.max(resident_mib(pid));
    }
    let (lines, warnings) = {
        let log = log.lock().unwrap();
        (log.lines, log.warnings)
    };
    write(&path, &redis.url(), mode, light);
    kill_process(pid, Signal::HUP).unwrap();
    std::thread::sleep(AFTERWARDS);
    kill_process(pid, Signal::TERM).unwrap();
    daemon.wait().unwrap();
    let log = log.lock().unwrap();
    let each = pieces(&log.ended, begun, span);
    Watched { each, memory_mib, lines, warnings, recovered: recovered(&log, light) }
}

fn write(path: &Path, store: &str, mode: &str, jobs: usize) {
    let mut text = format!("[store]\nurl = {store:?}\n");
    let job = "schedule = \"* * * * * *\"\nslot = \"tick\"\ncommand = [\"/bin/true\"]\nmax_attempts = 1";
    for number in 0..jobs {
        let _ = writeln!(text, "[jobs.j{number}]\n{job}\nconcurrency = {mode:?}");
    }
    std::fs::write(path, text).unwrap();
}

fn start(path: &Path, log: &Arc<Mutex<Log>>) -> Child {
    let mut command = Command::new(program());
    command.args(["run", "--node", "bench", "--log-format", "json", "--config"]).arg(path);
    let mut daemon = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(daemon.stderr.take().unwrap()).lines();
    let log = Arc::clone(log);
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| log.lock().unwrap().take(&line)));
    daemon
}

impl Log {
    fn take(&mut self, line: &str) {
        if line.contains("\"message\":\"run ended\"") {
            return self.ended.push(Instant::now());
        }
        if line.contains("\"message\":\"run started\"") {
            return;
        }
        if line.contains("\"message\":\"reloaded\"") {
            self.reloaded = Some(Instant::now());
        }
        self.lines += 1;
        if !line.contains("\"level\":\"INFO\"") {
            self.warnings += 1;
            if self.warnings <= 5 {
                eprintln!("  {line}");
            }
        }
    }
}

fn pieces(ended: &[Instant], begun: Instant, span: Duration) -> Vec<f64> {
    let piece = PIECE.min(span);
    let count = (span.as_secs() / piece.as_secs().max(1)) as u32;
    let within = |from: Instant| ended.iter().filter(|at| **at >= from && **at < from + piece).count();
    (0..count).map(|number| within(begun + piece * number) as f64 / piece.as_secs_f64()).collect()
}

/// The first whole second after the reload from which on nearly every job ran in each of five seconds.
fn recovered(log: &Log, jobs: usize) -> Option<Duration> {
    let reloaded = log.reloaded?;
    let second = Duration::from_secs(1);
    let ran = |after: u32| {
        let from = reloaded + second * after;
        log.ended.iter().filter(|at| **at >= from && **at < from + second).count() as f64
    };
    let is_full = |after: &u32| (*after..*after + 5).map(ran).sum::<f64>() >= 0.95 * 5.0 * jobs as f64;
    (0..20).find(is_full).map(|after| second * after)
}

fn resident_mib(pid: Pid) -> u64 {
    let path = format!("/proc/{}/status", pid.as_raw_nonzero());
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) / 1_024
}
