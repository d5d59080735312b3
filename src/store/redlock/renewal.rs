//! Whether a lease still stands. A renewal that too few masters answered is no knowledge: it takes nothing from anybody, its
//! own lease least of all.

use std::time::Duration;

use crate::reply::Renewal;
use crate::slot::Lease;
use crate::store::redlock::quorum::Quorum;

/// One master's answer to a renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// For how long it has kept what it was told.
    pub age: Duration,
    /// The longest lease of the job that was asked for there.
    pub longest: Duration,
    /// What it did.
    pub said: Renewal,
}

/// What a renewal came to; none when it is not known.
pub fn renewal(quorum: Quorum, lease: &Lease, longest_lease: Duration, answers: &[Option<Answer>]) -> Option<Renewal> {
    let heard: Vec<&Answer> = answers.iter().flatten().collect();
    // A master that lost its data may have forgotten a lease that followed; what it has set again since proves nothing, not
    // even when it is met there the next time.
    let longest = heard.iter().map(|answer| answer.longest).max().unwrap_or_default();
    let least_age = lease.ttl.max(longest_lease).max(longest);
    let count = |said: Renewal| heard.iter().filter(|answer| answer.age >= least_age && answer.said == said).count();
    let (stood, restored) = (count(Renewal::Renewed), count(Renewal::Restored));
    if stood >= quorum.majority() {
        return Some(Renewal::Renewed);
    }
    let done = heard.iter().filter_map(|answer| match &answer.said {
        Renewal::Done(mark) => Some(mark),
        _ => None,
    });
    if let Some(mark) = done.min_by_key(|mark| (mark.at, mark.by.attempt)) {
        return Some(Renewal::Done(mark.clone()));
    }
    let lost: Vec<&Renewal> = heard.iter().map(|answer| &answer.said).filter(|said| is_lost(said)).collect();
    if lost.len() >= quorum.majority() {
        return Some(Renewal::Lost { to: newest(&lost) });
    }
    (lost.is_empty() && stood + restored >= quorum.majority()).then_some(Renewal::Restored)
}

/// A reservation is no lease, and passes.
fn is_lost(said: &Renewal) -> bool {
    match said {
        Renewal::Lost { to } => to.as_ref().is_none_or(|by| by.attempt > 0),
        _ => false,
    }
}

fn newest(lost: &[&Renewal]) -> Option<crate::slot::Holder> {
    let named = lost.iter().filter_map(|said| match said {
        Renewal::Lost { to } => to.clone(),
        _ => None,
    });
    named.max_by_key(|by| by.attempt)
}
