//! Hears what happens on the node, and hands on what may be worth a message. Never waits: what does not fit is counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use crate::event::{ClaimAnswer, Event};
use crate::job::{JobName, JobSpec};
use crate::notify::lookout::SlotNews;
use crate::observe::Observer;
use crate::slot::{Outcome, Overlap, Slot, SlotKey};

/// What is heard and was not looked at yet.
pub(super) const ROOM: usize = 10_000;

/// What the notifier is told.
#[derive(Debug)]
pub(super) enum Word {
    /// Something happened at a slot.
    Slot(JobName, SlotKey, SlotNews),
    /// Slots of a job were missed: how many, the first and the last.
    Missed(JobName, u64, SlotKey, SlotKey),
    /// A changed file was refused.
    Refused(String),
    /// There is another plan.
    Plan,
}

/// The end that hears.
#[derive(Debug)]
pub struct NoticeEar {
    words: mpsc::Sender<Word>,
    /// The jobs of the plan in force.
    jobs: Mutex<Vec<Arc<JobSpec>>>,
    /// What did not fit.
    lost: AtomicU64,
}

impl NoticeEar {
    pub(super) fn new() -> (Arc<Self>, mpsc::Receiver<Word>) {
        let (words, heard) = mpsc::channel(ROOM);
        (Arc::new(Self { words, jobs: Mutex::default(), lost: AtomicU64::new(0) }), heard)
    }

    pub(super) fn jobs(&self) -> Vec<Arc<JobSpec>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many words did not fit since the last call.
    pub(super) fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }

    fn say(&self, word: Word) {
        if self.words.try_send(word).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Observer for NoticeEar {
    fn event(&self, slot: Option<&Slot>, event: &Event) {
        let word = match (slot, event) {
            (Some(slot), event) => heard(event).map(|heard| Word::Slot(slot.job().clone(), slot.key(), heard)),
            (None, Event::SlotsMissed { job: Some(job), slots, first, last }) => missed(job, *slots, first, last),
            (None, Event::ReloadRefused { error }) => Some(Word::Refused(error.clone())),
            (None, _) => None,
        };
        if let Some(word) = word {
            self.say(word);
        }
    }

    fn plan(&self, jobs: &[Arc<JobSpec>], _config_hash: &str) {
        *self.jobs.lock().unwrap_or_else(PoisonError::into_inner) = jobs.to_vec();
        self.say(Word::Plan);
    }
}

fn missed(job: &JobName, slots: u64, first: &str, last: &str) -> Option<Word> {
    Some(Word::Missed(job.clone(), slots, first.parse().ok()?, last.parse().ok()?))
}

fn heard(event: &Event) -> Option<SlotNews> {
    Some(match event {
        Event::AttemptsUsedUp { .. } | Event::ClaimAnswered { answer: ClaimAnswer::Exhausted, .. } => SlotNews::UsedUp,
        Event::ClaimAnswered { answer: ClaimAnswer::Done, .. } => SlotNews::Done { ours: false },
        Event::Closed { verdict } => SlotNews::Closed(*verdict),
        Event::Settled { outcome: Outcome::Success, .. } => SlotNews::Done { ours: true },
        Event::Settled { attempt, outcome } if *outcome != Outcome::GivenBack => SlotNews::AttemptFailed(*attempt),
        Event::RunStarted { attempt, guarded: true, .. } => SlotNews::Started(*attempt),
        Event::LeaseLost { unstarted: false, to, .. } => SlotNews::Overlapped(to.clone()),
        Event::Overtaken { overlap: Overlap::No, .. } => return None,
        Event::Overtaken { unstarted: false, by, .. } => SlotNews::Overlapped(Some(by.clone())),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::NodeName;

    #[test]
    fn a_run_that_another_may_have_overlapped_is_news_and_one_that_was_never_started_is_none() {
        let node = NodeName::new("b").unwrap();
        let lost = |unstarted| Event::LeaseLost {
            attempt: 1,
            to: Some(node.clone()),
            to_attempt: Some(2),
            killing: false,
            unstarted,
        };
        let over =
            |unstarted, overlap| Event::Overtaken { attempt: 1, by: node.clone(), by_attempt: 2, unstarted, overlap };
        for event in [lost(false), over(false, Overlap::Possible), over(false, Overlap::Sure)] {
            assert_eq!(heard(&event), Some(SlotNews::Overlapped(Some(node.clone()))), "{event:?}");
        }
        for event in [lost(true), over(true, Overlap::Possible), over(false, Overlap::No)] {
            assert_eq!(heard(&event), None, "{event:?}");
        }
    }
}
