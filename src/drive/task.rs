//! Drives one slot machine: carries out its actions and feeds it what comes of them.
//!
//! It decides nothing. What was started lives here: dropping the drive stops it and lets the lease lapse.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;

use crate::clock::{Clock, Mono, Now};
use crate::drive::gate::{Permit, Turn, Waiting};
use crate::drive::overtaker::overtaking_run;
use crate::drive::standstill::end_meanwhile;
use crate::drive::work::{LeaseFeed, Renewals, Started, Work};
use crate::drive::{Fact, Tools, locks, shortage, timers};
use crate::machine::{Action, End, LockAction, LockReply, SlotMachine};
use crate::slot::{Exit, Lease, RunContext, RunRecord, Token};
use crate::store::{
    Applied, Claim, ClaimRequest, ErrorKind, LockWakeups, Op, Release, Renewal, Settlement, Store, StoreError, Wake,
};

/// A command that has not begun by then waits for something else than a processor, a file system perhaps, and holds up the
/// starts of no others.
const LONGEST_START: Duration = Duration::from_secs(5);

/// How long a drive whose slot is over waits for the store to answer that its locks are free. What is not answered by then lapses.
const LAST_RELEASES: Duration = Duration::from_secs(2);

/// What the owner of a drive tells it.
#[derive(Clone, Debug)]
pub enum Message {
    /// A hint from the store.
    Wake(Wake),
    /// Begin nothing more; a running command may go on for this long.
    Leave(Duration),
    /// The store need not be told any more how the run ended.
    GiveUp,
    /// A newer slot of the job is due and takes this one's place.
    Replace,
    /// Time has jumped: look at the clock again.
    Look,
    /// The wall clock was put right by the store's.
    ClockSet,
}

impl Message {
    /// Tells a slot's machine.
    #[doc(hidden)]
    pub fn hand_to(&self, machine: &mut SlotMachine, now: Now) {
        match self {
            Self::Wake(wake) => machine.handle_wake(now, wake),
            Self::Leave(drain) => machine.handle_shutdown(now, *drain),
            Self::GiveUp => machine.handle_impatience(),
            Self::Replace => machine.handle_replaced(now),
            // A look that is due waits for its turn.
            Self::Look if machine.is_waiting() => {}
            Self::Look => machine.handle_timeout(now),
            Self::ClockSet => machine.handle_clock_set(now),
        }
    }
}

/// What came of an action.
enum ActionOutcome {
    Claim(Result<Claim, StoreError>),
    /// A claim that was not sent, because the store is away.
    Unasked(StoreError),
    /// Of the lease with this token.
    Renewal(Token, Result<Renewal, StoreError>),
    /// With the run of who was granted the slot meanwhile.
    Settlement(Result<Settlement, StoreError>, Option<RunRecord>),
    Release(Result<Release, StoreError>, Option<RunRecord>),
    /// Of the request for locks with this token.
    Lock(Token, LockReply),
    /// Whether the job is paused.
    Pause(Result<bool, StoreError>),
    Started(Box<dyn Started>),
    /// The command that was started runs.
    Begun,
    /// The command takes long to begin.
    SlowStart,
}

/// Where a drive is between two looks at its slot.
#[derive(Default)]
struct Turns {
    /// Its turn is waited for.
    next: Option<Waiting>,
    /// Since then.
    since: Mono,
    /// It has room to claim and to run.
    permit: Option<Permit>,
    /// What the next claim is answered with, unsent.
    refusal: Option<StoreError>,
    /// Hints on locks, from the first request for some on.
    hints: Option<LockWakeups>,
}

/// The attempt that was begun here last.
#[derive(Default)]
struct Current {
    started: Option<Box<dyn Started>>,
    /// Its lease, for the work and its keeper.
    lease: Option<LeaseFeed>,
}

type PendingActions = FuturesUnordered<Pin<Box<dyn Future<Output = ActionOutcome> + Send>>>;

/// One slot being driven.
#[derive(Debug)]
pub struct Drive {
    /// The slot's machine.
    pub machine: SlotMachine,
    /// What it starts.
    pub work: Arc<dyn Work>,
    /// What it works with.
    pub tools: Arc<Tools>,
    /// Shown to the owner: this slot may be running here.
    pub holding: Arc<AtomicBool>,
    /// Its place in the queue, where the owner has taken one for it.
    pub place: Option<Waiting>,
    /// What the owner tells.
    pub inbox: mpsc::UnboundedReceiver<Message>,
}

impl Drive {
    /// Until the machine has ended.
    pub async fn until_ended(mut self) -> End {
        let mut pending: PendingActions = FuturesUnordered::new();
        let mut current = Current::default();
        let since = self.machine.poll_timeout().unwrap_or_default();
        let mut turns = Turns { next: self.place.take(), since, ..Turns::default() };
        loop {
            self.carry_out(&mut pending, &mut current, &mut turns);
            self.holding.store(self.machine.is_holding(), Ordering::Relaxed);
            if let Some(end) = self.machine.ended() {
                self.leave_locks((&mut pending, &mut current), &mut turns).await;
                return end;
            }
            let clock = Arc::clone(&self.tools.clock);
            let timeout = self.queue_up(&mut turns);
            tokio::select! {
                // A turn that has come is taken also where the slot has just ended: only then had the node no room.
                biased;
                Some(outcome) = pending.next() => self.feed(outcome, (&mut pending, &mut current), &mut turns),
                exit = ended(&mut current.started) => self.hear_end(exit, &mut current, &mut turns),
                Some(message) = self.inbox.recv() => message.hand_to(&mut self.machine, clock.now()),
                hint = locks::heard(&mut turns.hints) => self.machine.handle_lock_hint(clock.now(), hint),
                () = timers::until(&*clock, self.machine.poll_lock_timeout()) => {
                    self.machine.handle_lock_timeout(clock.now());
                }
                turn = turn_of(&mut turns.next) => self.take_turn(turn, &mut turns),
                () = timers::until(&*clock, timeout) => {
                    let trust = self.machine.lease_trust();
                    if let Some(exit) = end_meanwhile(&mut current.started, &*clock, timeout, trust).await {
                        self.hear_end(exit, &mut current, &mut turns);
                        continue;
                    }
                    let now = clock.now();
                    if turns.next.is_some() {
                        self.machine.handle_shed(now, turns.since);
                    } else if !self.machine.is_waiting() {
                        self.machine.handle_timeout(now);
                    }
                }
            }
        }
    }

    fn hear_end(&mut self, exit: Exit, current: &mut Current, turns: &mut Turns) {
        *current = Current::default();
        shortage::note_exit(&self.tools, &exit);
        turns.permit.iter_mut().for_each(Permit::begun);
        self.machine.handle_exit(self.tools.clock.now(), exit);
    }

    /// Until the store knows that the locks are free, and not for long.
    async fn leave_locks(&mut self, (pending, current): (&mut PendingActions, &mut Current), turns: &mut Turns) {
        turns.permit = None;
        let clock = Arc::clone(&self.tools.clock);
        let until = clock.now().mono + LAST_RELEASES;
        while self.machine.leaves_locks() {
            tokio::select! {
                biased;
                Some(outcome) = pending.next() => self.feed(outcome, (&mut *pending, &mut *current), turns),
                () = timers::until(&*clock, self.machine.poll_lock_timeout()) => {
                    self.machine.handle_lock_timeout(clock.now());
                }
                () = timers::until(&*clock, Some(until)) => return,
            }
            self.carry_out(pending, current, turns);
        }
    }

    /// Takes or leaves a place in the queue, and makes room. Answers until when nothing is to be done.
    fn queue_up(&self, turns: &mut Turns) -> Option<Mono> {
        let due = self.machine.poll_timeout();
        let waits = self.machine.is_waiting();
        if waits {
            turns.permit = None;
        } else if turns.permit.is_none() && self.machine.is_holding() {
            turns.permit = Some(self.tools.gate.count());
        }
        if self.machine.is_delayed_by_locks() {
            // It starts nothing for now, and others may.
            turns.permit.iter_mut().for_each(Permit::begun);
        }
        let now = self.tools.clock.now().mono;
        if !waits || due.is_none_or(|due| due > now) {
            turns.next = None;
            return due;
        }
        if turns.next.is_none() {
            (turns.next, turns.since) = (Some(self.tools.gate.enter(self.machine.slot())), now);
            self.tools.gate.serve();
        }
        self.machine.worth_until()
    }

    fn take_turn(&mut self, turn: Turn, turns: &mut Turns) {
        turns.next = None;
        match turn {
            Turn::Claim(permit) => turns.permit = Some(permit),
            Turn::Away(error) => turns.refusal = Some(error),
        }
        self.machine.handle_timeout(self.tools.clock.now());
    }

    fn carry_out(&mut self, pending: &mut PendingActions, current: &mut Current, turns: &mut Turns) {
        // Before anything else: a renewal that took long is worth little already.
        current.lease.iter().for_each(|lease| lease.publish(&self.machine));
        while let Some(action) = self.machine.poll_action() {
            match action {
                Action::Terminate => current.started.iter().for_each(|started| started.terminate()),
                Action::Kill => current.started.iter().for_each(|started| started.kill()),
                Action::Spawn(context) => {
                    turns.permit.iter_mut().for_each(Permit::begins);
                    let (lease, renewals) = LeaseFeed::open(&self.machine);
                    current.lease = Some(lease);
                    pending.push(Box::pin(self.start(context, renewals)));
                    pending.push(Box::pin(begun_by_then(Arc::clone(&self.tools.clock))));
                }
                Action::Claim(request) => match turns.refusal.take() {
                    Some(error) => pending.push(Box::pin(std::future::ready(ActionOutcome::Unasked(error)))),
                    None => pending.push(Box::pin(claim(Arc::clone(&self.tools), request))),
                },
                Action::Complete { lease, run, done_ttl } => {
                    pending.push(Box::pin(complete(Arc::clone(&self.tools), Fact { lease, run, done_ttl })));
                }
                Action::Renew { lease, within } => {
                    pending.push(Box::pin(renew(Arc::clone(&self.tools.store), lease, within)));
                }
                Action::Fail { lease, run, retry_after } => {
                    let store = Arc::clone(&self.tools.store);
                    pending.push(Box::pin(async move {
                        let reply = store.fail(&lease, &run, retry_after).await;
                        released(&*store, &lease, reply).await
                    }));
                }
                Action::Lock(order) => self.ask_for_locks(order, pending, turns),
                Action::AskPause => {
                    let (tools, job) = (Arc::clone(&self.tools), self.machine.slot().job().clone());
                    pending.push(Box::pin(
                        async move { ActionOutcome::Pause(locks::is_paused(&*tools.store, &job).await) },
                    ));
                }
                Action::GiveBack { lease, run } => {
                    let store = Arc::clone(&self.tools.store);
                    pending.push(Box::pin(async move {
                        let reply = store.give_back(&lease, &run).await;
                        released(&*store, &lease, reply).await
                    }));
                }
            }
        }
        while let Some(event) = self.machine.poll_event() {
            self.tools.observer.event(Some(self.machine.slot()), &event);
        }
    }

    fn ask_for_locks(&self, order: LockAction, pending: &PendingActions, turns: &mut Turns) {
        // A machine whose store keeps none asks for none.
        let Some(store) = Arc::clone(&self.tools.store).lock_store() else { return };
        if let (None, LockAction::Acquire(request)) = (&turns.hints, &order) {
            // Before it is sent: who leaves in between is heard.
            turns.hints = Some(store.listen(request.instance));
        }
        let of = order.token();
        pending.push(Box::pin(async move { ActionOutcome::Lock(of, locks::ask(store, order).await) }));
    }

    fn feed(
        &mut self,
        outcome: ActionOutcome,
        (pending, current): (&mut PendingActions, &mut Current),
        turns: &mut Turns,
    ) {
        let now = self.tools.clock.now();
        match outcome {
            ActionOutcome::Claim(reply) => self.machine.handle_claim(now, reply),
            ActionOutcome::Unasked(error) => self.machine.handle_claim(now, Err(error)),
            ActionOutcome::Renewal(of, reply) => self.machine.handle_renewal(now, of, reply),
            ActionOutcome::Settlement(reply, other) => {
                other.into_iter().for_each(|other| self.machine.note_overtaker(other));
                self.machine.handle_settlement(now, reply);
            }
            ActionOutcome::Release(reply, other) => {
                other.into_iter().for_each(|other| self.machine.note_overtaker(other));
                self.machine.handle_release(now, reply);
            }
            ActionOutcome::Lock(of, reply) => {
                if let (LockReply::Acquired(_), Some(store)) = (&reply, Arc::clone(&self.tools.store).lock_store()) {
                    self.machine.poll_locks_each(store.lock_poll());
                }
                self.machine.handle_lock_reply(now, of, reply);
            }
            ActionOutcome::Pause(reply) => self.machine.handle_pause(now, reply),
            ActionOutcome::Started(started) => {
                let begun = started.begun();
                pending.push(Box::pin(async move {
                    begun.await;
                    ActionOutcome::Begun
                }));
                current.started = Some(started);
                self.machine.handle_started(now);
            }
            ActionOutcome::Begun => {
                shortage::note_start(&self.tools);
                turns.permit.iter_mut().for_each(Permit::begun);
            }
            ActionOutcome::SlowStart => turns.permit.iter_mut().for_each(Permit::begun),
        }
    }

    fn start(&self, context: RunContext, lease: Renewals) -> impl Future<Output = ActionOutcome> + Send + use<> {
        let work = Arc::clone(&self.work);
        async move { ActionOutcome::Started(work.start(context, lease).await) }
    }
}

async fn ended(running: &mut Option<Box<dyn Started>>) -> Exit {
    match running {
        Some(running) => running.wait().await,
        None => std::future::pending().await,
    }
}

async fn turn_of(next: &mut Option<Waiting>) -> Turn {
    match next {
        Some(waiting) => waiting.turn().await,
        None => std::future::pending().await,
    }
}

async fn claim(tools: Arc<Tools>, request: ClaimRequest) -> ActionOutcome {
    let reply = tools.store.claim(&request).await;
    match &reply {
        Ok(_) => tools.gate.answered(),
        Err(error) => tools.gate.failed(error),
    }
    ActionOutcome::Claim(reply)
}

async fn begun_by_then(clock: Arc<dyn Clock>) -> ActionOutcome {
    let then = clock.now().mono + LONGEST_START;
    timers::until(&*clock, Some(then)).await;
    ActionOutcome::SlowStart
}

async fn renew(store: Arc<dyn Store>, lease: Lease, within: Duration) -> ActionOutcome {
    let answer = tokio::time::timeout(within, store.renew(&lease)).await;
    ActionOutcome::Renewal(lease.token, answer.unwrap_or_else(|_| Err(too_late(&*store))))
}

/// It is kept from when it is sent: a server that was replaced may acknowledge what its successor never heard of, and
/// the answer may come after the word that hints were lost.
async fn complete(tools: Arc<Tools>, fact: Fact) -> ActionOutcome {
    tools.facts.keep(fact.clone(), tools.clock.now().wall);
    let reply = tools.store.complete(&fact.lease, &fact.run, fact.done_ttl).await;
    let by = if let Ok(Settlement::Overtaken { by }) = &reply { Some(by) } else { None };
    let other = overtaking_run(&*tools.store, &fact.lease, by).await;
    ActionOutcome::Settlement(reply, other)
}

async fn released(store: &dyn Store, lease: &Lease, reply: Result<Release, StoreError>) -> ActionOutcome {
    let by = if let Ok(Release::Overtaken { by }) = &reply { Some(by) } else { None };
    let other = overtaking_run(store, lease, by).await;
    ActionOutcome::Release(reply, other)
}

fn too_late(store: &dyn Store) -> StoreError {
    let message = "no answer while the lease could be trusted";
    StoreError::new(ErrorKind::Timeout, Applied::Maybe, Op::Renew, store.location(), message)
}
