//! What of all that happens is worth a message, and what has become of each job: pure. Events of this node come in at once, what the
//! store knows of all nodes from time to time; notices come out. The same notice may come out more than once, and on every node.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::{between, later};
use crate::event::NoticeKind;
use crate::job::{JobName, JobSpec, NodeName};
use crate::notify::notice::Notice;
use crate::schedule::Timetable;
use crate::slot::{Attempt, Failing, JobLatest, SlotKey, Verdict};

/// What ended longer ago is no news for a node that starts.
const NEWS: Duration = Duration::from_secs(86_400);

/// What a node heard of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SlotNews {
    /// No attempt is left.
    UsedUp,
    /// It got this verdict, from this node.
    Closed(Verdict),
    /// It is done.
    Done {
        /// By a run of this node.
        ours: bool,
    },
    /// A run was started.
    Started(Attempt),
    /// An attempt did not succeed.
    AttemptFailed(Attempt),
    /// Two runs may have overlapped.
    Overlapped(Option<NodeName>),
}

/// Slots that failed in a row, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Streak {
    since: SlotKey,
    last: SlotKey,
}

/// One job.
#[derive(Debug)]
struct Watched {
    spec: Arc<JobSpec>,
    streak: Option<Streak>,
    /// The newest slot that is done, and when it was.
    success: Option<(SlotKey, DateTime<Utc>)>,
    /// What the store said of missed slots at the last look.
    missed: Option<SlotKey>,
    /// Since when the job is watched: one that was never done is late from there.
    from: DateTime<Utc>,
    /// Whether the store was asked since.
    looked: bool,
}

/// All jobs that somebody is to be told of.
#[derive(Debug, Default)]
pub(super) struct Lookout {
    jobs: BTreeMap<JobName, Watched>,
}

impl Lookout {
    /// Takes the jobs of a plan; what is known of those that stay is kept.
    pub(super) fn set_jobs(&mut self, jobs: &[Arc<JobSpec>], now: DateTime<Utc>) {
        let mut before = std::mem::take(&mut self.jobs);
        for spec in jobs.iter().filter(|spec| spec.enabled && !spec.notify.is_empty()) {
            let new = || Watched {
                spec: Arc::clone(spec),
                streak: None,
                success: None,
                missed: None,
                from: now,
                looked: false,
            };
            let mut watched = before.remove(&spec.name).unwrap_or_else(new);
            watched.spec = Arc::clone(spec);
            self.jobs.insert(spec.name.clone(), watched);
        }
    }

    /// The jobs that the store is to be asked about.
    pub(super) fn names(&self) -> Vec<JobName> {
        self.jobs.keys().cloned().collect()
    }

    /// The job of this name.
    pub(super) fn spec(&self, job: &JobName) -> Option<&Arc<JobSpec>> {
        self.jobs.get(job).map(|watched| &watched.spec)
    }

    /// Whether a job is about to be late: then it matters which are paused.
    pub(super) fn is_any_late(&self, now: DateTime<Utc>) -> bool {
        self.jobs.values().any(|watched| watched.is_late(now))
    }

    /// Something happened at a slot of this node.
    pub(super) fn hear(&mut self, job: &JobName, slot: SlotKey, heard: SlotNews, now: DateTime<Utc>) -> Vec<Notice> {
        let Some(watched) = self.jobs.get_mut(job) else { return Vec::new() };
        let notice = |kind| Notice::of_slot(kind, job, slot);
        match heard {
            SlotNews::UsedUp | SlotNews::Closed(Verdict::Failed) => {
                watched.failed(slot, slot);
                vec![notice(NoticeKind::Failed)]
            }
            // Missed slots are told in sums.
            SlotNews::Closed(Verdict::Missed) => {
                watched.failed(slot, slot);
                Vec::new()
            }
            SlotNews::Closed(Verdict::Done | Verdict::Skipped) => Vec::new(),
            SlotNews::Done { ours } => {
                let recovered = watched.done(job, slot, now);
                recovered.into_iter().chain(ours.then(|| notice(NoticeKind::Succeeded))).collect()
            }
            SlotNews::Started(attempt) => vec![notice(NoticeKind::Started).numbered(attempt)],
            // The last one is told as the failure of the slot.
            SlotNews::AttemptFailed(attempt) if attempt >= watched.spec.policy.max_attempts => Vec::new(),
            SlotNews::AttemptFailed(attempt) => vec![notice(NoticeKind::AttemptFailed).numbered(attempt)],
            SlotNews::Overlapped(beside) => vec![Notice { beside, ..notice(NoticeKind::Overlap) }],
        }
    }

    /// Slots of a job were missed, as this node recorded.
    pub(super) fn missed(&mut self, job: &JobName, slots: u64, first: SlotKey, last: SlotKey) -> Vec<Notice> {
        let Some(watched) = self.jobs.get_mut(job) else { return Vec::new() };
        watched.failed(first, last);
        let slots = u32::try_from(slots).unwrap_or(u32::MAX);
        vec![Notice { slots, first: Some(first), ..Notice::of_slot(NoticeKind::Missed, job, last) }]
    }

    /// What the store knows of a job.
    pub(super) fn know(&mut self, job: &JobName, latest: &JobLatest, now: DateTime<Utc>) -> Vec<Notice> {
        let Some(watched) = self.jobs.get_mut(job) else { return Vec::new() };
        let mut notices = Vec::new();
        if let Some(success) = latest.success {
            notices.extend(watched.done(job, success.slot, success.at));
        }
        if let Some(failing) = latest.failing {
            notices.extend(watched.fails(job, &failing, now));
        } else {
            watched.missed = None;
        }
        watched.looked = true;
        notices
    }

    /// Jobs whose last success is too old, but those that are paused.
    pub(super) fn late(&self, paused: &[JobName], now: DateTime<Utc>) -> Vec<Notice> {
        let is_late = |(name, watched): &(&JobName, &Watched)| watched.is_late(now) && !paused.contains(name);
        let late = self.jobs.iter().filter(is_late);
        late.map(|(name, watched)| Notice {
            slot: watched.success.map(|(slot, _)| slot),
            ..Notice::of_job(NoticeKind::Late, name)
        })
        .collect()
    }

    /// The reminders that are due of jobs that fail: one for each full `every` since the first slot that failed began.
    pub(super) fn reminders(&self, every: Duration, sink: &str, now: DateTime<Utc>) -> Vec<Notice> {
        let due = |(name, watched): (&JobName, &Watched)| {
            let streak = watched.streak.filter(|_| watched.spec.notify.iter().any(|named| named == sink))?;
            let passed = between(streak.since.start(), now).as_secs().checked_div(every.as_secs())?;
            let number = u32::try_from(passed).ok().filter(|number| *number > 0)?;
            Some(Notice::of_slot(NoticeKind::Reminder, name, streak.since).numbered(number))
        };
        self.jobs.iter().filter_map(due).collect()
    }
}

impl Watched {
    fn failed(&mut self, first: SlotKey, last: SlotKey) {
        if self.success.is_some_and(|(slot, _)| slot >= last) {
            return;
        }
        let streak = self.streak.unwrap_or(Streak { since: first, last });
        self.streak = Some(Streak { since: streak.since.min(first), last: streak.last.max(last) });
    }

    /// A slot is done: the job has recovered, where no newer slot failed.
    fn done(&mut self, job: &JobName, slot: SlotKey, at: DateTime<Utc>) -> Option<Notice> {
        if self.success.is_none_or(|(newest, _)| newest < slot) {
            self.success = Some((slot, at));
        }
        let over = self.streak.take_if(|streak| streak.last <= slot)?;
        Some(Notice::of_slot(NoticeKind::Recovered, job, over.since))
    }

    /// The store says that slots failed. What ended long ago was told then, unless nobody was there.
    fn fails(&mut self, job: &JobName, failing: &Failing, now: DateTime<Utc>) -> Option<Notice> {
        self.failed(failing.since, failing.last);
        let is_news = self.ended_lately(failing.last, now);
        let notice = |kind| Notice {
            slots: failing.slots,
            first: Some(failing.since),
            ..Notice::of_slot(kind, job, failing.last)
        };
        if failing.verdict == Verdict::Failed {
            self.missed = None;
            return is_news.then(|| Notice { slots: 1, first: None, ..notice(NoticeKind::Failed) });
        }
        // While verdicts of a long outage are recorded, more follow: the sum is told once it stands still.
        let stands = self.missed.replace(failing.last) == Some(failing.last);
        (stands && is_news).then(|| notice(NoticeKind::Missed))
    }

    fn ended_lately(&self, slot: SlotKey, now: DateTime<Utc>) -> bool {
        let end =
            Timetable::of(&self.spec).ok().and_then(|timetable| timetable.slot_with_key(slot)).map(|slot| slot.end());
        later(end.unwrap_or(slot.start()), NEWS) > now
    }

    fn is_late(&self, now: DateTime<Utc>) -> bool {
        let Some(after) = self.spec.alert_after.filter(|_| self.looked) else { return false };
        let since = self.success.map_or(self.from, |(_, at)| at);
        between(since, now) > after
    }
}

#[cfg(test)]
#[path = "lookout_tests.rs"]
mod lookout_tests;
