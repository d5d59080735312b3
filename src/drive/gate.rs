//! The [`Queue`](super::admission::Queue) of a process, for tasks: they wait here for their turn to ask for a lease. It
//! decides nothing. A renewal, a settlement, and a claim that may have been applied never wait here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::drive::admission::{Limits, Occupancy, Pause, Queue, QueuePlace};
use crate::error::StoreError;
use crate::job::JobName;
use crate::slot::Slot;

/// Where the drives of a process wait for their turn.
#[derive(Debug)]
pub struct Gate {
    queue: Mutex<Queue<oneshot::Sender<Turn>>>,
    /// Somebody looks after the store and says when it answers again. Otherwise each slot asks for itself.
    attended: bool,
}

/// What comes of waiting.
#[derive(Debug)]
pub(crate) enum Turn {
    /// To claim.
    Claim(Permit),
    /// The store is away: this is the answer.
    Away(StoreError),
}

/// A place in the queue. Dropping it gives the place up.
#[derive(Debug)]
pub struct Waiting {
    gate: Arc<Gate>,
    place: Option<QueuePlace>,
    turn: oneshot::Receiver<Turn>,
}

/// One slot that may be claimed and run. Dropping it makes room.
#[derive(Debug)]
pub(crate) struct Permit {
    gate: Arc<Gate>,
    begun: bool,
}

impl Gate {
    /// For many slots. Its owner sees to it that a store that is away is looked for, and tells by [`Gate::answered`].
    pub fn limited(limits: Limits) -> Arc<Self> {
        Arc::new(Self { queue: Mutex::new(Queue::new(limits)), attended: true })
    }

    /// For a process that drives one slot: its turn is always now.
    pub fn open() -> Arc<Self> {
        Arc::new(Self { queue: Mutex::new(Queue::new(Limits::NONE)), attended: false })
    }

    /// Takes the limits and the jobs of another plan.
    pub fn set(self: &Arc<Self>, limits: Limits, is_planned: impl Fn(&JobName) -> bool) {
        let mut queue = self.lock();
        queue.set_limits(limits);
        queue.retain(is_planned);
        drop(queue);
        self.serve();
    }

    /// How full it is.
    pub fn occupancy(&self) -> Occupancy {
        self.lock().occupancy()
    }

    /// Whether claims are refused because the store did not answer.
    pub fn is_away(&self) -> bool {
        self.lock().refusal().is_some()
    }

    /// The store answered something.
    pub fn answered(&self) {
        self.lock().answered();
    }

    /// A claim that was sent was not answered.
    pub(crate) fn failed(&self, error: &StoreError) {
        if !self.attended || !error.is_transient() {
            return;
        }
        let mut queue = self.lock();
        let (waiting, refusal) = (queue.failed(error), || queue.refusal());
        let told: Vec<_> = waiting.into_iter().filter_map(|waiting| Some((waiting, refusal()?))).collect();
        drop(queue);
        for (waiting, refusal) in told {
            // Whoever has left meanwhile need not know.
            let _ = waiting.send(Turn::Away(refusal));
        }
    }

    /// A command could not be started for want of a resource; see [`Queue::pause_starts`]. The pause lasts until [`Gate::end_pause`].
    pub(crate) fn pause_starts(&self) -> Option<Pause> {
        self.lock().pause_starts()
    }

    /// The pause of the starts is over.
    pub(crate) fn end_pause(self: &Arc<Self>) {
        self.lock().end_pause();
        self.serve();
    }

    /// A command has begun; whether that ends a want of a resource.
    pub(crate) fn has_started(self: &Arc<Self>) -> bool {
        let is_over = self.lock().has_started();
        if is_over {
            self.serve();
        }
        is_over
    }

    /// Takes a place in the queue for a slot. Those of one instant take theirs before [`Gate::serve`] is called, so that it is
    /// not always the first of them whose turn is at once.
    pub(crate) fn enter(self: &Arc<Self>, slot: &Slot) -> Waiting {
        let (waiting, turn) = oneshot::channel();
        let mut queue = self.lock();
        let place = match queue.refusal() {
            None => Some(queue.enter(slot.job(), slot.start(), waiting)),
            Some(refusal) => {
                // The other end is here.
                let _ = waiting.send(Turn::Away(refusal));
                None
            }
        };
        drop(queue);
        Waiting { gate: Arc::clone(self), place, turn }
    }

    /// Lets in whoever there is room for.
    pub(crate) fn serve(self: &Arc<Self>) {
        loop {
            let Some(waiting) = self.lock().next() else { return };
            // A permit that nobody takes any more makes room as it is dropped, outside of the lock.
            let _ = waiting.send(Turn::Claim(Permit { gate: Arc::clone(self), begun: false }));
        }
    }

    /// Counts a slot that holds a lease, or runs, without having waited here.
    pub(crate) fn count(self: &Arc<Self>) -> Permit {
        self.lock().count();
        Permit { gate: Arc::clone(self), begun: false }
    }

    fn lock(&self) -> MutexGuard<'_, Queue<oneshot::Sender<Turn>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit {
    /// The command begins after others were let in for it: it counts as one that is being started again.
    pub(crate) fn begins(&mut self) {
        if std::mem::take(&mut self.begun) {
            self.gate.lock().begins();
        }
    }

    /// The command has begun: another one may be started.
    pub(crate) fn begun(&mut self) {
        if !std::mem::replace(&mut self.begun, true) {
            self.gate.lock().begun();
            self.gate.serve();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.gate.lock().over(self.begun);
        self.gate.serve();
    }
}

impl Waiting {
    /// Its turn. Asked once.
    pub(crate) async fn turn(&mut self) -> Turn {
        match (&mut self.turn).await {
            Ok(turn) => turn,
            // Cannot be: who takes it out of the queue sends something.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(place) = &self.place {
            self.gate.lock().leave(place);
        }
    }
}
