//! What a request for locks comes to, as its observer learns of it: grants, long waits, doubts, losses and late releases.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Mono;
use crate::event::{Event, LockGrant, LockLeave, LockLoss, LockWait};
use crate::machine::{LockEnd, LockNews};
use crate::observe::Observer;
use crate::resource::{Demand, Demands, LockHolder, LockRelease};

/// A wait that lasts longer is reported, once, with the holder.
const LONG_WAIT: Duration = Duration::from_secs(10);

/// Reports one request. It belongs to no slot: the events name no slot, and attempt 0.
pub(super) struct LockReporter {
    observer: Arc<dyn Observer>,
    locks: Vec<Demand>,
    begun: Mono,
    /// The entries in front and their holder, until the wait is reported.
    waits_for: Option<(u32, LockHolder)>,
    is_wait_reported: bool,
    /// It was granted, and its loss was not reported.
    holds: bool,
}

impl LockReporter {
    pub(super) fn begin(observer: Arc<dyn Observer>, demands: &Demands, begun: Mono) -> Self {
        let locks = demands.iter().cloned().collect();
        Self { observer, locks, begun, waits_for: None, is_wait_reported: false, holds: false }
    }

    /// When the wait is to be reported; none where nothing is.
    pub(super) fn due(&self) -> Option<Mono> {
        self.waits_for.as_ref().map(|_| self.begun + LONG_WAIT)
    }

    /// The wait has lasted so long.
    pub(super) fn long_wait(&mut self) {
        let Some((ahead, by)) = self.waits_for.take() else { return };
        self.is_wait_reported = true;
        self.tell(Event::LockWaiting(LockWait::behind(0, self.locks.clone(), ahead, by)));
    }

    /// Something happened to the request.
    pub(super) fn news(&mut self, now: Mono, news: &LockNews) {
        match news {
            LockNews::Waiting { ahead, by } if !self.is_wait_reported => self.waits_for = Some((*ahead, by.clone())),
            LockNews::Held(hold) => {
                (self.waits_for, self.holds) = (None, true);
                let waited = now.since(self.begun);
                self.tell(Event::LockHeld(LockGrant::after(0, self.locks.clone(), hold.fence, waited, false)));
            }
            LockNews::InDoubt => self.lost(LockLoss::in_doubt(0, false)),
            LockNews::Lost { to } => {
                self.holds = false;
                self.lost(LockLoss::to(0, to.clone(), false));
            }
            LockNews::Busy { .. } | LockNews::Refused(_) | LockNews::Failed(_) => self.waits_for = None,
            LockNews::Waiting { .. } | LockNews::Kept => {}
        }
    }

    /// The request has ended. What was held to the end, as far as anything was reported, may have lapsed before.
    pub(super) fn ended(&self, end: Option<&LockEnd>) {
        let answer: Option<LockRelease> = match end {
            Some(LockEnd::Left(answer)) => Some(answer.clone()),
            Some(LockEnd::Silent) => None,
            Some(LockEnd::Untouched) | None => return,
        };
        if self.holds {
            self.tell(Event::LockLeft(LockLeave::answered(0, answer, None).of(self.locks.clone())));
        }
    }

    fn lost(&self, loss: LockLoss) {
        self.tell(Event::LockLost(loss.of(self.locks.clone())));
    }

    fn tell(&self, event: Event) {
        self.observer.event(None, &event);
    }
}
