//! Jobs and their coming ticks, as a program reads them.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Serialize, Serializer};

use crate::job::JobName;
use crate::observe::view::{LatestView, SlotView};
use crate::slot::{Slot, SlotKey, SlotState};
use crate::store::{JobEntry, JobOrigin, Pause};

/// Why no node starts a slot of a job of a file by itself, though the slot lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoStart {
    /// The job is disabled in the file.
    Disabled,
    /// No live node has the job in its file.
    Orphaned,
    /// No live node that has the job in its file has the labels that its `only_on` asks for.
    NoNode,
    /// No node is alive.
    NoLiveNode,
    /// Its scheduled times lie before the cluster first knew the job.
    NotDue,
    /// Its start deadline has passed.
    TooLate,
}

/// One job: each element of `jobs --json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobView {
    /// Its name.
    pub job: JobName,
    /// Its cron expression.
    pub schedule: String,
    /// Its IANA time zone.
    pub timezone: String,
    /// What a slot spans: `hour`, `minute`, `day`, `tick`, or a length like `15m`.
    pub period: String,
    /// Whether it is planned.
    pub enabled: bool,
    /// Who made it known: `file`, `crontab` (`cronward exec`) or `service`.
    pub origin: JobOrigin,
    /// When a machine last started another command under the name, in a slot that it had done, to the hour; null when it did not.
    pub command_conflict: Option<DateTime<Utc>>,
    /// The pause that is in force; null when it is not paused.
    pub paused: Option<PauseView>,
    /// When the cluster first knew it: no earlier scheduled time is due. Null when no node has run it yet.
    pub first_seen: Option<DateTime<Utc>>,
    /// When a node that was alive last said that it has it in its file, to the hour; null where no daemon did.
    pub last_planned: Option<DateTime<Utc>>,
    /// Whether nodes are alive and none of them has it in its file: nobody runs it any more.
    pub orphaned: bool,
    /// The next tick at which a run may start; null when there is none.
    pub next_tick: Option<DateTime<Utc>>,
    /// What it has come to lately.
    pub latest: LatestView,
    /// The current slot: the one of now if it has a tick or anything happened in it, else the last one that had a
    /// tick. Null when there was none yet.
    #[serde(serialize_with = "shared")]
    pub current: Option<Arc<SlotView>>,
    /// Why no node starts the current slot by itself, though it is `pending` or `retrying`; null elsewhere. A pause is told by `paused`.
    pub no_start: Option<NoStart>,
}

/// The slot itself: whoever keeps many jobs keeps it once.
fn shared<S: Serializer>(slot: &Option<Arc<SlotView>>, serializer: S) -> Result<S::Ok, S::Error> {
    slot.as_deref().serialize(serializer)
}

/// A pause that is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PauseView {
    /// From when, by the store's clock.
    pub since: DateTime<Utc>,
    /// Until when; null until it is resumed.
    pub until: Option<DateTime<Utc>>,
    /// Who paused it.
    pub who: String,
    /// The host they were on.
    pub host: String,
    /// Why, in their words.
    pub why: String,
}

/// One coming tick: each element of `next --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TickView {
    /// The job's name.
    pub job: JobName,
    /// The scheduled instant.
    pub tick: DateTime<Utc>,
    /// The same on the clocks of the job's time zone, with its offset.
    pub local: String,
    /// The key of the slot that it belongs to.
    pub slot: String,
    /// The slot's start, inclusive.
    pub start: DateTime<Utc>,
    /// The slot's end, exclusive.
    pub end: DateTime<Utc>,
    /// What daylight saving time does here, in words.
    pub notes: Vec<String>,
}

impl JobView {
    /// The first of the slots that came to their end without success since the newest that is done, and how many they are: those that
    /// the store has counted, and the current one, whose verdict may come later.
    pub fn failing(&self) -> Option<(SlotKey, u32)> {
        let counted = self.latest.failing.as_ref();
        let key = |text: &str| text.parse::<SlotKey>().ok();
        let is_run = !self.orphaned && (self.enabled || self.origin != JobOrigin::File);
        let ended = |slot: &&Arc<SlotView>| is_run && matches!(slot.state, SlotState::Failed | SlotState::Missed);
        let current = self.current.as_ref().filter(ended).and_then(|slot| key(&slot.slot));
        let newer = current.filter(|current| counted.is_none_or(|counted| key(&counted.last) < Some(*current)));
        let first = counted.and_then(|counted| key(&counted.since)).or(newer)?;
        Some((first, counted.map_or(0, |counted| counted.slots) + u32::from(newer.is_some())))
    }

    /// A job as the registry or the file describes it, without its slot, its pause and what it has come to.
    pub fn of(entry: &JobEntry, next_tick: Option<DateTime<Utc>>) -> Self {
        Self {
            job: entry.name.clone(),
            schedule: entry.schedule.clone(),
            timezone: entry.timezone.clone(),
            period: entry.period.clone(),
            enabled: entry.enabled,
            origin: entry.origin,
            command_conflict: entry.command.as_ref().and_then(|command| command.conflict),
            paused: None,
            first_seen: None,
            last_planned: entry.planned,
            orphaned: false,
            next_tick,
            latest: LatestView::default(),
            current: None,
            no_start: None,
        }
    }
}

impl PauseView {
    /// The pause, if it is in force at `now`.
    pub fn of(pause: &Pause, now: DateTime<Utc>) -> Option<Self> {
        pause.remaining(now)?;
        Some(Self {
            since: pause.since,
            until: pause.until,
            who: pause.audit.who.clone(),
            host: pause.audit.host.clone(),
            why: pause.audit.why.clone(),
        })
    }
}

impl TickView {
    /// A tick of a slot; `local` is the tick on the clocks of the job's zone.
    pub fn of(slot: &Slot, tick: DateTime<Utc>, local: String, notes: Vec<String>) -> Self {
        Self {
            job: slot.job().clone(),
            tick,
            local,
            slot: slot.key().to_string(),
            start: slot.start(),
            end: slot.end(),
            notes,
        }
    }
}
