//! Whether the judge of locks would have noticed: evidence in which two held at once, or a number went back, or a word is missing.

use serde_json::Value;

use super::contention::{Hold, holds};
use super::judge::{AFTERMATH, Evidence, LOSSES};
use super::record;
use crate::inconclusive::inconclusive;

/// Two of jobs, one after the other, with a lock that each of them had for itself.
struct InTurn {
    first: Hold,
    second: Hold,
}

/// What `lock-ab-4` does when it loses its locks is told and goes on; `lock-ba-6` is to be dead by then.
pub(super) fn evidence_that_was_tampered_with_is_seen_through(evidence: &Evidence) {
    let in_turn = InTurn::find(evidence, "lock-ab-4");
    let overlapped = in_turn.overlapped(evidence);
    let slot = in_turn.second.who();
    complains(&overlapped, &slot, "db: held at the same time by");
    complains(&overlapped, &slot, "lock-overlap");
    let told = in_turn.with_a_told_loss(&overlapped);
    for of in ["held at the same time by", "lock-overlap"] {
        let complaints = told.judge().complaints;
        assert!(!complaints.iter().any(|complaint| complaint.contains(of)), "its loss was told: {complaints:?}");
    }

    let seen = in_turn.seen_alive(evidence);
    complains(&seen, &slot, "db: held at the same time by");

    let killed = InTurn::find(evidence, "lock-ba-6");
    let overlapped = killed.with_a_told_loss(&killed.overlapped(evidence));
    complains(&overlapped, &killed.second.who(), "db: held at the same time by");
    complains(&overlapped, &killed.second.who(), "lock-overlap");

    let back = in_turn.with_a_number_that_went_back(evidence);
    complains(&back, &slot, "db: the number went back");
    complains(&back, &slot, "lock-fence-back");

    let without = in_turn.without_its_locks(evidence);
    complains(&without, &slot, "it began with locks \"\"");
    complains(&without, &slot, "run-without-locks");

    let stands = Evidence { standing: Some(vec!["db: {}".to_owned()]), ..evidence.clone() };
    complains(&stands, "(all)", "all have left, and an entry stands");
    let outsiders = format!("{}{{\"who\":\"out-a@999\",\"code\":101,\"said\":\"\"}}\n", evidence.outsiders);
    complains(&Evidence { outsiders, ..evidence.clone() }, "out-a@999", "it ended so");
}

impl InTurn {
    /// While the store forgot nothing.
    fn find(evidence: &Evidence, job: &str) -> Self {
        let slack = AFTERMATH.num_milliseconds() + i64::try_from(evidence.allowance.as_millis()).unwrap();
        let losses: Vec<_> = evidence.faults().into_iter().filter(|fault| LOSSES.contains(&&*fault.kind)).collect();
        let is_calm = |hold: &Hold| {
            !losses.iter().any(|fault| fault.until.unwrap_or(fault.at).timestamp_millis() + slack >= hold.line.at_ms)
        };
        // Nobody else of the jobs has this lock.
        let of_these = |hold: &Hold| hold.line.job.starts_with("lock-") && hold.shares.iter().any(|it| it.lock == "db");
        let lines = record::lines(&evidence.recorder);
        let held = holds(&lines).into_iter().filter(|hold| of_these(hold) && is_calm(hold) && hold.has_ended);
        let mut held = held.skip_while(|hold| hold.line.job != job);
        match (held.next(), held.next()) {
            (Some(first), Some(second)) if first.who() != second.who() => Self { first, second },
            _ => inconclusive(&format!("in the calm {job} did not hold its locks before another one held them")),
        }
    }

    /// The first one ended long after the second one, as far as it wrote itself.
    fn overlapped(&self, evidence: &Evidence) -> Evidence {
        let late = self.second.until_ms() + 10_000;
        let end = evidence.recorder.lines().find(|line| records(line, "end", &self.first)).unwrap();
        let (head, _) = end.split_once("\"at_ms\":").unwrap();
        let mut recorder = String::new();
        for line in evidence.recorder.lines().filter(|line| *line != end) {
            recorder += &format!("{line}\n");
            if records(line, "end", &self.second) {
                recorder += &format!("{head}\"at_ms\":{late}}}\n");
            }
        }
        Evidence { recorder, ..evidence.clone() }
    }

    /// The first one did not come to its end, and the second one saw that it lived.
    fn seen_alive(&self, evidence: &Evidence) -> Evidence {
        let (before, after) = ("\"beside\":\"", format!("\"beside\":\"{} ", self.first.line.pid));
        let sees = |line: &str| {
            if records(line, "start", &self.second) { line.replace(before, &after) } else { line.to_owned() }
        };
        let lines = evidence.recorder.lines().filter(|line| !records(line, "end", &self.first));
        Evidence { recorder: lines.map(|line| sees(line) + "\n").collect(), ..evidence.clone() }
    }

    /// The node of the first one told in time that the locks were lost.
    fn with_a_told_loss(&self, evidence: &Evidence) -> Evidence {
        edit_journals(evidence, |line| {
            let added = is_of(line, "run_started", &self.first).then(|| {
                let (head, _) = line.split_once("\"event\":").unwrap();
                let attempt = self.first.line.attempt;
                format!("{head}\"event\":\"lock_lost\",\"attempt\":{attempt},\"in_doubt\":true,\"killing\":false}}\n")
            });
            format!("{line}\n{}", added.unwrap_or_default())
        })
    }

    fn with_a_number_that_went_back(&self, evidence: &Evidence) -> Evidence {
        let (old, new) = (self.second.line.lock_fence, self.first.line.lock_fence - 1);
        let recorder = evidence.recorder.replace(&format!("\"lock_fence\":{old},"), &format!("\"lock_fence\":{new},"));
        let told = edit_journals(evidence, |line| {
            let is_held = is_of(line, "lock_held", &self.second);
            let line = if is_held { line.replace(&old.to_string(), &new.to_string()) } else { line.to_owned() };
            format!("{line}\n")
        });
        Evidence { recorder, ..told }
    }

    /// The second one.
    fn without_its_locks(&self, evidence: &Evidence) -> Evidence {
        let fence = format!("\"lock_fence\":{},", self.second.line.lock_fence);
        let locks = format!("\"locks\":\"{}\"", self.second.line.locks);
        let strip =
            |line: &str| if line.contains(&fence) { line.replace(&locks, "\"locks\":\"\"") } else { line.to_owned() };
        let recorder = evidence.recorder.lines().map(|line| strip(line) + "\n").collect();
        let told = edit_journals(evidence, |line| {
            if is_of(line, "lock_held", &self.second) { String::new() } else { format!("{line}\n") }
        });
        Evidence { recorder, ..told }
    }
}

/// Whether a run wrote this line of itself.
fn records(line: &str, event: &str, of: &Hold) -> bool {
    let line = &record::lines(&format!("{line}\n"))[0];
    line.event == event && (line.slot(), line.pid) == (of.who(), of.line.pid)
}

fn edit_journals(evidence: &Evidence, edit: impl Fn(&str) -> String) -> Evidence {
    let edited = |text: &String| text.lines().map(&edit).collect();
    let journals = evidence.journals.iter().map(|(file, text)| (file.clone(), edited(text))).collect();
    Evidence { journals, ..evidence.clone() }
}

fn is_of(line: &str, event: &str, hold: &Hold) -> bool {
    let told: Value = serde_json::from_str(line).unwrap_or_default();
    let own = &hold.line;
    told["event"] == event
        && told["job"] == *own.job
        && told["slot"] == *own.slot
        && told["attempt"] == own.attempt
        && told["node"] == *own.node
}

fn complains(evidence: &Evidence, slot: &str, of: &str) {
    let complaints = evidence.judge().complaints;
    let found = complaints.iter().any(|complaint| complaint.starts_with(slot) && complaint.contains(of));
    assert!(found, "{slot} {of}: {complaints:?}");
}
