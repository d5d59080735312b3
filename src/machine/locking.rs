//! One request for locks on one node: asks, waits its turn, holds, and leaves. A machine without I/O, as [`crate::machine::SlotMachine`].
//!
//! ```text
//!            waiting                 held                      left, lost
//!  Asking ◀──────────▶ Waiting   Asking ───▶ Holding ──────────────────────▶ Leaving ───▶ Ended
//!            beat, hint, lapse                 renew at a third of the TTL       release, until answered
//! ```
//!
//! **Rules that hold in every phase.** An error grants nothing (K11). Every request that may have been applied is repeated with the same
//! token. Whatever ends a request ends with a release, also when it was lost, refused or never answered; only who was told that nothing
//! was written leaves without one. Trust begins before the send of what was answered.

use std::collections::VecDeque;
use std::time::Duration;

use crate::clock::{Mono, Now};
use crate::error::{Applied, ErrorKind, Op, StoreError};
use crate::machine::lock_action::{LockAction, LockEnd, LockNews, LockReply};
use crate::machine::{TrustWindow, pace};
use crate::resource::{AcquireRequest, Acquired, LockExit, LockHint, LockHold, LockRelease, LockRenewal};

/// After lost hints waiters look at different moments within this.
const RESYNC_SPREAD: Duration = Duration::from_secs(1);

/// A look that a lapse calls for comes this much after it, and later for each that stands in front: the first one's look frees the
/// others, and tells them.
const AFTER_LAPSE: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(2));

/// The protocol for one request.
#[derive(Clone, Debug)]
pub struct LockMachine {
    request: AcquireRequest,
    /// How long a store that does not answer is asked before the request fails.
    patience: Duration,
    /// How often to look again while waiting; none for a store whose hints all come.
    poll: Option<Duration>,
    phase: LockPhase,
    /// Some acquire had no answer: a copy of it may still be under way.
    unsure: bool,
    /// It has stood in a queue.
    queued: bool,
    /// A hint came while the store was being asked.
    hinted: bool,
    errors: u32,
    silent_since: Option<Mono>,
    draws: u64,
    actions: VecDeque<LockAction>,
    news: VecDeque<LockNews>,
}

#[derive(Clone, Debug)]
enum LockPhase {
    Asking { sent: Mono },
    Waiting { ask_at: Mono },
    Holding(Box<Holding>),
    Leaving(Box<Leaving>),
    Ended(LockEnd),
}

#[derive(Clone, Debug)]
struct Holding {
    hold: LockHold,
    trust: TrustWindow,
    renewing: Beat,
    in_doubt: bool,
}

/// When the next renewal is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beat {
    At(Mono),
    Sent(Mono),
    /// It is lost.
    Over,
}

#[derive(Clone, Debug)]
struct Leaving {
    exit: LockExit,
    /// None while a release is on its way.
    send_at: Option<Mono>,
    /// By then everything of it has lapsed.
    until: Mono,
    errors: u32,
}

impl LockMachine {
    /// A machine that asks at once.
    pub fn new(request: AcquireRequest, patience: Duration, poll: Option<Duration>, now: Now) -> Self {
        let mut machine = Self {
            request,
            patience,
            poll,
            phase: LockPhase::Waiting { ask_at: now.mono },
            unsure: false,
            queued: false,
            hinted: false,
            errors: 0,
            silent_since: None,
            draws: 0,
            actions: VecDeque::new(),
            news: VecDeque::new(),
        };
        machine.ask(now);
        machine
    }

    /// How often to look while waiting from now on: a store may find out only later that it is not told of hints.
    pub const fn poll_each(&mut self, poll: Option<Duration>) {
        self.poll = poll;
    }

    /// The next thing to do, until there is none. The driver asks after every `handle_*`.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<LockAction> {
        self.actions.pop_front()
    }

    /// The next thing worth telling, until there is none.
    #[must_use]
    pub fn poll_news(&mut self) -> Option<LockNews> {
        self.news.pop_front()
    }

    /// When to call [`LockMachine::handle_timeout`]; none when only something from outside can move the machine.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        match &self.phase {
            LockPhase::Waiting { ask_at } => Some(*ask_at),
            LockPhase::Holding(holding) => holding.next_deadline(),
            LockPhase::Leaving(leaving) => leaving.send_at,
            LockPhase::Asking { .. } | LockPhase::Ended(_) => None,
        }
    }

    /// How it ended; none while there is something to do.
    pub const fn ended(&self) -> Option<&LockEnd> {
        match &self.phase {
            LockPhase::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// What it believes that it holds now, by the trust window; none also where it is in doubt or lost.
    pub fn held(&self, now: Now) -> Option<&LockHold> {
        match &self.phase {
            LockPhase::Holding(holding) if holding.renewing != Beat::Over && holding.trust.holds(now.mono) => {
                Some(&holding.hold)
            }
            _ => None,
        }
    }

    /// How long what it holds may be believed in, unless it is renewed; none where it holds nothing, or has lost it.
    pub fn trust(&self) -> Option<TrustWindow> {
        match &self.phase {
            LockPhase::Holding(holding) if holding.renewing != Beat::Over => Some(holding.trust),
            _ => None,
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Now) {
        match &self.phase {
            LockPhase::Waiting { ask_at } if *ask_at <= now.mono => self.ask(now),
            LockPhase::Holding(_) => self.tend(now),
            LockPhase::Leaving(_) => self.send_release(now),
            _ => {}
        }
    }

    /// The caller waits no longer, or is done.
    pub fn handle_leave(&mut self, now: Now) {
        let exit = match &self.phase {
            LockPhase::Asking { .. } => {
                // The request may arrive after the release.
                self.unsure = true;
                self.request.exit(true)
            }
            LockPhase::Waiting { .. } if self.is_untouched() => {
                return self.phase = LockPhase::Ended(LockEnd::Untouched);
            }
            LockPhase::Waiting { .. } => self.request.exit(self.unsure),
            LockPhase::Holding(holding) => holding.hold.exit(self.unsure),
            LockPhase::Leaving(_) | LockPhase::Ended(_) => return,
        };
        self.leave(now, exit);
    }

    /// A hint from the store: makes a look come sooner, and does nothing else.
    pub fn handle_hint(&mut self, now: Now, hint: LockHint) {
        if matches!(hint, LockHint::Ready(token) if token != self.request.token) {
            return;
        }
        self.draws += 1;
        let spread = pace::spread(RESYNC_SPREAD, self.request.token.bits(), self.draws);
        match (&mut self.phase, hint) {
            (LockPhase::Waiting { .. }, LockHint::Ready(_)) => self.ask(now),
            (LockPhase::Waiting { ask_at }, LockHint::Resync) => *ask_at = (*ask_at).min(now.mono + spread),
            (LockPhase::Asking { .. }, _) => self.hinted = true,
            (LockPhase::Holding(holding), LockHint::Resync) => {
                match &mut holding.renewing {
                    Beat::At(at) => *at = now.mono,
                    // It may have been sent to whoever is no more.
                    Beat::Sent(_) => self.hinted = true,
                    Beat::Over => {}
                }
                self.tend(now);
            }
            _ => {}
        }
    }

    /// The answer to whichever order.
    pub fn handle_reply(&mut self, now: Now, reply: LockReply) {
        match reply {
            LockReply::Acquired(reply) => self.handle_acquired(now, reply),
            LockReply::Renewed(reply) => self.handle_renewal(now, reply),
            LockReply::Released(reply) => self.handle_released(now, reply),
        }
    }

    /// The answer to [`LockAction::Acquire`].
    pub fn handle_acquired(&mut self, now: Now, reply: Result<Acquired, StoreError>) {
        let LockPhase::Asking { sent } = self.phase else { return };
        let answer = match reply {
            Ok(answer) => answer,
            Err(error) => return self.unanswered(now, error),
        };
        let trust = TrustWindow::granted(sent, self.request.ttl);
        if matches!(answer, Acquired::Held { .. }) && !trust.holds(now.mono) {
            // The same request again prolongs what it was granted; but a store that always takes as long is as one that does not answer.
            return self.unanswered(now, too_late());
        }
        (self.errors, self.silent_since) = (0, None);
        match answer {
            Acquired::Held { fence, places, .. } => self.granted(now, trust, self.request.granted(fence, places)),
            Acquired::Waiting { ahead, by, remaining } => {
                self.queued = true;
                self.wait(now, sent, ahead, remaining);
                self.news.push_back(LockNews::Waiting { ahead, by });
            }
            Acquired::Busy { by, remaining } => {
                self.news.push_back(LockNews::Busy { by, remaining });
                if self.unsure {
                    self.leave(now, self.request.exit(true));
                } else {
                    self.phase = LockPhase::Ended(LockEnd::Untouched);
                }
            }
            Acquired::Refused(why) => {
                self.news.push_back(LockNews::Refused(why));
                self.leave(now, self.request.exit(self.unsure));
            }
        }
    }

    /// The answer to [`LockAction::Renew`].
    pub fn handle_renewal(&mut self, now: Now, reply: Result<LockRenewal, StoreError>) {
        let LockPhase::Holding(holding) = &mut self.phase else { return };
        let Beat::Sent(sent) = holding.renewing else { return };
        match reply {
            Ok(answer @ (LockRenewal::Renewed | LockRenewal::Restored)) => {
                holding.trust = TrustWindow::granted(sent, holding.hold.ttl);
                let again = std::mem::take(&mut self.hinted);
                holding.renewing = Beat::At(if again { now.mono } else { holding.trust.renew_at() });
                if holding.in_doubt || answer == LockRenewal::Restored {
                    self.news.push_back(LockNews::Kept);
                }
                holding.in_doubt = false;
            }
            Ok(LockRenewal::Lost { to }) => {
                holding.renewing = Beat::Over;
                self.news.push_back(LockNews::Lost { to });
            }
            Err(_) => {
                holding.renewing = Beat::At(now.mono + pace::renewal_error(holding.hold.ttl));
            }
        }
        self.tend(now);
    }

    /// The answer to [`LockAction::Release`].
    pub fn handle_released(&mut self, now: Now, reply: Result<LockRelease, StoreError>) {
        let LockPhase::Leaving(leaving) = &mut self.phase else { return };
        if leaving.send_at.is_some() {
            return;
        }
        match reply {
            Ok(answer) => self.phase = LockPhase::Ended(LockEnd::Left(answer)),
            Err(error) if now.mono >= leaving.until || error.is_refusal() || error.kind == ErrorKind::Content => {
                self.phase = LockPhase::Ended(LockEnd::Silent);
            }
            Err(_) => {
                leaving.errors = leaving.errors.saturating_add(1);
                leaving.send_at = Some((now.mono + pace::store_error(leaving.errors)).min(leaving.until));
            }
        }
    }

    fn ask(&mut self, now: Now) {
        self.phase = LockPhase::Asking { sent: now.mono };
        self.hinted = false;
        self.actions.push_back(LockAction::Acquire(self.request.clone()));
    }

    fn granted(&mut self, now: Now, trust: TrustWindow, hold: LockHold) {
        self.hinted = false;
        self.news.push_back(LockNews::Held(hold.clone()));
        let renewing = Beat::At(trust.renew_at());
        self.phase = LockPhase::Holding(Box::new(Holding { hold, trust, renewing, in_doubt: false }));
        self.tend(now);
    }

    /// Until the own beat, the soonest lapse in front, or the poll of a store that may not tell.
    fn wait(&mut self, now: Now, sent: Mono, ahead: u32, remaining: Duration) {
        if self.hinted {
            return self.ask(now);
        }
        let (after, each) = AFTER_LAPSE;
        let lapse = now.mono + remaining + after + each * ahead.saturating_sub(1);
        let beat = sent + self.request.ttl / 3;
        let look = self.poll.map_or(lapse, |poll| lapse.min(now.mono + poll));
        self.phase = LockPhase::Waiting { ask_at: look.min(beat).max(now.mono) };
    }

    fn unanswered(&mut self, now: Now, error: StoreError) {
        self.unsure |= error.applied == Applied::Maybe;
        self.errors = self.errors.saturating_add(1);
        let since = *self.silent_since.get_or_insert(now.mono);
        // What stands in a queue is worth asking for as long as it stands there.
        let patience = if self.queued { self.patience.max(self.request.ttl) } else { self.patience };
        if !error.is_transient() || now.mono.since(since) >= patience {
            self.news.push_back(LockNews::Failed(error));
            if self.is_untouched() {
                return self.phase = LockPhase::Ended(LockEnd::Untouched);
            }
            return self.leave(now, self.request.exit(self.unsure));
        }
        self.phase = LockPhase::Waiting { ask_at: now.mono + pace::store_error(self.errors) };
    }

    /// Whether the store has nothing of it: it stood in no queue, and each request that failed is known not to have been applied.
    const fn is_untouched(&self) -> bool {
        !self.queued && !self.unsure
    }

    fn tend(&mut self, now: Now) {
        let LockPhase::Holding(holding) = &mut self.phase else { return };
        if holding.renewing == Beat::Over {
            return;
        }
        if !holding.in_doubt && !holding.trust.holds(now.mono) {
            holding.in_doubt = true;
            self.news.push_back(LockNews::InDoubt);
        }
        if matches!(holding.renewing, Beat::At(at) if at <= now.mono) {
            holding.renewing = Beat::Sent(now.mono);
            self.actions.push_back(LockAction::Renew(holding.hold.clone()));
        }
    }

    fn leave(&mut self, now: Now, exit: LockExit) {
        let until = now.mono + exit.ttl;
        self.phase = LockPhase::Leaving(Box::new(Leaving { exit, send_at: Some(now.mono), until, errors: 0 }));
        self.send_release(now);
    }

    fn send_release(&mut self, now: Now) {
        let LockPhase::Leaving(leaving) = &mut self.phase else { return };
        if leaving.send_at.is_some_and(|at| at <= now.mono) {
            leaving.send_at = None;
            self.actions.push_back(LockAction::Release(leaving.exit.clone()));
        }
    }
}

impl Holding {
    fn next_deadline(&self) -> Option<Mono> {
        let doubt = (!self.in_doubt && self.renewing != Beat::Over).then(|| self.trust.deadline());
        let renewal = match self.renewing {
            Beat::At(at) => Some(at),
            Beat::Sent(_) | Beat::Over => None,
        };
        [doubt, renewal].into_iter().flatten().min()
    }
}

/// An answer that came when what it grants was over.
fn too_late() -> StoreError {
    let why = "the answer took longer than the TTL: the store is too slow for it";
    StoreError::new(ErrorKind::Timeout, Applied::Maybe, Op::Acquire, "locks", why)
}
