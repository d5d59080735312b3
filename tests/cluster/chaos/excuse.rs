//! What explains that a lock was held by somebody who should not have had it any more: a loss that was told, a fault. Each is
//! named, and near.

use chrono::{DateTime, TimeDelta, Utc};
use cronward::verify::InjectedFault;
use serde_json::Value;

use super::contention::Hold;
use super::judge::{AFTERMATH, Evidence, LOSSES};
use super::outsiders::keeper_of;
use super::workload;

/// Why.
pub(super) struct Excuse {
    pub(super) kind: &'static str,
}

/// What two instants of one machine's clock may differ by though they are one.
const BLUR_MS: i64 = 100;

/// How `cronward lock` tells of a loss.
const LOSSES_TOLD: [&str; 2] = ["was lost or its renewal was overdue", "expired or was evicted before it was released"];

/// Why one could be at work while another one held, or before that one though it was let in earlier. Speed is no reason: but where a
/// command is to be killed in time, that takes the time that this machine lets processes wait.
pub(super) fn of(evidence: &Evidence, one: &Hold, beside: &Hold) -> Option<Excuse> {
    let (first, last) = (one.line.at_ms.min(beside.line.at_ms), one.line.at_ms.max(beside.line.at_ms));
    let slack = TimeDelta::from_std(evidence.allowance).unwrap() + AFTERMATH;
    let faults = evidence.faults();
    let is_near = |fault: &&InjectedFault, slack: TimeDelta| {
        fault.at.timestamp_millis() <= last && (fault.until.unwrap_or(fault.at) + slack).timestamp_millis() >= first
    };
    let near = |fits: &dyn Fn(&InjectedFault) -> bool, slack: TimeDelta| {
        faults.iter().filter(|fault| fits(fault)).any(|fault| is_near(&fault, slack))
    };
    let because = |kind, is_so: bool| is_so.then_some(Excuse { kind });
    let keeper = keeper_of(&one.who());
    let common = because("a store that lost data", near(&|fault| LOSSES.contains(&&*fault.kind), slack))
        .or_else(|| because("a keeper that was stopped", near(&|it| it.target == keeper, TimeDelta::zero())));
    if workload::is_killed_when_lost(&one.line.job) {
        let overlapped = one.until_ms() - last;
        let most = i64::try_from(evidence.allowance.as_millis()).unwrap() + BLUR_MS;
        // Who began when another one held already, and came to its end by itself, was not about to be killed.
        let is_late = overlapped <= most && (one.began_before(beside) || !one.has_ended);
        return common.or_else(|| because("a machine that killed late", is_late));
    }
    let (who, node) = (one.who(), &one.line.node);
    let stands = |fault: &InjectedFault| match &*fault.kind {
        "stop" => fault.target == *node,
        // Of a job that is the run itself, whose node goes on.
        "stop_run" => workload::is_outside(&one.line.job) && fault.target == who,
        _ => false,
    };
    common
        .or_else(|| because("its word", told_of_a_loss(evidence, one, last, slack)))
        .or_else(|| because("a holder that was stopped", near(&stands, TimeDelta::zero())))
}

/// Whether its node, or the program itself, told of a loss, and did not hold again before an instant.
fn told_of_a_loss(evidence: &Evidence, one: &Hold, at_ms: i64, slack: TimeDelta) -> bool {
    if workload::is_outside(&one.line.job) {
        let (who, ends) = (one.who(), evidence.outsiders());
        let said = ends.iter().find(|end| end["who"] == *who).and_then(|end| end["said"].as_str());
        return said.is_some_and(|said| LOSSES_TOLD.iter().any(|words| said.contains(words)));
    }
    let lines: Vec<Value> = evidence.told().filter(|told| is_of(told, one)).collect();
    // Its node's clock may be wrong: what it tells is as long after its word of the start as it says.
    let Some(started) = lines.iter().find(|line| line["event"] == "run_started").and_then(instant) else {
        return false;
    };
    let by_clock = |line: &Value| instant(line).map(|at| one.line.at_ms + (at - started).num_milliseconds());
    let mut lost = None;
    for line in &lines {
        let Some(at) = by_clock(line) else { continue };
        let is_loss = match line["event"].as_str().unwrap_or_default() {
            "lock_lost" | "lease_lost" | "lease_in_doubt" | "overtaken" => true,
            "lock_left" => line["answer"] == "overtaken" || line["answer"] == "expired",
            _ => false,
        };
        if is_loss {
            lost.get_or_insert(at);
        } else if line["event"] == "lock_held" && line["again"] == true && at < at_ms {
            lost = None;
        }
    }
    lost.is_some_and(|lost| lost <= at_ms + slack.num_milliseconds())
}

fn is_of(told: &Value, one: &Hold) -> bool {
    let line = &one.line;
    told["node"] == *line.node
        && told["job"] == *line.job
        && told["slot"] == *line.slot
        && told["attempt"] == line.attempt
}

fn instant(line: &Value) -> Option<DateTime<Utc>> {
    line["at"].as_str()?.parse().ok()
}
