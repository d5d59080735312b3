//! Before a grant: looking, waiting, and what each answer to a claim means.
//!
//! **A lease that is not known of.** A claim whose answer was lost may have been granted. Nobody renews such a lease, nothing runs
//! under it, and while it stands it keeps out every other slot of a job that may not overlap itself. So the claim is sent again
//! with its token, at least once a second, beyond the slot's end and during a drain, until an answer comes or the lease would
//! have lapsed. Each such claim that the store hears prolongs the lease: so where nothing can be started any more it asks for a
//! short one, which makes none last longer that nobody will use. After done, the store looks for the caller's token before anything else, so each answer settles the question:
//!
//! - `Claimed`: it is held, and known of now. A slot that is over by then is given back at once, unstarted.
//! - `Done`: the marker stands where the lease would, and nobody is granted a slot with that verdict any more.
//! - `Held`, `Backoff`: something else stands at the key, so the lease does not. One of no time tells that the token was given
//!   an end, by an operator's `unlock`.
//! - `Early`, `Closed`, `Exhausted`, `Paused`, `Blocked`: come after the token was looked for. Nothing stands under it.
//!
//! What no answer tells of is a copy of the claim that is still on its way, past its time-out. It finds the slot as anybody's claim
//! does; while the machine goes on, the next claim has the same token and finds what it was granted. After the machine has ended
//! only a slot that was opened again can grant it anything, and that lapses after one `lease_ttl`.

use std::time::Duration;

use crate::clock::{Mono, Now};
use crate::error::{Applied, ErrorKind, StoreError};
use crate::event::Event;
use crate::job::{NodeName, OnStoreError};
use crate::machine::running::Hold;
use crate::machine::slot::{Phase, WaitReason};
use crate::machine::{Action, End, SlotMachine, TrustWindow, pace};
use crate::reply::Claim;
use crate::slot::{Lease, Trigger};
use crate::wake::{Wake, WakeKind};

/// After a lease that was not renewed; the protocol allows one second on top of the TTL.
const SPREAD_LAPSE: Duration = Duration::from_millis(250);
/// After a lost subscription every waiting slot of every node looks; a second keeps that from being a wall.
const SPREAD_RESYNC: Duration = Duration::from_secs(1);
/// The shortest wait after a store error for a node that knows of a holder: holders repeat a failed renewal within this
/// time, and the one who runs is to be the first at a store that has restarted empty.
const HOLDER_FIRST: Duration = Duration::from_secs(1);
/// The longest wait after a store error for a node that may hold the lease unknown to itself: it keeps the job's other slots out
/// until the store is asked.
const FIND_OUT: Duration = Duration::from_secs(1);

/// From the slot's end to the last look, and as much at random. At the end itself the store, by a clock that is a few milliseconds
/// behind, would grant what can only be given back, and that lease would keep out the job's next slot, which begins then.
const AFTER_THE_END: Duration = Duration::from_millis(250);
/// A look at a slot that another slot of the job blocks is put off until after the end where it would come less than this before it:
/// what it is granted could come too late to start anything. Where the store is polled as often as slots follow one another, that
/// would be so in slot after slot. A retry is not put off: others wait for it.
const BEFORE_THE_END: Duration = Duration::from_millis(250);
/// What a claim asks for at the least that is only to find out: time enough to hear of the grant and to give it back, and no more.
const BRIEF: Duration = Duration::from_secs(2);
/// So many times as long as a claim was waited for in vain is time enough where the store is slow.
const BRIEF_WAITS: u32 = 3;

impl SlotMachine {
    /// Asks the store, unless it is too late to start anything.
    pub(super) fn look(&mut self, now: Now) {
        if self.is_past_deadline(now) && !self.maybe_held() {
            return self.finish_too_late();
        }
        // Only where the store was not heard of: otherwise it has the last word.
        if self.errors.in_a_row > 0 && now.mono >= self.silent_until() {
            return self.finish(End::Unknown);
        }
        let brief = self.maybe_held() && self.too_late_to_start(now).is_some();
        self.phase = Phase::Claiming { sent: now.mono, brief };
        let mut request = self.request();
        if brief {
            // A node that stood still has waited for long as well: no lease of this claim lasts longer for that than it would have.
            let left = self.errors.maybe_until.map_or(Duration::MAX, |until| until.since(now.mono));
            request.lease_ttl = request.lease_ttl.min(BRIEF.max((self.errors.slowest * BRIEF_WAITS).min(left)));
        }
        self.act(Action::Claim(request));
    }

    pub(super) fn is_past_deadline(&self, now: Now) -> bool {
        self.start_until.is_some_and(|until| now.mono >= until)
    }

    pub(super) fn finish_too_late(&mut self) {
        self.tell(Event::StartDeadlinePassed);
        self.finish(End::TooLate);
    }

    /// The answer to [`Action::Claim`]. Ignored when no claim is on its way.
    pub fn handle_claim(&mut self, now: Now, reply: Result<Claim, StoreError>) {
        let Phase::Claiming { sent, brief } = self.phase else { return };
        match reply {
            Err(error) => self.claim_failed(now, (sent, brief), &error),
            Ok(claim) => {
                let asked = AnsweredClaim { first: self.errors.maybe_since.unwrap_or(sent), sent, brief };
                self.errors = super::slot::Errors::default();
                self.held = false;
                self.tell_answer(&claim);
                self.claim_answered(now, asked, claim);
                // A hint that came while the claim was on its way may be news to the answer.
                if let Some(hint) = self.hint.take() {
                    self.handle_wake(now, &hint);
                }
            }
        }
    }

    fn claim_answered(&mut self, now: Now, asked: AnsweredClaim, claim: Claim) {
        let sent = asked.sent;
        match claim {
            Claim::Claimed { attempt, used, at, revision } => {
                let lease = Lease { revision, ..self.request().granted(attempt, at) };
                self.granted(now, asked, lease, used);
            }
            Claim::Done(_) => self.finish(End::Done),
            Claim::Closed => self.finish(End::Closed),
            Claim::Exhausted { .. } => self.finish(self.end_without_attempts()),
            Claim::Held { by, remaining } => {
                self.held = true;
                self.retrying |= by.attempt > 0;
                self.wait_for_others(now, sent + remaining, SPREAD_LAPSE, WaitReason::Others);
            }
            Claim::Backoff { remaining } => {
                self.retrying = true;
                if remaining.is_zero() {
                    // No wait stands there: a run under this token has a recorded end (an operator unlocked what this node
                    // had not heard of), and it would be refused for ever.
                    self.token = self.token.next();
                }
                let refused_until = sent + remaining;
                // Once its own wait is over it is somebody else's.
                match self.behind.filter(|behind| behind.until > now.mono && self.drain_until.is_none()) {
                    Some(behind) => self.wait_behind(now, behind.until),
                    None => self.wait_for_others(now, refused_until, pace::SPREAD_RELEASE, WaitReason::Others),
                }
            }
            Claim::Blocked { remaining, .. } => {
                self.wait_for_others(now, sent + remaining, SPREAD_LAPSE, WaitReason::Older);
            }
            Claim::Paused { remaining } => {
                // A resume wakes us; the look after one TTL is for the wake-up that was lost.
                let remaining = remaining.unwrap_or(self.assignment.policy.lease_ttl);
                self.wait_for_others(now, sent + remaining, pace::SPREAD_RELEASE, WaitReason::Paused);
            }
            Claim::Early { remaining } => self.too_early(now, sent, remaining),
        }
    }

    /// By the store's clock the slot begins later: this node's clock is ahead. Its idea of the end and of the start deadline
    /// is mended too; both are too late at the most.
    fn too_early(&mut self, now: Now, sent: Mono, remaining: Duration) {
        let slot = &self.assignment.slot;
        let length = crate::clock::between(slot.start(), slot.end());
        self.end = now.mono + remaining.saturating_add(length);
        if let Some(span) = self.assignment.policy.start_deadline {
            let tick = crate::clock::between(slot.start(), self.assignment.scheduled_at);
            self.start_until = Some(now.mono + remaining.saturating_add(tick).saturating_add(span));
        }
        let until = sent + remaining + Duration::from_millis(1);
        self.leave_or_wait(until, WaitReason::Early);
    }

    /// Waits for somebody else's time to run out; looks sooner where the store does not wake its waiters, and once after
    /// the slot's end, where the store will say that it is over. The time that remains ran on while the answer was on its
    /// way, or lay unread on a node that stood still: it is counted from the instant before the claim was sent, and ends
    /// too early by the claim's way to the store at the most, which costs one more look.
    fn wait_for_others(&mut self, now: Now, over: Mono, spread: Duration, why: WaitReason) {
        let until = over + self.spread(spread);
        let until = self.assignment.poll.map_or(until, |poll| until.min(now.mono + poll));
        let last = self.end + AFTER_THE_END + self.spread(AFTER_THE_END);
        let is_late = why == WaitReason::Older && until + BEFORE_THE_END >= self.end;
        let until = if now.mono >= self.end {
            until
        } else if is_late {
            last
        } else {
            until.min(last)
        };
        self.leave_or_wait(until, why);
    }

    /// The token stays until it is granted: an earlier send that nobody answered may still arrive, and what it is granted
    /// must be found by the next claim.
    fn leave_or_wait(&mut self, until: Mono, why: WaitReason) {
        if self.drain_until.is_some() { self.finish(End::Left) } else { self.wait(until, why) }
    }

    fn claim_failed(&mut self, now: Now, (sent, brief): (Mono, bool), error: &StoreError) {
        self.tell_error(error);
        if error.kind == ErrorKind::Content {
            // A person's reason is all of a claim that a store could refuse.
            self.assignment.audit.iter_mut().for_each(|audit| audit.why.clear());
        }
        self.errors.in_a_row = self.errors.in_a_row.saturating_add(1);
        self.errors.slowest = self.errors.slowest.max(now.mono.since(sent));
        if error.applied == Applied::Maybe {
            self.errors.maybe_since.get_or_insert(sent);
        }
        let since = *self.errors.since.get_or_insert(now.mono);
        let patience = self.assignment.policy.lease_ttl;
        if error.applied == Applied::Maybe && !brief {
            self.errors.maybe_until = Some(now.mono + patience);
        }
        // A lease that may be held unknown to this node is worth finding, to give it back, until it has lapsed.
        let found_out = self.errors.maybe_until.is_none_or(|until| now.mono >= until);
        if self.drain_until.is_some_and(|until| now.mono >= until || found_out) {
            return self.finish(End::Left);
        }
        if now.mono >= self.silent_until() {
            return self.finish(End::Unknown);
        }
        if now.wall < self.assignment.slot.start() && self.drain_until.is_none() {
            // The clock was put right since the tick: a store that was away too early does not count.
            self.errors.since = None;
        }
        let run_anyway = self.assignment.policy.on_store_error == OnStoreError::Run
            && self.drain_until.is_none()
            && !self.ran_unguarded
            // `check` refuses such a job.
            && self.assignment.policy.locks.is_none()
            && self.errors.since.is_some()
            && error.kind != ErrorKind::Content;
        if run_anyway && now.mono.since(since) >= patience && now.mono < self.end {
            return self.start_unguarded(now);
        }
        let pause = pace::store_error(self.errors.in_a_row);
        let pause = if self.held { pause.max(HOLDER_FIRST) } else { pause };
        let pause = if self.maybe_held() { pause.min(FIND_OUT) } else { pause };
        let pause = pause + self.spread(pause / 4);
        // The token stays: if the claim was applied, the same token finds it again (I5).
        self.wait((now.mono + pause).min(self.silent_until()), WaitReason::StoreError);
    }

    /// Until when a store that does not answer is asked: a slot that is over can be claimed by nobody, and a lease that may have
    /// been granted has to be found until it would have lapsed. What a person asked for by name goes on as long.
    fn silent_until(&self) -> Mono {
        let may_be_held = self.maybe_held() || self.assignment.past;
        if may_be_held { self.end + self.assignment.policy.lease_ttl } else { self.end }
    }

    /// Why nothing would be started that is granted now.
    pub(super) fn too_late_to_start(&self, now: Now) -> Option<&'static str> {
        if self.drain_until.is_some() {
            Some("the node was shutting down")
        } else if self.start_until.is_some_and(|until| now.mono >= until) {
            Some("the start deadline had passed")
        } else if now.mono >= self.end && !self.assignment.past {
            Some("the slot was over when the grant was heard of")
        } else {
            None
        }
    }

    fn granted(&mut self, now: Now, asked: AnsweredClaim, mut lease: Lease, used: u32) {
        let AnsweredClaim { first, sent, brief } = asked;
        if used > 1 && lease.trigger == Trigger::Schedule {
            lease.trigger = Trigger::Retry;
        }
        let trust = TrustWindow::granted(sent, lease.ttl);
        // By the store's clock: so long after the grant, which was made between the first send and now.
        let left = crate::clock::between(lease.claimed_at, self.assignment.slot.end());
        self.end = self.end.clamp((first + left).min(now.mono + left), now.mono + left);
        self.token = self.token.next();
        self.assignment.audit = None;
        self.tell_grant(&lease, used);
        if let Some(why) = self.too_late_to_start(now) {
            return self.give_back_unstarted(now, (lease, trust), why, Vec::new());
        }
        if brief || !trust.holds(now.mono) {
            // The answer was so slow that another node may hold the slot by now, or the slot is not over after all: ask again as
            // the same claim, which begins a new window or learns who has it.
            self.token = lease.token;
            self.errors.maybe_since = Some(first);
            self.errors.maybe_until = Some(now.mono + lease.ttl);
            return self.wait(now.mono + pace::store_error(1), WaitReason::StoreError);
        }
        self.queue_up(now, Hold::guarded(lease, trust, used));
    }

    fn start_unguarded(&mut self, now: Now) {
        let request = self.request();
        let lease: Lease = request.granted(0, now.wall);
        self.ran_unguarded = true;
        self.token = self.token.next();
        self.spawn(now, Hold::unguarded(lease, now.mono));
    }

    /// A hint from the store.
    pub fn handle_wake(&mut self, now: Now, wake: &Wake) {
        let own = self.assignment.slot.clone();
        if matches!(self.phase, Phase::Claiming { .. }) {
            let about_this = matches!(wake, Wake::Slot { job, key, .. } if job == own.job() && *key == own.key());
            if about_this || self.hint.is_none() {
                self.hint = Some(wake.clone());
            }
            return;
        }
        if self.is_queueing() && matches!(wake, Wake::Slot { job, key, .. } if job == own.job() && *key == own.key()) {
            // Somebody has done something to the lease: an operator unlocked it, or a late success of an older attempt is recorded.
            return self.renew_for_a_hint(now);
        }
        match wake {
            Wake::Resync => self.resync(now),
            Wake::Job(job) | Wake::Slot { job, .. } if job != own.job() => {}
            Wake::Job(_) => {
                self.ask_for_a_pause();
                self.wake_waiting(now, pace::SPREAD_RELEASE, |_| true);
            }
            Wake::Slot { key, .. } if *key != own.key() => {
                self.wake_waiting(now, pace::SPREAD_RELEASE, |why| why == WaitReason::Older);
            }
            Wake::Slot { what: WakeKind::Done, .. } => {
                if matches!(&self.phase, Phase::Waiting(wait) if wait.why != WaitReason::StoreError) {
                    self.finish(End::Done);
                }
            }
            Wake::Slot { what: WakeKind::Released, .. } => {
                self.retrying = true;
                self.wake_waiting(now, Duration::ZERO, |why| why != WaitReason::Early);
            }
        }
    }

    /// Hints were lost, and perhaps all that the store knew. A holder renews at once; who waits for a holder gives it the
    /// time of a regular renewal, and of one that is repeated, before it asks.
    fn resync(&mut self, now: Now) {
        self.renew_now(now);
        let ttl = self.assignment.policy.lease_ttl;
        let patience = if self.held { ttl / 3 + ttl / 10 } else { Duration::ZERO };
        self.wake_waiting(now.plus(patience), SPREAD_RESYNC, |_| true);
    }

    fn wake_waiting(&mut self, now: Now, spread: Duration, shortens: impl Fn(WaitReason) -> bool) {
        let until = now.mono + self.spread(spread);
        let Phase::Waiting(wait) = &mut self.phase else { return };
        if !shortens(wait.why) {
            return;
        }
        // What it hears may be an operator who ended the wait, or its own failure. So it looks, after everybody else.
        let behind = wait.why == WaitReason::OwnFailure;
        let look = if behind { self.behind.and_then(|behind| behind.look(now.mono)) } else { Some(until) };
        wait.until = look.map_or(wait.until, |look| wait.until.min(look));
    }

    fn tell_grant(&mut self, lease: &Lease, used: u32) {
        let (policy, poll) = (&self.assignment.policy, self.assignment.poll);
        self.tell(Event::Granted {
            attempt: lease.attempt,
            used,
            max_attempts: policy.max_attempts,
            granted_at: lease.claimed_at,
            token: lease.token.first_digits(),
            trigger: lease.trigger,
            lease_ttl: lease.ttl,
            retry_delay: policy.retry.delay_after(used),
            poll,
            on_lost: policy.on_lost,
            past: self.assignment.past,
        });
    }

    fn tell_answer(&mut self, claim: &Claim) {
        let by: Option<NodeName> = match claim {
            Claim::Held { by, .. } | Claim::Blocked { by, .. } => Some(by.node.clone()),
            Claim::Done(mark) => Some(mark.by.node.clone()),
            _ => None,
        };
        let foreign = matches!(claim, Claim::Held { by, .. } if by.attempt == 0);
        let begins_in = match claim {
            Claim::Early { remaining } => Some(*remaining),
            _ => None,
        };
        self.tell(Event::ClaimAnswered { answer: claim.answer(), by, foreign, begins_in });
    }
}

/// Of a claim that was answered.
#[derive(Clone, Copy)]
struct AnsweredClaim {
    /// When the first send was made that may have been granted.
    first: Mono,
    /// When the one that was answered was.
    sent: Mono,
    /// It asked for a short lease.
    brief: bool,
}
