//! What a long `jobs.toml` costs: `exec` beside a thousand jobs, `check` and the start of a daemon with ten thousand.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::idle::{Daemon, TICKS_PER_SECOND, ticks};
use crate::redis_server::RedisServer;
use crate::rig::program;
use crate::table::Table;

const EXECS: u32 = 20;
/// A busy machine takes its time: the figure is processor time.
const STARTS_WITHIN: u32 = 600;

pub(crate) fn measure(table: &mut Table) {
    let redis = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let (some, many) = (folder.path().join("some.toml"), folder.path().join("many.toml"));
    std::fs::write(&some, jobs(1_000, &redis.url())).unwrap();
    std::fs::write(&many, jobs(10_000, &redis.url())).unwrap();

    let before = of_children();
    for _ in 0..EXECS {
        run(&["exec", "--job", "job-7", "--skip-exit-code", "0"], &some, &["--", "/bin/true"]);
    }
    let exec = 1_000.0 * (of_children() - before) / f64::from(EXECS);
    table.at_most("`exec` beside 1,000 jobs: processor, keeper and command included", 40.0, exec, "ms");

    let before = of_children();
    run(&["check"], &many, &[]);
    table.at_most("`check` of 10,000 jobs: processor", 5.0, of_children() - before, "s");

    let daemon = Daemon::start(&many);
    let known = || redis.number(&["HLEN", "cronward:default:nodes"]) == 1;
    let started = (0..STARTS_WITHIN).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        known()
    });
    assert!(started, "the daemon has not reached the store");
    table.at_most("start with 10,000 jobs: processor", 1.5, daemon.cpu_ticks() as f64 / TICKS_PER_SECOND, "s");
    table.at_most("start with 10,000 jobs: most resident memory", 64.0, daemon.status("VmHWM") as f64 / 1_024.0, "MiB");
}

/// Jobs of which each has a time of its own, once a year on a day that is not near.
fn jobs(number: usize, url: &str) -> String {
    use chrono::Datelike;
    let month = (crate::work::wall().month() + 5) % 12 + 1;
    let mut text = format!("[node]\nname = \"bench\"\n\n[store]\nurl = \"{url}\"\n");
    for number in 0..number {
        let (minute, hour, day) = (number % 60, number / 60 % 24, number / 1_440 + 1);
        let _ = write!(
            text,
            "\n[jobs.job-{number}]\nschedule = \"{minute} {hour} {day} {month} *\"\ntimezone = \"Europe/Berlin\"\n\
             command = [\"/usr/local/bin/work\", \"--slot\", \"{{slot}}\"]\ntimeout = \"10m\"\n"
        );
    }
    text
}

fn run(words: &[&str], file: &Path, rest: &[&str]) {
    let mut command = Command::new(program());
    command.args(words).arg("--config").arg(file).args(rest);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}

/// Seconds of processor time of all children that were waited for (proc(5): fields 16 and 17 of stat).
fn of_children() -> f64 {
    ticks(&std::fs::read_to_string("/proc/self/stat").unwrap(), 13) as f64 / TICKS_PER_SECOND
}
