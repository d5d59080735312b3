//! Drives one slot machine: carries out its actions and feeds it what comes of them.
//!
//! It decides nothing. The future of a run lives here: dropping the task kills the command's group and lets the lease
//! lapse.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Semaphore, mpsc};

use crate::clock::Clock;
use crate::exec::{Launcher, Running};
use crate::guard::{Action, End, SlotMachine};
use crate::job::JobSpec;
use crate::node::timers;
use crate::observe::Observer;
use crate::slot::{Exit, RunContext, Token};
use crate::store::{
    Applied, Claim, ClaimRequest, ErrorKind, Op, Release, Renewal, Settlement, Store, StoreError, Wake,
};

/// What the node tells a task.
#[derive(Clone, Debug)]
pub(super) enum Message {
    /// A hint from the store.
    Wake(Wake),
    /// Begin nothing more; a running command may go on for this long.
    Leave(Duration),
    /// A newer slot of the job is due and takes this one's place.
    Replace,
    /// Time has jumped: look at the clock again.
    Look,
    /// The wall clock was put right by the store's.
    ClockSet,
}

/// What every task of a node works with. Shared, not copied: a launcher holds a whole environment, and 10,000 slots may
/// wait.
#[derive(Debug)]
pub(super) struct Tools {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) launcher: Launcher,
    pub(super) observer: Arc<dyn Observer>,
    /// Bounds how many claims are on their way at once. A renewal or a settlement is never held up by it.
    pub(super) claims: Semaphore,
    /// Bounds how many commands are being started at once.
    pub(super) launches: Semaphore,
}

/// What came of an action.
enum Outcome {
    Claim(Result<Claim, StoreError>),
    /// Of the lease with this token.
    Renewal(Token, Result<Renewal, StoreError>),
    Settlement(Result<Settlement, StoreError>),
    Release(Result<Release, StoreError>),
    Launched(Running),
}

type Pending = FuturesUnordered<Pin<Box<dyn Future<Output = Outcome> + Send>>>;

/// One slot being driven.
pub(super) struct SlotTask {
    pub(super) machine: SlotMachine,
    /// Whose command is run.
    pub(super) spec: Arc<JobSpec>,
    pub(super) tools: Arc<Tools>,
    /// Shown to the node: this slot may be running here.
    pub(super) holding: Arc<AtomicBool>,
    pub(super) inbox: mpsc::UnboundedReceiver<Message>,
}

impl SlotTask {
    /// Until the machine has ended.
    pub(super) async fn drive(mut self) -> End {
        let mut pending: Pending = FuturesUnordered::new();
        let mut running: Option<Running> = None;
        loop {
            self.carry_out(&mut pending, running.as_ref());
            self.holding.store(self.machine.is_holding(), Ordering::Relaxed);
            if let Some(end) = self.machine.ended() {
                return end;
            }
            let clock = Arc::clone(&self.tools.clock);
            let timeout = self.machine.poll_timeout();
            tokio::select! {
                Some(outcome) = pending.next() => self.feed(outcome, &mut running),
                exit = ended(&mut running) => {
                    running = None;
                    self.machine.handle_exit(clock.now(), exit);
                }
                Some(message) = self.inbox.recv() => self.obey(message),
                () = timers::until(&*clock, timeout) => self.machine.handle_timeout(clock.now()),
            }
        }
    }

    fn carry_out(&mut self, pending: &mut Pending, running: Option<&Running>) {
        while let Some(action) = self.machine.poll_action() {
            match action {
                Action::Terminate => running.into_iter().for_each(Running::terminate),
                Action::Kill => running.into_iter().for_each(Running::kill),
                Action::Spawn(context) => pending.push(Box::pin(self.launch(context))),
                Action::Claim(request) => pending.push(Box::pin(self.claim(request))),
                asked => pending.push(Box::pin(ask(Arc::clone(&self.tools.store), asked))),
            }
        }
        while let Some(event) = self.machine.poll_event() {
            self.tools.observer.slot(self.machine.slot(), &event);
        }
    }

    fn feed(&mut self, outcome: Outcome, running: &mut Option<Running>) {
        let now = self.tools.clock.now();
        match outcome {
            Outcome::Claim(reply) => self.machine.handle_claim(now, reply),
            Outcome::Renewal(of, reply) => self.machine.handle_renewal(now, of, reply),
            Outcome::Settlement(reply) => self.machine.handle_settlement(now, reply),
            Outcome::Release(reply) => self.machine.handle_release(now, reply),
            Outcome::Launched(started) => {
                *running = Some(started);
                self.machine.handle_started(now);
            }
        }
    }

    fn obey(&mut self, message: Message) {
        let now = self.tools.clock.now();
        match message {
            Message::Wake(wake) => self.machine.handle_wake(now, &wake),
            Message::Leave(drain) => self.machine.handle_shutdown(now, drain),
            Message::Replace => self.machine.handle_replaced(now),
            Message::Look => self.machine.handle_timeout(now),
            Message::ClockSet => self.machine.handle_clock_set(now),
        }
    }

    fn claim(&self, request: ClaimRequest) -> impl Future<Output = Outcome> + Send + use<> {
        let tools = Arc::clone(&self.tools);
        async move {
            // Never closed; and if it were, asking at once would be right.
            let _permit = tools.claims.acquire().await;
            Outcome::Claim(tools.store.claim(&request).await)
        }
    }

    fn launch(&self, context: RunContext) -> impl Future<Output = Outcome> + Send + use<> {
        let (tools, spec) = (Arc::clone(&self.tools), Arc::clone(&self.spec));
        async move {
            // Never closed; and if it were, starting at once would be right.
            let _permit = tools.launches.acquire().await;
            Outcome::Launched(tools.launcher.launch(&spec.command, &context).await)
        }
    }
}

async fn ended(running: &mut Option<Running>) -> Exit {
    match running {
        Some(running) => running.wait().await,
        None => std::future::pending().await,
    }
}

async fn ask(store: Arc<dyn Store>, action: Action) -> Outcome {
    match action {
        Action::Renew { lease, within } => {
            let answer = tokio::time::timeout(within, store.renew(&lease)).await;
            Outcome::Renewal(lease.token, answer.unwrap_or_else(|_| Err(too_late(&*store))))
        }
        Action::Complete { lease, run, done_ttl } => Outcome::Settlement(store.complete(&lease, &run, done_ttl).await),
        Action::Fail { lease, run, retry_after } => Outcome::Release(store.fail(&lease, &run, retry_after).await),
        Action::GiveBack { lease, run } => Outcome::Release(store.give_back(&lease, &run).await),
        // `carry_out` has taken these.
        Action::Claim(_) | Action::Spawn(_) | Action::Terminate | Action::Kill => std::future::pending().await,
    }
}

fn too_late(store: &dyn Store) -> StoreError {
    let message = "no answer while the lease could be trusted";
    StoreError::new(ErrorKind::Timeout, Applied::Maybe, Op::Renew, store.location(), message)
}
