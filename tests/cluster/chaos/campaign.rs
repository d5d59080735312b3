//! One run from its start to its judgement: nodes up, the plan, a quiet end, the nodes leave, the checker speaks.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use chrono::Utc;
use cronward::verify::Class;
use serde_json::json;

use super::arena::Arena;
use super::backend::Backend;
use super::book::Book;
use super::due::Presence;
use super::fault::ServerFault;
use super::fleet::Fleet;
use super::folder::Folder;
use super::judge::{Evidence, Judgement, count};
use super::outsiders::Outsiders;
use super::plan::Injection;
use super::{contention, queues, record, workload};
use crate::inconclusive::{found, inconclusive};
use crate::stall;

/// The first slots of all jobs begin with nobody disturbing them.
const LEAD_IN: Duration = Duration::from_secs(2);
/// After the longest slot: its lease, the heartbeat of grace, a beat, and the closing.
const TO_CLOSE: Duration = Duration::from_secs(6);

/// What is run.
pub(super) struct Campaign {
    pub(super) name: &'static str,
    pub(super) nodes: usize,
    pub(super) seed: u64,
    pub(super) plan: Vec<Injection>,
    /// Whether the store keeps locks.
    pub(super) locks: bool,
    /// Granted to every bound at least: how long the store's steps may take on a busy machine.
    pub(super) patience: Duration,
}

/// What came of it.
pub(super) struct Outcome {
    pub(super) folder: Folder,
    pub(super) evidence: Evidence,
    pub(super) judgement: Judgement,
    pub(super) faults: usize,
    /// The kinds that struck the server.
    pub(super) of_server: Vec<ServerFault>,
    without_effect: Vec<ServerFault>,
    /// How often the servers failed over though nobody struck them.
    pub(super) by_themselves: usize,
    seconds: f64,
    summary: serde_json::Value,
}

impl Campaign {
    /// Runs it in its folder against a store.
    pub(super) fn run(&self, folder: Folder, backend: &mut dyn Backend) -> Outcome {
        let begun = Instant::now();
        eprintln!("chaos: {} with CRONWARD_CHAOS_SEED={}: {} faults", self.name, self.seed, self.plan.len());
        let urls: Vec<String> = (0..self.nodes).map(|node| backend.url(node)).collect();
        // Each shares a link with a node.
        let outsiders = Outsiders::new(&folder, if self.locks { urls.clone() } else { Vec::new() });
        let fleet = Fleet::start(&folder, urls, self.locks);
        let book = Book::open(&folder.file("faults.jsonl"));
        let mut arena = Arena { folder, fleet, outsiders, backend, book, looked: Utc::now() };
        arena.live(LEAD_IN);
        let from = Utc::now();
        arena.suffer(&self.plan);
        arena.live(workload::longest_slot() + TO_CLOSE);
        let presence = Presence { from, to: Utc::now() };
        arena.outsiders.leave();
        arena.fleet.leave();
        let Arena { folder, fleet, backend, book, .. } = arena;
        let allowance = stall::allowance(begun).max(self.patience);
        let mut evidence = Evidence::gather(&folder, &fleet.names(), presence, allowance);
        evidence.standing = self.locks.then(|| queues::standing(&folder, &backend.url(0)));
        let judgement = evidence.judge();
        let seconds = begun.elapsed().as_secs_f64();
        let mut outcome = Outcome {
            folder,
            evidence,
            judgement,
            faults: book.total(),
            of_server: book.kinds_of_server(),
            without_effect: book.without_effect().to_vec(),
            by_themselves: book.times_by_themselves(),
            seconds,
            summary: serde_json::Value::Null,
        };
        outcome.summary = outcome.summarize(self, &backend.name(), &book);
        eprintln!("chaos: {} in {seconds:.0} s: {}", self.name, outcome.in_short());
        outcome
    }
}

impl Outcome {
    fn summarize(&self, campaign: &Campaign, store: &str, book: &Book) -> serde_json::Value {
        let report = &self.judgement.report;
        let plain = self.evidence.report_without_allowance();
        let plain = json!({ "unexplained": plain.unexplained.len(), "violations": plain.violations.len(), "recovery": plain.recovery });
        let runs = record::lines(&record::of_jobs(&self.evidence.recorder));
        let runs = runs.iter().filter(|line| line.event == "start").count();
        json!({
            "store": store, "seed": campaign.seed, "nodes": campaign.nodes, "seconds": self.seconds.round(),
            "faults": book.counts(), "faults_total": book.total(), "other_lives": book.other_lives(), "slots": report.slots,
            "once": count(report, Class::Once), "repeat": count(report, Class::Repeat),
            "overlap": count(report, Class::Overlap), "lost": count(report, Class::Lost),
            "explained": report.explained.len(), "unexplained": report.unexplained.len(),
            "by_lost_data": self.evidence.only_by_a_loss_of_data(report),
            "violations": report.violations.len(), "runs": runs, "locks": contention::summary(&self.evidence),
            "due": self.evidence.due().len(), "left_alone": self.evidence.left_alone().len(),
            "allowance_s": self.evidence.allowance.as_secs_f64(), "without_allowance": plain,
            "inconclusive": self.is_inconclusive(), "report": report,
        })
    }

    /// Why earlier runs of the same plan told nothing.
    pub(super) fn after_inconclusive_runs(mut self, why: &[String]) -> Self {
        self.summary["inconclusive_before"] = why.into();
        self
    }

    /// One line.
    fn in_short(&self) -> String {
        let mut short = self.summary.clone();
        short.as_object_mut().unwrap().remove("report");
        short.to_string()
    }

    /// Writes the outcome for programs.
    pub(super) fn save(&self, path: &PathBuf) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, serde_json::to_string_pretty(&self.summary).unwrap()).unwrap();
    }

    /// Why nothing can be concluded from a run in which nothing was found: the machine excuses too much.
    pub(super) fn is_inconclusive(&self) -> Option<String> {
        let (allowance, most) = (self.evidence.allowance, workload::LEASE_TTL);
        if allowance > most {
            return Some(format!(
                "{allowance:.1?} had to be allowed for processes that waited, more than a lease of {most:?}"
            ));
        }
        let times = self.by_themselves;
        let by_themselves =
            (times > 0).then(|| format!("the servers failed over {times} times though nobody struck them"));
        by_themselves.or_else(|| self.counted_nothing()).or_else(|| self.held_nothing())
    }

    /// Faults that end late on a busy machine reach into the calm, and a store that is too slow for its time limit disturbs a
    /// slot like one.
    fn counted_nothing(&self) -> Option<String> {
        let (alone, undisturbed) = (self.evidence.left_alone().len(), self.evidence.undisturbed().len());
        (alone == 0).then(|| {
            format!("no fault came near {undisturbed} quick slots, and for each of these the store was too slow")
        })
    }

    /// A store that answers late at each slot of a job lets its wait for locks end before they can be told.
    fn held_nothing(&self) -> Option<String> {
        let never = self.never_held();
        let excused = !never.is_empty() && never.iter().all(|job| self.evidence.is_late_at_each_slot_of(job));
        excused.then(|| format!("at each slot of {never:?}, which never held its locks, the store was too slow"))
    }

    /// Jobs that name locks and had them in none of their slots.
    pub(super) fn never_held(&self) -> Vec<String> {
        if self.evidence.standing.is_some() { contention::held_by_nobody(&self.evidence) } else { Vec::new() }
    }

    /// Why the run is made again, as one that is inconclusive, though it is no excuse for the last one: the machine took a large part of the
    /// wait for locks that nobody was told of.
    pub(super) fn is_worth_another(&self) -> Option<String> {
        let (never, allowance) = (self.never_held(), self.evidence.allowance);
        let slow = !never.is_empty() && allowance > workload::SHORTEST_LOCK_WAIT / 3;
        slow.then(|| {
            format!("{never:?} never held its locks, and {allowance:.1?} had to be allowed for processes that waited")
        })
    }

    /// Whether anything was found to be wrong.
    pub(super) fn found_something(&self) -> bool {
        !(self.judgement.complaints.is_empty() && self.without_effect.is_empty())
    }

    /// Fails when anything is wrong; the folder stays then. Where nothing was found and nothing can be concluded, the trial has
    /// neither passed nor failed.
    pub(super) fn is_clean(&self) {
        let Judgement { report, complaints } = &self.judgement;
        let place = self.folder.path().display();
        let said = complaints.join("\n");
        let idle = &self.without_effect;
        if !idle.is_empty() {
            found(format!("by the servers' own account nothing came of {idle:?}: see {place}"));
        }
        if !complaints.is_empty() {
            // Where the folder is gone with its machine, this is all that is left to find the reason by.
            let near = self.evidence.near(complaints);
            found(format!(
                "{} complaints, see {place}\n{}\n{report}\n{near}\n{said}",
                complaints.len(),
                self.in_short()
            ));
        }
        if let Some(why) = self.is_inconclusive() {
            inconclusive(&format!("{why}: see {place}"));
        }
    }
}
