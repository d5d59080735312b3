//! The machine of locks: what it asks for when, what it tells, and how it ends.

use std::time::Duration;

use crate::clock::{Mono, Now};
use crate::error::{Applied, ErrorKind, Op, StoreError};
use crate::job::{LockName, NodeName};
use crate::machine::{LockAction, LockEnd, LockMachine, LockNews};
use crate::resource::{
    AcquireRequest, Acquired, Demand, Demands, LockExit, LockHint, LockHolder, LockRefusal, LockRelease, LockRenewal,
    OwnerId,
};
use crate::slot::{Fence, Token};

const TTL: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(2);

struct Bench {
    machine: LockMachine,
    now: Now,
}

impl Bench {
    fn new() -> Self {
        Self::asking(true, None)
    }

    fn asking(queue: bool, poll: Option<Duration>) -> Self {
        Self::of(Token::from_bits(7), queue, poll)
    }

    fn of(token: Token, queue: bool, poll: Option<Duration>) -> Self {
        let now = Now { wall: "2026-11-21T14:00:00Z".parse().unwrap(), mono: Mono::from_origin(TTL * 100) };
        let demands = Demands::from(Demand::exclusive(LockName::new("a").unwrap()));
        let node = NodeName::new("n").unwrap();
        let request = AcquireRequest { queue, ..AcquireRequest::new(token, node, token, TTL, demands) };
        Self { machine: LockMachine::new(request, PATIENCE, poll, now), now }
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now.plus(span);
        self.machine.handle_timeout(self.now);
    }

    /// Lets time pass until the machine is due.
    fn due(&mut self) -> Duration {
        let span = self.machine.poll_timeout().unwrap().since(self.now.mono);
        self.pass(span);
        span
    }

    #[track_caller]
    fn asked(&mut self) {
        assert!(matches!(self.machine.poll_action(), Some(LockAction::Acquire(_))));
        assert_eq!(self.machine.poll_action(), None);
    }

    #[track_caller]
    fn renewed(&mut self, reply: Result<LockRenewal, StoreError>) {
        assert!(matches!(self.machine.poll_action(), Some(LockAction::Renew(_))));
        assert_eq!(self.machine.poll_action(), None);
        self.machine.handle_renewal(self.now, reply);
    }

    #[track_caller]
    fn left(&mut self) -> LockExit {
        match self.machine.poll_action() {
            Some(LockAction::Release(exit)) => exit,
            other => panic!("{other:?}"),
        }
    }

    fn answer(&mut self, answer: Acquired) {
        self.machine.handle_acquired(self.now, Ok(answer));
    }

    fn held(&mut self) {
        self.asked();
        let at = self.now.wall;
        self.answer(Acquired::Held { fence: Fence(5), at, places: vec![3] });
    }

    fn waiting(&mut self, remaining: Duration) {
        self.asked();
        self.answer(Acquired::Waiting { ahead: 1, by: holder(), remaining });
    }

    fn news(&mut self) -> Vec<&'static str> {
        let mut told = Vec::new();
        while let Some(news) = self.machine.poll_news() {
            told.push(match news {
                LockNews::Waiting { .. } => "waiting",
                LockNews::Held(_) => "held",
                LockNews::InDoubt => "in doubt",
                LockNews::Kept => "kept",
                LockNews::Lost { .. } => "lost",
                LockNews::Busy { .. } => "busy",
                LockNews::Refused(_) => "refused",
                LockNews::Failed(_) => "failed",
            });
        }
        told
    }

    fn end(&mut self, answer: LockRelease) {
        self.machine.handle_released(self.now, Ok(answer.clone()));
        assert_eq!(self.machine.ended(), Some(&LockEnd::Left(answer)));
        assert_eq!((self.machine.poll_action(), self.machine.poll_timeout()), (None, None));
    }
}

fn holder() -> LockHolder {
    let node = NodeName::new("other").unwrap();
    LockHolder { node, label: String::new(), owner: OwnerId::new(Token::from_bits(1)), fence: Some(Fence(4)) }
}

fn error(kind: ErrorKind, applied: Applied) -> StoreError {
    StoreError::new(kind, applied, Op::Acquire, "memory:", "x")
}

fn silence() -> StoreError {
    error(ErrorKind::Timeout, Applied::Maybe)
}

#[test]
fn a_held_lock_is_renewed_at_a_third_of_its_ttl_counted_from_before_the_send() {
    let mut bench = Bench::new();
    bench.now = bench.now.plus(Duration::from_secs(2));
    bench.held();
    assert_eq!(bench.news(), ["held"]);
    assert_eq!(bench.due(), Duration::from_secs(8));
    bench.renewed(Ok(LockRenewal::Renewed));
    assert_eq!(bench.due(), Duration::from_secs(10));
    bench.renewed(Ok(LockRenewal::Restored));
    assert_eq!(bench.news(), ["kept"], "that entries were lost is never silent");
}

#[test]
fn renewal_goes_on_after_errors_and_doubt_begins_when_the_trust_ends() {
    let mut bench = Bench::new();
    bench.held();
    let mut asked = 0;
    while bench.machine.held(bench.now).is_some() {
        bench.due();
        while bench.machine.poll_action().is_some() {
            asked += 1;
            bench.machine.handle_renewal(bench.now, Err(silence()));
        }
    }
    assert!(asked > 15, "{asked} in the 18.5 s between a third of the TTL and the end of the trust");
    assert_eq!(bench.news(), ["held", "in doubt"]);
    bench.due();
    bench.renewed(Ok(LockRenewal::Renewed));
    assert_eq!(bench.news(), ["kept"]);
    assert!(bench.machine.held(bench.now).is_some());
}

#[test]
fn trust_ends_at_its_deadline_though_nobody_has_told_of_a_loss() {
    let mut bench = Bench::new();
    bench.held();
    let (granted, instant) = (bench.now, Duration::from_millis(1));
    let deadline = TTL - TTL / 20;
    for (after, is_held) in [(deadline - instant, true), (deadline, false), (TTL * 50, false)] {
        assert_eq!(bench.machine.held(granted.plus(after)).is_some(), is_held, "{after:?}");
    }
    // Its renewal has no answer: its own timer says so, and not the next thing that somebody tells it.
    assert_eq!(bench.due(), TTL / 3);
    assert!(matches!(bench.machine.poll_action(), Some(LockAction::Renew(_))));
    assert_eq!(bench.due(), deadline - TTL / 3);
    assert_eq!(bench.news(), ["held", "in doubt"]);
}

#[test]
fn whatever_is_lost_is_told_once_and_still_released() {
    let mut bench = Bench::new();
    bench.held();
    bench.due();
    bench.renewed(Ok(LockRenewal::Lost { to: Some(holder()) }));
    assert_eq!(bench.news(), ["held", "lost"]);
    assert_eq!((bench.machine.held(bench.now), bench.machine.poll_timeout()), (None, None));
    bench.machine.handle_leave(bench.now);
    assert_eq!(bench.left().fence, Some(Fence(5)));
    bench.end(LockRelease::Overtaken { by: Some(holder()) });
}

#[test]
fn stalled_holder_knows_nothing_until_it_looks_and_then_doubts_first() {
    let mut bench = Bench::new();
    bench.held();
    bench.pass(TTL);
    assert_eq!(bench.news(), ["held", "in doubt"]);
    bench.renewed(Ok(LockRenewal::Lost { to: None }));
    assert_eq!(bench.news(), ["lost"]);
}

#[test]
fn a_waiter_asks_again_at_its_beat_or_at_the_lapse_in_front_whichever_is_sooner() {
    let mut bench = Bench::new();
    bench.waiting(TTL);
    assert_eq!(bench.due(), TTL / 3);
    bench.waiting(Duration::from_secs(1));
    assert_eq!(bench.due(), Duration::from_millis(1_005));
    bench.held();
    assert_eq!(bench.news(), ["waiting", "waiting", "held"]);
    let mut bench = Bench::asking(true, Some(Duration::from_millis(250)));
    bench.waiting(TTL);
    assert_eq!(bench.due(), Duration::from_millis(250), "a store that may not tell is asked more often");
}

#[test]
fn hint_is_only_a_hint() {
    let mut bench = Bench::new();
    bench.waiting(TTL);
    bench.machine.handle_hint(bench.now, LockHint::Ready(Token::from_bits(8)));
    assert_eq!(bench.machine.poll_action(), None, "another's");
    bench.machine.handle_hint(bench.now, LockHint::Ready(Token::from_bits(7)));
    bench.machine.handle_hint(bench.now, LockHint::Ready(Token::from_bits(7)));
    // One that came while the store was being asked has one more look follow.
    bench.waiting(TTL);
    bench.waiting(TTL);
    bench.machine.handle_hint(bench.now, LockHint::Resync);
    assert!(bench.due() < Duration::from_secs(1));
    bench.held();
    for hint in [LockHint::Ready(Token::from_bits(7)), LockHint::Ready(Token::from_bits(8))] {
        bench.machine.handle_hint(bench.now, hint);
        assert_eq!(bench.machine.poll_action(), None);
    }
    bench.machine.handle_hint(bench.now, LockHint::Resync);
    bench.renewed(Ok(LockRenewal::Renewed));
}

#[test]
fn those_who_wait_do_not_all_look_at_once_when_hints_were_lost() {
    let due = |token| {
        let mut bench = Bench::of(Token::from_bits(token), true, None);
        bench.waiting(TTL);
        bench.machine.handle_hint(bench.now, LockHint::Resync);
        bench.due()
    };
    let mut spans: Vec<Duration> = (1..=100).map(due).collect();
    spans.sort();
    let (first, last) = (spans[0], spans[99]);
    assert!(first < Duration::from_millis(100) && last > Duration::from_millis(900), "{first:?} to {last:?}");
    assert!(last < Duration::from_secs(1));
}

#[test]
fn who_leaves_while_the_store_is_asked_says_that_a_copy_may_follow() {
    let mut bench = Bench::new();
    bench.asked();
    bench.machine.handle_leave(bench.now);
    let exit = bench.left();
    assert!(exit.unsure && exit.fence.is_none());
    // What arrives now is nobody's any more.
    let at = bench.now.wall;
    bench.answer(Acquired::Held { fence: Fence(5), at, places: vec![3] });
    assert_eq!(bench.machine.held(bench.now), None);
    assert_eq!(bench.news(), [""; 0]);
    bench.end(LockRelease::Released);
}

#[test]
fn timeout_while_waiting_leaves() {
    let mut bench = Bench::new();
    bench.waiting(TTL);
    bench.machine.handle_leave(bench.now);
    assert!(!bench.left().unsure);
    bench.machine.handle_leave(bench.now);
    bench.end(LockRelease::Released);
}

#[test]
fn a_release_is_repeated_until_it_is_answered_or_everything_has_lapsed() {
    let mut bench = Bench::new();
    bench.held();
    bench.machine.handle_leave(bench.now);
    let begun = bench.now.mono;
    let mut sent = 0;
    while bench.machine.ended().is_none() {
        bench.left();
        sent += 1;
        bench.machine.handle_released(bench.now, Err(silence()));
        if bench.machine.poll_timeout().is_some() {
            bench.due();
        }
    }
    assert_eq!((bench.machine.ended(), bench.now.mono.since(begun)), (Some(&LockEnd::Silent), TTL));
    assert!((8..=12).contains(&sent), "{sent}");
}

#[test]
fn watchdog_ends_with_the_guard() {
    let mut bench = Bench::new();
    bench.held();
    bench.due();
    // The release overtakes the renewal's answer.
    assert!(matches!(bench.machine.poll_action(), Some(LockAction::Renew(_))));
    bench.machine.handle_leave(bench.now);
    bench.left();
    bench.machine.handle_renewal(bench.now, Err(silence()));
    assert_eq!((bench.machine.poll_action(), bench.machine.poll_timeout()), (None, None));
    bench.end(LockRelease::Released);
}

#[test]
fn busy_leaves_no_trace_unless_a_copy_may_be_under_way() {
    let busy = || Acquired::Busy { by: holder(), remaining: TTL };
    let mut bench = Bench::asking(false, None);
    bench.asked();
    bench.answer(busy());
    assert_eq!(bench.machine.ended(), Some(&LockEnd::Untouched));
    assert_eq!(bench.machine.poll_action(), None);
    let mut bench = Bench::asking(false, None);
    bench.asked();
    bench.machine.handle_acquired(bench.now, Err(silence()));
    bench.due();
    bench.asked();
    bench.answer(busy());
    assert_eq!(bench.news(), ["busy"]);
    assert!(bench.left().unsure);
}

#[test]
fn what_is_refused_is_released_too() {
    for why in [LockRefusal::Full, LockRefusal::Spent, LockRefusal::WaitsForItself] {
        let mut bench = Bench::new();
        bench.asked();
        bench.answer(Acquired::Refused(why));
        assert_eq!(bench.news(), ["refused"]);
        bench.left();
        bench.end(LockRelease::Released);
    }
}

#[test]
fn a_store_that_does_not_answer_is_asked_for_as_long_as_the_caller_is_patient() {
    let mut bench = Bench::new();
    let begun = bench.now.mono;
    while bench.news().is_empty() {
        bench.asked();
        bench.machine.handle_acquired(bench.now, Err(silence()));
        if bench.machine.poll_timeout().is_some() {
            bench.due();
        }
    }
    let waited = bench.now.mono.since(begun);
    assert!(waited >= PATIENCE && waited < PATIENCE * 2, "{waited:?}");
    assert!(bench.left().unsure);
}

#[test]
fn a_store_that_refuses_is_not_asked_again_and_nothing_is_held() {
    let mut bench = Bench::new();
    bench.asked();
    bench.machine.handle_acquired(bench.now, Err(error(ErrorKind::Denied, Applied::No)));
    assert_eq!(bench.news(), ["failed"]);
    assert_eq!(bench.machine.held(bench.now), None);
    assert_eq!(bench.machine.ended(), Some(&LockEnd::Untouched), "there is nothing to leave");
}

#[test]
fn who_leaves_while_nothing_was_written_leaves_nothing_behind() {
    let mut bench = Bench::new();
    bench.asked();
    bench.machine.handle_acquired(bench.now, Err(error(ErrorKind::Unavailable, Applied::No)));
    bench.machine.handle_leave(bench.now);
    assert_eq!(bench.machine.ended(), Some(&LockEnd::Untouched));
    assert_eq!(bench.machine.poll_action(), None);
}

#[test]
fn a_release_that_is_refused_is_not_sent_again() {
    for (kind, again) in [(ErrorKind::Denied, false), (ErrorKind::ReadOnly, true), (ErrorKind::Timeout, true)] {
        let mut bench = Bench::new();
        bench.held();
        bench.machine.handle_leave(bench.now);
        bench.left();
        bench.machine.handle_released(bench.now, Err(error(kind, Applied::No)));
        assert_eq!(bench.machine.ended().is_none(), again, "{kind:?}");
    }
}

#[test]
fn hints_lost_during_a_renewal_have_it_renewed_at_once_again() {
    let mut bench = Bench::new();
    bench.held();
    bench.due();
    bench.machine.handle_hint(bench.now, LockHint::Resync);
    bench.renewed(Ok(LockRenewal::Renewed));
    bench.renewed(Ok(LockRenewal::Restored));
    assert!(bench.due() > TTL / 4);
}

#[test]
fn an_answer_that_came_too_late_to_be_believed_is_asked_for_again() {
    let mut bench = Bench::new();
    bench.now = bench.now.plus(TTL);
    bench.held();
    assert_eq!(bench.news(), [""; 0]);
    bench.due();
    bench.held();
    assert_eq!(bench.news(), ["held"]);
}

#[test]
fn a_store_that_finds_out_that_it_hears_nothing_is_looked_at_often_from_then_on() {
    let mut bench = Bench::new();
    bench.waiting(TTL);
    let beat = bench.due();
    assert_eq!(beat, TTL / 3);
    bench.machine.poll_each(Some(Duration::from_secs(1)));
    bench.waiting(TTL);
    assert_eq!(bench.due(), Duration::from_secs(1));
}

#[test]
fn a_store_that_always_answers_too_late_is_as_one_that_does_not_answer() {
    let mut bench = Bench::new();
    let mut rounds = 0;
    while bench.news().is_empty() {
        bench.now = bench.now.plus(TTL);
        bench.held();
        if bench.machine.poll_timeout().is_some() {
            bench.due();
        }
        rounds += 1;
    }
    assert_eq!(rounds, 2, "for as long as the caller is patient");
    assert!(bench.left().unsure);
}
