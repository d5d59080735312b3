//! What the runs wrote of themselves, read as plain lines: independently of `cronward verify`.

use std::collections::BTreeMap;

use rustix::process::Pid;
use serde::Deserialize;

use super::workload;

/// A line of `work.jsonl`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Line {
    pub(super) event: String,
    pub(super) job: String,
    pub(super) slot: String,
    pub(super) attempt: u32,
    pub(super) node: String,
    pub(super) pid: i32,
    /// Names of locks, with spaces between.
    pub(super) locks: String,
    pub(super) lock_fence: u64,
    /// Processes that began with one of these locks and live, with spaces between.
    pub(super) beside: String,
    pub(super) at_ms: i64,
}

/// A run that has begun and not ended.
pub(super) struct GoingOn {
    /// `job@slot`.
    pub(super) slot: String,
    pub(super) process: Pid,
}

impl Line {
    pub(super) fn slot(&self) -> String {
        format!("{}@{}", self.job, self.slot)
    }
}

/// All whole lines.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let whole = &text[..text.rfind('\n').map_or(0, |at| at + 1)];
    let read = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("recorder: {line:?}: {error}"));
    whole.lines().map(read).collect()
}

/// The lines of jobs alone: what `cronward verify` reads.
pub(super) fn of_jobs(text: &str) -> String {
    let is_of_job = |line: &&str| !lines(line).iter().any(|line| workload::is_outside(&line.job));
    text.split_inclusive('\n').filter(is_of_job).collect()
}

/// One of the jobs' runs whose process is there.
pub(super) fn going_on(text: &str, pick: u64) -> Option<GoingOn> {
    let mut runs: BTreeMap<(String, i32), &Line> = BTreeMap::new();
    let lines = lines(text);
    for line in lines.iter().rev().take(200).collect::<Vec<_>>().into_iter().rev() {
        if workload::is_outside(&line.job) {
            continue;
        }
        let key = (line.slot(), line.pid);
        if line.event == "start" {
            runs.insert(key, line)
        } else {
            runs.remove(&key)
        };
    }
    // A killed run has no end. A process that took over its number is no bash with that script.
    let there: Vec<&Line> = runs.into_values().filter(|line| is_work(line.pid)).collect();
    let chosen = there.get(usize::try_from(pick).ok()?.checked_rem(there.len())?)?;
    Some(GoingOn { slot: chosen.slot(), process: Pid::from_raw(chosen.pid)? })
}

fn is_work(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|words| words.contains("work.sh"))
}
