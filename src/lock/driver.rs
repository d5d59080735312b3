//! One request, driven by a task of its own: carries out what the machine asks for, feeds it the answers, and tells whoever listens.
//! It decides nothing. The caller's future only listens, so that it may be dropped anywhere.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::drive::{locks, timers};
use crate::lock::client::Client;
use crate::lock::held::{Answered, LeaseView, unknown};
use crate::lock::report::LockReporter;
use crate::lock::{Held, LockError, Locks, TryLockError};
use crate::machine::{LockEnd, LockMachine, LockNews, LockReply, TrustWindow};
use crate::resource::{Acquired, Demands, LockHint, LockHold, LockHolder, LockRelease};
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

/// The same until `end`; none where that came first and others are known to hold, and else why the store does not say so. What is not held
/// has left the queue by then, where the store answers: for a process that ends next, and its tasks with it.
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
        Ok(None) => match asking.leave().await {
            Some(silence) => Err(TryLockError::Lock(LockError::Store(silence))),
            None => Ok(None),
        },
        Err(error) => {
            let _ = asking.leave().await;
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
    #[cfg(feature = "daemon")]
    silence: watch::Receiver<Silence>,
}

/// Why the store is silent, as it was last asked; none once it has answered since.
#[derive(Debug, Default)]
struct Silence {
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "for who waits until an end"))]
    to_ask: Option<StoreError>,
    to_release: Option<StoreError>,
}

impl Asking {
    fn begin(locks: &Locks, demands: Demands, queue: bool) -> Self {
        let (outcome, asked) = oneshot::channel();
        let (released, answered) = oneshot::channel();
        let (standing, trust) = (watch::Sender::new(LeaseView::held()), watch::Sender::new(None));
        let silence = watch::Sender::new(Silence::default());
        #[cfg(feature = "daemon")]
        let told_silence = silence.subscribe();
        let (leave, lost) = (CancellationToken::new(), CancellationToken::new());
        let shared = Arc::clone(&locks.shared);
        // Before the first ask: what is released in between is heard. Where a waiter looks again by itself anyhow, a process listens
        // once it has waited: one that finds its locks free needs no second connection.
        let hears = shared.store.lock_poll().is_none() || shared.has_waited.load(Ordering::Relaxed);
        let hints = hears.then(|| shared.store.listen(shared.instance));
        let request = locks.asking(demands, queue);
        let report = LockReporter::begin(Arc::clone(&shared.observer), &request.demands, shared.clock.now().mono);
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
            silence,
            report,
            hears,
        };
        // Dropped where the client is shut down, and the asker is answered by that.
        if let Some(task) = locks.shared.shutdown.track(driver.run(hints, leave.clone())) {
            tokio::spawn(task);
        }
        let leave = leave.drop_guard();
        Self {
            locks: locks.clone(),
            asked,
            standing: told_standing,
            trust: told_trust,
            lost,
            leave,
            answered,
            #[cfg(feature = "daemon")]
            silence: told_silence,
        }
    }

    async fn outcome(&mut self) -> Granted {
        let is_shut_down = || self.locks.shared.shutdown.is_asked();
        let gone = || if is_shut_down() { LockError::ShutDown } else { LockError::Abandoned };
        (&mut self.asked).await.unwrap_or_else(|_| Err(TryLockError::Lock(gone())))
    }

    fn held(self, hold: LockHold) -> Held {
        let Self { locks, standing, trust, lost, leave, answered, .. } = self;
        Held { locks, hold, standing, trust, lost, leave, answered }
    }

    /// Leaves, and waits until the store knows it, as long as it is asked for anything. Why it is not known whether others hold: the store
    /// has failed since it last said so, or does not answer now.
    #[cfg(feature = "daemon")]
    async fn leave(self) -> Option<StoreError> {
        let Self { locks, leave, answered, silence, .. } = self;
        drop(leave);
        let clock = &*locks.shared.clock;
        let limit = clock.now().mono + locks.shared.patience;
        let unreleased = tokio::select! {
            biased;
            answered = answered => answered.unwrap_or_else(|_| Err(unknown("the runtime is shutting down"))).err(),
            () = timers::until(clock, Some(limit)) => {
                let failed = silence.borrow().to_release.as_ref().map(StoreError::without_source);
                Some(failed.unwrap_or_else(|| unknown("no answer")))
            }
        };
        let unasked = silence.borrow().to_ask.as_ref().map(StoreError::without_source);
        unasked.or(unreleased)
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
    silence: watch::Sender<Silence>,
    report: LockReporter,
    /// Hints are listened for.
    hears: bool,
}

impl Driver {
    async fn run(mut self, mut hints: Option<LockWakeups>, leave: CancellationToken) {
        let (mut left, mut asked_to_end) = (false, false);
        let (shared, clock) = (Arc::clone(&self.shared), Arc::clone(&self.shared.clock));
        while self.machine.ended().is_none() {
            self.carry_out();
            tokio::select! {
                biased;
                () = leave.cancelled(), if !left => {
                    left = true;
                    self.lost.cancel();
                    self.machine.handle_leave(clock.now());
                }
                () = shared.shutdown.asked(), if !asked_to_end => {
                    asked_to_end = true;
                    self.end_for_shutdown();
                }
                Some(reply) = self.asks.next() => {
                    self.hear(reply);
                    if hints.is_none() && self.hears {
                        // The first request of this process that waits; or another connection took the place of the one that told of them.
                        hints = Some(self.shared.store.listen(self.shared.instance));
                        self.machine.handle_hint(clock.now(), LockHint::Resync);
                    }
                }
                hint = locks::heard(&mut hints) => self.machine.handle_hint(clock.now(), hint),
                () = timers::until(&*clock, self.machine.poll_timeout()) => self.machine.handle_timeout(clock.now()),
                () = timers::until(&*clock, self.report.due()) => self.report.long_wait(),
            }
        }
        self.carry_out();
        self.report.ended(self.machine.ended());
        self.conclude();
        if self.shared.is_time_to_purge() {
            // What could not be removed now is removed later.
            let _ = self.shared.store.purge_locks().await;
        }
    }

    /// What waits leaves; a holder is asked to end.
    fn end_for_shutdown(&mut self) {
        self.lost.cancel();
        if self.outcome.is_some() {
            self.answer(Err(TryLockError::Lock(LockError::ShutDown)));
            self.machine.handle_leave(self.shared.clock.now());
        }
    }

    fn carry_out(&mut self) {
        let trust = self.machine.trust();
        self.trust.send_if_modified(|known| std::mem::replace(known, trust) != trust);
        while let Some(action) = self.machine.poll_action() {
            self.asks.push(Box::pin(locks::ask(Arc::clone(&self.shared.store), action)));
        }
        while let Some(news) = self.machine.poll_news() {
            self.report.news(self.shared.clock.now().mono, &news);
            self.tell(news);
        }
    }

    fn hear(&mut self, reply: LockReply) {
        let failure = |error: &StoreError| Some(error.without_source());
        match &reply {
            LockReply::Acquired(answer) => {
                if matches!(answer, Ok(Acquired::Waiting { .. })) {
                    self.hears = true;
                    self.shared.has_waited.store(true, Ordering::Relaxed);
                }
                self.machine.poll_each(self.shared.store.lock_poll());
                self.silence.send_modify(|silence| silence.to_ask = answer.as_ref().err().and_then(failure));
            }
            LockReply::Released(answer) => {
                self.silence.send_modify(|silence| silence.to_release = answer.as_ref().err().and_then(failure));
            }
            LockReply::Renewed(_) => {}
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
            Some(LockEnd::Silent) => {
                let failed = self.silence.borrow().to_release.as_ref().map(StoreError::without_source);
                Err(failed.unwrap_or_else(|| unknown("no answer")))
            }
        };
        let _ = self.released.take().map(|waits| waits.send(answer));
    }
}
