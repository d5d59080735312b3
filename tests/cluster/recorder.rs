//! What the jobs did. Every run appends a line when it starts and one when it ends; a run that is killed has no end.

use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

/// The command of the recorded jobs: `record.sh SECONDS EXIT-CODE`. Each line is one write to a file opened with O_APPEND
/// (`>>`). A run shares a lock while any of its processes lives, and asks first whether it could
/// have it alone: so it knows whether an earlier run of the job is still there.
pub(crate) const SCRIPT: &str = r#"#!/bin/sh
cd "$(dirname "$0")" || exit 90
exec 9>>"$CRONWARD_JOB.alone"
if flock --nonblock 9; then overlap=false; else overlap=true; fi
flock --shared 9
record() {
    printf '{"event":"%s","job":"%s","slot":"%s","slot_start":"%s","attempt":%s,"fence":%s,"node":"%s","trigger":"%s","pid":%s,"overlap":%s,"at_ms":%s}\n' \
        "$1" "$CRONWARD_JOB" "$CRONWARD_SLOT" "$CRONWARD_SLOT_START" "$CRONWARD_ATTEMPT" "$CRONWARD_FENCE" \
        "$CRONWARD_NODE" "$CRONWARD_TRIGGER" $$ "$overlap" "$(date +%s%3N 9>&-)" >>runs
}
record start
echo "attempt $CRONWARD_ATTEMPT on $CRONWARD_NODE"
sleep "${1:-0}"
record end
exit "${2:-0}"
"#;

/// One line.
#[derive(Clone, Debug, Deserialize)]
struct Line {
    event: String,
    job: String,
    slot: String,
    slot_start: chrono::DateTime<chrono::Utc>,
    attempt: u32,
    fence: u64,
    node: String,
    trigger: String,
    pid: u32,
    overlap: bool,
    at_ms: i64,
}

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) job: String,
    pub(crate) slot: String,
    pub(crate) slot_start_ms: i64,
    pub(crate) attempt: u32,
    pub(crate) fence: u64,
    pub(crate) node: String,
    pub(crate) trigger: String,
    pub(crate) pid: u32,
    /// A process of an earlier run of the job was alive when this one started.
    pub(crate) overlap: bool,
    pub(crate) start_ms: i64,
    pub(crate) end_ms: Option<i64>,
}

/// All runs so far, in the order in which they started. A half-written last line is not read.
pub(crate) fn read(folder: &Path) -> Vec<Run> {
    let text = std::fs::read_to_string(folder.join("runs")).unwrap_or_default();
    let whole = &text[..text.rfind('\n').map_or(0, |at| at + 1)];
    let mut runs: Vec<Run> = Vec::new();
    for line in whole.lines() {
        let line: Line = serde_json::from_str(line).unwrap_or_else(|error| panic!("recorder: {line:?}: {error}"));
        if line.event == "start" {
            runs.push(Run::begun(line));
        } else {
            let run =
                runs.iter_mut().rev().find(|run| run.pid == line.pid && run.slot == line.slot && run.job == line.job);
            run.expect("a run that ends has begun").end_ms = Some(line.at_ms);
        }
    }
    runs
}

impl Run {
    fn begun(line: Line) -> Self {
        Self {
            job: line.job,
            slot: line.slot,
            slot_start_ms: line.slot_start.timestamp_millis(),
            attempt: line.attempt,
            fence: line.fence,
            node: line.node,
            trigger: line.trigger,
            pid: line.pid,
            overlap: line.overlap,
            start_ms: line.at_ms,
            end_ms: None,
        }
    }
}

/// When a slot begins, from its key.
pub(crate) fn start_ms(key: &serde_json::Value) -> i64 {
    let key: cronward::slot::SlotKey = key.as_str().unwrap().parse().unwrap();
    key.start().timestamp_millis()
}

/// Runs for people: one line each, times in seconds after the first.
pub(crate) fn table(runs: &[Run]) -> String {
    let mut table = String::new();
    let origin = runs.first().map_or(0, |run| run.start_ms);
    let seconds = |ms: i64| format!("{}.{:03}", (ms - origin).div_euclid(1_000), (ms - origin).rem_euclid(1_000));
    for run in runs {
        let Run { job, slot, attempt, node, trigger, pid, overlap, .. } = run;
        let (start, end) = (seconds(run.start_ms), run.end_ms.map_or("-".to_owned(), seconds));
        let overlap = if *overlap { " OVERLAP" } else { "" };
        let _ = writeln!(table, "{job}@{slot} #{attempt} {trigger} on {node} pid {pid}: {start} to {end}{overlap}");
    }
    table
}
