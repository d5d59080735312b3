//! Why no node claimed a slot, by what those that tried have noted.

use crate::admin::why::blocker::Blocker;
use crate::admin::why::facts::Facts;
use crate::admin::why::texts::{ClaimObstacle, WhyTexts};
use crate::clock::later;
use crate::job::NodeName;
use crate::slot::Decision;

/// What the nodes that tried to claim it recorded last: why none of them claimed it.
pub(super) fn obstacle(facts: &Facts, t: &WhyTexts) -> Option<String> {
    /// Whether a decision is of this kind, and what it says of such a node.
    type Kind = (fn(&Decision) -> bool, ClaimObstacle);
    let kinds: [Kind; 6] = [
        (|it| matches!(it, Decision::Blocked { .. }), ClaimObstacle::Blocked),
        (|it| matches!(it, Decision::Paused), ClaimObstacle::Paused),
        (|it| matches!(it, Decision::TooLate), ClaimObstacle::TooLate),
        (|it| matches!(it, Decision::Shed), ClaimObstacle::Shed),
        (|it| matches!(it, Decision::Early), ClaimObstacle::Early),
        (|it| matches!(it, Decision::Closed), ClaimObstacle::Closed),
    ];
    let notes = || facts.pages.iter().flat_map(|page| &page.notes);
    let mut told = Vec::new();
    let store_error =
        |it: &Decision| if let Decision::StoreAway { message } = it { Some(message.clone()) } else { None };
    let newest = notes().filter_map(|note| Some((note.at, store_error(&note.decision)?))).max_by_key(|(at, _)| *at);
    if let Some((_, error)) = newest {
        told.push((t.claim.store_away)(&names(&facts.who(|it| matches!(it, Decision::StoreAway { .. }))), &error));
    }
    for (is, what) in kinds {
        let nodes = facts.who(is);
        if !nodes.is_empty() {
            let blocker = if what == ClaimObstacle::Blocked { blocker(facts, t) } else { String::new() };
            told.push((t.claim.kept)(&names(&nodes), what) + &blocker);
        }
    }
    let is_passed = |decision: &Decision| matches!(decision, Decision::NotSelected { .. });
    let passed = facts.who(is_passed);
    if told.is_empty() && !passed.is_empty() {
        let wanted = notes().map(|note| &note.decision).rev().find_map(|it| match it {
            Decision::NotSelected { wanted } => Some(wanted.as_str()),
            _ => None,
        });
        told.push((t.claim.only_on)(wanted, &names(&passed)));
    }
    (!told.is_empty()).then(|| told.join(t.and))
}

/// Which slot it is, and when its lease expires; empty where no slot is known to be in the way any more.
fn blocker(facts: &Facts, t: &WhyTexts) -> String {
    facts.blocker.as_ref().map_or_else(String::new, |Blocker { slot, node, remaining }| {
        let at = facts.at(later(facts.now, *remaining));
        (t.claim.blocker)(&slot.to_string(), node.as_str(), &at, &(t.span)(*remaining))
    })
}

fn names<'a>(nodes: &[&'a NodeName]) -> Vec<&'a str> {
    nodes.iter().map(|node| node.as_str()).collect()
}
