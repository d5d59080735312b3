//! What is asked of a run on top of its judgement, and whether the judge would have noticed.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::campaign::Outcome;
use super::contention::held_by_nobody;
use super::judge::{Evidence, bounds, does_not_add_up};
use super::{record, workload};

/// A wipe makes a slot that runs or is done be done once more, and no more often; each is in the report with its reason.
pub(super) fn each_wipe_costs_a_slot_one_repeat_at_most(outcome: &Outcome) {
    let evidence = &outcome.evidence;
    let wipes = evidence.faults().into_iter().filter(|fault| fault.kind == "flush");
    let wipes: Vec<DateTime<Utc>> = wipes.map(|fault| fault.at).collect();
    let mut runs: BTreeMap<String, usize> = BTreeMap::new();
    for line in record::lines(&evidence.recorder).into_iter().filter(|line| line.event == "start") {
        *runs.entry(line.slot()).or_default() += 1;
    }
    let always_well = |slot: &str| slot.starts_with(workload::QUICK) || slot.starts_with("long-");
    let mut repeats = 0;
    for (slot, number) in runs.into_iter().filter(|(slot, _)| always_well(slot)) {
        let (start, end) = bounds(&slot);
        let struck = wipes.iter().filter(|at| (start..end).contains(at)).count();
        assert!(number <= 1 + struck, "{slot}: {number} runs, {struck} wipes");
        if number > 1 {
            repeats += number - 1;
            let told = outcome.judgement.report.explained.iter().find(|explained| explained.slot == slot);
            assert!(told.is_some_and(|told| !told.why.is_empty()), "{slot} was repeated in silence");
        }
    }
    assert!(repeats > 0, "six wipes repeat something");
}

/// What no fault and no word explains is found: an added run, work that is missing, a fault that is kept back.
pub(super) fn evidence_that_was_tampered_with_is_seen_through(evidence: &Evidence) {
    assert_eq!(evidence.judge().complaints, Vec::<String>::new());
    let slot = evidence.left_alone().into_iter().next().expect("a slot that nothing disturbed");
    let of_slot = |line: &&str| record::lines(&format!("{line}\n"))[0].slot() == slot;
    let own: Vec<&str> = evidence.recorder.lines().filter(of_slot).collect();
    assert_eq!(own.len(), 2, "{own:?}");

    let node = &record::lines(&format!("{}\n", own[0]))[0].node;
    let other = if node == "n1" { "n2" } else { "n1" };
    let again = own.join("\n").replace(&format!("\"{node}\""), &format!("\"{other}\""));
    let again = again.replace("\"pid\":", "\"pid\":1") + "\n";
    let added = Evidence { recorder: format!("{}{again}", evidence.recorder), ..evidence.clone() };
    complains(&added, &slot, "untold-run");
    complains(&added, &slot, "it began 2 times");
    let near = added.near(&added.judge().complaints);
    assert!(near.contains(&format!("near {slot}:\n")) && near.contains("\"event\":\"run_ended\""), "{near}");

    let without = evidence.recorder.lines().filter(|line| !own.contains(line)).map(|line| format!("{line}\n"));
    let removed = Evidence { recorder: without.collect(), ..evidence.clone() };
    complains(&removed, &slot, "did no work");
    complains(&removed, &slot, "it began 0 times");

    // Nobody tells of a job any more, as if it had never been planned.
    let job = slot.split('@').next().unwrap();
    let silent = |text: &String| text.split_inclusive('\n').filter(|line| !line.contains(job)).collect();
    let journals = evidence.journals.iter().map(|(file, text)| (file.clone(), silent(text))).collect();
    complains(&Evidence { journals, ..evidence.clone() }, job, "was not judged");

    let withheld = Evidence { faults: String::new(), ..evidence.clone() };
    let unexplained = withheld.report().unexplained;
    assert!(unexplained.iter().any(|slot| slot.rule == "repeat"), "{unexplained:?}");
    let mut shortened = withheld.report();
    assert_eq!(does_not_add_up(&shortened), Vec::<String>::new());
    shortened.unexplained.pop();
    assert_eq!(does_not_add_up(&shortened).len(), 1, "a slot that is left out of the list is missed");
}

/// A machine that excuses too much, and servers that did by themselves what faults are to do.
pub(super) fn a_run_that_shows_nothing_is_told(outcome: &mut Outcome) {
    assert_eq!(outcome.is_inconclusive(), None);
    let allowance = std::mem::replace(&mut outcome.evidence.allowance, workload::LEASE_TTL + Duration::from_millis(1));
    assert!(outcome.is_inconclusive().is_some_and(|why| why.contains("more than a lease")));
    outcome.evidence.allowance = allowance;
    outcome.by_themselves = 1;
    assert!(outcome.is_inconclusive().is_some_and(|why| why.contains("nobody struck them")));
    outcome.by_themselves = 0;
    let quick = outcome.evidence.left_alone();
    let evidence = too_slow_a_store(&outcome.evidence, &quick);
    assert_eq!((evidence.left_alone(), evidence.judge().complaints), (Vec::new(), Vec::new()));
    let evidence = std::mem::replace(&mut outcome.evidence, evidence);
    assert!(outcome.is_inconclusive().is_some_and(|why| why.contains("the store was too slow")));
    outcome.evidence = evidence;
}

/// A job that never held its locks is excused by a store that was too slow at each of its slots, and by nothing less.
pub(super) fn who_never_held_its_locks_is_excused_by_a_slow_store_alone(outcome: &mut Outcome) {
    const JOB: &str = "lock-ab-4";
    let whole = outcome.evidence.clone();
    let lines = whole.recorder.split_inclusive('\n').filter(|line| !line.contains(JOB));
    let without = Evidence { recorder: lines.collect(), ..whole.clone() };
    assert_eq!(held_by_nobody(&without), [JOB]);
    let slots: Vec<String> =
        without.presence.slots(TimeDelta::zero()).into_iter().filter(|slot| slot.starts_with(JOB)).collect();
    let mut excuse = |slots: &[String]| {
        outcome.evidence = too_slow_a_store(&without, slots);
        outcome.is_inconclusive()
    };
    assert_eq!((excuse(&[]), excuse(&slots[1..])), (None, None));
    assert!(excuse(&slots).is_some_and(|why| why.contains("which never held its locks, the store was too slow")));
    // Another one that held nothing either, and had a store that answered.
    let others = without.recorder.split_inclusive('\n').filter(|line| !line.contains("lock-ba-6")).collect();
    let without = Evidence { recorder: others, ..without.clone() };
    outcome.evidence = too_slow_a_store(&without, &slots);
    assert_eq!(outcome.is_inconclusive(), None);
    outcome.evidence = whole;
}

/// The evidence of a run in which the store was too slow for its time limit at these slots: a node that tells of one says so.
fn too_slow_a_store(evidence: &Evidence, slots: &[String]) -> Evidence {
    let mut evidence = evidence.clone();
    for slot in slots {
        let (job, key) = slot.split_once('@').unwrap();
        let of_slot = format!("\"job\":\"{job}\",\"slot\":\"{key}\"");
        let mut journals = evidence.journals.iter_mut().map(|(_, journal)| journal);
        let journal = journals.find(|journal| journal.contains(&of_slot)).expect("a node tells of each slot");
        let line = journal.lines().find(|line| line.contains(&of_slot)).unwrap();
        let (head, _) = line.split_once("\"event\":").unwrap();
        let failed = "\"event\":\"store_failed\",\"op\":\"claim\",\"kind\":\"timeout\",\"error\":\"x\"}";
        let failed = format!("{head}{failed}\n{line}\n");
        *journal = journal.replacen(&format!("{line}\n"), &failed, 1);
    }
    evidence
}

fn complains(evidence: &Evidence, slot: &str, of: &str) {
    let complaints = evidence.judge().complaints;
    let found = complaints.iter().any(|complaint| complaint.starts_with(slot) && complaint.contains(of));
    assert!(found, "{slot} {of}: {complaints:?}");
}
