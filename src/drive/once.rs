//! Drives one slot for one caller, and gives an account of it: what `cronward exec`, `cronward trigger` and
//! [`crate::service::Guard`] do. It never outlives its caller's patience, except to tell the store how a run ended.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Serialize, Serializer};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Mono};
use crate::drive::patience::{Next, Patience, WaitLimits};
use crate::drive::{Drive, Facts, Gate, Message, Tools, Work, timers};
use crate::error::ErrorKind;
use crate::event::json::maybe_seconds;
use crate::event::{Event, LeaveAnswer, LockWait, lock_names};
use crate::job::NodeName;
use crate::machine::{Assignment, End, SlotMachine};
use crate::observe::Observer;
use crate::reply::ClaimAnswer;
use crate::slot::{Attempt, Exit, ExitStatus, Fence, NOT_STARTED, OUTPUT_LOST, Outcome, Overlap, RunContext, Slot};
use crate::store::{Store, Wake, WakeKind, Wakeups};

/// A subscription is made within this time, if its store is there.
const FRESH: Duration = Duration::from_secs(1);

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

/// Passes every event on, also to the loop.
#[derive(Debug)]
struct Ear {
    heard: mpsc::UnboundedSender<Event>,
    other: Arc<dyn Observer>,
}

impl Observer for Ear {
    fn event(&self, slot: Option<&Slot>, event: &Event) {
        self.other.event(slot, event);
        // The loop may have ended.
        let _ = self.heard.send(event.clone());
    }
}

impl Once {
    /// Until the slot is done, or used up, or over, or the caller's patience is. A cancellation begins nothing more, stops
    /// what runs after [`Patience::drain`], and cuts [`Patience::record`] short.
    pub async fn until_ended(self, cancel: CancellationToken) -> Account {
        let Self { assignment, work, store, clock, observer, patience } = self;
        let (heard, mut events) = mpsc::unbounded_channel();
        let (tell, inbox) = mpsc::unbounded_channel();
        let begun = clock.now();
        let slot = assignment.slot.clone();
        let mut caller = Caller {
            account: Account::new(slot.clone()),
            limits: WaitLimits::new(patience, slot, assignment.policy.lease_ttl, begun.mono),
            clock: Arc::clone(&clock),
            tell,
        };
        let mut hints = None;
        let observer: Arc<dyn Observer> = Arc::new(Ear { heard, other: observer });
        let tools = Arc::new(Tools {
            store: Arc::clone(&store),
            clock: Arc::clone(&clock),
            observer,
            facts: Facts::default(),
            gate: Gate::open(),
        });
        let machine = SlotMachine::new(assignment, begun);
        let holding = Arc::new(AtomicBool::new(false));
        let drive = Drive { machine, work, tools, holding, place: None, inbox }.until_ended();
        tokio::pin!(drive);
        let mut cancelled = false;
        loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => {
                    if caller.hear(&event) == Next::Stay && hints.is_none() && caller.limits.waits() {
                        hints = Some(Hints::of(&*store, clock.now().mono));
                        caller.tell(Message::Wake(caller.limits.look()));
                    }
                }
                end = &mut drive => {
                    while let Ok(event) = events.try_recv() {
                        caller.account.hear(&event);
                    }
                    return Account { end: Some(end), ..caller.account };
                }
                () = cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    caller.catch_up(&mut events);
                    caller.cancel();
                }
                wake = next_hint(&mut hints, &*clock, &caller.limits) => caller.tell(Message::Wake(wake)),
                () = timers::until(&*clock, caller.limits.next()) => {
                    caller.catch_up(&mut events);
                    caller.look_at_limits();
                }
            }
        }
    }
}

/// What the loop knows, and how it tells the drive.
struct Caller {
    account: Account,
    limits: WaitLimits,
    clock: Arc<dyn Clock>,
    tell: mpsc::UnboundedSender<Message>,
}

impl Caller {
    fn hear(&mut self, event: &Event) -> Next {
        self.account.hear(event);
        let next = self.limits.hear(event, self.clock.now());
        if next == Next::Leave {
            self.leave();
        }
        next
    }

    /// The drive may have begun something in this very turn.
    fn catch_up(&mut self, events: &mut mpsc::UnboundedReceiver<Event>) {
        while let Ok(event) = events.try_recv() {
            self.hear(&event);
        }
    }

    fn cancel(&mut self) {
        if self.limits.cancel(self.clock.now().mono) == Next::Leave {
            self.leave();
        }
    }

    fn look_at_limits(&mut self) {
        if self.limits.next().is_none_or(|limit| self.clock.now().mono < limit) {
            return;
        }
        if self.limits.is_recording() {
            self.tell(Message::GiveUp);
        }
        self.leave();
    }

    fn leave(&mut self) {
        let drain = self.limits.leave();
        self.tell(Message::Leave(drain));
    }

    /// Nobody takes the message any more once the drive has ended.
    fn tell(&self, message: Message) {
        let _ = self.tell.send(message);
    }
}

/// The subscription of a caller that waits.
struct Hints {
    wakeups: Wakeups,
    /// Until then, that hints may have been lost says no more than that the subscription stands.
    fresh: Mono,
}

impl Hints {
    fn of(store: &dyn Store, now: Mono) -> Self {
        Self { wakeups: store.subscribe(), fresh: now + FRESH }
    }
}

/// The next hint, for a caller that waits; a lost one is a reason to look. So is that the slot is done: the answer says who
/// did it.
async fn next_hint(hints: &mut Option<Hints>, clock: &dyn Clock, limits: &WaitLimits) -> Wake {
    let Some(Hints { wakeups, fresh }) = hints else { return std::future::pending().await };
    match wakeups.recv().await {
        Ok(Wake::Slot { job, key, .. }) => Wake::Slot { job, key, what: WakeKind::Released },
        Ok(Wake::Resync) if clock.now().mono < *fresh => limits.look(),
        Ok(wake) => wake,
        Err(RecvError::Lagged(_)) => Wake::Resync,
        // There will be none: the machine looks by its timers.
        Err(RecvError::Closed) => std::future::pending().await,
    }
}

/// What happened at a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The slot.
    pub slot: Slot,
    /// How it ended here; none while it has not.
    pub end: Option<End>,
    /// The last answer to a claim.
    pub answer: Option<ClaimAnswer>,
    /// Another answer came before it: something was waited for.
    pub waited: bool,
    /// Who holds it or did it, where that was the last answer.
    pub by: Option<NodeName>,
    /// The last error of the store, when no answer came after it.
    pub store_error: Option<(ErrorKind, String)>,
    /// What locks were waited for last and who held them, or why they were waited for in vain; none once a command was started.
    pub queued: Option<String>,
    /// The attempts that were begun here, oldest first.
    pub runs: Vec<RunAccount>,
    /// The slot is over by the machine's clock: no node starts it any more.
    pub past: bool,
}

/// One attempt that was begun here; as JSON it stands in `--report` (`docs/json.md`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunAccount {
    /// Its number; 0 without a guard.
    pub attempt: Attempt,
    /// Its fence.
    pub fence: Fence,
    /// False: the store was away, and the policy says to run all the same.
    pub guarded: bool,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// How long it ran.
    #[serde(rename = "duration_s", serialize_with = "maybe_seconds::serialize")]
    pub duration: Option<Duration>,
    /// What went wrong, in words.
    pub message: Option<String>,
    /// What was lost, or in doubt, while it ran, each once: another run may have overlapped.
    #[serde(rename = "lease_lost", serialize_with = "is_any")]
    pub lost: Vec<Lost>,
    /// The store knows how it ended.
    #[serde(rename = "recorded")]
    pub settled: bool,
}

/// What a run was no longer guarded by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The lease of its slot.
    Lease,
    /// Its locks; and who has had them since, where that is known.
    Locks(Option<String>),
}

fn is_any<S: Serializer>(lost: &[Lost], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(!lost.is_empty())
}

impl Account {
    /// Of a slot at which nothing has happened yet.
    pub(crate) const fn new(slot: Slot) -> Self {
        let runs = Vec::new();
        Self {
            slot,
            end: None,
            answer: None,
            waited: false,
            by: None,
            store_error: None,
            queued: None,
            runs,
            past: false,
        }
    }

    /// Of a command that ran within another run of the same slot, under its lease: nothing was asked or settled here.
    /// `timed_out`: it was stopped after a timeout of its own.
    pub fn nested(run: &RunContext, exit: Exit, timed_out: bool) -> Self {
        let (outcome, exit_code, signal, message) = match exit.status {
            ExitStatus::Code(0) => (Outcome::Success, Some(0), None, exit.note),
            ExitStatus::Code(code) => (Outcome::Failure, Some(code), None, exit.note),
            ExitStatus::Signal(signal) => (Outcome::Killed, None, Some(signal), exit.note),
            ExitStatus::OutputLost => (Outcome::Failure, Some(OUTPUT_LOST.into()), None, exit.note),
            ExitStatus::NotStarted { code, message } => (Outcome::Failure, Some(code), None, Some(message)),
            ExitStatus::NoResources { message } => (Outcome::Failure, Some(NOT_STARTED), None, Some(message)),
        };
        let only = RunAccount {
            outcome: Some(if timed_out { Outcome::Timeout } else { outcome }),
            exit_code,
            signal,
            message,
            settled: true,
            ..begun(run.attempt, run.fence, true)
        };
        Self { runs: vec![only], ..Self::new(run.slot.clone()) }
    }

    /// The last attempt that was begun here.
    pub fn last_run(&self) -> Option<&RunAccount> {
        self.runs.last()
    }

    pub(super) fn hear(&mut self, event: &Event) {
        match event {
            Event::ClaimAnswered { answer, by, .. } => {
                self.waited |= self.answer.is_some();
                (self.answer, self.by, self.store_error) = (Some(*answer), by.clone(), None);
                self.queued = None;
            }
            Event::Granted { .. } | Event::RenewalAnswered { .. } => self.store_error = None,
            Event::Unstarted { why, locks, .. } if !locks.is_empty() => {
                self.queued.get_or_insert_with(|| why.clone());
            }
            Event::LockWaiting(wait) => {
                self.store_error = None;
                self.queued = Some(who_has(wait));
            }
            Event::StoreFailed { kind, error, .. } => self.store_error = Some((*kind, error.clone())),
            Event::RunStarted { attempt, fence, guarded, .. } => {
                self.queued = None;
                self.runs.push(begun(*attempt, *fence, *guarded));
            }
            other => self.hear_of_run(other),
        }
    }

    fn hear_of_run(&mut self, event: &Event) {
        if matches!(event, Event::LockHeld(_)) {
            self.store_error = None;
        }
        // What happens to an attempt that only waits is no other's.
        let Some(run) = self.runs.iter_mut().rfind(|run| Some(run.attempt) == event.attempt()) else { return };
        match event {
            Event::RunEnded { outcome, exit_code, signal, duration, ended_between, note, .. } => {
                run.outcome = Some(*outcome);
                (run.exit_code, run.signal) = (*exit_code, *signal);
                run.duration = ended_between.is_none().then_some(*duration);
                run.message.clone_from(note);
            }
            // What was in doubt is not any more: the two records show it.
            Event::Overtaken { overlap: Overlap::No, .. } | Event::LeaseRestored { .. } => {
                run.lost.retain(|lost| *lost != Lost::Lease);
            }
            Event::LeaseInDoubt { .. } | Event::LeaseLost { .. } | Event::Overtaken { .. } => {
                run.lose(Lost::Lease);
            }
            Event::LockLost(loss) => run.lose(Lost::Locks(node_and_label(loss.to.as_ref(), &loss.to_label))),
            Event::LockLeft(leave) if leave.answer == LeaveAnswer::Overtaken => {
                run.lose(Lost::Locks(node_and_label(leave.by.as_ref(), &leave.by_label)));
            }
            Event::LockHeld(grant) if grant.again => run.lost.retain(|lost| *lost == Lost::Lease),
            Event::Settled { .. } => run.settled = true,
            _ => {}
        }
    }
}

impl RunAccount {
    /// Who is known to have taken the locks stays known.
    fn lose(&mut self, what: Lost) {
        let known = self.lost.iter_mut().find(|lost| matches!(lost, Lost::Lease) == matches!(what, Lost::Lease));
        match known {
            Some(known) if what != Lost::Locks(None) => *known = what,
            Some(_) => {}
            None => self.lost.push(what),
        }
    }
}

/// Who holds locks, in words.
pub(crate) fn node_and_label(node: Option<&NodeName>, label: &str) -> Option<String> {
    let label = if label.is_empty() { String::new() } else { format!("{label} on ") };
    node.map(|node| format!("{label}node {node}"))
}

/// Which locks, and who holds them.
fn who_has(wait: &LockWait) -> String {
    let label = if wait.by_label.is_empty() { String::new() } else { format!("{} on ", wait.by_label) };
    let are = if wait.locks.len() > 1 { "are" } else { "is" };
    format!("{} {are} held by {label}node {}", lock_names(&wait.locks), wait.by)
}

const fn begun(attempt: Attempt, fence: Fence, guarded: bool) -> RunAccount {
    RunAccount {
        attempt,
        fence,
        guarded,
        outcome: None,
        exit_code: None,
        signal: None,
        duration: None,
        message: None,
        lost: Vec::new(),
        settled: false,
    }
}
