//! What is checked: texts of files, read into records. A line that a killed node left half-written is told, not refused.
//! Among them the faults that somebody injected, and what each can be blamed for.

use std::time::Duration;

use chrono::{DateTime, Datelike, Utc};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::clock::later;
use crate::event::Event;
use crate::job::{JobName, NodeName};
use crate::observe::journal::Line;
use crate::slot::{Attempt, Slot, SlotKey};
use crate::text::message;

/// Everything that is known of what happened.
#[derive(Debug)]
pub struct Inputs {
    pub(super) told: Vec<Told>,
    pub(super) recorded: Vec<RecordedRun>,
    pub(super) faults: Vec<InjectedFault>,
    pub(super) notes: Vec<String>,
    /// Granted on top of each bound in time (on recovery, on a first and on a late start), and to what follows from a fault:
    /// for machines that are known to let processes wait.
    pub allowance: Duration,
    /// Planned slots that are judged at the most, a million unless said otherwise. A job that ticks each second plans as
    /// many within twelve days; a clock that is wrong by a century plans any number. More is told as a violation.
    pub most_planned: usize,
}

impl Default for Inputs {
    fn default() -> Self {
        let (told, recorded, faults, notes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { told, recorded, faults, notes, allowance: Duration::ZERO, most_planned: 1_000_000 }
    }
}

/// A line of a journal, and where it stands.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) line: Line,
    /// `file:line: text`
    pub(super) source: String,
}

/// A run as the job itself recorded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedRun {
    /// The job.
    pub job: JobName,
    /// The slot.
    pub slot: SlotKey,
    /// Which attempt.
    pub attempt: Attempt,
    /// Its fence.
    pub fence: u64,
    /// Where.
    pub node: NodeName,
    /// Its process.
    pub pid: u32,
    /// When it began.
    pub start: DateTime<Utc>,
    /// When it ended; none for one that was killed, or still runs.
    pub end: Option<DateTime<Utc>>,
    /// It found an earlier run of its job alive.
    pub overlap: bool,
    pub(super) source: String,
}

/// A line that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {why}")]
pub struct Malformed {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub why: String,
}

impl Malformed {
    /// Parts of the line may be among the words of `why`.
    fn new(file: &str, line: usize, why: &str) -> Self {
        Self { file: file.to_owned(), line, why: message(why, 400) }
    }
}

/// A line of a recorder's file: both instants on one line, or `event` `start` and `end` with `at_ms` on two.
#[derive(Deserialize)]
struct RecorderLine {
    job: JobName,
    slot: String,
    attempt: Attempt,
    fence: u64,
    node: NodeName,
    pid: u32,
    start_ms: Option<i64>,
    end_ms: Option<i64>,
    event: Option<String>,
    at_ms: Option<i64>,
    #[serde(default)]
    overlap: bool,
}

impl Inputs {
    /// Takes a node's journal. Files of one node are given in any order, each once.
    pub fn journal(&mut self, file: &str, text: &str) -> Result<(), Malformed> {
        let lines = self.read::<Line>(file, text, "a journal, as `cronward run --journal` writes it", after_a_tear)?;
        for (number, source, line) in lines {
            if line.event.is_of_slot() && line.slot().is_none() {
                return Err(Malformed::new(file, number, "the line names no slot, or one that cannot be"));
            }
            if let Some(at) = instants(&line).into_iter().find(|at| !is_of_this_age(*at)) {
                return Err(Malformed::new(file, number, &odd_instant(at)));
            }
            self.told.push(Told { line, source });
        }
        Ok(())
    }

    /// Takes the runs that the jobs recorded, on one clock.
    pub fn recorder(&mut self, file: &str, text: &str) -> Result<(), Malformed> {
        for (number, source, line) in self.read::<RecorderLine>(file, text, "a recorder's file", |_| false)? {
            self.record(line, source).map_err(|why| Malformed::new(file, number, &why))?;
        }
        Ok(())
    }

    /// Takes the faults that were injected.
    pub fn faults(&mut self, file: &str, text: &str) -> Result<(), Malformed> {
        let lines = self.read::<InjectedFault>(file, text, "a faults file", |_| false)?;
        for (number, _, fault) in lines {
            let instants = [Some(fault.at), fault.until];
            if let Some(at) = instants.into_iter().flatten().find(|at| !is_of_this_age(*at)) {
                return Err(Malformed::new(file, number, &odd_instant(at)));
            }
            self.faults.push(fault);
        }
        Ok(())
    }

    /// Takes one fault.
    pub fn fault(&mut self, fault: InjectedFault) {
        self.faults.push(fault);
    }

    fn record(&mut self, line: RecorderLine, source: String) -> Result<(), String> {
        let slot: SlotKey = line.slot.parse().map_err(|error: crate::slot::SlotKeyError| error.to_string())?;
        let instant = |ms: Option<i64>| ms.and_then(DateTime::from_timestamp_millis);
        if let Some(at) = [line.start_ms, line.end_ms, line.at_ms].into_iter().flatten().find(|ms| !is_millis(*ms)) {
            return Err(format!("{at} ms since 1970 is no instant of the years 1970 to 9999"));
        }
        let (start, end) = match line.event.as_deref() {
            None => (instant(line.start_ms), instant(line.end_ms)),
            Some("start") => (instant(line.at_ms), None),
            Some("end") => (None, instant(line.at_ms)),
            Some(other) => return Err(format!("event {other:?}: it can be start or end")),
        };
        let same = |run: &&mut RecordedRun| {
            (&run.job, run.slot, run.attempt, run.pid) == (&line.job, slot, line.attempt, line.pid)
                && start.is_none_or(|start| start == run.start)
        };
        if let Some(run) = self.recorded.iter_mut().rev().find(same) {
            run.end = end.or(run.end);
            return Ok(());
        }
        let Some(start) = start else { return Err("a run ends that has not begun".to_owned()) };
        let RecorderLine { job, attempt, fence, node, pid, overlap, .. } = line;
        self.recorded.push(RecordedRun { job, slot, attempt, fence, node, pid, start, end, overlap, source });
        Ok(())
    }

    /// Each line with its number and source. A last line without its end is left out and told; so is one that
    /// `tear` knows by the line after it.
    fn read<T: DeserializeOwned>(
        &mut self,
        file: &str,
        text: &str,
        what: &str,
        tear: fn(&str) -> bool,
    ) -> Result<Vec<(usize, String, T)>, Malformed> {
        let mut read = Vec::new();
        let mut lines = text.split_inclusive('\n').enumerate().filter(|(_, line)| !line.trim().is_empty()).peekable();
        while let Some((index, whole)) = lines.next() {
            let (number, line) = (index + 1, whole.trim_end());
            match serde_json::from_str(line) {
                Ok(value) => read.push((number, format!("{file}:{number}: {line}"), value)),
                Err(_) if !whole.ends_with('\n') => {
                    self.notes
                        .push(format!("{file}:{number}: the last line is cut: its writer was killed, or still writes"));
                }
                Err(_) if lines.peek().is_some_and(|(_, next)| tear(next)) => {
                    self.notes
                        .push(format!("{file}:{number}: a cut line: its writer died there, or its disk was full"));
                }
                Err(error) => {
                    return Err(Malformed::new(file, number, &format!("not a line of {what}: {error}")));
                }
            }
        }
        Ok(read)
    }
}

/// Whether an instant lies in the years that slots have keys for. Beyond them arithmetic comes to the calendar's ends.
fn is_of_this_age(at: DateTime<Utc>) -> bool {
    (1970..=9999).contains(&at.year())
}

fn is_millis(ms: i64) -> bool {
    DateTime::from_timestamp_millis(ms).is_some_and(is_of_this_age)
}

fn odd_instant(at: DateTime<Utc>) -> String {
    format!("{at} is no instant of the years 1970 to 9999")
}

/// Each instant of a line.
fn instants(line: &Line) -> Vec<DateTime<Utc>> {
    let granted = match &line.event {
        Event::Granted { granted_at, .. } => Some(*granted_at),
        _ => None,
    };
    [Some(line.at), line.slot_end, granted].into_iter().flatten().collect()
}

/// What a journal goes on with after a half-written line: a new start of the node, or a count of what is missing.
fn after_a_tear(next: &str) -> bool {
    serde_json::from_str::<Line>(next)
        .is_ok_and(|line| matches!(line.event, Event::Started { .. } | Event::Dropped { .. }))
}

/// A line of a faults file: `{"at":"2026-11-21T14:00:05Z","kind":"kill","target":"a"}`.
///
/// The kinds that mean something: `kill`, `crash`, `power`, `terminate` and `term` end a node; `wipe`, `flush`, `failover`,
/// `evict`, `restart` and `restore` lose what a store knew; `reset`, `unlock`, `mark_done`, `pause` and `resume` are an
/// operator's; `drain`, `reload`, `clock`, `script_flush`, `kill_run` and `stop_run` excuse nothing. Everything else
/// (`stop`, `partition`, `delay`, …) may cause anything but a loss of data. A target is a node's name, a job, a `job@slot`,
/// or something that concerns everybody, like `store`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct InjectedFault {
    /// When it began.
    pub at: DateTime<Utc>,
    /// What it was.
    pub kind: String,
    /// Whom it struck.
    #[serde(default)]
    pub target: String,
    /// When it ended; at once, if nothing is said.
    #[serde(default)]
    pub until: Option<DateTime<Utc>>,
}

const DEATHS: &[&str] = &["kill", "crash", "power", "terminate", "term"];
const DATA_LOSS: &[&str] = &["wipe", "flush", "failover", "evict", "restart", "restore"];
/// After these the protocol promises each slot once all the same, or the nodes themselves tell what came of them: a node that
/// leaves gives its runs back, a run that is killed has failed, clocks are the store's, a forgotten script is sent again.
const HARMLESS: &[&str] = &["drain", "reload", "clock", "script_flush", "kill_run", "stop_run"];
const OPERATOR: &[&str] = &["reset", "mark_done", "pause", "resume"];

impl InjectedFault {
    /// It excuses nothing.
    pub(super) fn is_harmless(&self) -> bool {
        HARMLESS.contains(&&*self.kind)
    }

    /// A node is gone after it.
    pub(super) fn is_death(&self) -> bool {
        DEATHS.contains(&&*self.kind)
    }

    /// What the store knew may be gone after it.
    pub(super) fn loses_data(&self) -> bool {
        DATA_LOSS.contains(&&*self.kind) || (self.is_death() && self.target == "store")
    }

    /// What the store knew may be what it was some time before: a store that is empty counts no attempts.
    pub(super) fn goes_back(&self) -> bool {
        self.loses_data() && !["wipe", "flush"].contains(&&*self.kind)
    }

    /// Another run can come of it, one after the other. Who pauses or resumes a job, or marks a slot done, starts nothing.
    pub(super) fn allows_repeat(&self) -> bool {
        !["mark_done", "pause", "resume"].contains(&&*self.kind)
    }

    /// It can keep a slot from being done. Operators' verbs do not, but for a pause: what they take back was done, or
    /// failed with all its attempts.
    pub(super) fn allows_loss(&self) -> bool {
        !["mark_done", "resume", "reset", "unlock"].contains(&&*self.kind)
    }

    /// How often it can have lost what the store knew of one slot. Who evicts while a slot runs, and again when it is done,
    /// has entered one fault.
    pub(super) fn times_data_is_lost(&self) -> usize {
        match (self.loses_data(), &*self.kind) {
            (true, "evict") => 2,
            (lost, _) => usize::from(lost),
        }
    }

    /// It keeps a node, or the whole cluster, from taking slots for as long as it lasts. Who dies is gone without it, and
    /// of an operator's deeds only a pause does that.
    pub(super) fn keeps_from_work(&self) -> bool {
        let of_a_node = self.is_death() && self.target != "store";
        !of_a_node && self.allows_loss()
    }

    /// Two runs at once can come of it. A node that dies takes its commands along.
    pub(super) fn allows_overlap(&self) -> bool {
        let of_a_node = self.is_death() && self.target != "store";
        !of_a_node && !OPERATOR.contains(&&*self.kind)
    }

    /// A run that was to be killed when its lease was lost can go on through it: its node stood still, or nobody could know
    /// that another one would be let in.
    pub(super) fn allows_overlap_with_a_kill(&self, node: &NodeName) -> bool {
        (self.kind == "stop" && self.target == node.as_str()) || self.loses_data() || self.kind == "unlock"
    }

    /// Whether it concerns a slot in which these nodes had a part. A target that is no node concerns everybody, unless it
    /// is another job or slot; `everybody` are all nodes that are known.
    pub(super) fn concerns(&self, slot: &Slot, nodes: &[&NodeName], everybody: &[&NodeName]) -> bool {
        if everybody.iter().any(|node| node.as_str() == self.target) {
            return nodes.iter().any(|node| node.as_str() == self.target);
        }
        match self.target.split_once('@') {
            Some((job, key)) => job == slot.job().as_str() && key == slot.key().to_string(),
            None if OPERATOR.contains(&&*self.kind) || self.kind == "unlock" => self.target == slot.job().as_str(),
            None => true,
        }
    }

    /// Whether it, or what follows from it for so long, falls into a span.
    pub(super) fn strikes(&self, from: DateTime<Utc>, to: DateTime<Utc>, aftermath: Duration) -> bool {
        self.at <= to && later(self.until.unwrap_or(self.at), aftermath) >= from
    }

    /// For people.
    pub(super) fn words(&self) -> String {
        format!("{} of {} at {}", self.kind, self.target, self.at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true))
    }
}
