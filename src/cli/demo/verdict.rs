//! The end of the demo: the journals of the nodes, with the kill as the fault that was injected, go to the checker.

use std::path::Path;

use crate::cli::console::Console;
use crate::cli::demo::cluster::Node;
use crate::cli::demo::words::Kill;
use crate::cli::failure::Failure;
use crate::verify::{Class, Inputs, Report, check};

/// The file of faults, as `cronward verify --faults` takes it.
pub(super) const FAULTS: &str = "faults.jsonl";

/// Judges what the nodes wrote.
pub(super) fn judge(nodes: &[Node], folder: &Path, kill: &Kill) -> Result<Report, Failure> {
    let mut inputs = Inputs::default();
    for node in nodes {
        let name = format!("{}.jsonl", node.name);
        let text = std::fs::read_to_string(&node.journal).map_err(|error| unreadable(&name, &error))?;
        inputs.journal(&name, &text).map_err(|error| unreadable(&name, &error))?;
    }
    let fault = serde_json::json!({ "at": kill.at, "kind": "kill", "target": kill.node }).to_string() + "\n";
    // Only for whoever keeps the folder.
    let _ = std::fs::write(folder.join(FAULTS), &fault);
    inputs.faults(FAULTS, &fault).map_err(|error| unreadable(FAULTS, &error))?;
    Ok(check(inputs))
}

fn unreadable(name: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::Internal(format!("the demo's {name}: {error}"))
}

/// Writes what was found. Fails when something is wrong in it.
pub(super) fn tell(report: &Report, console: &mut Console) -> Result<(), Failure> {
    console.print(&format!("\nwhat `cronward verify` says of the three journals:\n\n{report}\n"))?;
    console.print(&format!("verdict: {}\n", sentence(report)))?;
    if report.is_clean() { Ok(()) } else { Err(Failure::Found) }
}

/// The whole in one line.
fn sentence(report: &Report) -> String {
    if !report.is_clean() {
        return format!("{} unexplained, {} violations", report.unexplained.len(), report.violations.len());
    }
    let of = |class| report.tally(class).slots;
    let (once, again) = (of(Class::Once), of(Class::Repeat));
    let (lost, overlapped) = match (of(Class::Lost), of(Class::Overlap)) {
        (0, 0) => {
            return format!("{once} slots done by one run, {again} by another after it, each for a reason; none lost");
        }
        other => other,
    };
    format!(
        "{once} slots done by one run, {again} by another after it, {overlapped} by two at once, {lost} not done, each for a reason"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_is_one_sentence() {
        let mut report = Report::default();
        for (class, slots) in [("once", 3), ("repeat", 3)] {
            report.classes.insert(class, crate::verify::Tally { slots, explained: 0, unexplained: 0 });
        }
        assert_eq!(sentence(&report), "3 slots done by one run, 3 by another after it, each for a reason; none lost");
        report.classes.insert("lost", crate::verify::Tally { slots: 1, explained: 1, unexplained: 0 });
        assert!(sentence(&report).contains("1 not done"));
    }
}
