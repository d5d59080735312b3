//! What the figures were measured on, and when: they mean nothing without it.

use std::process::Command;

use chrono::SecondsFormat;
use cronward::clock::{Clock, SystemClock};

/// One line.
pub(crate) fn describe() -> String {
    let now = SystemClock.now().wall.to_rfc3339_opts(SecondsFormat::Secs, true);
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: Vec<&str> = load.split(' ').take(3).collect();
    format!(
        "Last measured {now} on {cores} cores ({}), Linux {}, {}, {}; {}load at the end {}.",
        processor(),
        said("uname", &["-r"]),
        said("rustc", &["--version"]),
        said("redis-server", &["--version"]).split(" sha=").next().unwrap_or_default(),
        if is_preferred() { "under `chrt -f`, " } else { "" },
        load.join(" "),
    )
}

/// Whether this process goes before all others of the machine (proc(5): field 41 of stat, 1 and 2 are real-time).
fn is_preferred() -> bool {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let policy = stat.rsplit_once(") ").and_then(|(_, fields)| fields.split(' ').nth(38));
    matches!(policy, Some("1" | "2"))
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name"));
    name.map_or("unknown processor", |name| name.trim_start_matches(['\t', ' ', ':'])).to_owned()
}

fn said(program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}
