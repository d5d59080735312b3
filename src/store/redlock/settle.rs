//! How a run's end, and an operator's verb, were taken by the masters.

use crate::reply::{Intervention, Release, Settlement};
use crate::slot::Holder;
use crate::store::redlock::quorum::{Quorum, lasting};

/// What a completion came to; none when too few masters know of it. A holder that fewer name than could be a majority never
/// had the slot: that was a claim that came to nothing.
pub fn settlement(quorum: Quorum, answers: &[Option<Settlement>]) -> Option<Settlement> {
    let heard: Vec<&Settlement> = answers.iter().flatten().collect();
    let others = heard.iter().filter_map(|answer| match answer {
        Settlement::Overtaken { by } => Some(by),
        Settlement::Recorded => None,
    });
    let by = newest(quorum, heard.len(), others.collect());
    let answer = by.map_or(Settlement::Recorded, |by| Settlement::Overtaken { by });
    (heard.len() >= quorum.majority()).then_some(answer)
}

/// What a release came to; none when too few masters know of it.
pub fn release(quorum: Quorum, answers: &[Option<Release>]) -> Option<Release> {
    let heard: Vec<&Release> = answers.iter().flatten().collect();
    if heard.len() < quorum.majority() {
        return None;
    }
    let others = heard.iter().filter_map(|answer| match answer {
        Release::Overtaken { by } => Some(by),
        Release::Released | Release::Expired => None,
    });
    if let Some(by) = newest(quorum, heard.len(), others.collect()) {
        return Some(Release::Overtaken { by });
    }
    let released = heard.iter().filter(|answer| ***answer == Release::Released).count();
    Some(if quorum.may_hold(released, heard.len()) { Release::Released } else { Release::Expired })
}

/// What an operator's verb came to; none when too few masters agree.
pub fn intervention(quorum: Quorum, answers: &[Option<Intervention>]) -> Option<Intervention> {
    let heard: Vec<&Intervention> = answers.iter().flatten().collect();
    let held: Vec<_> = heard.iter().filter_map(|answer| held(answer)).collect();
    if held.len() >= quorum.majority() {
        let by = held.iter().map(|(by, _)| *by).max_by_key(|by| by.attempt)?.clone();
        return Some(Intervention::Held {
            by,
            remaining: lasting(quorum, held.iter().map(|(_, left)| *left).collect()),
        });
    }
    let applied = heard.iter().any(|answer| **answer == Intervention::Applied);
    let answer = if applied { Intervention::Applied } else { Intervention::Unchanged };
    (heard.len() - held.len() >= quorum.majority()).then_some(answer)
}

const fn held(answer: &Intervention) -> Option<(&Holder, std::time::Duration)> {
    match answer {
        Intervention::Held { by, remaining } => Some((by, *remaining)),
        Intervention::Applied | Intervention::Unchanged => None,
    }
}

/// The latest of those who may have had a majority.
fn newest(quorum: Quorum, heard: usize, named: Vec<&Holder>) -> Option<Holder> {
    let count = |by: &Holder| named.iter().filter(|other| **other == by).count();
    let real = named.iter().filter(|by| quorum.may_hold(count(by), heard));
    real.max_by_key(|by| by.attempt).map(|by| (**by).clone())
}
