//! One request, driven by a task of its own: carries out what the machine asks for, feeds it the answers, and tells whoever listens.
//! It decides nothing. The caller's future only listens, so that it may be dropped anywhere.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::drive::{locks, timers};
use crate::lock::client::Client;
use crate::lock::held::{Answered, LeaseView, unknown};
use crate::lock::{Held, LockError, Locks, TryLockError};
use crate::machine::{LockEnd, LockMachine, LockNews, LockReply, TrustWindow};
use crate::resource::{Demands, LockHold, LockHolder, LockRelease};
use crate::service::Standing;
use crate::store::{LockWakeups, StoreError};

/// What asking comes to.
type Granted = Result<LockHold, TryLockError>;

/// Asks for the locks, and waits where that is said.
pub(super) async fn acquire(locks: &Locks, demands: Demands, queue: bool) -> Result<Held, TryLockError> {
    let mut asking = Asking::begin(locks, demands, queue);
    let hold = asking.outcome().await?;
    Ok(asking.held(hold))
}

/// The same until `end`; none where that came first. What is not held has left the queue by then, where the store answers: for a process
/// that ends next, and its tasks with it.
#[cfg(feature = "daemon")]
pub(super) async fn acquire_until(
    locks: &Locks,
    demands: Demands,
    queue: bool,
    end: impl Future<Output = ()>,
) -> Result<Option<Held>, TryLockError> {
    let mut asking = Asking::begin(locks, demands, queue);
    let outcome = tokio::select! {
        biased;
        outcome = asking.outcome() => outcome.map(Some),
        () = end => Ok(None),
    };
    match outcome {
        Ok(Some(hold)) => Ok(Some(asking.held(hold))),
        Ok(None) => {
            asking.leave().await;
            Ok(None)
        }
        Err(error) => {
            asking.leave().await;
            Err(error)
        }
    }
}

/// A request that a task drives.
struct Asking {
    locks: Locks,
    asked: oneshot::Receiver<Granted>,
    standing: watch::Receiver<LeaseView>,
    trust: watch::Receiver<Option<TrustWindow>>,
    lost: CancellationToken,
    /// Dropped, it has the task leave.
    leave: DropGuard,
    answered: oneshot::Receiver<Answered>,
}

impl Asking {
    fn begin(locks: &Locks, demands: Demands, queue: bool) -> Self {
        let (outcome, asked) = oneshot::channel();
        let (released, answered) = oneshot::channel();
        let (standing, trust) = (watch::Sender::new(LeaseView::held()), watch::Sender::new(None));
        let (leave, lost) = (CancellationToken::new(), CancellationToken::new());
        let shared = Arc::clone(&locks.shared);
        // Before the first ask: what is released in between is heard.
        let hints = shared.store.listen(shared.instance);
        let request = locks.asking(demands, queue);
        let machine = LockMachine::new(request, shared.patience, shared.store.lock_poll(), shared.clock.now());
        let (told_standing, told_trust) = (standing.subscribe(), trust.subscribe());
        let driver = Driver {
            shared,
            machine,
            asks: FuturesUnordered::new(),
            outcome: Some(outcome),
            released: Some(released),
            standing,
            trust,
            lost: lost.clone(),
            _gone: lost.clone().drop_guard(),
            unheard: None,
        };
        tokio::spawn(driver.run(hints, leave.clone()));
        let leave = leave.drop_guard();
        Self { locks: locks.clone(), asked, standing: told_standing, trust: told_trust, lost, leave, answered }
    }

    async fn outcome(&mut self) -> Granted {
        (&mut self.asked).await.unwrap_or(Err(TryLockError::Lock(LockError::Abandoned)))
    }

    fn held(self, hold: LockHold) -> Held {
        let Self { locks, standing, trust, lost, leave, answered, .. } = self;
        Held { locks, hold, standing, trust, lost, leave, answered }
    }

    /// Leaves, and waits until the store knows it, as long as it is asked for anything.
    #[cfg(feature = "daemon")]
    async fn leave(self) {
        let Self { locks, leave, answered, .. } = self;
        drop(leave);
        let clock = &*locks.shared.clock;
        let limit = clock.now().mono + locks.shared.patience;
        tokio::select! {
            _ = answered => {}
            () = timers::until(clock, Some(limit)) => {}
        }
    }
}

struct Driver {
    shared: Arc<Client>,
    machine: LockMachine,
    asks: FuturesUnordered<BoxFuture<'static, LockReply>>,
    /// Who asked, until they are told.
    outcome: Option<oneshot::Sender<Granted>>,
    released: Option<oneshot::Sender<Answered>>,
    standing: watch::Sender<LeaseView>,
    trust: watch::Sender<Option<TrustWindow>>,
    lost: CancellationToken,
    /// Cancels the same with the task, however that ends: what nobody renews is not held.
    _gone: DropGuard,
    /// Why the last release was not answered.
    unheard: Option<StoreError>,
}

impl Driver {
    async fn run(mut self, hints: LockWakeups, leave: CancellationToken) {
        let (mut hints, mut left) = (Some(hints), false);
        let clock = Arc::clone(&self.shared.clock);
        while self.machine.ended().is_none() {
            self.carry_out();
            tokio::select! {
                biased;
                () = leave.cancelled(), if !left => {
                    left = true;
                    self.lost.cancel();
                    self.machine.handle_leave(clock.now());
                }
                Some(reply) = self.asks.next() => self.hear(reply),
                hint = locks::heard(&mut hints) => self.machine.handle_hint(clock.now(), hint),
                () = timers::until(&*clock, self.machine.poll_timeout()) => self.machine.handle_timeout(clock.now()),
            }
        }
        self.carry_out();
        self.conclude();
        if self.shared.is_time_to_purge() {
            // What could not be removed now is removed later.
            let _ = self.shared.store.purge_locks().await;
        }
    }

    fn carry_out(&mut self) {
        let trust = self.machine.trust();
        self.trust.send_if_modified(|known| std::mem::replace(known, trust) != trust);
        while let Some(action) = self.machine.poll_action() {
            self.asks.push(Box::pin(locks::ask(Arc::clone(&self.shared.store), action)));
        }
        while let Some(news) = self.machine.poll_news() {
            self.tell(news);
        }
    }

    fn hear(&mut self, reply: LockReply) {
        if let LockReply::Acquired(_) = &reply {
            self.machine.poll_each(self.shared.store.lock_poll());
        }
        if let LockReply::Released(Err(error)) = &reply {
            self.unheard = Some(error.without_source());
        }
        self.machine.handle_reply(self.shared.clock.now(), reply);
    }

    fn tell(&mut self, news: LockNews) {
        match news {
            LockNews::Waiting { .. } => {}
            LockNews::Held(hold) => self.answer(Ok(hold)),
            LockNews::Busy { by, remaining } => self.answer(Err(TryLockError::Busy { by, remaining })),
            LockNews::Refused(why) => self.answer(Err(TryLockError::Lock(why.into()))),
            LockNews::Failed(error) => self.answer(Err(TryLockError::Lock(LockError::Store(error)))),
            LockNews::Kept => self.turn(Standing::Held, None),
            LockNews::InDoubt => self.turn(Standing::InDoubt, None),
            LockNews::Lost { to } => self.turn(Standing::Lost, to),
        }
    }

    fn turn(&self, standing: Standing, taken_by: Option<LockHolder>) {
        self.standing.send_modify(|view| {
            view.standing = standing;
            view.taken_by = taken_by;
        });
        if standing != Standing::Held {
            self.lost.cancel();
        }
    }

    fn answer(&mut self, outcome: Granted) {
        // Who is gone has dropped its end, by which this task is told to leave.
        if let Some(asked) = self.outcome.take() {
            let _ = asked.send(outcome);
        }
    }

    fn conclude(&mut self) {
        let answer = match self.machine.ended() {
            Some(LockEnd::Left(answer)) => Ok(answer.clone()),
            Some(LockEnd::Untouched) | None => Ok(LockRelease::Released),
            Some(LockEnd::Silent) => Err(self.unheard.take().unwrap_or_else(|| unknown("no answer"))),
        };
        let _ = self.released.take().map(|waits| waits.send(answer));
    }
}
