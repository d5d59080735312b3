//! The node's loop.
//!
//! It waits for whatever comes first: a beat, the next armed tick, a wake-up, the end of a slot's task, the answer to a
//! chore, a command. Each is handled without awaiting, so a tick is never late because of another job, the store, or a
//! command.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use crate::clock::{Clock, Mono, Now};
use crate::drive::{Entropy, Facts, Gate, Launches, Limits, Message, Tools, timers};
use crate::exec::Launcher;
use crate::guard::Event;
use crate::job::JobName;
use crate::node::beat::Heart;
use crate::node::chores::{Chores, Report};
use crate::node::digest::Digest;
use crate::node::plan::Entry;
use crate::node::presence::Presence;
use crate::node::roll::Roll;
use crate::node::store_time::StoreTime;
use crate::node::ticking::Ended;
use crate::node::{Health, Identity, Plan};
use crate::observe::{FanOut, NodeEvent, Notebook, Observer};
use crate::schedule::{Planner, ScheduleError, Tick};
use crate::slot::{Slot, Verdict};
use crate::store::{Store, Wake, Wakeups};

/// How far ahead ticks are armed: several beats, so that late and lost ones cost nothing.
const HORIZON: Duration = Duration::from_secs(5);
/// After the drain and the longest `kill_after`, time to record what was stopped.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Time for each run to say that the store was not told of its end.
const TO_GIVE_UP: Duration = Duration::from_secs(1);

/// Time for the last notes: a store that is away may not hold the node up.
const LAST_NOTES: Duration = Duration::from_secs(1);

/// What a node is told from outside.
#[derive(Debug)]
pub enum Command {
    /// Take these jobs instead.
    Reload(Plan),
    /// Begin nothing more, let commands run for this long, then stop them and leave. A second one may shorten it.
    Shutdown(Duration),
}

/// What a node cannot start without.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// A job's schedule cannot be used.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The beat could not be started.
    #[error("the planner's beat cannot be started: {0}")]
    Beat(#[from] tokio_cron_scheduler::JobSchedulerError),
}

/// What a node works with.
#[derive(Clone, Debug)]
pub struct Ports {
    /// The shared store.
    pub store: Arc<dyn Store>,
    /// The node's clocks.
    pub clock: Arc<dyn Clock>,
    /// Random bits.
    pub entropy: Arc<Entropy>,
    /// Starts commands.
    pub launcher: Launcher,
    /// Hears of everything.
    pub observer: Arc<dyn Observer>,
}

/// One running node.
#[derive(Debug)]
pub struct Node {
    pub(super) identity: Identity,
    pub(super) ports: Ports,
    /// What `ports` and `tools` have as their clock.
    pub(super) time: Arc<StoreTime>,
    pub(super) tools: Arc<Tools>,
    /// What is decided on slots, for people.
    pub(super) notes: Arc<Notebook>,
    /// What is told in sums.
    pub(super) digest: Arc<Digest>,
    pub(super) launches: Arc<Launches>,
    pub(super) plan: Plan,
    pub(super) entries: BTreeMap<JobName, Entry>,
    pub(super) planner: Planner,
    /// Ticks that wait for their instant; the number keeps those of one instant apart.
    pub(super) armed: BTreeMap<(DateTime<Utc>, u64), Tick>,
    pub(super) armed_count: u64,
    pub(super) roll: Roll,
    pub(super) tasks: JoinSet<Ended>,
    /// Slots that this node let go of.
    released: mpsc::UnboundedReceiver<Slot>,
    /// Tells the store what it may have forgotten.
    pub(super) asserting: Option<AbortOnDropHandle<()>>,
    pub(super) presence: Presence,
    pub(super) last_beat: Option<Now>,
    /// Set by a shutdown: when to give up on what still runs.
    pub(super) leave_by: Option<Mono>,
}

impl Node {
    /// A node that will do this plan.
    pub fn new(identity: Identity, ports: Ports, plan: Plan) -> Result<Self, NodeError> {
        let entries = plan.compile(&identity)?;
        let time = StoreTime::over(ports.clock);
        let clock: Arc<dyn Clock> = Arc::clone(&time) as Arc<dyn Clock>;
        let ports = Ports { clock: Arc::clone(&clock), ..ports };
        let notes = Arc::new(Notebook::new(Arc::clone(&clock), identity.name.clone(), &identity.instance));
        let noting: Arc<dyn Observer> = Arc::<Notebook>::clone(&notes);
        let digest = Arc::new(Digest::default());
        let summing: Arc<dyn Observer> = Arc::<Digest>::clone(&digest);
        let (releases, released) = mpsc::unbounded_channel();
        let releasing: Arc<dyn Observer> = Arc::new(Releases(releases));
        let tools = Arc::new(Tools {
            store: Arc::clone(&ports.store),
            clock,
            observer: Arc::new(FanOut(vec![Arc::clone(&ports.observer), noting, summing, releasing])),
            facts: Facts::default(),
            gate: Gate::limited(Limits::of_node(plan.max_running)),
        });
        let mut node = Self {
            identity,
            time,
            tools,
            notes,
            digest,
            launches: Arc::new(Launches::new(ports.launcher.clone())),
            plan,
            entries: BTreeMap::new(),
            planner: Planner::new(HORIZON),
            armed: BTreeMap::new(),
            armed_count: 0,
            roll: Roll::default(),
            tasks: JoinSet::new(),
            released,
            asserting: None,
            presence: Presence::new(ports.clock.now().mono),
            last_beat: None,
            leave_by: None,
            ports,
        };
        node.take(entries);
        Ok(node)
    }

    /// Runs until a shutdown is complete. Dropping the future kills every command of this node.
    pub async fn run(
        mut self,
        mut commands: mpsc::Receiver<Command>,
        health: watch::Sender<Health>,
    ) -> Result<(), NodeError> {
        let heart = Heart::start().await?;
        let (outbox, mut reports) = mpsc::unbounded_channel();
        let (store, notes) = (Arc::clone(&self.ports.store), Arc::clone(&self.notes));
        let chores = Chores { store, clock: self.time.uncorrected(), notes, outbox };
        let mut wakeups = self.ports.store.subscribe();
        let clock = Arc::clone(&self.ports.clock);
        self.ports
            .observer
            .node(&NodeEvent::Started { jobs: self.entries.values().filter(|entry| entry.ours).count() });
        self.tell_plan();
        while !self.may_leave() {
            tokio::select! {
                biased;
                () = timers::until_wall(&*clock, self.next_fire()) => self.fire(clock.now()),
                () = heart.beat() => {
                    self.beat(clock.now(), &chores);
                    self.show(&health);
                }
                () = timers::until(&*clock, Some(self.beat_overdue())) => {
                    self.beat(clock.now(), &chores);
                    self.show(&health);
                }
                wake = next_wake(&mut wakeups) => self.wake(clock.now(), &wake),
                Some(slot) = self.released.recv() => self.roll.released(&slot),
                Some(ended) = self.tasks.join_next() => self.task_ended(ended),
                Some(report) = reports.recv() => {
                    // After an outage verdicts are many, and say nothing of the node.
                    let is_news = !matches!(report, Report::Closed { .. });
                    self.reported(clock.now(), report, &chores);
                    if is_news {
                        self.show(&health);
                    }
                }
                command = commands.recv() => self.obey(clock.now(), command, &chores),
                () = timers::until(&*clock, self.leave_by) => break,
            }
        }
        heart.stop().await;
        self.give_up().await;
        let report = self.last_report(clock.now()).filter(|_| self.tasks.is_empty());
        let last_words = async {
            self.notes.flush(&*self.ports.store).await;
            if let Some(report) = &report {
                // Without it the node is merely silent.
                let _ = self.ports.store.heartbeat(report).await;
            }
        };
        let _ = tokio::time::timeout(LAST_NOTES, last_words).await;
        self.ports.observer.node(&NodeEvent::Stopped);
        Ok(())
    }

    fn show(&self, health: &watch::Sender<Health>) {
        health.send_modify(|health| self.presence.show(health, self.roll.running().count()));
    }

    /// What the store was not told until now it will not be told: each run says so, for whoever reads the journal.
    async fn give_up(&mut self) {
        self.roll.tell_all(&Message::GiveUp);
        let all = async { while self.tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(TO_GIVE_UP, all).await;
    }

    fn may_leave(&self) -> bool {
        self.leave_by.is_some() && self.tasks.is_empty()
    }

    fn obey(&mut self, now: Now, command: Option<Command>, chores: &Chores) {
        match command {
            Some(Command::Reload(plan)) => self.reload(now, plan, chores),
            Some(Command::Shutdown(drain)) => self.shut_down(now, drain, chores),
            // Whoever could command is gone: the same as being told to leave at once.
            None => self.shut_down(now, Duration::ZERO, chores),
        }
    }

    fn shut_down(&mut self, now: Now, drain: Duration, chores: &Chores) {
        let running = self.roll.running().count();
        self.ports.observer.node(&NodeEvent::Draining { running, drain });
        let longest_kill = self.entries.values().map(|entry| entry.spec.policy.kill_after).max().unwrap_or_default();
        let leave_by = now.mono + drain + longest_kill + LAST_WORDS;
        self.leave_by = Some(self.leave_by.map_or(leave_by, |before| before.min(leave_by)));
        self.armed.clear();
        self.roll.tell_all(&Message::Leave(drain));
        self.presence.draining = true;
        self.send_heartbeat(now, chores);
    }

    fn reload(&mut self, now: Now, plan: Plan, chores: &Chores) {
        let entries = match plan.compile(&self.identity) {
            Ok(entries) => entries,
            Err(error) => {
                return self.ports.observer.node(&NodeEvent::ReloadRefused { message: error.to_string() });
            }
        };
        let same = |job: &JobName| {
            let pair = (self.entries.get(job), entries.get(job));
            matches!(pair, (Some(old), Some(new)) if old.spec == new.spec)
        };
        let changed: BTreeSet<JobName> =
            self.entries.keys().chain(entries.keys()).filter(|job| !same(job)).cloned().collect();
        // A tick that is armed is kept where the job still ticks then: the planner will not hand it out again.
        let still_ticks = |job: &JobName| {
            let pair = (self.entries.get(job), entries.get(job));
            matches!(pair, (Some(old), Some(new)) if new.ours && old.timetable == new.timetable)
        };
        self.armed.retain(|_, tick| still_ticks(&tick.job));
        let mut reopened = Vec::new();
        for job in &changed {
            reopened.extend(self.roll.retire(job, &Message::Leave(FOR_EVER)));
        }
        self.plan = plan;
        self.take(entries);
        // What waited was retired, its tick was handed out long ago: without another look the slot would be lost here.
        changed.iter().for_each(|job| self.planner.look_again(job));
        let jobs = self.entries.values().filter(|entry| entry.ours).count();
        self.ports.observer.node(&NodeEvent::Reloaded { jobs, changed: changed.into_iter().collect() });
        self.tell_plan();
        self.presence.plan += 1;
        for slot in reopened {
            self.start_again(slot, now.wall);
        }
        self.beat(now, chores);
    }

    fn tell_plan(&self) {
        for Entry { spec, ours, .. } in self.entries.values() {
            self.ports.observer.node(&NodeEvent::Planned { job: Arc::clone(spec), ours: *ours });
        }
    }

    /// Puts compiled jobs in force.
    fn take(&mut self, entries: BTreeMap<JobName, Entry>) {
        let now = self.ports.clock.now();
        self.planner.set(entries.values().filter(|entry| entry.ours).map(|entry| entry.timetable.clone()).collect());
        // Every node closes every job's slots: those who may claim a job may all be dead.
        self.presence.closer.set(entries.values().map(|entry| entry.timetable.clone()).collect(), now.wall);
        self.notes.plan(self.plan.job_hashes.clone());
        self.tools.gate.set(Limits::of_node(self.plan.max_running), |job| entries.contains_key(job));
        self.entries = entries;
    }
}

/// Tells the loop of each slot that this node let go of: it has done it, or has given it back.
#[derive(Debug)]
struct Releases(mpsc::UnboundedSender<Slot>);

impl Observer for Releases {
    fn slot(&self, slot: &Slot, event: &Event) {
        if matches!(event, Event::Settled { .. }) {
            // The loop may have ended; then nobody waits here any more.
            let _ = self.0.send(slot.clone());
        }
    }

    fn closed(&self, _slot: &Slot, _verdict: Verdict) {}

    fn node(&self, _event: &NodeEvent) {}
}

/// A run that goes on after its job has changed is not hurried.
const FOR_EVER: Duration = Duration::from_secs(366 * 86_400);

/// The next hint. One that was lost is a reason to look at everything.
async fn next_wake(wakeups: &mut Wakeups) -> Wake {
    match wakeups.recv().await {
        Ok(wake) => wake,
        Err(broadcast::error::RecvError::Lagged(_)) => Wake::Resync,
        // The store has no more hints: waiting nodes have their timers.
        Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
    }
}
