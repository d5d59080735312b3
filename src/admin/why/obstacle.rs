//! Why no node claimed a slot, by what those that tried have noted.

use crate::admin::why::facts::Facts;
use crate::job::NodeName;
use crate::slot::Decision;

/// What the nodes that tried to claim it recorded last: why none of them claimed it.
pub(super) fn obstacle(facts: &Facts) -> Option<String> {
    /// Whether a decision is of this kind, and what such a node did.
    type Kind = (fn(&Decision) -> bool, &'static str);
    let kinds: [Kind; 7] = [
        (|it| matches!(it, Decision::StoreAway { .. }), "could not reach the store"),
        (|it| matches!(it, Decision::Blocked { .. }), "found another slot of the job still running"),
        (|it| matches!(it, Decision::Paused), "found the job paused"),
        (|it| matches!(it, Decision::TooLate), "came too late: the start deadline had passed"),
        (|it| matches!(it, Decision::Shed), "had no capacity: the slot ended before the command could start"),
        (|it| matches!(it, Decision::Early), "claimed the slot before its start by the store's clock"),
        (|it| matches!(it, Decision::Closed), "claimed the slot after its end by the store's clock"),
    ];
    let mut told = Vec::new();
    for (is, what) in kinds {
        let nodes = facts.who(is);
        if !nodes.is_empty() {
            told.push(format!("{} {what}", names(&nodes)));
        }
    }
    let is_passed = |decision: &Decision| matches!(decision, Decision::NotSelected { .. });
    let passed = facts.who(is_passed);
    if told.is_empty() && !passed.is_empty() {
        let notes = facts.pages.iter().flat_map(|page| &page.notes).map(|note| &note.decision);
        let wanted = notes.rev().find_map(|it| match it {
            Decision::NotSelected { wanted } => Some(wanted.as_str()),
            _ => None,
        });
        let wanted = wanted.unwrap_or("another label");
        let have = if passed.len() == 1 { "does" } else { "do" };
        told.push(format!("only_on requires {wanted}, and {} {have} not have that label", names(&passed)));
    }
    (!told.is_empty()).then(|| told.join("; "))
}

fn names(nodes: &[&NodeName]) -> String {
    let names: Vec<&str> = nodes.iter().map(|node| node.as_str()).collect();
    match names.as_slice() {
        [] => "no node".to_owned(),
        [one] => format!("node {one}"),
        [first @ .., last] => format!("nodes {} and {last}", first.join(", ")),
    }
}
