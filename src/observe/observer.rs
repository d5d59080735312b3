//! Who hears of what happens on a node.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::guard::Event;
use crate::job::{JobName, JobSpec};
use crate::slot::{Slot, SlotKey, Verdict};

/// Hears every event. Called from the node's loops: it may not block, and nothing depends on what it does.
pub trait Observer: Debug + Send + Sync + 'static {
    /// Something happened at a slot.
    fn slot(&self, slot: &Slot, event: &Event);

    /// This node recorded a slot's verdict: it is told once in the whole cluster.
    fn closed(&self, slot: &Slot, verdict: Verdict);

    /// Something happened to the node.
    fn node(&self, event: &NodeEvent);
}

/// Something that happened to the node and to no slot in particular.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeEvent {
    /// It plans its jobs from now on.
    Started {
        /// Jobs that it plans.
        jobs: usize,
    },
    /// One of the jobs of the plan that is in force from now on. Told for each, after [`NodeEvent::Started`] and
    /// [`NodeEvent::Reloaded`].
    Planned {
        /// The job.
        job: Arc<JobSpec>,
        /// Whether this node claims it; its slots are closed by every node.
        ours: bool,
    },
    /// The store answers, for the first time or again.
    StoreReached {
        /// For how long it had not, as far as this node knows.
        away: Option<Duration>,
    },
    /// The store does not answer, or refuses. Told once for each outage.
    StoreLost {
        /// The error, in one line.
        message: String,
    },
    /// The registry of jobs does not take the plan: listings without the file will not know all jobs.
    RegistrationRefused {
        /// Why.
        message: String,
    },
    /// The node's clock and the store's differ by more than a run's start can bear.
    ClockOff {
        /// The node's minus the store's, in milliseconds.
        offset_ms: i64,
    },
    /// Another node that is alive goes by the name of this one. Told once for each.
    Namesake {
        /// Its instance.
        instance: String,
        /// When it started, by its own clock.
        started_at: DateTime<Utc>,
    },
    /// No node was alive for a while; the slots that ended meanwhile get their verdict now.
    ClusterWasDown {
        /// For how long.
        gap: Duration,
    },
    /// The store had no record that this node has done a slot: it was told again. It had forgotten it, or had not heard yet.
    DoneAgain {
        /// The slot.
        slot: Slot,
    },
    /// The node cannot start all that is due: it has no room, or is too slow. Told at most once a minute.
    Overloaded {
        /// Slots that ended before there was room for them, since the last such line.
        shed: u64,
        /// Of so many jobs.
        jobs: usize,
        /// Jobs of which a slot waits now.
        waiting: usize,
        /// Slots that are claimed, running or being recorded.
        running: usize,
        /// As many as `max_running` allows.
        is_full: bool,
    },
    /// Slots that could not be asked for, because the store failed. Told at most once a minute.
    StoreFailing {
        /// How many, since the last such line.
        slots: u64,
        /// The last error, in one line.
        message: String,
    },
    /// That is over.
    StoreFailingOver {
        /// How many they were in all.
        slots: u64,
    },
    /// Slots of a job that ended without a success, with attempts left: never started, or cut off. This node recorded their verdicts one after the other.
    SlotsMissed {
        /// The job.
        job: JobName,
        /// How many.
        slots: u64,
        /// The first.
        first: SlotKey,
        /// The last; not each one between them was missed.
        last: SlotKey,
    },
    /// Time jumped, or the node stood still: current slots are looked at again.
    Gap {
        /// How many.
        slots: usize,
    },
    /// Another plan is in force.
    Reloaded {
        /// Jobs that it plans.
        jobs: usize,
        /// Jobs that are new, changed or gone.
        changed: Vec<JobName>,
    },
    /// A plan was refused; the old one stays in force.
    ReloadRefused {
        /// Why.
        message: String,
    },
    /// It begins nothing more and waits for its runs.
    Draining {
        /// Runs that it waits for.
        running: usize,
        /// At the most this long.
        drain: Duration,
    },
    /// It is about to leave.
    Stopped,
    /// A fault in cronward itself; the slot is looked at again at its next tick.
    Fault {
        /// What happened.
        message: String,
    },
}

/// Tells every event to each observer, in their order.
#[derive(Clone, Debug)]
pub struct FanOut(pub Vec<Arc<dyn Observer>>);

impl Observer for FanOut {
    fn slot(&self, slot: &Slot, event: &Event) {
        self.0.iter().for_each(|observer| observer.slot(slot, event));
    }

    fn closed(&self, slot: &Slot, verdict: Verdict) {
        self.0.iter().for_each(|observer| observer.closed(slot, verdict));
    }

    fn node(&self, event: &NodeEvent) {
        self.0.iter().for_each(|observer| observer.node(event));
    }
}
