//! The guard itself: drives a slot in a task of its own, and runs the work in the caller's.

use std::fmt::Display;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::drive::{Account, Entropy, Introduction, Once, Patience, Traces};
use crate::job::{JobSpec, NodeName, hash};
use crate::machine::Assignment;
use crate::observe::Observer;
use crate::schedule::Timetable;
use crate::service::hold::{Remote, Start, exit, interrupted};
use crate::service::look_back::{BACK, LookBack, Newest, SLOTS};
use crate::service::shutdown::Shutdown;
use crate::service::{GuardError, Hold, Run, RunOutcome, Skipped, Stopped};
use crate::slot::{Exit, ExitStatus, Outcome, Slot, Trigger};
use crate::store::{JobEntry, JobOrigin, Store};
use crate::text;

/// The longest message of an error that is kept with the run, in characters.
const LONGEST_MESSAGE: usize = 1_000;

/// Guards one job of a service. Cheap to share behind an [`Arc`]; each slot may be run by any number of callers at once, and
/// each is a claimer of its own.
#[derive(Debug)]
pub struct Guard {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) entropy: Entropy,
    pub(super) node: NodeName,
    pub(super) spec: JobSpec,
    pub(super) timetable: Timetable,
    pub(super) patience: Patience,
    pub(super) shutdown: Shutdown,
    pub(super) newest: Newest,
    /// The ticks are the service's own, and no guess.
    pub(super) is_scheduled: bool,
}

/// How an attempt ended in the caller's task.
enum Ended<T, E> {
    With(Result<T, E>),
    Panicked(Box<dyn std::any::Any + Send>),
    Dropped,
}

impl Guard {
    /// The slot of now, by this process's clock; the store judges by its own.
    ///
    /// # Errors
    /// [`GuardError::NoSlot`] where slots begin at ticks and none has come yet.
    pub fn current_slot(&self) -> Result<Slot, GuardError> {
        self.slot_at(self.clock.now().wall).ok_or_else(|| GuardError::NoSlot { job: self.spec.name.clone() })
    }

    /// The slot that an instant lies in: a service that is told its scheduled instant uses that, so that a late call is not
    /// taken for the next slot's.
    pub fn slot_at(&self, instant: chrono::DateTime<chrono::Utc>) -> Option<Slot> {
        self.timetable.slot_at(instant)
    }

    /// [`Guard::run`] for the slot of now. A service that is told its scheduled instant rather runs [`Guard::slot_at`].
    ///
    /// # Errors
    /// [`GuardError`]: the work was not started, and why; also where there is no slot now ([`Guard::current_slot`]).
    ///
    /// # Panics
    /// As [`Guard::run`].
    pub async fn run_current<T, E, Fut>(&self, work: impl FnMut(Hold) -> Fut) -> Result<RunOutcome<T, E>, GuardError>
    where
        Fut: Future<Output = Result<T, E>>,
        E: Display,
    {
        self.run(self.current_slot()?, work).await
    }

    /// Claims the slot, runs the work under its lease, and records how it ended. The work is called once for each attempt
    /// that is made here. While another process holds the slot this waits to take over, unless the guard is made with
    /// [`try_once`](crate::service::GuardBuilder::try_once).
    ///
    /// The first claim of a slot also closes the few slots before it that were tried and have no verdict, and with a
    /// [`schedule`](crate::service::GuardBuilder::schedule) those that were due since the last call and that no process ran: a failed or
    /// missed slot is recorded and logged, also without a daemon.
    ///
    /// Returns when the store knows the end, or has been away until long after the slot; the success of a work is recorded
    /// for as long as that takes. May be dropped at any time: a run that is in progress is dropped and given back, an end
    /// that is being recorded is recorded in the background. Needs a tokio runtime with timers.
    ///
    /// # Errors
    /// [`GuardError`]: the work was not started, and why.
    ///
    /// # Panics
    /// Where the work panics, once that is recorded as a failed attempt; and where the observer does.
    pub async fn run<T, E, Fut>(
        &self,
        slot: Slot,
        mut work: impl FnMut(Hold) -> Fut,
    ) -> Result<RunOutcome<T, E>, GuardError>
    where
        Fut: Future<Output = Result<T, E>>,
        E: Display,
    {
        if *slot.job() != self.spec.name {
            return Err(GuardError::Foreign { slot, job: self.spec.name.clone() });
        }
        let (orders, mut inbox) = mpsc::unbounded_channel();
        let leave = CancellationToken::new();
        let Some(driven) = self.shutdown.track(self.driven(slot.clone(), orders, leave.clone())) else {
            return Err(GuardError::ShutDown { slot });
        };
        let mut driven = tokio::spawn(driven);
        let _leaves = leave.clone().drop_guard();
        let mut last = None;
        let mut is_success = false;
        let account = loop {
            tokio::select! {
                biased;
                Some(start) = inbox.recv() => {
                    let asked_to_end = start.ending.clone();
                    last = Some(self.attempt(start, &mut work).await);
                    is_success = matches!(last, Some(Ended::With(Ok(_)))) && !asked_to_end.is_cancelled();
                }
                account = &mut driven => break account.map_err(|error| abandoned(error, &slot))?,
                // A success is being recorded: a stop now would take it for one that was interrupted.
                () = self.shutdown.asked(), if !leave.is_cancelled() && !is_success => {
                    leave.cancel();
                }
            }
        };
        self.conclude(account, last)
    }

    /// Drives the slot in a task of its own, notes what was decided, makes the job known, and closes the slots before.
    fn driven(
        &self,
        slot: Slot,
        orders: mpsc::UnboundedSender<Start>,
        leave: CancellationToken,
    ) -> impl Future<Output = Account> + Send + use<> {
        let entry = JobEntry::unplanned(&self.spec, JobOrigin::Service, self.clock.now().wall);
        let traces = Traces {
            instance: self.entropy.token().to_string(),
            job_hash: hash::of_job(&self.spec),
            introduction: Some(Introduction { entry, certain: true }),
        };
        let look_back = self.look_back(&slot);
        let once = self.once(slot, orders);
        async move {
            let look_back = async {
                if let Some(look_back) = look_back {
                    look_back.run().await;
                }
            };
            tokio::join!(once.until_noted(traces, leave), look_back).0
        }
    }

    /// The look back that is due at the first claim of a slot; none at the others.
    fn look_back(&self, slot: &Slot) -> Option<LookBack> {
        let (is_newer, before) = self.newest.note(slot);
        is_newer.then(|| LookBack {
            store: Arc::clone(&self.store),
            observer: Arc::clone(&self.observer),
            node: self.node.clone(),
            max_attempts: self.spec.policy.max_attempts,
            slots: self.timetable.older(slot, BACK, SLOTS),
            due_after: before.filter(|_| self.is_scheduled),
        })
    }

    fn once(&self, slot: Slot, orders: mpsc::UnboundedSender<Start>) -> Once {
        let capability = self.store.capability();
        let assignment = Assignment {
            slot,
            policy: self.spec.policy.clone(),
            success_codes: vec![0],
            node: self.node.clone(),
            trigger: Trigger::Exec,
            scheduled_at: self.clock.now().wall,
            past: false,
            audit: None,
            poll: (!capability.push).then_some(capability.poll),
            seed: self.entropy.token(),
            // A job of a service takes its locks by itself: `cronward::lock`.
            locks: None,
        };
        Once {
            assignment,
            work: Arc::new(Remote { orders }),
            store: Arc::clone(&self.store),
            clock: Arc::clone(&self.clock),
            observer: Arc::clone(&self.observer),
            patience: self.patience,
        }
    }
}

impl Guard {
    /// Runs the work once, until it ends or is dropped, and tells the drive how.
    async fn attempt<T, E, Fut>(&self, start: Start, work: &mut impl FnMut(Hold) -> Fut) -> Ended<T, E>
    where
        Fut: Future<Output = Result<T, E>>,
        E: Display,
    {
        let Start { run, trust, ending, killed, ended } = start;
        if self.shutdown.is_asked() {
            return Ended::Dropped;
        }
        // What the work has spawned with `Hold::token` ends with the work's future, however that ends. A token below that of the
        // drive: only that one says whether the work was asked to end.
        let ending = ending.child_token();
        let _ends = ending.clone().drop_guard();
        let hold = Hold { run: Arc::new(run), trust, clock: Arc::clone(&self.clock), ending: ending.clone() };
        let asked = async {
            self.shutdown.asked().await;
            ending.cancel();
            std::future::pending().await
        };
        let runs = AssertUnwindSafe(async { work(hold).await }).catch_unwind();
        let came = tokio::select! {
            biased;
            () = killed.cancelled() => Ended::Dropped,
            () = self.shutdown.over() => Ended::Dropped,
            never = asked => never,
            end = runs => end.map_or_else(Ended::Panicked, Ended::With),
        };
        // Interrupted by the shutdown: without an end from here the drive gives the attempt back once it is told to leave.
        if !(self.shutdown.is_asked() && matches!(came, Ended::Dropped | Ended::With(Err(_)))) {
            // The drive may be gone with its runtime.
            let _ = ended.send(exit_of(&came));
        }
        came
    }

    /// What the caller is told.
    fn conclude<T, E>(&self, account: Account, last: Option<Ended<T, E>>) -> Result<RunOutcome<T, E>, GuardError> {
        let then = Skipped::of(&account);
        let Some(ran) = account.last_run() else { return self.unstarted(account, then) };
        let run = Run::from(ran);
        Ok(match (ran.outcome, last) {
            (_, Some(Ended::Panicked(cause))) => std::panic::resume_unwind(cause),
            (Some(Outcome::Timeout), _) => RunOutcome::Stopped { why: Stopped::Timeout, run },
            (Some(Outcome::LostLease), _) => RunOutcome::Stopped { why: Stopped::LeaseLost, run },
            (Some(Outcome::GivenBack), Some(Ended::With(Err(_)) | Ended::Dropped)) => {
                RunOutcome::Stopped { why: Stopped::ShutDown, run }
            }
            (_, Some(Ended::With(Ok(value)))) => RunOutcome::Done { value, run },
            (_, Some(Ended::With(Err(error)))) => RunOutcome::Failed { error, run, then },
            (_, Some(Ended::Dropped) | None) => RunOutcome::Stopped { why: Stopped::TooLate, run },
        })
    }

    /// No attempt was begun here.
    fn unstarted<T, E>(&self, account: Account, then: Option<Skipped>) -> Result<RunOutcome<T, E>, GuardError> {
        let Account { slot, answer, store_error, .. } = account;
        match (store_error, then) {
            (Some((kind, message)), _) => Err(GuardError::Store { slot, kind, message }),
            (None, Some(skipped)) => Ok(RunOutcome::Skipped(skipped)),
            (None, None) if self.shutdown.is_asked() => Err(GuardError::ShutDown { slot }),
            // Granted, and given back before the work was called.
            (None, None) if answer.is_some() => Ok(RunOutcome::Skipped(Skipped::TooLate)),
            (None, None) => Err(GuardError::Abandoned { slot }),
        }
    }
}

/// How an attempt ended, as the drive records it.
fn exit_of<T, E: Display>(came: &Ended<T, E>) -> Exit {
    match came {
        Ended::With(Ok(_)) => exit(ExitStatus::Code(0), None),
        Ended::With(Err(error)) => {
            let said = text::message(&error.to_string(), LONGEST_MESSAGE);
            exit(ExitStatus::Code(1), Some(said))
        }
        Ended::Panicked(_) => exit(ExitStatus::Code(101), Some("the work panicked".to_owned())),
        Ended::Dropped => interrupted(),
    }
}

/// What the driving task left unsaid. Its panic is the observer's, and reaches whoever gave that.
fn abandoned(error: JoinError, slot: &Slot) -> GuardError {
    match error.try_into_panic() {
        Ok(cause) => std::panic::resume_unwind(cause),
        Err(_) => GuardError::Abandoned { slot: slot.clone() },
    }
}
