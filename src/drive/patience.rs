//! How long the caller of one slot waits, and for what. Pure: it hears what happened, and says when to leave.

use std::time::Duration;

use crate::clock::{Mono, Now};
use crate::error::{ErrorKind, Op};
use crate::event::Event;
use crate::reply::ClaimAnswer;
use crate::slot::{Attempt, Outcome, Slot};
use crate::wake::{Wake, WakeKind};

/// A slot that begins this soon is waited for by whoever does not wait otherwise: it is this machine's clock that is ahead of
/// the store's, and the caller's scheduler was right to start it.
const AHEAD: Duration = Duration::from_secs(5);

/// A store that refuses (a password, a permission) rarely changes its mind: it is asked no longer than this, for that is how
/// long a server takes that only restarts or changes its role.
const REFUSED: Duration = Duration::from_secs(2);

/// Beyond the TTL of another slot's lease: whoever waits for a lease to expire looks a moment later.
const LOOK: Duration = Duration::from_secs(1);

/// What is left for a request that is on its way when the caller is told to leave: recording takes a round trip, and not
/// recording can cost a repeated run.
const LAST_TRY: Duration = Duration::from_millis(500);

/// What keeps a caller whose slot cannot be started now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Nothing: one look, one attempt.
    No,
    /// Another node's run of the slot, or the wait after its failure: the caller takes over should that node die or fail. One
    /// attempt of its own. A run of another slot is waited for until the lease of a node that died in it has expired. Who
    /// waits so leaves at the slot's end, where the store says that it is over.
    TakeOver,
    /// Whatever keeps the slot from being started, and for another attempt after a failure of its own, for so long.
    For(Duration),
}

/// How long the caller of [`crate::drive::Once`] waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For others, and for another attempt.
    pub wait: Wait,
    /// For a store that does not answer, before anything was started. Who takes over, and knows of a run, waits on.
    pub store: Duration,
    /// For a store to record how a run ended; none: until long after the slot's end. A cancellation cuts it short.
    pub record: Option<Duration>,
    /// For a run that was asked to stop by a cancellation.
    pub drain: Duration,
}

/// What the caller does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It waits.
    Stay,
    /// It begins nothing more.
    Leave,
}

/// Where the slot stands, as far as patience is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing has begun.
    Asking,
    /// This attempt is granted, and nothing was heard of it since.
    Granted(Attempt),
    /// The slot is held, and its job's locks are waited for.
    Queueing,
    /// A run is waited for without bound: its own timeout bounds it.
    Running,
    /// The store is to record something until then.
    Recording(Option<Mono>),
}

/// When the caller gives up.
#[derive(Debug)]
pub(super) struct WaitLimits {
    patience: Patience,
    slot: Slot,
    lease_ttl: Duration,
    stage: Stage,
    /// On others; none for a caller that does not wait, or without bound.
    wait: Option<Mono>,
    /// On a store that does not answer; none while it does.
    store: Option<Mono>,
    /// Since when it has not answered.
    silent: Option<Mono>,
    /// The last answer to a claim.
    answer: Option<ClaimAnswer>,
    cancelled: bool,
    /// The drive was told to leave.
    left: bool,
}

impl WaitLimits {
    pub(super) fn new(patience: Patience, slot: Slot, lease_ttl: Duration, begun: Mono) -> Self {
        let wait = match patience.wait {
            Wait::For(span) => Some(begun + span),
            Wait::No | Wait::TakeOver => None,
        };
        let (stage, store, silent, answer) = (Stage::Asking, None, None, None);
        Self { patience, slot, lease_ttl, stage, wait, store, silent, answer, cancelled: false, left: false }
    }

    /// When patience ends; none while something runs, or after leaving.
    pub(super) fn next(&self) -> Option<Mono> {
        match self.stage {
            Stage::Running => None,
            Stage::Recording(until) => until,
            Stage::Asking | Stage::Granted(_) | Stage::Queueing if self.left => None,
            // Who takes over waits as long as the slot and `lock_wait` allow.
            Stage::Queueing => self.wait,
            Stage::Asking | Stage::Granted(_) => {
                self.store.map(|store| self.wait.map_or(store, |wait| wait.max(store))).or(self.wait)
            }
        }
    }

    /// Something is waited for that others tell of.
    pub(super) fn waits(&self) -> bool {
        !self.left && self.stage == Stage::Asking && self.answer.is_some()
    }

    /// A reason to look at the slot once more.
    pub(super) fn look(&self) -> Wake {
        Wake::Slot { job: self.slot.job().clone(), key: self.slot.key(), what: WakeKind::Released }
    }

    /// A run is to be recorded, and nothing else.
    pub(super) const fn is_recording(&self) -> bool {
        matches!(self.stage, Stage::Recording(_))
    }

    /// How long a run may go on once the drive is told to leave.
    pub(super) fn leave(&mut self) -> Duration {
        self.left = true;
        // In a store's silence a long drain would be waited for in vain; a run that is in progress has it.
        if self.stage == Stage::Running { self.patience.drain } else { Duration::ZERO }
    }

    /// The caller wants to leave.
    pub(super) fn cancel(&mut self, now: Mono) -> Next {
        self.cancelled = true;
        if let Stage::Recording(until) = self.stage {
            self.stage = Stage::Recording(self.last_try(until, now));
            return Next::Stay;
        }
        Next::Leave
    }

    /// Takes an event.
    pub(super) fn hear(&mut self, event: &Event, now: Now) -> Next {
        match event {
            Event::StoreFailed { op, kind, .. } => self.store_failed(*op, *kind, now.mono),
            Event::Granted { attempt, .. } => {
                self.store_answered();
                self.stage = Stage::Granted(*attempt);
            }
            Event::RunEnded { .. } | Event::Unstarted { .. } => {
                self.store_answered();
                let until = self.patience.record.map(|span| now.mono + span);
                self.stage = Stage::Recording(if self.cancelled { self.last_try(until, now.mono) } else { until });
            }
            Event::RunStarted { .. } => {
                self.store_answered();
                self.stage = Stage::Running;
                // It began as the cancellation came.
                if self.cancelled {
                    return Next::Leave;
                }
            }
            Event::ClaimAnswered { answer, foreign, begins_in, .. } => {
                self.store_answered();
                self.stage = Stage::Asking;
                let far = begins_in.is_some_and(|span| span > AHEAD);
                return self.answered(*answer, *foreign, far, now);
            }
            Event::LockWaiting(_) => return self.queued(),
            // It asks anew, later.
            Event::LockLeft(leave) if self.stage == Stage::Granted(leave.attempt) => return self.queued(),
            Event::Settled { outcome, .. } | Event::SettlementGivenUp { outcome, .. } => {
                self.stage = Stage::Asking;
                let again = !self.cancelled && self.wait.is_some_and(|wait| now.mono < wait);
                if *outcome != Outcome::Success && !again {
                    return Next::Leave;
                }
            }
            _ => {}
        }
        Next::Stay
    }

    fn queued(&mut self) -> Next {
        self.store_answered();
        self.stage = Stage::Queueing;
        if self.cancelled || self.patience.wait == Wait::No { Next::Leave } else { Next::Stay }
    }

    /// Where nothing is to be recorded for the caller's sake, it is recorded in the background.
    fn last_try(&self, until: Option<Mono>, now: Mono) -> Option<Mono> {
        self.patience.record.map(|_| until.map_or(now + LAST_TRY, |until| until.min(now + LAST_TRY)))
    }

    fn store_answered(&mut self) {
        (self.silent, self.store) = (None, None);
    }

    fn store_failed(&mut self, op: Op, kind: ErrorKind, now: Mono) {
        use ClaimAnswer::{Backoff, Held};
        match op {
            // The answer that granted it came too late to start anything.
            Op::Claim => self.stage = Stage::Asking,
            // An error is told once for each kind: where the renewal fails first, that of the request for locks is not.
            Op::Acquire | Op::Renew if matches!(self.stage, Stage::Granted(_)) => {}
            _ => return,
        }
        let since = *self.silent.get_or_insert(now);
        let follows = self.patience.wait == Wait::TakeOver && matches!(self.answer, Some(Held | Backoff));
        let patience = if kind.is_transient() { self.patience.store } else { self.patience.store.min(REFUSED) };
        self.store = (!follows).then(|| since + patience);
    }

    /// `far`: the slot does not begin soon.
    fn answered(&mut self, answer: ClaimAnswer, foreign: bool, far: bool, now: Now) -> Next {
        use ClaimAnswer::{Backoff, Blocked, Claimed, Closed, Done, Early, Exhausted, Held, Paused, Unknown};
        let before = self.answer.replace(answer);
        match (answer, self.patience.wait) {
            (Claimed | Done | Exhausted | Closed | Unknown, _) => return Next::Stay,
            // By this machine's clock, too: whoever named it named the wrong one.
            (Early, _) if now.wall < self.slot.start() => return Next::Leave,
            // This machine's clock is wrong by more than clocks are.
            (Early, Wait::No | Wait::TakeOver) if far => return Next::Leave,
            (Early, _) => self.wait_at_most(AHEAD + LOOK, now.mono),
            (Held | Backoff | Paused | Blocked, Wait::For(_)) => {}
            (Held | Backoff | Paused | Blocked, Wait::No) => return Next::Leave,
            (Held | Backoff, Wait::TakeOver) if !foreign => self.wait = None,
            (Blocked, Wait::TakeOver) => {
                if before != Some(Blocked) {
                    self.wait = None;
                }
                self.wait_at_most(self.lease_ttl + LOOK, now.mono);
            }
            (Held | Backoff | Paused, Wait::TakeOver) => return Next::Leave,
        }
        if self.wait.is_some_and(|wait| now.mono >= wait) { Next::Leave } else { Next::Stay }
    }

    fn wait_at_most(&mut self, span: Duration, now: Mono) {
        self.wait.get_or_insert(now + span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::Fence;

    const TTL: Duration = Duration::from_secs(60);

    fn at(seconds: u64) -> Now {
        let start = Now { wall: "2026-11-21T14:00:00Z".parse().unwrap(), mono: Mono::from_origin(Duration::ZERO) };
        start.plus(Duration::from_secs(seconds))
    }

    fn limits(wait: Wait) -> WaitLimits {
        let (store, record) = (Duration::from_secs(10), Some(TTL));
        let slot = Slot::parse("a", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
        let patience = Patience { wait, store, record, drain: Duration::ZERO };
        WaitLimits::new(patience, slot, TTL, at(0).mono)
    }

    fn answered(answer: ClaimAnswer) -> Event {
        Event::ClaimAnswered { answer, by: None, foreign: false, begins_in: None }
    }

    fn failed(op: Op, kind: ErrorKind) -> Event {
        Event::StoreFailed { op, kind, error: String::new() }
    }

    fn ended(outcome: Outcome) -> Event {
        let (duration, ended_between) = (Duration::ZERO, None);
        Event::RunEnded { attempt: 1, outcome, exit_code: None, signal: None, duration, ended_between, note: None }
    }

    fn started() -> Event {
        let (trigger, late) = (crate::slot::Trigger::Exec, Duration::ZERO);
        Event::RunStarted { attempt: 1, fence: Fence(1), trigger, guarded: true, late }
    }

    #[test]
    fn who_takes_over_stays_for_a_run_and_for_the_wait_after_its_failure_and_for_nothing_else() {
        for (answer, next) in [
            (ClaimAnswer::Held, Next::Stay),
            (ClaimAnswer::Backoff, Next::Stay),
            (ClaimAnswer::Paused, Next::Leave),
            (ClaimAnswer::Early, Next::Stay),
            (ClaimAnswer::Blocked, Next::Stay),
        ] {
            let mut limits = limits(Wait::TakeOver);
            assert_eq!(limits.hear(&answered(answer), at(1)), next, "{answer:?}");
            assert!(
                limits.next().is_none()
                    == [ClaimAnswer::Held, ClaimAnswer::Backoff, ClaimAnswer::Paused].contains(&answer),
                "{answer:?}"
            );
        }
        let foreign = Event::ClaimAnswered { answer: ClaimAnswer::Held, by: None, foreign: true, begins_in: None };
        assert_eq!(
            limits(Wait::TakeOver).hear(&foreign, at(1)),
            Next::Leave,
            "nobody knows whether that does the work"
        );
        assert_eq!(limits(Wait::For(TTL)).hear(&foreign, at(1)), Next::Stay);
    }

    #[test]
    fn an_older_slot_is_waited_for_during_one_lease_and_then_no_longer() {
        let mut limits = limits(Wait::TakeOver);
        assert_eq!(limits.hear(&answered(ClaimAnswer::Blocked), at(1)), Next::Stay);
        assert_eq!(limits.hear(&answered(ClaimAnswer::Blocked), at(30)), Next::Stay);
        assert_eq!(limits.next(), Some((at(1).mono + TTL) + LOOK));
        assert_eq!(limits.hear(&answered(ClaimAnswer::Blocked), at(62)), Next::Leave);
    }

    #[test]
    fn without_a_wait_there_is_one_look_and_one_attempt() {
        for answer in [ClaimAnswer::Held, ClaimAnswer::Backoff, ClaimAnswer::Paused, ClaimAnswer::Blocked] {
            assert_eq!(limits(Wait::No).hear(&answered(answer), at(1)), Next::Leave, "{answer:?}");
        }
        for wait in [Wait::No, Wait::TakeOver] {
            let settled = Event::Settled { attempt: 1, outcome: Outcome::Failure };
            assert_eq!(limits(wait).hear(&settled, at(1)), Next::Leave);
        }
        let settled = Event::Settled { attempt: 1, outcome: Outcome::Failure };
        assert_eq!(limits(Wait::For(TTL)).hear(&settled, at(1)), Next::Stay);
        assert_eq!(limits(Wait::For(TTL)).hear(&settled, at(60)), Next::Leave);
    }

    #[test]
    fn a_slot_of_the_future_is_left_at_once_unless_only_the_clock_is_ahead() {
        let early = |seconds: i64| {
            let now = at(1);
            let wall = now.wall + chrono::TimeDelta::seconds(seconds);
            limits(Wait::TakeOver).hear(&answered(ClaimAnswer::Early), Now { wall, ..now })
        };
        assert_eq!((early(0), early(-10)), (Next::Stay, Next::Leave));
    }

    #[test]
    fn a_clock_that_is_ahead_by_more_than_clocks_are_is_not_waited_for_unless_that_is_asked_for() {
        let early = |wait, begins_in| {
            let begins_in = Some(Duration::from_secs(begins_in));
            let mut limits = limits(wait);
            let answer = ClaimAnswer::Early;
            let next = limits.hear(&Event::ClaimAnswered { answer, by: None, foreign: false, begins_in }, at(1));
            (next, limits.next())
        };
        for wait in [Wait::No, Wait::TakeOver] {
            assert_eq!(early(wait, 6), (Next::Leave, None), "{wait:?}");
            assert_eq!(early(wait, 5), (Next::Stay, Some(at(1).mono + AHEAD + LOOK)), "{wait:?}");
        }
        assert_eq!(early(Wait::For(TTL), 6), (Next::Stay, Some(at(0).mono + TTL)));
    }

    #[test]
    fn a_silent_store_is_asked_for_a_while_and_one_that_refuses_for_less() {
        let mut limits = limits(Wait::TakeOver);
        limits.hear(&failed(Op::Claim, ErrorKind::Timeout), at(1));
        limits.hear(&failed(Op::Claim, ErrorKind::Unavailable), at(5));
        assert_eq!(limits.next(), Some(at(11).mono), "from the first error on");
        limits.hear(&failed(Op::Claim, ErrorKind::Denied), at(6));
        assert_eq!(limits.next(), Some(at(3).mono));
        limits.hear(&answered(ClaimAnswer::Held), at(7));
        limits.hear(&failed(Op::Claim, ErrorKind::Timeout), at(8));
        assert_eq!(limits.next(), None, "who knows of a run waits on");
    }

    fn queued() -> Event {
        let locks = vec!["db".parse().unwrap()];
        let node = crate::job::NodeName::new("b").unwrap();
        let owner = crate::resource::OwnerId::of_text("export");
        let by = crate::resource::LockHolder { node, label: String::new(), owner, fence: None };
        Event::LockWaiting(crate::event::LockWait::behind(1, locks, 1, by))
    }

    #[test]
    fn locks_are_waited_for_as_long_as_whatever_else_keeps_the_slot() {
        for (wait, next, until) in [
            (Wait::No, Next::Leave, None),
            (Wait::TakeOver, Next::Stay, None),
            (Wait::For(TTL), Next::Stay, Some(at(60).mono)),
        ] {
            let mut limits = limits(wait);
            limits.hear(&answered(ClaimAnswer::Claimed), at(1));
            limits.hear(&granted(1), at(1));
            assert_eq!(limits.hear(&queued(), at(2)), next, "{wait:?}");
            assert_eq!((limits.next(), limits.is_recording()), (until, false), "{wait:?}");
            assert_eq!(limits.leave(), Duration::ZERO);
            assert_eq!(limits.next(), None, "{wait:?}");
        }
    }

    fn granted(attempt: Attempt) -> Event {
        Event::Granted {
            attempt,
            used: attempt,
            max_attempts: 3,
            granted_at: at(1).wall,
            token: String::new(),
            trigger: crate::slot::Trigger::Exec,
            lease_ttl: TTL,
            retry_delay: TTL,
            poll: None,
            on_lost: crate::job::OnLost::Continue,
            past: false,
        }
    }

    fn unstarted() -> Event {
        Event::Unstarted { attempt: 1, why: "no".to_owned(), locks: vec!["db".parse().unwrap()] }
    }

    /// A request for locks that was refused and is made anew later.
    fn left(attempt: Attempt) -> Event {
        let (answer, why) = (Some(crate::resource::LockRelease::Released), Some("later".to_owned()));
        Event::LockLeft(crate::event::LockLeave::answered(attempt, answer, why))
    }

    #[test]
    fn a_cancellation_between_the_grant_and_the_start_begins_nothing() {
        let mut limits = limits(Wait::TakeOver);
        limits.hear(&granted(1), at(1));
        assert_eq!(limits.cancel(at(2).mono), Next::Leave);
        assert_eq!((limits.leave(), limits.next()), (Duration::ZERO, None));
        assert_eq!(limits.hear(&started(), at(2)), Next::Leave, "it began in that very instant");
    }

    #[test]
    fn whoever_leaves_the_queue_of_its_locks_waits_for_the_record_as_after_a_run() {
        for (is_cancelled, until) in [(true, at(4).mono + LAST_TRY), (false, at(4).mono + TTL)] {
            let mut limits = limits(Wait::TakeOver);
            limits.hear(&granted(1), at(1));
            limits.hear(&queued(), at(2));
            if is_cancelled {
                assert_eq!(limits.cancel(at(3).mono), Next::Leave);
                limits.leave();
            }
            assert_eq!(limits.hear(&unstarted(), at(4)), Next::Stay);
            assert_eq!((limits.next(), limits.is_recording()), (Some(until), true));
        }
    }

    #[test]
    fn a_store_that_does_not_say_whether_the_locks_are_free_is_asked_for_a_while() {
        let mut limits = limits(Wait::TakeOver);
        limits.hear(&granted(1), at(1));
        limits.hear(&failed(Op::Acquire, ErrorKind::Timeout), at(2));
        assert_eq!((limits.next(), limits.is_recording()), (Some(at(12).mono), false));
        limits.hear(&queued(), at(3));
        limits.hear(&failed(Op::Acquire, ErrorKind::Timeout), at(4));
        assert_eq!(limits.next(), None, "who knows of a holder waits on");
        // The same error of the other question under way is not told again.
        let mut limits = self::limits(Wait::No);
        limits.hear(&granted(1), at(1));
        limits.hear(&failed(Op::Renew, ErrorKind::Timeout), at(2));
        assert_eq!(limits.next(), Some(at(12).mono));
    }

    #[test]
    fn whoever_asks_for_its_locks_anew_is_waiting_for_them_and_an_older_attempts_locks_say_nothing() {
        for (wait, next) in [(Wait::No, Next::Leave), (Wait::TakeOver, Next::Stay)] {
            let mut limits = limits(wait);
            limits.hear(&granted(2), at(1));
            assert_eq!(limits.hear(&left(1), at(1)), Next::Stay);
            limits.hear(&failed(Op::Acquire, ErrorKind::Timeout), at(2));
            assert_eq!(limits.hear(&left(2), at(3)), next, "{wait:?}");
            assert_eq!((limits.next(), limits.is_recording()), (None, false));
        }
    }

    #[test]
    fn a_run_is_waited_for_without_bound_and_its_record_for_a_while() {
        let mut limits = limits(Wait::TakeOver);
        limits.hear(&started(), at(1));
        assert_eq!(limits.next(), None);
        limits.hear(&ended(Outcome::Success), at(500));
        limits.hear(&failed(Op::Complete, ErrorKind::Timeout), at(501));
        assert_eq!(limits.next(), Some(at(560).mono));
        assert!(limits.is_recording());
        assert_eq!(limits.cancel(at(510).mono), Next::Stay, "what is on its way may still arrive");
        assert_eq!(limits.next(), Some(at(510).mono + LAST_TRY));
    }

    #[test]
    fn where_nobody_waits_for_the_record_a_cancellation_does_not_cut_it_short() {
        let patience = Patience { record: None, ..limits(Wait::No).patience };
        let mut limits = WaitLimits { patience, ..limits(Wait::No) };
        limits.hear(&ended(Outcome::Success), at(1));
        assert_eq!((limits.cancel(at(2).mono), limits.next()), (Next::Stay, None));
    }

    #[test]
    fn what_comes_too_late_to_be_started_is_given_back_within_the_same_bound() {
        let mut limits = limits(Wait::No);
        assert_eq!(limits.cancel(at(1).mono), Next::Leave);
        limits.leave();
        limits.hear(&ended(Outcome::GivenBack), at(2));
        assert_eq!(limits.next(), Some(at(2).mono + LAST_TRY));
    }
}
