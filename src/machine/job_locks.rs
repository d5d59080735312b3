//! The requests for locks of one slot's attempts: the present one, and those that are being left. What they mean for the slot is
//! decided in `queueing`.

use std::time::Duration;

use crate::clock::{Mono, Now};
use crate::error::StoreError;
use crate::machine::{LockAction, LockEnd, LockMachine, LockNews, LockReply, TrustWindow};
use crate::resource::{AcquireRequest, LockHint, LockHold, LockHolder, LockRefusal, LockRelease, OwnerId};
use crate::slot::{Attempt, Token};

/// Every request that this node has at the store for one slot.
#[derive(Clone, Debug, Default)]
pub(super) struct JobLocks {
    current: Option<LockAttempt>,
    leaving: Vec<LockAttempt>,
    /// Of the wait for the present one.
    pub(super) wait: LockWaitState,
}

/// What a slot knows of its wait, beside the request itself.
#[derive(Clone, Debug, Default)]
pub(super) struct LockWaitState {
    /// Since when the attempt waits.
    pub(super) begun: Mono,
    /// The store has answered, or failed, and the attempt does not hold.
    pub(super) answered: bool,
    /// By then `lock_wait` is over.
    pub(super) until: Option<Mono>,
    /// When a request that would have waited for its own owner is made anew.
    pub(super) again_at: Option<Mono>,
    /// The command that held them was killed by its keeper.
    pub(super) killed: bool,
    /// It is being asked whether the job is paused.
    pub(super) asks_pause: bool,
    /// The job is paused: so the wait ended.
    pub(super) paused: bool,
    /// What was told of it last: when, how many were ahead, who held.
    pub(super) told: Option<(Mono, u32, OwnerId)>,
}

/// One request of one attempt.
#[derive(Clone, Debug)]
struct LockAttempt {
    machine: LockMachine,
    token: Token,
    attempt: Attempt,
    /// Why it is left, where its command was not started.
    why: Option<String>,
}

/// What became of them.
#[derive(Debug)]
pub(super) enum JobNews {
    /// The present one stands in the queues.
    Waiting { ahead: u32, by: LockHolder },
    /// It holds; once more after a doubt or a loss of the store's memory.
    Held { hold: LockHold, waited: Duration, again: bool },
    /// It could not be renewed in time.
    InDoubt,
    /// It is another's.
    Lost { to: Option<LockHolder> },
    /// It stands in no queue.
    Refused(LockRefusal),
    /// The store will not answer it.
    Failed(StoreError),
    /// One is over; without an answer where the store was silent.
    Left { attempt: Attempt, why: Option<String>, answer: Option<LockRelease> },
}

impl JobLocks {
    /// Asks for the locks of an attempt. Whatever was the present one has been left.
    pub(super) fn begin(&mut self, now: Now, attempt: Attempt, request: AcquireRequest, poll: Option<Duration>) {
        let token = request.token;
        // The slot's own deadlines are its patience.
        let machine = LockMachine::new(request, Duration::MAX, poll, now);
        self.current = Some(LockAttempt { machine, token, attempt, why: None });
    }

    /// Leaves the present one.
    pub(super) fn leave(&mut self, now: Now, why: Option<String>) {
        if let Some(mut left) = self.current.take() {
            left.why = why;
            left.machine.handle_leave(now);
            self.leaving.push(left);
        }
    }

    /// The attempt of the present one.
    pub(super) fn attempt(&self) -> Option<Attempt> {
        self.current.as_ref().map(|request| request.attempt)
    }

    /// What is held now, as far as this node may believe.
    pub(super) fn held(&self, now: Now) -> Option<&LockHold> {
        self.current.as_ref()?.machine.held(now)
    }

    /// How long that may be believed.
    pub(super) fn trust(&self) -> Option<TrustWindow> {
        self.current.as_ref()?.machine.trust()
    }

    /// Whether the store has yet to answer a release.
    pub(super) fn is_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Nobody waits for the store's answers any more.
    pub(super) fn forget(&mut self) {
        (self.current, self.leaving) = (None, Vec::new());
    }

    pub(super) fn poll_each(&mut self, poll: Option<Duration>) {
        if let Some(request) = &mut self.current {
            request.machine.poll_each(poll);
        }
    }

    pub(super) fn poll_action(&mut self) -> Option<LockAction> {
        self.all().find_map(|request| request.machine.poll_action())
    }

    pub(super) fn poll_timeout(&self) -> Option<Mono> {
        self.current.iter().chain(&self.leaving).filter_map(|request| request.machine.poll_timeout()).min()
    }

    pub(super) fn handle_timeout(&mut self, now: Now) {
        self.all().for_each(|request| request.machine.handle_timeout(now));
    }

    pub(super) fn handle_hint(&mut self, now: Now, hint: LockHint) {
        self.all().for_each(|request| request.machine.handle_hint(now, hint));
    }

    /// The answer to an order of the request with this token; of one that is over it is too late.
    pub(super) fn handle_reply(&mut self, now: Now, of: Token, reply: LockReply) {
        self.wait.answered |= self.current.as_ref().is_some_and(|request| request.token == of);
        if let Some(request) = self.all().find(|request| request.token == of) {
            request.machine.handle_reply(now, reply);
        }
    }

    /// The next thing that became of them, until there is none.
    pub(super) fn poll_news(&mut self, now: Now) -> Option<JobNews> {
        if let Some(current) = &mut self.current
            && let Some(news) = current.news(now, self.wait.begun)
        {
            return Some(news);
        }
        let over = self.leaving.iter().position(|request| request.machine.ended().is_some())?;
        let LockAttempt { machine, attempt, why, .. } = self.leaving.remove(over);
        let answer = match machine.ended() {
            Some(LockEnd::Left(answer)) => Some(answer.clone()),
            Some(LockEnd::Untouched) => Some(LockRelease::Released),
            Some(LockEnd::Silent) | None => None,
        };
        Some(JobNews::Left { attempt, why, answer })
    }

    fn all(&mut self) -> impl Iterator<Item = &mut LockAttempt> {
        self.current.iter_mut().chain(&mut self.leaving)
    }
}

impl LockAttempt {
    fn news(&mut self, now: Now, begun: Mono) -> Option<JobNews> {
        let waited = now.mono.since(begun);
        while let Some(news) = self.machine.poll_news() {
            return Some(match news {
                LockNews::Waiting { ahead, by } => JobNews::Waiting { ahead, by },
                LockNews::Held(hold) => JobNews::Held { hold, waited, again: false },
                // What was kept and is over again at once is told as that.
                LockNews::Kept => match self.machine.held(now) {
                    Some(hold) => JobNews::Held { hold: hold.clone(), waited, again: true },
                    None => continue,
                },
                LockNews::InDoubt => JobNews::InDoubt,
                LockNews::Lost { to } => JobNews::Lost { to },
                LockNews::Refused(why) => JobNews::Refused(why),
                LockNews::Failed(error) => JobNews::Failed(error),
                // Of requests that do not wait alone.
                LockNews::Busy { .. } => continue,
            });
        }
        None
    }
}
