//! One run from its start to its judgement: nodes up, the plan, a quiet end, the nodes leave, the checker speaks.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use chrono::Utc;
use cronward::verify::Class;
use serde_json::json;

use super::arena::Arena;
use super::backend::Backend;
use super::book::Book;
use super::fleet::Fleet;
use super::folder::Folder;
use super::judge::{Evidence, Judgement, count};
use super::plan::Injection;
use super::{record, workload};
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
}

/// What came of it.
pub(super) struct Outcome {
    pub(super) folder: Folder,
    pub(super) evidence: Evidence,
    pub(super) judgement: Judgement,
    pub(super) faults: usize,
    seconds: f64,
    summary: serde_json::Value,
}

impl Campaign {
    /// Runs it in its folder against a store.
    pub(super) fn run(&self, folder: Folder, backend: &mut dyn Backend) -> Outcome {
        let begun = Instant::now();
        eprintln!("chaos: {} with CRONWARD_CHAOS_SEED={}: {} faults", self.name, self.seed, self.plan.len());
        let urls = (0..self.nodes).map(|node| backend.url(node)).collect();
        let fleet = Fleet::start(&folder, urls);
        let book = Book::open(&folder.file("faults.jsonl"));
        let mut arena = Arena { folder, fleet, backend, book };
        arena.live(LEAD_IN);
        let from = Utc::now();
        arena.suffer(&self.plan);
        arena.live(workload::longest_slot() + TO_CLOSE);
        arena.fleet.leave();
        let Arena { folder, fleet, backend, book } = arena;
        let evidence = Evidence::gather(&folder, &fleet.names(), from, stall::allowance(begun));
        let judgement = evidence.judge();
        let seconds = begun.elapsed().as_secs_f64();
        let mut outcome =
            Outcome { folder, evidence, judgement, faults: book.total(), seconds, summary: serde_json::Value::Null };
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
        let runs = record::lines(&self.evidence.recorder).iter().filter(|line| line.event == "start").count();
        json!({
            "store": store, "seed": campaign.seed, "nodes": campaign.nodes, "seconds": self.seconds.round(),
            "faults": book.counts(), "faults_total": book.total(), "slots": report.slots,
            "once": count(report, Class::Once), "repeat": count(report, Class::Repeat),
            "overlap": count(report, Class::Overlap), "lost": count(report, Class::Lost),
            "explained": report.explained.len(), "unexplained": report.unexplained.len(),
            "violations": report.violations.len(), "runs": runs,
            "allowance_s": self.evidence.allowance.as_secs_f64(), "without_allowance": plain, "report": report,
        })
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

    /// Every slot that fell due while the plan was followed has been judged: counted by the clock, whatever the journals say.
    pub(super) fn covers(&self, span: Duration) {
        let planned = span.as_secs() * u64::from(workload::slots_in_a_minute()) / 60;
        let judged = self.judgement.report.slots;
        assert!(u64::try_from(judged).unwrap() >= planned, "{judged} slots of {planned} were judged");
    }

    /// Fails when anything is wrong; the folder stays then.
    pub(super) fn is_clean(&self) {
        let Judgement { report, complaints } = &self.judgement;
        let place = self.folder.path().display();
        let said = complaints.join("\n");
        assert!(
            complaints.is_empty(),
            "{} complaints, see {place}\n{}\n{said}\n{report}",
            complaints.len(),
            self.in_short()
        );
    }
}
