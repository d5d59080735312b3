//! What is asked of a run when it is over: the checker's judgement, and a few plain counts that do not rest on the checker.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use cronward::slot::SlotKey;
use cronward::verify::{Class, Finding, InjectedFault, Inputs, Report, check};
use serde_json::Value;

use super::due::Presence;
use super::folder::Folder;
use super::{contention, record, workload};

/// All that is known of what happened.
#[derive(Clone)]
pub(super) struct Evidence {
    /// Each with its file's name.
    pub(super) journals: Vec<(String, String)>,
    pub(super) recorder: String,
    pub(super) faults: String,
    /// What came of each process of the outsiders.
    pub(super) outsiders: String,
    /// Where the store keeps locks: the entries that stand in them though they should not.
    pub(super) standing: Option<Vec<String>>,
    pub(super) allowance: Duration,
    /// When the nodes were there.
    pub(super) presence: Presence,
}

/// The checker's report, and what is wrong, in words.
pub(super) struct Judgement {
    pub(super) report: Report,
    pub(super) complaints: Vec<String>,
}

/// Nothing that a fault sets off lasts longer: a lease and its third, a retry, noticing; and the start of a node.
pub(super) const AFTERMATH: TimeDelta = TimeDelta::seconds(6);

/// From the end of a slot until it has to be judged: its lease and its closing (docs/journal.md), and what clocks differ by.
const TO_BE_JUDGED: TimeDelta = TimeDelta::seconds(13);

/// Slots of which a failed trial shows what was near.
const SLOTS_SHOWN: usize = 3;

/// The kinds of faults after which a store may have forgotten what it acknowledged.
pub(super) const LOSSES: &[&str] = &["restart", "flush", "failover", "evict"];

impl Evidence {
    pub(super) fn gather(folder: &Folder, nodes: &[String], presence: Presence, allowance: Duration) -> Self {
        let journal = |node: &String| (format!("{node}.jsonl"), folder.read(&format!("{node}.jsonl")));
        let (recorder, faults) = (folder.read("work.jsonl"), folder.read("faults.jsonl"));
        let (journals, outsiders) = (nodes.iter().map(journal).collect(), folder.read("outsiders.jsonl"));
        Self { journals, recorder, faults, outsiders, standing: None, allowance, presence }
    }

    pub(super) fn report(&self) -> Report {
        let mut inputs = Inputs::default();
        inputs.allowance = self.allowance;
        self.journals.iter().for_each(|(file, text)| inputs.journal(file, text).unwrap());
        inputs.recorder("work.jsonl", &record::of_jobs(&self.recorder)).unwrap();
        inputs.faults("faults.jsonl", &self.faults).unwrap();
        check(inputs)
    }

    /// The report without regard to the machine: how soon others took over, as it was. An allowance lengthens the time for
    /// which a fault excuses things, and so keeps recoveries from being counted.
    pub(super) fn report_without_allowance(&self) -> Report {
        Self { allowance: Duration::ZERO, ..self.clone() }.report()
    }

    /// How many of the slots that a report explains nothing would explain if the store had lost no data.
    pub(super) fn only_by_a_loss_of_data(&self, with: &Report) -> usize {
        let loses = |line: &&str| LOSSES.iter().any(|kind| line.contains(&format!("\"kind\":\"{kind}\"")));
        let kept = self.faults.lines().filter(|line| !loses(line)).map(|line| format!("{line}\n")).collect();
        let without = Self { faults: kept, ..self.clone() }.report();
        without.unexplained.len().saturating_sub(with.unexplained.len())
    }

    pub(super) fn judge(&self) -> Judgement {
        let report = self.report();
        let mut complaints: Vec<String> = report.unexplained.iter().chain(&report.violations).map(words).collect();
        complaints.extend(does_not_add_up(&report));
        complaints.extend(self.slots_that_were_not_judged(&report));
        complaints.extend(self.successes_without_work());
        complaints.extend(self.quick_slots_that_were_not_done_once(&report));
        complaints.extend(contention::complaints(self));
        Judgement { report, complaints }
    }

    /// Every slot that fell due by the clock and is long over has been judged, whatever the journals say. Where the store did not
    /// answer in time, a node may speak of it to the end.
    fn slots_that_were_not_judged(&self, report: &Report) -> Vec<String> {
        let (judged, slow): (BTreeSet<&String>, _) = (report.judged.iter().collect(), self.slots_of_a_slow_store());
        let due = self.due().into_iter().filter(|slot| !judged.contains(slot) && !slow.contains(slot));
        due.map(|slot| format!("{slot}: it fell due, and was not judged")).collect()
    }

    /// Slots that fell due so early that they have to be judged.
    pub(super) fn due(&self) -> Vec<String> {
        self.presence.slots(TO_BE_JUDGED)
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

    /// The checker weighs what may excuse what; here a slot that was left alone has to be done once, without a word: the
    /// job's own record of it begins once and ends once.
    fn quick_slots_that_were_not_done_once(&self, report: &Report) -> Vec<String> {
        let told: BTreeMap<&str, &Vec<String>> = report.explained.iter().map(|slot| (&*slot.slot, &slot.why)).collect();
        let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for line in record::lines(&self.recorder) {
            let (starts, ends) = counts.entry(line.slot()).or_default();
            *(if line.event == "start" { starts } else { ends }) += 1;
        }
        let mut complaints: Vec<String> = Vec::new();
        for slot in self.left_alone() {
            let (starts, ends) = counts.get(&slot).copied().unwrap_or_default();
            if (starts, ends) != (1, 1) {
                complaints
                    .push(format!("{slot}: no fault was near, and yet it began {starts} times, ended {ends} times"));
            }
            complaints.extend(told.get(&*slot).map(|why| format!("{slot}: no fault was near, and yet: {why:?}")));
        }
        complaints
    }

    /// Slots of quick jobs, by the clock, that no fault came near and for which the store answered in time.
    pub(super) fn left_alone(&self) -> Vec<String> {
        let slow = self.slots_of_a_slow_store();
        self.undisturbed().into_iter().filter(|slot| !slow.contains(slot)).collect()
    }

    /// Slots of quick jobs, by the clock, that no fault came near.
    pub(super) fn undisturbed(&self) -> Vec<String> {
        let faults = self.faults();
        let quick = self.presence.slots(TimeDelta::zero()).into_iter().filter(|slot| slot.starts_with(workload::QUICK));
        quick.filter(|slot| !is_near(&faults, slot)).collect()
    }

    /// Whether the store was too slow at every slot that a job had, faults or not.
    pub(super) fn is_late_at_each_slot_of(&self, job: &str) -> bool {
        let (slow, of_job) = (self.slots_of_a_slow_store(), format!("{job}@"));
        let mut slots = self.presence.slots(TimeDelta::zero()).into_iter().filter(|slot| slot.starts_with(&of_job));
        // Whoever has no slot is excused by none.
        slots.next().is_some_and(|first| slow.contains(&first) && slots.all(|slot| slow.contains(&slot)))
    }

    /// A machine that lets processes wait, or a disk that syncs slowly, is nobody's fault here; a node tells of it.
    fn slots_of_a_slow_store(&self) -> BTreeSet<String> {
        let told = self.told().filter(|line| line["event"] == "store_failed" && line["kind"] == "timeout");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        told.map(|line| format!("{}@{}", text(&line["job"]), text(&line["slot"]))).collect()
    }

    pub(super) fn faults(&self) -> Vec<InjectedFault> {
        self.faults.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What came of each process of the outsiders, as this program noted it.
    pub(super) fn outsiders(&self) -> Vec<Value> {
        self.outsiders.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The faults near the first slots that complaints name, and what nodes told of themselves and of these slots then.
    pub(super) fn near(&self, complaints: &[String]) -> String {
        let named = |complaint: &String| complaint.split_once(": ").map(|(slot, _)| slot.to_owned());
        let slots: BTreeSet<String> =
            complaints.iter().filter_map(named).filter(|slot| slot.contains('@')).take(SLOTS_SHOWN).collect();
        slots.iter().map(|slot| self.near_slot(slot)).collect()
    }

    fn near_slot(&self, slot: &str) -> String {
        let ((start, end), (job, key)) = (bounds(slot), slot.split_once('@').unwrap_or_default());
        let span = start - AFTERMATH..end + AFTERMATH;
        let mut text = format!("near {slot}:\n");
        for line in self.faults.lines() {
            let is_near = |fault: InjectedFault| fault.at < span.end && fault.until.unwrap_or(span.end) > span.start;
            if serde_json::from_str(line).is_ok_and(is_near) {
                text += &format!("  fault {line}\n");
            }
        }
        for (file, journal) in &self.journals {
            for line in journal.lines() {
                let Ok(told) = serde_json::from_str::<Value>(line) else { continue };
                let at = told["at"].as_str().and_then(|at| at.parse::<DateTime<Utc>>().ok());
                let of_node = told["job"].is_null() || (told["job"] == *job && told["slot"] == *key);
                let is_plan = told["event"] == "planned" && told["job"] == *job;
                if at.is_some_and(|at| span.contains(&at)) && (of_node || is_plan) {
                    text += &format!("  {file}: {line}\n");
                }
            }
        }
        text
    }

    pub(super) fn told(&self) -> impl Iterator<Item = Value> {
        self.journals.iter().flat_map(|(_, text)| text.lines()).filter_map(|line| serde_json::from_str(line).ok())
    }
}

/// A figure that is published is the sum of what was found.
pub(super) fn does_not_add_up(report: &Report) -> Vec<String> {
    let tallies = || report.classes.values();
    let of = |what, counted: usize, listed: usize| {
        (counted != listed).then(|| format!("(all): {counted} slots are counted as {what}, {listed} are listed"))
    };
    let unexplained = of("unexplained", tallies().map(|tally| tally.unexplained).sum(), report.unexplained.len());
    let explained = of("explained", tallies().map(|tally| tally.explained).sum(), report.explained.len());
    let judged = of("judged", report.slots, report.judged.len());
    // All journals are given.
    let elsewhere = of("done by nodes without a journal", report.elsewhere, 0);
    unexplained.into_iter().chain(explained).chain(judged).chain(elsewhere).collect()
}

fn words(finding: &Finding) -> String {
    let lines = finding.lines.iter().map(|line| format!("\n    {line}")).collect::<String>();
    format!("{}: {}: {}{lines}", finding.slot, finding.rule, finding.message)
}

fn is_near(faults: &[InjectedFault], slot: &str) -> bool {
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
