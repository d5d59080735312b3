//! What is asked of a run when it is over: the checker's judgement, and a few plain counts that do not rest on the checker.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use cronward::slot::SlotKey;
use cronward::verify::{Class, Fault, Inputs, Report, check};
use serde_json::Value;

use super::folder::Folder;
use super::{record, workload};

/// All that is known of what happened.
#[derive(Clone)]
pub(super) struct Evidence {
    /// Each with its file's name.
    pub(super) journals: Vec<(String, String)>,
    pub(super) recorder: String,
    pub(super) faults: String,
    pub(super) allowance: Duration,
    /// All nodes were up.
    pub(super) from: DateTime<Utc>,
}

/// The checker's report, and what is wrong, in words.
pub(super) struct Judgement {
    pub(super) report: Report,
    pub(super) complaints: Vec<String>,
}

/// Nothing that a fault sets off lasts longer: a lease and its third, a retry, noticing; and the start of a node.
const AFTERMATH: TimeDelta = TimeDelta::seconds(6);

impl Evidence {
    pub(super) fn gather(folder: &Folder, nodes: &[String], from: DateTime<Utc>, allowance: Duration) -> Self {
        let journal = |node: &String| (format!("{node}.jsonl"), folder.read(&format!("{node}.jsonl")));
        let (recorder, faults) = (folder.read("work.jsonl"), folder.read("faults.jsonl"));
        Self { journals: nodes.iter().map(journal).collect(), recorder, faults, allowance, from }
    }

    pub(super) fn report(&self) -> Report {
        let mut inputs = Inputs::default();
        inputs.allowance = self.allowance;
        self.journals.iter().for_each(|(file, text)| inputs.journal(file, text).unwrap());
        inputs.recorder("work.jsonl", &self.recorder).unwrap();
        inputs.faults("faults.jsonl", &self.faults).unwrap();
        check(inputs)
    }

    /// The report without regard to the machine: how soon others took over, as it was. An allowance lengthens the time for
    /// which a fault excuses things, and so keeps recoveries from being counted.
    pub(super) fn report_without_allowance(&self) -> Report {
        Self { allowance: Duration::ZERO, ..self.clone() }.report()
    }

    pub(super) fn judge(&self) -> Judgement {
        let report = self.report();
        let mut complaints: Vec<String> = report.unexplained.iter().chain(&report.violations).map(words).collect();
        complaints.extend(self.successes_without_work());
        complaints.extend(self.quick_slots_that_were_not_done_once(&report));
        Judgement { report, complaints }
    }

    /// What a node told as a success has been done: the job's own record of it begins and ends.
    fn successes_without_work(&self) -> Vec<String> {
        let key = |line: &record::Line| (line.job.clone(), line.slot.clone(), line.attempt, line.node.clone());
        let lines = record::lines(&self.recorder);
        let of = |event: &str| lines.iter().filter(|line| line.event == event).map(key).collect::<BTreeSet<_>>();
        let (begun, ended) = (of("start"), of("end"));
        let told = self.told().filter(|line| line["event"] == "run_ended" && line["outcome"] == "success");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let told = told.map(|line| {
            let attempt = line["attempt"].as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or(u32::MAX);
            (text(&line["job"]), text(&line["slot"]), attempt, text(&line["node"]))
        });
        let missing = told.filter(|run| !(begun.contains(run) && ended.contains(run)));
        missing.map(|(job, slot, n, node)| format!("{job}@{slot}: attempt {n} on {node} did no work")).collect()
    }

    /// The checker weighs what may excuse what; here a slot that began with all nodes up, that no fault comes near and for
    /// which the store answered in time has to be done once, without a word.
    fn quick_slots_that_were_not_done_once(&self, report: &Report) -> Vec<String> {
        let (faults, slow) = (self.faults(), self.slots_of_a_slow_store());
        let quick = report.explained.iter().filter(|slot| slot.slot.starts_with(workload::QUICK));
        let quick = quick.filter(|slot| bounds(&slot.slot).0 >= self.from && !slow.contains(&slot.slot));
        let undisturbed = quick.filter(|slot| !is_near(&faults, &slot.slot));
        undisturbed.map(|slot| format!("{}: no fault was near, and yet: {:?}", slot.slot, slot.why)).collect()
    }

    /// Slots of quick jobs that were done and that no fault came near.
    pub(super) fn undisturbed(&self) -> Vec<String> {
        let faults = self.faults();
        let done = record::lines(&self.recorder).into_iter().filter(|line| line.event == "end");
        let quick = done.map(|line| line.slot()).filter(|slot| slot.starts_with(workload::QUICK));
        quick.filter(|slot| !is_near(&faults, slot)).collect()
    }

    /// A machine that lets processes wait, or a disk that syncs slowly, is nobody's fault here; a node tells of it.
    fn slots_of_a_slow_store(&self) -> BTreeSet<String> {
        let told = self.told().filter(|line| line["event"] == "store_failed" && line["kind"] == "timeout");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        told.map(|line| format!("{}@{}", text(&line["job"]), text(&line["slot"]))).collect()
    }

    pub(super) fn faults(&self) -> Vec<Fault> {
        self.faults.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn told(&self) -> impl Iterator<Item = Value> {
        self.journals.iter().flat_map(|(_, text)| text.lines()).filter_map(|line| serde_json::from_str(line).ok())
    }
}

fn words(finding: &cronward::verify::Finding) -> String {
    let lines = finding.lines.iter().map(|line| format!("\n    {line}")).collect::<String>();
    format!("{}: {}: {}{lines}", finding.slot, finding.rule, finding.message)
}

fn is_near(faults: &[Fault], slot: &str) -> bool {
    let (start, end) = bounds(slot);
    faults.iter().any(|fault| fault.at <= end && fault.until.unwrap_or(fault.at) + AFTERMATH >= start)
}

/// Start and end of a slot, by its name: the length of a job's slots is in its name.
pub(super) fn bounds(slot: &str) -> (DateTime<Utc>, DateTime<Utc>) {
    let (job, key) = slot.split_once('@').unwrap();
    let start = key.parse::<SlotKey>().unwrap().start();
    (start, start + TimeDelta::seconds(i64::from(workload::seconds(job))))
}

/// How many slots are of a class.
pub(super) fn count(report: &Report, class: Class) -> usize {
    report.tally(class).slots
}
