//! The board as others hold it: they look, and are told what changes; and the node tells it what happens there. Looking never asks the
//! store.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::{Notify, broadcast, watch};

use crate::board::patch::Patches;
use crate::board::snapshot::LONGEST;
use crate::board::store_loss::StoreLoss;
use crate::board::window::{FEWEST, MOST, Window};
use crate::board::{Patch, Snapshot, StoreStanding};
use crate::clock::{Clock, ManualClock, Mono, later};
use crate::event::Event;
use crate::job::{JobName, JobSpec};
use crate::observe::Observer;
use crate::slot::{Slot, SlotKey};
use crate::text::message;

/// Slots that something happened at here and that nobody has looked at yet. Beyond that, all are looked at.
const TOUCHED: usize = 4_096;
/// For what is known of the store at the first look.
const PATIENCE: Duration = Duration::from_secs(3);

/// What a board is made of.
#[derive(Debug)]
pub struct BoardSetting {
    /// The node's clocks.
    pub clock: Arc<dyn Clock>,
    /// Tells this process from others: the node's instance.
    pub boot: String,
    /// How long the store keeps records.
    pub retention: Duration,
}

/// What is shown of the cluster, and who looks. [`Board::follow`] has to be driven.
#[derive(Debug)]
pub struct Board {
    pub(super) setting: BoardSetting,
    pub(super) patches: Patches,
    /// The newest, and when that was; none while nobody looks.
    pub(super) shown: watch::Sender<Option<(Mono, Arc<Snapshot>)>>,
    /// When somebody looked last, in nanoseconds of the monotonic clock; 0 for never.
    looked: AtomicU64,
    /// The most hours that somebody looks at.
    hours: AtomicUsize,
    /// Whether it is kept up to date.
    pub(super) live: AtomicBool,
    /// Somebody looks, or something happened here.
    pub(super) asked: Notify,
    touched: Mutex<Touched>,
    /// Events at slots here.
    happened: AtomicU64,
    /// The node tells so whether anybody looks or not.
    loss: Mutex<Option<StoreLoss>>,
    specs: Mutex<Arc<[Arc<JobSpec>]>>,
    /// Counts plans.
    pub(super) plans: AtomicU64,
}

/// What happened here.
#[derive(Debug, Default)]
pub(super) struct Touched {
    pub(super) slots: BTreeSet<(JobName, SlotKey)>,
    /// There were more.
    pub(super) lost: bool,
}

impl Board {
    /// One that nobody looks at.
    pub fn new(setting: BoardSetting) -> Arc<Self> {
        let patches = Patches::new(setting.boot.clone());
        Arc::new(Self {
            setting,
            patches,
            shown: watch::Sender::new(None),
            looked: AtomicU64::new(0),
            hours: AtomicUsize::new(FEWEST),
            live: AtomicBool::new(false),
            asked: Notify::new(),
            touched: Mutex::default(),
            happened: AtomicU64::new(0),
            loss: Mutex::default(),
            specs: Mutex::new(Arc::from([])),
            plans: AtomicU64::new(0),
        })
    }

    /// How long the store keeps records.
    pub const fn retention(&self) -> Duration {
        self.setting.retention
    }

    /// What is known at this moment, for the last so many hours (24 to 168) or more. Whoever asks counts as looking for the next minute.
    pub fn look(&self, hours: usize) -> Arc<Snapshot> {
        self.hours.fetch_max(hours.clamp(FEWEST, MOST), Ordering::Relaxed);
        self.looked.store(self.setting.clock.now().mono.nanos().max(1), Ordering::Relaxed);
        self.asked.notify_one();
        let shown = self.shown.borrow().clone();
        shown.map_or_else(|| Arc::new(self.nothing()), |(at, shown)| self.as_of_now(at, shown))
    }

    /// Time goes on though nothing changes.
    fn as_of_now(&self, at: Mono, shown: Arc<Snapshot>) -> Arc<Snapshot> {
        let passed = self.setting.clock.now().mono.since(at);
        if passed.is_zero() {
            return shown;
        }
        Arc::new(Snapshot { store_time: later(shown.store_time, passed), ..(*shown).clone() })
    }

    /// The same once the current slots were read, or it is known that the store does not answer; what there is after three seconds.
    pub async fn read(&self, hours: usize) -> Arc<Snapshot> {
        let mut shown = self.shown.subscribe();
        self.look(hours);
        let is_known = |shown: &Option<(Mono, Arc<Snapshot>)>| {
            shown.as_ref().is_some_and(|(_, known)| known.is_read() || known.store.away_since.is_some())
        };
        let _ = tokio::time::timeout(PATIENCE, shown.wait_for(is_known)).await;
        self.look(hours)
    }

    /// What changes from now on. Counts as looking until it is dropped. A receiver that lags has lost changes: look again.
    pub fn watch(&self) -> broadcast::Receiver<Arc<Patch>> {
        self.watch_after(None).0
    }

    /// The same, with what has changed since that moment ([`Snapshot::version`]); none where that is not known any more: look again.
    pub fn watch_after(&self, moment: Option<&str>) -> (broadcast::Receiver<Arc<Patch>>, Option<Vec<Arc<Patch>>>) {
        let watching = self.patches.after(moment);
        self.look(FEWEST);
        watching
    }

    /// The name of this moment, as [`Snapshot::version`].
    pub fn moment(&self, number: u64) -> String {
        format!("{}-{number}", self.patches.boot())
    }

    /// The name of this very moment.
    pub fn now(&self) -> String {
        self.moment(self.patches.last())
    }

    /// A board that always shows this, for tests and for pages that are made from fixtures. Its clock stands still.
    pub fn standing(snapshot: Snapshot) -> Arc<Self> {
        let clock = Arc::new(ManualClock::at(snapshot.store_time));
        let now = clock.now().mono;
        let retention = Duration::from_secs(7 * 86_400);
        let board = Self::new(BoardSetting { clock, boot: "standing".to_owned(), retention });
        board.shown.send_replace(Some((now, Arc::new(snapshot))));
        board
    }

    #[cfg(test)]
    pub(crate) fn tell(&self, event: &'static str, data: &impl serde::Serialize) {
        self.patches.push(event, data);
    }

    /// What is known before anything was read.
    fn nothing(&self) -> Snapshot {
        let now = self.setting.clock.now().wall;
        let window = Window::until(now, FEWEST);
        Snapshot {
            version: self.moment(self.patches.last()),
            store_time: now,
            read_at: None,
            store: StoreStanding::default(),
            hours: window.hours().to_vec(),
            filled: 0,
            rows: Vec::new(),
            nodes: Arc::default(),
            concerns: Arc::default(),
            warnings: Vec::new(),
        }
    }

    /// When somebody looked last.
    pub(super) fn looked_at(&self) -> Option<Mono> {
        let at = self.looked.load(Ordering::Relaxed);
        (at > 0).then(|| Mono::from_nanos(at))
    }

    pub(super) fn hours(&self) -> usize {
        self.hours.load(Ordering::Relaxed)
    }

    /// Nobody looks any more.
    pub(super) fn forget(&self) {
        self.live.store(false, Ordering::Relaxed);
        self.looked.store(0, Ordering::Relaxed);
        self.hours.store(FEWEST, Ordering::Relaxed);
        self.shown.send_replace(None);
        self.patches.forget();
        self.take_touched();
    }

    /// How many events there were at slots of this node.
    pub(super) fn happened(&self) -> u64 {
        self.happened.load(Ordering::Relaxed)
    }

    pub(super) fn take_touched(&self) -> Touched {
        std::mem::take(&mut *self.touched.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// That the node has lost its store.
    pub(super) fn loss(&self) -> Option<StoreLoss> {
        self.loss.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Since when the store is away that fails now: the node may have lost it before anybody looked.
    pub(super) fn lost_by(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        self.loss().map_or(now, |loss| loss.since.min(now))
    }

    fn hear_of_store(&self, event: &Event) {
        let loss = match event {
            Event::StoreLost { error, kind } => {
                let now = self.setting.clock.now();
                let answered = kind.is_answer();
                Some(StoreLoss { at: now.mono, since: now.wall, error: message(error, LONGEST), answered })
            }
            Event::StoreReached { .. } => None,
            _ => return,
        };
        *self.loss.lock().unwrap_or_else(PoisonError::into_inner) = loss;
        self.asked.notify_one();
    }

    /// The jobs that the node has in its file now.
    pub(crate) fn specs(&self) -> Arc<[Arc<JobSpec>]> {
        Arc::clone(&self.specs.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Observer for Board {
    fn event(&self, slot: Option<&Slot>, event: &Event) {
        self.hear_of_store(event);
        self.happened.fetch_add(u64::from(slot.is_some()), Ordering::Relaxed);
        let Some(slot) = slot.filter(|_| self.live.load(Ordering::Relaxed)) else { return };
        // What is asked of the store changes nothing by itself.
        if matches!(event, Event::ClaimAnswered { .. } | Event::RenewalAnswered { .. }) {
            return;
        }
        let mut touched = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
        if touched.slots.len() < TOUCHED {
            touched.slots.insert((slot.job().clone(), slot.key()));
        } else {
            touched.lost = true;
        }
        drop(touched);
        self.asked.notify_one();
    }

    fn plan(&self, jobs: &[Arc<JobSpec>], _config_hash: &str) {
        *self.specs.lock().unwrap_or_else(PoisonError::into_inner) = jobs.into();
        self.plans.fetch_add(1, Ordering::Relaxed);
        self.asked.notify_one();
    }
}
