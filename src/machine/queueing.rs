//! Between the grant and the start of a job that names locks: its attempt stands in their queues, under the slot's lease. And what
//! becomes of its locks while the command runs.
//!
//! A command is started only at an instant at which this node trusts both, the lease and the locks. Waiting ends with what the slot
//! itself allows, with `lock_wait`, and with a pause of the job: then the attempt is given back, so it uses none. Locks are left as soon as the command is
//! over, before the store knows how it ended: nobody waits for them during a retry's wait.

use std::time::Duration;

use crate::clock::{Mono, Now};
use crate::error::StoreError;
use crate::event::{Event, LockGrant, LockLeave, LockLoss, LockWait};
use crate::job::OnLost;
use crate::machine::job_locks::{JobLocks, JobNews, LockWaitState};
use crate::machine::running::{Cause, Hold, Renewing};
use crate::machine::slot::Phase;
use crate::machine::{Action, End, LockReply, SlotMachine, TrustWindow};
use crate::resource::{AcquireRequest, Demand, LockHint, LockHold, LockHolder, LockRefusal, OwnerId, attempt_label};
use crate::slot::{Attempt, Token};
use crate::text;

/// The longest reason that is recorded, in bytes.
const LONGEST_WHY: usize = 160;

impl SlotMachine {
    /// The attempt stands in the queues of its locks.
    pub const fn is_queueing(&self) -> bool {
        matches!(self.phase, Phase::Queueing(_))
    }

    /// The same, and the store has said that it has to wait, or has failed: others may be started meanwhile.
    pub fn is_delayed_by_locks(&self) -> bool {
        self.is_queueing() && self.locks.as_ref().is_some_and(|locks| locks.wait.answered)
    }

    /// Whether the store has yet to answer that locks were left. The slot's end does not wait for that.
    pub fn leaves_locks(&self) -> bool {
        self.locks.as_ref().is_some_and(|locks| locks.is_leaving())
    }

    /// When to call [`SlotMachine::handle_lock_timeout`].
    #[must_use]
    pub fn poll_lock_timeout(&self) -> Option<Mono> {
        self.locks.as_ref()?.poll_timeout()
    }

    /// Does what is due about locks.
    pub fn handle_lock_timeout(&mut self, now: Now) {
        self.on_locks(now, |locks| locks.handle_timeout(now));
    }

    /// A hint on locks.
    pub fn handle_lock_hint(&mut self, now: Now, hint: LockHint) {
        self.on_locks(now, |locks| locks.handle_hint(now, hint));
    }

    /// How often to look from now on where the store may not tell: that may be known only since it has answered.
    pub fn poll_locks_each(&mut self, poll: Option<Duration>) {
        if let Some(port) = &mut self.assignment.locks {
            port.poll = poll;
        }
        if let Some(locks) = &mut self.locks {
            locks.poll_each(poll);
        }
    }

    /// The answer to [`Action::Lock`] with this token. Ignored where that request is over.
    pub fn handle_lock_reply(&mut self, now: Now, of: Token, reply: LockReply) {
        if let LockReply::Acquired(Err(error)) | LockReply::Renewed(Err(error)) = &reply {
            self.tell_error(error);
        }
        self.on_locks(now, |locks| locks.handle_reply(now, of, reply));
    }

    fn on_locks(&mut self, now: Now, work: impl FnOnce(&mut JobLocks)) {
        if let Some(locks) = &mut self.locks {
            work(locks);
        }
        self.hear_locks(now);
        self.tend_queue(now);
    }

    /// How long its locks may be believed in; none where it holds none.
    pub(super) fn lock_trust(&self) -> Option<TrustWindow> {
        self.locks.as_ref()?.trust()
    }

    /// What a run that begins now holds.
    pub(super) fn locks_held(&self, now: Now) -> Option<&LockHold> {
        self.locks.as_ref()?.held(now)
    }

    /// The claim was granted: starts the command, or waits for the locks that the job names.
    pub(super) fn queue_up(&mut self, now: Now, hold: Hold) {
        if self.assignment.policy.locks.is_none() {
            return self.spawn(now, hold);
        }
        let wait = self.assignment.policy.lock_wait;
        self.phase = Phase::Queueing(Box::new(hold));
        let until = wait.map(|wait| now.mono + wait);
        let locks = self.locks.get_or_insert_default();
        // The answer may still be on its way to a question of the attempt before.
        let asks_pause = locks.wait.asks_pause;
        locks.wait = LockWaitState { begun: now.mono, until, asks_pause, ..LockWaitState::default() };
        self.ask_for_locks(now);
    }

    fn ask_for_locks(&mut self, now: Now) {
        let Phase::Queueing(hold) = &self.phase else { return };
        let (attempt, ttl) = (hold.lease.attempt, hold.lease.ttl);
        // A token of its own and not the lease's: locks are listed with theirs, and one that was refused is not asked for again.
        let token = self.token;
        self.token = token.next();
        let a = &self.assignment;
        let (Some(demands), Some(port)) = (a.policy.locks.clone(), a.locks) else {
            return self.leave_queue(now, "the store keeps no locks".to_owned());
        };
        let request = AcquireRequest::new(token, a.node.clone(), port.instance, ttl, demands);
        let owner = OwnerId::of_text(&a.slot.to_string());
        let request = AcquireRequest { owner, ..request }.labelled(&attempt_label(&a.slot, attempt));
        let locks = self.locks.get_or_insert_default();
        locks.wait.again_at = None;
        locks.begin(now, attempt, request, port.poll);
        self.hear_locks(now);
    }

    /// When [`SlotMachine::tend_queue`] has something to do.
    pub(super) fn queue_deadline(&self, hold: &Hold) -> Option<Mono> {
        let end = (!self.assignment.past).then_some(self.end);
        let (until, again_at) = self.locks.as_ref().map(|locks| (locks.wait.until, locks.wait.again_at)).unzip();
        let deadlines = [hold.renewal_due(), end, self.start_until, until.flatten(), again_at.flatten()];
        deadlines.into_iter().flatten().min()
    }

    /// Does what is due while the attempt waits.
    pub(super) fn tend_queue(&mut self, now: Now) {
        if !self.is_queueing() {
            return;
        }
        if let Some(why) = self.why_no_longer(now) {
            return self.leave_queue(now, why);
        }
        self.renew_if_due(now);
        let due = |at: Option<Mono>| at.is_some_and(|at| at <= now.mono);
        if due(self.locks.as_ref().and_then(|locks| locks.wait.again_at)) {
            self.ask_for_locks(now);
        }
        self.start_if_ready(now);
    }

    fn start_if_ready(&mut self, now: Now) {
        let Phase::Queueing(hold) = &self.phase else { return };
        let is_ours = hold.trust.holds(now.mono) && hold.renewing != Renewing::Over;
        if !is_ours || self.locks_held(now).is_none() || self.too_late_to_start(now).is_some() {
            return;
        }
        if let Phase::Queueing(hold) = std::mem::replace(&mut self.phase, Phase::Ended(End::Unknown)) {
            self.spawn(now, *hold);
        }
    }

    /// Why the wait is over without its locks.
    fn why_no_longer(&self, now: Now) -> Option<String> {
        let over = |at: Option<Mono>| at.is_some_and(|at| at <= now.mono);
        if self.drain_until.is_some() {
            Some(self.while_waiting("this node gave it up"))
        } else if over(self.start_until) {
            Some(self.while_waiting("the start deadline passed"))
        } else if now.mono >= self.end && !self.assignment.past {
            Some(self.while_waiting("the slot ended"))
        } else if over(self.locks.as_ref().and_then(|locks| locks.wait.until)) {
            Some(self.while_waiting("lock_wait passed"))
        } else {
            None
        }
    }

    pub(super) fn while_waiting(&self, cause: &str) -> String {
        format!("{cause} while it waited for {}", self.demanded())
    }

    fn demanded(&self) -> String {
        self.assignment.policy.locks.as_ref().map(ToString::to_string).unwrap_or_default()
    }

    /// Waits for its locks no longer: leaves them, and gives the attempt back.
    pub(super) fn leave_queue(&mut self, now: Now, why: String) {
        if !self.is_queueing() {
            return;
        }
        let Phase::Queueing(hold) = std::mem::replace(&mut self.phase, Phase::Ended(End::Unknown)) else { return };
        self.left = self.left.saturating_add(1);
        let why = text::message(&why, LONGEST_WHY);
        if let Some(locks) = &mut self.locks {
            locks.leave(now, Some(why.clone()));
        }
        self.hear_locks(now);
        self.give_back_unstarted(now, (hold.lease, hold.trust), &why, self.demands());
    }

    /// The command is over, and so is its need of locks. `killed` by its keeper, for it could no longer trust them.
    pub(super) fn leave_locks(&mut self, now: Now, killed: bool) {
        // A doubt that a stalled node slept through is told all the same.
        if let Some(locks) = &mut self.locks {
            locks.wait.killed = killed;
            locks.handle_timeout(now);
        }
        self.hear_locks(now);
        if let Some(locks) = &mut self.locks {
            locks.leave(now, None);
        }
        self.hear_locks(now);
    }

    fn hear_locks(&mut self, now: Now) {
        while let Some(news) = self.locks.as_mut().and_then(|locks| locks.poll_news(now)) {
            self.hear_of_locks(now, news);
        }
        while let Some(order) = self.locks.as_mut().and_then(|locks| locks.poll_action()) {
            self.act(Action::Lock(order));
        }
    }

    fn hear_of_locks(&mut self, now: Now, news: JobNews) {
        match news {
            JobNews::Waiting { ahead, by } => self.tell_wait(now, ahead, by),
            JobNews::Held { hold, waited, again } => {
                let grant = LockGrant::after(self.attempt_here(), self.demands(), hold.fence, waited, again);
                self.tell(Event::LockHeld(grant));
            }
            JobNews::InDoubt => {
                let killed = self.locks.as_ref().is_some_and(|locks| locks.wait.killed);
                let loss = LockLoss::in_doubt(self.attempt_here(), self.is_killing() || killed);
                self.tell(Event::LockLost(loss.before_the_start(self.is_queueing())));
                self.stop_for_locks(now);
            }
            JobNews::Lost { to } => {
                let killing = self.is_killing();
                let loss = LockLoss::to(self.attempt_here(), to, killing);
                self.tell(Event::LockLost(loss.before_the_start(self.is_queueing())));
                self.stop_for_locks(now);
                self.leave_queue(now, self.while_waiting("its locks were lost"));
            }
            JobNews::Refused(LockRefusal::WaitsForItself) => self.ask_later(now),
            JobNews::Refused(why) => self.leave_queue(now, format!("{}: {why}", self.demanded())),
            JobNews::Failed(error) => {
                self.tell_error(&error);
                self.leave_queue(now, format!("{}: {error}", self.demanded()));
            }
            JobNews::Left { attempt, why, answer } => {
                self.tell(Event::LockLeft(LockLeave::answered(attempt, answer, why)));
            }
        }
    }

    /// Its owner is the slot: what it would stand beside is the entry of an earlier attempt, of a node that died or was cut off. That
    /// is gone within one TTL; giving the attempt back would only cost its number.
    fn ask_later(&mut self, now: Now) {
        let Phase::Queueing(hold) = &self.phase else { return };
        let again_at = now.mono + hold.lease.ttl / 3;
        let why = format!("{}: an earlier attempt still stands in a queue", self.demanded());
        if let Some(locks) = &mut self.locks {
            locks.leave(now, Some(text::message(&why, LONGEST_WHY)));
            locks.wait.again_at = Some(again_at);
            locks.wait.told = None;
        }
    }

    /// Told at first, and when it changed, once for each lease.
    fn tell_wait(&mut self, now: Now, ahead: u32, by: LockHolder) {
        let Phase::Queueing(hold) = &self.phase else { return };
        let (attempt, pause) = (hold.lease.attempt, hold.lease.ttl);
        let Some(locks) = &mut self.locks else { return };
        let is_news = locks
            .wait
            .told
            .is_none_or(|(at, before, owner)| (before, owner) != (ahead, by.owner) && now.mono.since(at) >= pause);
        if is_news {
            locks.wait.told = Some((now.mono, ahead, by.owner));
            let wait = LockWait::behind(attempt, self.demands(), ahead, by);
            self.tell(Event::LockWaiting(wait));
        }
    }

    /// Whoever pauses a job ends the wait of its slots: else its command would start when the locks come free. Asked with each renewal
    /// that is answered, and when something is heard of the job.
    pub(super) fn ask_for_a_pause(&mut self) {
        if self.is_queueing()
            && let Some(locks) = &mut self.locks
            && !std::mem::replace(&mut locks.wait.asks_pause, true)
        {
            self.act(Action::AskPause);
        }
    }

    /// The answer to [`Action::AskPause`]. A store that does not say changes nothing: it is asked again.
    pub fn handle_pause(&mut self, now: Now, reply: Result<bool, StoreError>) {
        if let Some(locks) = &mut self.locks {
            locks.wait.asks_pause = false;
        }
        match reply {
            Ok(true) if self.is_queueing() => {
                // It was not in vain: nobody kept the locks from it for too long.
                let left = self.left;
                self.leave_queue(now, self.while_waiting("the job was paused"));
                self.left = left;
                if let Some(locks) = &mut self.locks {
                    locks.wait.paused = true;
                }
            }
            Ok(_) => {}
            Err(error) => self.tell_error(&error),
        }
    }

    /// Somebody has done something to the lease: it is renewed, so that a loss is learnt at once.
    pub(super) fn renew_for_a_hint(&mut self, now: Now) {
        if let Phase::Queueing(hold) = &mut self.phase {
            hold.hinted = matches!(hold.renewing, Renewing::Sent(_));
        }
        self.renew_now(now);
    }

    /// The attempt whose locks they are.
    fn attempt_here(&self) -> Attempt {
        self.locks.as_ref().and_then(|locks| locks.attempt()).unwrap_or_default()
    }

    fn demands(&self) -> Vec<Demand> {
        self.assignment.policy.locks.iter().flatten().cloned().collect()
    }

    pub(super) fn is_killing(&self) -> bool {
        self.assignment.policy.on_lost == OnLost::Kill && matches!(self.phase, Phase::Running(_))
    }

    fn stop_for_locks(&mut self, now: Now) {
        if self.is_killing() {
            self.stop(now, Cause::Lost, now.mono);
        }
    }
}
