//! What a daemon costs while nothing is due: the built program with a file of 1,000 jobs on a real server.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use chrono::Timelike;

use crate::redis_server::RedisServer;
use crate::rig::program;
use crate::table::Table;
use crate::work;

const JOBS: usize = 1_000;
const SETTLING: Duration = Duration::from_secs(6);
const WATCHED: Duration = Duration::from_secs(30);
/// One heartbeat each 10 s: at the most four fall into 30 s, were the last to come early.
const HEARTBEATS: u64 = 4;
/// USER_HZ: what Linux counts processor time in, whatever its own timer's rate (time(7)).
pub(crate) const TICKS_PER_SECOND: f64 = 100.0;

pub(crate) fn measure(table: &mut Table) {
    let redis = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jobs.toml");
    std::fs::write(&file, jobs(&redis.url())).unwrap();
    let daemon = Daemon::start(&file);
    std::thread::sleep(SETTLING);
    let nodes = redis.number(&["HLEN", "cronward:default:nodes"]);
    assert_eq!(nodes, 1, "the daemon has not reached the store");
    let (calls, ticks, bytes) = (client_calls(&redis), daemon.cpu_ticks(), bytes_in(&redis));
    std::thread::sleep(WATCHED);
    let used = daemon.cpu_ticks() - ticks;
    let bytes = bytes_in(&redis) - bytes;
    let calls = less(&client_calls(&redis), &calls);
    let seconds = used as f64 / TICKS_PER_SECOND;
    table.at_most("idle with 1,000 jobs: processor, of one core", 1.0, 100.0 * seconds / WATCHED.as_secs_f64(), "%");
    table.at_most("idle with 1,000 jobs: resident memory", 24.0, daemon.status("VmRSS") as f64 / 1_024.0, "MiB");
    let of_it = format!(
        "{:.1} MiB its own, {:.1} MiB the program's file; {} threads",
        daemon.status("RssAnon") as f64 / 1_024.0,
        daemon.status("RssFile") as f64 / 1_024.0,
        daemon.status("Threads")
    );
    table.told("of that memory", of_it);
    let scripts = calls.get("evalsha").copied().unwrap_or_default();
    let only = calls.keys().all(|name| ["evalsha", "ping"].contains(&name.as_str()));
    table.is_so(
        "idle with 1,000 jobs: store traffic in 30 s",
        "a heartbeat each 10 s, and the subscription's ping each 5 s",
        format!("{calls:?}, {:.1} KiB/s", bytes as f64 / 1_024.0 / WATCHED.as_secs_f64()),
        only && (1..=HEARTBEATS).contains(&scripts),
    );
}

/// 1,000 jobs, each once an hour, of which none is due within the next 20 minutes, nor was in this hour.
pub(crate) fn jobs(url: &str) -> String {
    let now = work::wall();
    let minute = (now.minute() + 25) % 60;
    let begun_is_free = minute > now.minute();
    let hours: Vec<String> =
        (0..24).filter(|hour| begun_is_free || *hour != now.hour()).map(|hour| hour.to_string()).collect();
    let hours = hours.join(",");
    let mut text = format!("[node]\nname = \"bench\"\n\n[store]\nurl = \"{url}\"\n");
    for number in 0..JOBS {
        text += &format!("\n[jobs.hourly-job-{number}]\nschedule = \"{minute} {hours} * * *\"\ncommand = [\"true\"]\n");
    }
    text
}

/// The daemon's process; killed when dropped.
pub(crate) struct Daemon(Child);

impl Daemon {
    /// Without a port.
    pub(crate) fn start(file: &Path) -> Self {
        Self::run(file, &["--no-http"])
    }

    /// With the port that the file names.
    #[cfg(feature = "http")]
    pub(crate) fn serving(file: &Path) -> Self {
        Self::run(file, &[])
    }

    fn run(file: &Path, more: &[&str]) -> Self {
        let mut command = Command::new(program());
        command.args(["run", "--log-format", "json"]).args(more).arg("--config").arg(file);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn proc(&self, name: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.0.id())).expect("the daemon runs")
    }

    /// User and system time (proc(5): fields 14 and 15 of stat).
    pub(crate) fn cpu_ticks(&self) -> u64 {
        ticks(&self.proc("stat"), 11)
    }

    /// A number of /proc/PID/status; sizes are in KiB.
    pub(crate) fn status(&self, name: &str) -> u64 {
        let status = self.proc("status");
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }
}

/// User and system time of a stat of proc(5), whose first field behind the name is the third.
pub(crate) fn ticks(stat: &str, user: usize) -> u64 {
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    fields[user].parse::<u64>().unwrap() + fields[user + 1].parse::<u64>().unwrap()
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Commands that clients sent. Those that scripts call, and our own questions, are left out.
pub(crate) fn client_calls(redis: &RedisServer) -> BTreeMap<String, u64> {
    const INNER: [&str; 14] = [
        "time", "hgetall", "hset", "hget", "hdel", "get", "set", "pttl", "pexpire", "publish", "incr", "info", "hlen",
        "client",
    ];
    let info = redis.text(&["INFO", "commandstats"]).unwrap();
    let counts = info.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let is_inner = INNER.iter().any(|inner| name == *inner || name.starts_with(&format!("{inner}|")));
        let count = rest.split(',').next()?.parse().ok()?;
        (!is_inner).then(|| (name.to_owned(), count))
    });
    counts.collect()
}

pub(crate) fn less(after: &BTreeMap<String, u64>, before: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let since = after.iter().map(|(name, calls)| (name.clone(), calls - before.get(name).unwrap_or(&0)));
    since.filter(|(_, calls)| *calls > 0).collect()
}

fn bytes_in(redis: &RedisServer) -> u64 {
    let info = redis.text(&["INFO", "stats"]).unwrap();
    let line = info.lines().find_map(|line| line.strip_prefix("total_net_input_bytes:"));
    line.unwrap().trim().parse().unwrap()
}
