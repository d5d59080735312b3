//! What `cronward verify` is given: journals, recorders' files, faults. Whatever stands in them, there is a report.

use super::is_one_line;
use crate::observe::journal::Line;
use crate::verify::{Inputs, Malformed, Report, check};

/// Planned slots that are looked at here; a fuzz target has no time for more.
const PLANNED: usize = 1_000;

/// Parts at a line `--- recorder` and a line `--- faults`; what is before them is a journal. True when all can be read.
pub fn journal(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let (text, faults) = text.split_once("--- faults\n").unwrap_or((&text, ""));
    let (journal, recorder) = text.split_once("--- recorder\n").unwrap_or((text, ""));
    journal.lines().for_each(reads_back);
    let mut inputs = Inputs::default();
    inputs.most_planned = PLANNED;
    let taken =
        [inputs.journal("a.jsonl", journal), inputs.recorder("runs", recorder), inputs.faults("faults", faults)];
    for malformed in taken.iter().filter_map(|taken| taken.as_ref().err()) {
        let Malformed { file, line, .. } = malformed;
        is_one_line(&malformed.to_string());
        assert!(malformed.to_string().starts_with(&format!("{file}:{line}: ")), "it says where");
    }
    let lines = text.lines().count() + faults.lines().count();
    is_shown(&check(inputs), lines);
    taken.iter().all(Result::is_ok)
}

/// A line that is read means the same when it is written again; spans are of no more digits than a float has.
fn reads_back(text: &str) {
    let Ok(line) = serde_json::from_str::<Line>(text) else { return };
    let written = serde_json::to_string(&line).unwrap_or_default();
    let again = serde_json::from_str::<Line>(&written).ok();
    let name = |line: &Line| (line.node.clone(), line.instance.clone(), line.slot(), line.at.timestamp_millis());
    assert_eq!(again.as_ref().map(name), Some(name(&line)), "{written}");
}

fn is_shown(report: &Report, lines: usize) {
    assert!(report.slots + report.open <= lines + PLANNED, "{} slots of {lines} lines", report.slots);
    assert!(serde_json::to_string(report).is_ok());
    assert!(report.to_string().lines().count() > 4);
    assert!(report.rate_below.is_none() || report.unexplained.is_empty());
}
