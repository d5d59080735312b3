//! The node's loop: drives the `NodeMachine` with a runtime.
//!
//! It waits for whatever comes first: a beat, the next armed tick, a wake-up, the end of a slot's drive, an answer of the store, a
//! command. Each is handed to the machine, and what that wants is done without awaiting, so a tick is never late because of
//! another job, the store, or a command.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::{JoinError, JoinSet};
use tokio_util::task::AbortOnDropHandle;

use crate::clock::{Clock, Mono, Now};
use crate::drive::{Drive, Entropy, Facts, Gate, JobCommand, Launches, Limits, Message, Tools, Work, locks, timers};
use crate::event::Event;
use crate::exec::Launcher;
use crate::job::NodeName;
use crate::machine::{Assignment, End, SlotMachine};
use crate::node::action::{Action, DriveId, Report, Start};
use crate::node::chores::Chores;
use crate::node::digest::Digest;
use crate::node::machine::NodeMachine;
use crate::node::plan::{Health, Identity, Plan, Upkeep, ZonesNow};
use crate::node::releases::Releases;
use crate::node::request::{TriggerRefusal, TriggerRequest};
use crate::node::time::{Heart, StoreTime};
use crate::observe::{FanOut, Notebook, Observer};
use crate::schedule::ScheduleError;
use crate::slot::{Slot, Token};
use crate::store::{HEARTBEAT, Store, Wake, Wakeups};

/// A beat that has not come by then is not waited for.
const OVERDUE: Duration = Duration::from_millis(1_700);

/// Time for each run to say that the store was not told of its end.
const TO_GIVE_UP: Duration = Duration::from_secs(1);

/// Time for the last notes: a store that is away may not hold the node up.
const LAST_NOTES: Duration = Duration::from_secs(1);

/// What a node is told from outside.
#[derive(Debug)]
pub enum Command {
    /// Take these jobs instead.
    Reload(Plan),
    /// Take the rules that time zones have now.
    Zones(ZonesNow),
    /// Run a slot now, and answer whether it is begun.
    Trigger(TriggerRequest, oneshot::Sender<Result<(), TriggerRefusal>>),
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
    name: NodeName,
    machine: NodeMachine,
    ports: Ports,
    /// What `ports` and `tools` have as their clock.
    time: Arc<StoreTime>,
    tools: Arc<Tools>,
    /// What is decided on slots, for people.
    notes: Arc<Notebook>,
    /// What is told in sums.
    digest: Arc<Digest>,
    launches: Arc<Launches>,
    /// As whom it is told of locks.
    lock_instance: Token,
    tasks: JoinSet<Ended>,
    /// What is being driven, by its task.
    drives: BTreeMap<tokio::task::Id, (DriveId, Slot)>,
    inboxes: BTreeMap<DriveId, mpsc::UnboundedSender<Message>>,
    /// Slots that this node let go of.
    released: mpsc::UnboundedReceiver<Slot>,
    /// Tells the store what it may have forgotten.
    asserting: Option<AbortOnDropHandle<()>>,
}

impl Node {
    /// A node that will do this plan.
    pub fn new(identity: Identity, ports: Ports, plan: Plan) -> Result<Self, NodeError> {
        let time = StoreTime::over(ports.clock);
        let clock: Arc<dyn Clock> = Arc::clone(&time) as Arc<dyn Clock>;
        let ports = Ports { clock: Arc::clone(&clock), ..ports };
        let name = identity.name.clone();
        let notes = Arc::new(Notebook::new(Arc::clone(&clock), name.clone(), &identity.instance));
        let noting: Arc<dyn Observer> = Arc::<Notebook>::clone(&notes);
        let digest = Arc::new(Digest::default());
        let summing: Arc<dyn Observer> = Arc::<Digest>::clone(&digest);
        let (releases, released) = mpsc::unbounded_channel();
        let releasing: Arc<dyn Observer> = Arc::new(Releases::telling(releases));
        let tools = Arc::new(Tools {
            store: Arc::clone(&ports.store),
            clock: Arc::clone(&clock),
            observer: Arc::new(FanOut(vec![Arc::clone(&ports.observer), noting, summing, releasing])),
            facts: Facts::default(),
            gate: Gate::limited(Limits::of_node(plan.max_running)),
        });
        let upkeep = {
            let capability = ports.store.capability();
            Upkeep { heartbeat: HEARTBEAT, purges: !capability.expires_records, hints: capability.push }
        };
        Ok(Self {
            name,
            machine: NodeMachine::new(identity, upkeep, plan, clock.now())?,
            time,
            tools,
            notes,
            digest,
            launches: Arc::new(Launches::new(ports.launcher.clone())),
            lock_instance: ports.entropy.token(),
            tasks: JoinSet::new(),
            drives: BTreeMap::new(),
            inboxes: BTreeMap::new(),
            released,
            asserting: None,
            ports,
        })
    }

    /// Runs until a shutdown is complete. Dropping the future kills every command of this node.
    pub async fn run(
        mut self,
        commands: mpsc::Receiver<Command>,
        health: watch::Sender<Health>,
    ) -> Result<(), NodeError> {
        let heart = Heart::start().await?;
        let (outbox, mut reports) = mpsc::unbounded_channel();
        let (store, notes, node) = (Arc::clone(&self.ports.store), Arc::clone(&self.notes), self.name.clone());
        let chores = Chores {
            store,
            node,
            clock: self.time.uncorrected(),
            notes,
            outbox,
            shortened: Arc::default(),
            drift: Arc::default(),
        };
        let mut wakeups = self.ports.store.subscribe();
        let mut commands = Some(commands);
        let clock = Arc::clone(&self.ports.clock);
        self.carry_out(&chores);
        while !self.may_leave() {
            tokio::select! {
                biased;
                () = timers::until_wall(&*clock, self.machine.next_tick()) => self.machine.handle_ticks(clock.now()),
                () = heart.beat() => self.beat(clock.now(), &health),
                () = timers::until(&*clock, Some(self.beat_overdue())) => self.beat(clock.now(), &health),
                wake = next_wake(&mut wakeups) => self.machine.handle_wake(clock.now(), &wake),
                Some(slot) = self.released.recv() => self.machine.handle_released(&slot),
                Some(ended) = self.tasks.join_next_with_id() => self.ended(clock.now(), ended),
                Some(report) = reports.recv() => self.reported(clock.now(), report, &health),
                command = Self::next_command(&mut commands) => self.obey(clock.now(), command),
                () = timers::until(&*clock, self.machine.leave_by()) => break,
            }
            self.carry_out(&chores);
        }
        // Verdicts that are on their way: nobody else would tell them.
        self.machine.verdicts().leaving = true;
        let told = async {
            while self.machine.verdicts().is_asking()
                && let Some(report) = reports.recv().await
            {
                self.machine.handle_report(clock.now(), report);
                self.carry_out(&chores);
            }
        };
        let _ = tokio::time::timeout(TO_GIVE_UP, told).await;
        heart.stop().await;
        self.give_up(&chores).await;
        let report = self.machine.last_report(clock.now()).filter(|_| self.tasks.is_empty());
        let last_words = async {
            self.notes.flush(&*self.ports.store).await;
            if let Some(report) = &report {
                // Without it the node is merely silent.
                let _ = self.ports.store.heartbeat(report).await;
            }
        };
        let _ = tokio::time::timeout(LAST_NOTES, last_words).await;
        self.ports.observer.event(None, &Event::Stopped);
        Ok(())
    }

    /// What the store was not told until now it will not be told: each run says so, for whoever reads the journal.
    async fn give_up(&mut self, chores: &Chores) {
        self.machine.handle_impatience();
        self.carry_out(chores);
        let all = async { while self.tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(TO_GIVE_UP, all).await;
    }

    fn may_leave(&self) -> bool {
        self.machine.leave_by().is_some() && self.tasks.is_empty()
    }

    /// When the next beat is late: the scheduler's beats follow the wall clock and stay away while that is set back.
    fn beat_overdue(&self) -> Mono {
        self.machine.last_beat().map_or(Mono::default(), |last| last.mono + OVERDUE)
    }

    fn beat(&mut self, now: Now, health: &watch::Sender<Health>) {
        if self.tools.gate.is_away() {
            self.machine.handle_store_away();
        }
        let (occupancy, is_closing) = (self.tools.gate.occupancy(), self.machine.verdicts().is_asking());
        for event in self.digest.due(now.mono, occupancy, is_closing, self.machine.health().store_up) {
            self.ports.observer.event(None, &event);
        }
        self.look_around();
        self.machine.handle_beat(now);
        self.show(health);
    }

    fn reported(&mut self, now: Now, report: Report, health: &watch::Sender<Health>) {
        if report.is_answer() {
            self.tools.gate.answered();
        }
        // After an outage verdicts are many, and say nothing of the node.
        let is_news = !matches!(report, Report::Closed { .. });
        self.look_around();
        self.machine.handle_report(now, report);
        if is_news {
            self.show(health);
        }
    }

    fn look_around(&mut self) {
        self.machine.set_busy(self.tools.gate.occupancy().waiting > 0);
        self.machine.set_hints(self.tools.store.capability().push);
    }

    fn show(&self, health: &watch::Sender<Health>) {
        health.send_replace(Health { notes_refused: self.notes.is_refused(), ..self.machine.health() });
    }

    fn obey(&mut self, now: Now, command: Option<Command>) {
        match command {
            Some(Command::Reload(plan)) => self.machine.handle_reload(now, plan),
            Some(Command::Zones(zones)) => self.machine.handle_zones(now, &zones),
            Some(Command::Trigger(request, reply)) => {
                // Whoever asked may have gone: the slot runs all the same.
                let _ = reply.send(self.machine.handle_trigger(now, request));
            }
            Some(Command::Shutdown(drain)) => self.machine.handle_shutdown(now, drain),
            // Whoever could command is gone: the same as being told to leave at once.
            None => self.machine.handle_shutdown(now, Duration::ZERO),
        }
    }

    /// The next command; of a channel that is closed no more than one word.
    async fn next_command(commands: &mut Option<mpsc::Receiver<Command>>) -> Option<Command> {
        let Some(open) = commands else { return std::future::pending().await };
        let command = open.recv().await;
        if command.is_none() {
            *commands = None;
        }
        command
    }

    /// A drive's task is over.
    fn ended(&mut self, now: Now, ended: Result<(tokio::task::Id, Ended), JoinError>) {
        let task = ended.as_ref().map_or_else(JoinError::id, |(task, _)| *task);
        let drive = self.drives.remove(&task);
        if let Some((id, _)) = &drive {
            self.inboxes.remove(id);
        }
        match (ended, drive) {
            (Ok((_, Ended { scheduled_at, end })), Some((id, slot))) => {
                self.machine.handle_end(now, slot, id, scheduled_at, end);
            }
            (Ok(_), None) => {}
            (Err(error), drive) => {
                if let Some((id, slot)) = drive {
                    self.machine.handle_lost(&slot, id);
                }
                if !error.is_cancelled() {
                    self.ports.observer.event(None, &Event::Fault { error: error.to_string() });
                }
            }
        }
    }

    /// Does what the machine wants.
    fn carry_out(&mut self, chores: &Chores) {
        while let Some(action) = self.machine.poll_action() {
            match action {
                Action::Ask(question) => chores.ask(question),
                Action::Start(start) => self.start(start),
                Action::Tell(id, message) => {
                    if let Some(inbox) = self.inboxes.get(&id) {
                        drop(inbox.send(message));
                    }
                }
                Action::TellAll(message) => self.tell_all(&message),
                Action::Emit(event) => self.ports.observer.event(None, &event),
                Action::Announce(slot, verdict) => self.tools.observer.event(Some(&slot), &Event::Closed { verdict }),
                Action::Note(slot, decision) => self.notes.add(&slot, decision),
                Action::CorrectClock { ahead_ms } => {
                    self.time.correct(ahead_ms);
                    self.tell_all(&Message::ClockSet);
                }
                Action::PlanTaken => {
                    let (plan, entries) = (self.machine.plan(), self.machine.entries());
                    self.ports.observer.plan(&plan.jobs, &plan.config_hash);
                    self.notes.plan(plan.job_hashes.clone());
                    self.tools.gate.set(Limits::of_node(plan.max_running), |job| entries.contains_key(job));
                }
                Action::AssertAgain => {
                    let asserting = tokio::spawn(Arc::clone(&self.tools).assert_again());
                    self.asserting = Some(AbortOnDropHandle::new(asserting));
                }
            }
        }
        self.tools.gate.serve();
    }

    /// Begins to drive a slot. It waits until the gate is served.
    fn start(&mut self, start: Start) {
        let Start { id, spec, slot, scheduled_at, trigger, past, audit, holding } = start;
        let capability = self.ports.store.capability();
        let assignment = Assignment {
            slot: slot.clone(),
            policy: spec.policy.clone(),
            success_codes: spec.command.success_codes.clone(),
            node: self.name.clone(),
            trigger,
            scheduled_at,
            past,
            audit,
            poll: (!capability.push).then_some(capability.poll),
            seed: self.ports.entropy.token(),
            locks: spec.policy.locks.as_ref().and_then(|_| locks::port(&self.ports.store, self.lock_instance)),
        };
        let (outbox, inbox) = mpsc::unbounded_channel();
        let place = Some(self.tools.gate.enter(&slot));
        let (tools, now) = (Arc::clone(&self.tools), self.ports.clock.now());
        let work: Arc<dyn Work> = Arc::new(JobCommand { spec, launches: Arc::clone(&self.launches) });
        let task = self.tasks.spawn(async move {
            // Made where it is driven: at a full hour the loop has many to start.
            let machine = SlotMachine::waiting(assignment, now);
            let drive = Drive { machine, work, tools, holding, place, inbox };
            Ended { end: drive.until_ended().await, scheduled_at }
        });
        self.drives.insert(task.id(), (id, slot));
        self.inboxes.insert(id, outbox);
    }

    fn tell_all(&self, message: &Message) {
        // A drive that has ended takes no message.
        self.inboxes.values().for_each(|inbox| drop(inbox.send(message.clone())));
    }
}

/// How a slot's drive ended.
#[derive(Debug)]
struct Ended {
    scheduled_at: DateTime<Utc>,
    end: End,
}

/// The next hint. One that was lost is a reason to look at everything.
async fn next_wake(wakeups: &mut Wakeups) -> Wake {
    match wakeups.recv().await {
        Ok(wake) => wake,
        Err(broadcast::error::RecvError::Lagged(_)) => Wake::Resync,
        // The store has no more hints: waiting nodes have their timers.
        Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
    }
}
