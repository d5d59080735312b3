//! Drives one slot for one caller, and gives an account of it: what `cronward exec`, `cronward trigger` and
//! [`crate::service::Guard`] do. It never outlives its caller's patience, except to tell the store how a run ended.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Mono};
use crate::drive::account::Account;
use crate::drive::{Drive, Facts, Message, Tools, Work, timers};
use crate::guard::{Assignment, Event, SlotMachine};
use crate::observe::{NodeEvent, Observer};
use crate::slot::{Outcome, Slot, Verdict};
use crate::store::Store;

/// A run that goes on after its caller has lost patience is not hurried.
const FOR_EVER: Duration = Duration::from_secs(366 * 86_400);

/// A slot that begins this soon is waited for by whoever does not wait otherwise: it is this machine's clock that is ahead of
/// the store's, and the caller's scheduler was right to start it.
const AHEAD: Duration = Duration::from_secs(120);

/// One slot, driven for one caller.
#[derive(Debug)]
pub struct Once {
    /// The slot, and how it is guarded.
    pub assignment: Assignment,
    /// What is started.
    pub work: Arc<dyn Work>,
    /// The shared store.
    pub store: Arc<dyn Store>,
    /// The clocks.
    pub clock: Arc<dyn Clock>,
    /// Hears of everything, too.
    pub observer: Arc<dyn Observer>,
    /// How long the caller waits.
    pub patience: Patience,
}

/// How long the caller of [`Once`] waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For others that hold the slot, and for another attempt after a failure. Zero: one look, one attempt.
    pub wait: Duration,
    /// For a store that does not answer, before anything was started.
    pub store: Duration,
    /// For a run that was asked to stop by a cancellation.
    pub drain: Duration,
}

impl Patience {
    fn deadline(self, now: Mono) -> Option<Mono> {
        (self.wait > Duration::ZERO).then(|| now + self.wait)
    }
}

/// Passes every event on, also to the loop.
#[derive(Debug)]
struct Ear {
    heard: mpsc::UnboundedSender<Event>,
    other: Arc<dyn Observer>,
}

impl Observer for Ear {
    fn slot(&self, slot: &Slot, event: &Event) {
        self.other.slot(slot, event);
        // The loop may have ended.
        let _ = self.heard.send(event.clone());
    }

    fn closed(&self, slot: &Slot, verdict: Verdict) {
        self.other.closed(slot, verdict);
    }

    fn node(&self, event: &NodeEvent) {
        self.other.node(event);
    }
}

/// When the caller gives up on what has not begun.
struct Limits {
    /// On others, and on more attempts; none for a caller that does not wait.
    wait: Option<Mono>,
    /// On a store that does not answer; none while it does.
    store: Option<Mono>,
    /// A run is in progress: it is waited for.
    holding: bool,
    /// The drive was told to leave.
    left: bool,
}

impl Once {
    /// Until the slot is done, or used up, or over, or the caller's patience is. A cancellation begins nothing more and stops
    /// what runs after [`Patience::drain`].
    pub async fn until_ended(self, cancel: CancellationToken) -> Account {
        let Self { assignment, work, store, clock, observer, patience } = self;
        let (heard, mut events) = mpsc::unbounded_channel();
        let (tell, inbox) = mpsc::unbounded_channel();
        let begun = clock.now();
        let mut account = Account::new(assignment.slot.clone());
        let mut limits = Limits { wait: patience.deadline(begun.mono), store: None, holding: false, left: false };
        let mut wakeups = (patience.wait > Duration::ZERO).then(|| store.subscribe());
        let observer: Arc<dyn Observer> = Arc::new(Ear { heard, other: observer });
        let tools = Arc::new(Tools {
            store,
            clock: Arc::clone(&clock),
            observer,
            facts: Facts::default(),
            claims: Semaphore::new(1),
        });
        let machine = SlotMachine::new(assignment, begun);
        let holding = Arc::new(AtomicBool::new(false));
        let drive = Drive { machine, work, tools, holding, inbox }.until_ended();
        tokio::pin!(drive);
        let mut cancelled = false;
        loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => {
                    account.hear(&event);
                    if limits.over_after(&event, clock.now().mono, patience) {
                        leave(&tell, &mut limits, Duration::ZERO);
                    }
                }
                end = &mut drive => {
                    while let Ok(event) = events.try_recv() {
                        account.hear(&event);
                    }
                    account.end = Some(end);
                    return account;
                }
                () = cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    leave(&tell, &mut limits, patience.drain);
                }
                Some(wake) = next_wake(&mut wakeups) => drop(tell.send(Message::Wake(wake))),
                () = timers::until(&*clock, limits.next()) => leave(&tell, &mut limits, FOR_EVER),
            }
        }
    }
}

/// Nobody takes the message any more once the drive has ended.
fn leave(tell: &mpsc::UnboundedSender<Message>, limits: &mut Limits, drain: Duration) {
    // In a store's silence a long drain would be waited for in vain; a run that is in progress has it.
    let drain = if limits.holding { drain } else { Duration::ZERO };
    limits.left = true;
    let _ = tell.send(Message::Leave(drain));
}

/// The next hint, for a caller that waits; a lost one is a reason to look.
async fn next_wake(wakeups: &mut Option<crate::store::Wakeups>) -> Option<crate::store::Wake> {
    use tokio::sync::broadcast::error::RecvError;
    let Some(receiver) = wakeups else { return std::future::pending().await };
    match receiver.recv().await {
        Ok(wake) => Some(wake),
        Err(RecvError::Lagged(_)) => Some(crate::store::Wake::Resync),
        Err(RecvError::Closed) => {
            *wakeups = None;
            None
        }
    }
}

impl Limits {
    /// When to leave what has not begun; none while something runs, or after leaving.
    fn next(&self) -> Option<Mono> {
        if self.holding || self.left {
            return None;
        }
        self.store.map(|store| self.wait.map_or(store, |wait| wait.max(store))).or(self.wait)
    }

    /// Takes an event; true when nothing more is to be begun after it.
    fn over_after(&mut self, event: &Event, now: Mono, patience: Patience) -> bool {
        match event {
            Event::StoreFailed { .. } if self.store.is_none() => self.store = Some(now + patience.store),
            Event::Granted { .. } | Event::RunStarted { .. } => (self.holding, self.store) = (true, None),
            Event::ClaimAnswered { answer, .. } => {
                self.store = None;
                if *answer == "early" {
                    self.wait.get_or_insert(now + AHEAD);
                    return false;
                }
                return *answer != "claimed" && self.is_impatient(now);
            }
            Event::Settled { outcome, .. } | Event::SettlementGivenUp { outcome, .. } => {
                self.holding = false;
                return *outcome != Outcome::Success && self.is_impatient(now);
            }
            _ => {}
        }
        false
    }

    fn is_impatient(&self, now: Mono) -> bool {
        self.wait.is_none_or(|wait| now >= wait)
    }
}
