//! A job that names locks: what its attempt waits for under its lease, how that ends, and what its locks mean for its run.

use super::*;
use crate::job::OnLost;
use crate::resource::{
    AcquireRequest, Acquired, Demand, LockExit, LockHint, LockHolder, LockRefusal, LockRelease, LockRenewal, OwnerId,
};
use crate::slot::{Fence, Outcome, RunRecord};

/// A job that names `db`.
fn locking(policy: Policy) -> Assignment {
    let locks = Some("db".parse::<Demand>().unwrap().into());
    let port = LockPort { instance: Token::from_bits(77), poll: None };
    Assignment { locks: Some(port), ..assignment(Policy { locks, ..policy }) }
}

fn kill() -> Policy {
    Policy { on_lost: OnLost::Kill, kill_after: seconds(5), ..Policy::default() }
}

fn export() -> LockHolder {
    let label = "export@2026-11-21T13Z#1".to_owned();
    LockHolder { node: NodeName::new("c").unwrap(), label, owner: OwnerId::of_text("export"), fence: Some(Fence(4)) }
}

fn refused(why: LockRefusal) -> LockReply {
    LockReply::Acquired(Ok(Acquired::Refused(why)))
}

impl Bench {
    /// A machine whose claim was granted, its first request for locks sent.
    fn queueing(policy: Policy) -> (Self, AcquireRequest) {
        let (mut bench, _) = Self::with(locking(policy));
        bench.machine.handle_claim(bench.now(), granted(1));
        let request = bench.acquire();
        bench.silent();
        (bench, request)
    }

    /// A machine whose command runs, and holds `db`.
    fn running_locked(policy: Policy) -> (Self, Token) {
        let (mut bench, request) = Self::queueing(policy);
        bench.lock_held(request.token);
        bench.spawned();
        bench.machine.handle_started(bench.now());
        bench.silent();
        bench.events();
        (bench, request.token)
    }

    #[track_caller]
    fn acquire(&mut self) -> AcquireRequest {
        match self.action() {
            Action::Lock(LockAction::Acquire(request)) => request,
            action => panic!("no request for locks: {action:?}"),
        }
    }

    #[track_caller]
    fn lock_left(&mut self) -> LockExit {
        match self.action() {
            Action::Lock(LockAction::Release(exit)) => exit,
            action => panic!("no release of locks: {action:?}"),
        }
    }

    #[track_caller]
    fn given_back(&mut self) -> RunRecord {
        match self.action() {
            Action::GiveBack { run, .. } => run,
            action => panic!("not given back: {action:?}"),
        }
    }

    fn lock_reply(&mut self, of: Token, reply: LockReply) {
        self.machine.handle_lock_reply(self.now(), of, reply);
    }

    fn lock_held(&mut self, of: Token) {
        let at = self.now().wall;
        self.lock_reply(of, LockReply::Acquired(Ok(Acquired::Held { fence: Fence(5), at, places: vec![3] })));
    }

    fn lock_waits(&mut self, of: Token, ahead: u32) {
        let waiting = Acquired::Waiting { ahead, by: export(), remaining: seconds(30) };
        self.lock_reply(of, LockReply::Acquired(Ok(waiting)));
    }

    /// Lets time pass up to what is due about locks, and does it.
    fn until_lock_timer(&mut self) -> Duration {
        let at = self.machine.poll_lock_timeout().expect("nothing is due about locks");
        let wait = at.since(self.now().mono);
        self.clock.advance(wait);
        self.machine.handle_lock_timeout(self.now());
        wait
    }

    /// Its renewal is answered; the job is not paused.
    fn renewed(&mut self) {
        self.renewal(Ok(Renewal::Renewed));
        assert_eq!(self.action(), Action::AskPause);
        self.machine.handle_pause(self.now(), Ok(false));
    }

    fn waits_told(&mut self) -> usize {
        self.events().iter().filter(|event| matches!(event, Event::LockWaiting(_))).count()
    }
}

#[test]
fn a_granted_slot_waits_for_its_locks_under_its_lease_and_starts_when_it_holds_them() {
    let (mut bench, request) = Bench::queueing(Policy::default());
    assert_eq!((request.label.as_str(), request.ttl), ("push@2026-11-21T14Z#1", TTL));
    assert_eq!((request.owner, request.instance), (OwnerId::of_text("push@2026-11-21T14Z"), Token::from_bits(77)));
    assert!(bench.machine.is_holding() && bench.machine.is_queueing());
    bench.lock_waits(request.token, 1);
    bench.silent();
    assert!(bench.told(|event| matches!(event, Event::LockWaiting(wait) if (wait.attempt, wait.ahead) == (1, 1))));
    assert_eq!(bench.until_timer(), seconds(20));
    bench.renew();
    bench.renewed();
    bench.machine.handle_lock_hint(bench.now(), LockHint::Ready(request.token));
    assert_eq!(bench.acquire(), request, "the same request, with the same token");
    bench.lock_held(request.token);
    let locks = bench.spawned().locks.unwrap();
    assert_eq!((locks.names.as_str(), locks.fence, locks.owner), ("db", Fence(5), request.owner));
    let told = bench.events();
    let place = |wanted: fn(&Event) -> bool| told.iter().position(wanted);
    let held = place(|event| matches!(event, Event::LockHeld(grant) if grant.waited == seconds(20)));
    assert!(held.is_some() && held < place(|event| matches!(event, Event::RunStarted { .. })), "{told:?}");
}

#[test]
fn nothing_starts_while_the_lease_is_not_trusted_though_the_locks_are_held() {
    let (mut bench, request) = Bench::queueing(Policy::default());
    bench.lock_waits(request.token, 1);
    bench.until_timer();
    bench.renew();
    bench.pause(seconds(40));
    bench.machine.handle_lock_hint(bench.now(), LockHint::Ready(request.token));
    bench.acquire();
    bench.lock_held(request.token);
    bench.silent();
    bench.renewed();
    // The answer was to a renewal sent at 20 s: its window is not over, and the next one is due.
    bench.renew();
    bench.spawned();
}

#[test]
fn nothing_starts_while_the_locks_are_in_doubt_though_the_lease_is_trusted() {
    let (mut bench, request) = Bench::queueing(Policy::default());
    bench.until_timer();
    bench.renew();
    bench.pause(seconds(40));
    bench.renewal(Err(error(Applied::Maybe)));
    bench.lock_reply(request.token, LockReply::Acquired(Err(error(Applied::Maybe))));
    bench.until_lock_timer();
    bench.acquire();
    bench.lock_held(request.token);
    bench.silent();
    // Held, with a lease that is in doubt. Its renewal is answered when the locks are in doubt as well.
    bench.pause(seconds(58));
    bench.machine.handle_timeout(bench.now());
    bench.renew();
    bench.renewed();
    bench.silent();
    bench.machine.handle_lock_timeout(bench.now());
    assert!(matches!(bench.action(), Action::Lock(LockAction::Renew(_))));
    assert!(bench.told(|event| matches!(event, Event::LockLost(loss) if loss.in_doubt && loss.unstarted)));
    bench.lock_reply(request.token, LockReply::Renewed(Ok(LockRenewal::Renewed)));
    bench.spawned();
    assert!(bench.told(|event| matches!(event, Event::LockHeld(grant) if grant.again)));
}

#[test]
fn a_wait_that_is_over_costs_no_attempt_and_the_slot_is_tried_again_as_before() {
    let (mut bench, request) = Bench::queueing(Policy { lock_wait: Some(seconds(1_200)), ..Policy::default() });
    bench.lock_waits(request.token, 2);
    bench.until_timer();
    bench.renew();
    assert_eq!(bench.until_timer(), seconds(1_180));
    assert_eq!(bench.lock_left().token, request.token);
    let run = bench.given_back();
    bench.silent();
    assert_eq!((run.outcome, run.exit_code, run.started_at), (Some(Outcome::GivenBack), None, None));
    assert_eq!(run.message.as_deref(), Some("lock_wait passed while it waited for db"));
    bench.lock_reply(request.token, LockReply::Released(Ok(LockRelease::Released)));
    assert!(bench.told(|event| matches!(event, Event::LockLeft(leave) if leave.why == run.message)));
    bench.release(Ok(Release::Released));
    assert_eq!(bench.until_timer(), Duration::from_millis(12_500));
    let claim = bench.claim();
    assert_eq!(claim.trigger, Trigger::Schedule, "nothing was tried yet");
    assert_ne!(claim.token, request.token);
}

#[test]
fn who_waited_in_vain_looks_whether_an_operator_ended_the_wait() {
    let (mut bench, request) = Bench::queueing(Policy { lock_wait: Some(seconds(10)), ..Policy::default() });
    bench.until_timer();
    bench.lock_left();
    bench.given_back();
    bench.lock_reply(request.token, LockReply::Released(Ok(LockRelease::Released)));
    bench.release(Ok(Release::Released));
    bench.wake(WakeKind::Released);
    assert_eq!(bench.until_timer(), Duration::from_millis(2_500));
    bench.claim();
    bench.machine.handle_claim(bench.now(), granted(2));
    bench.acquire();
}

#[test]
fn who_waits_in_vain_again_and_again_comes_back_later_each_time_until_a_command_starts() {
    let retry = crate::job::RetryPolicy { delay: Duration::ZERO, ..Policy::default().retry };
    let (mut bench, mut request) = Bench::queueing(Policy { lock_wait: Some(seconds(10)), retry, ..Policy::default() });
    let mut waits = Vec::new();
    for attempt in 2..=4 {
        assert_eq!(bench.until_timer(), seconds(10));
        bench.lock_left();
        bench.given_back();
        bench.release(Ok(Release::Released));
        waits.push(bench.until_timer().as_secs());
        bench.claim();
        let grant = Claim::Claimed { attempt, used: 1, at: slot().start(), revision: None };
        bench.machine.handle_claim(bench.now(), Ok(grant));
        request = bench.acquire();
    }
    assert_eq!(waits, [1, 2, 4]);
    bench.lock_held(request.token);
    bench.spawned();
    bench.machine.handle_started(bench.now());
    bench.exits(1);
    bench.lock_left();
    assert!(matches!(bench.action(), Action::Fail { .. }));
    bench.release(Ok(Release::Released));
    assert_eq!(bench.until_timer(), Duration::from_millis(250), "as after any failure");
}

/// What ends a wait, beside `lock_wait`: how it comes about, and the reason that is recorded.
#[test]
fn whatever_ends_the_wait_leaves_the_locks_and_gives_the_attempt_back_once() {
    type Cause = fn(&mut Bench, Token);
    let causes: [(&str, Cause); 7] = [
        ("the start deadline passed while it waited for db", |bench, _| {
            bench.until_timer();
            bench.renew();
            bench.until_timer();
        }),
        ("this node gave it up while it waited for db", |bench, _| {
            bench.machine.handle_shutdown(bench.now(), TTL * 1_000);
        }),
        ("a newer slot of the job was due while it waited for db", |bench, _| {
            bench.machine.handle_replaced(bench.now());
        }),
        ("its lease was lost while it waited for db", |bench, _| {
            bench.until_timer();
            bench.renew();
            bench.renewal(Ok(Renewal::Lost { to: None }));
        }),
        ("its locks were lost while it waited for db", |bench, token| {
            bench.until_timer();
            bench.renew();
            bench.pause(seconds(40));
            bench.lock_reply(token, LockReply::Acquired(Err(error(Applied::Maybe))));
            bench.until_lock_timer();
            bench.acquire();
            bench.lock_held(token);
            bench.until_lock_timer();
            assert!(matches!(bench.action(), Action::Lock(LockAction::Renew(_))));
            bench.lock_reply(token, LockReply::Renewed(Ok(LockRenewal::Lost { to: Some(export()) })));
        }),
        ("db: the queue is full", |bench, token| bench.lock_reply(token, refused(LockRefusal::Full))),
        ("db: the request has been left, or was taken out of the queue", |bench, token| {
            bench.lock_waits(token, 1);
            bench.machine.handle_lock_hint(bench.now(), LockHint::Ready(token));
            bench.acquire();
            bench.lock_reply(token, refused(LockRefusal::Spent));
        }),
    ];
    for (why, cause) in causes {
        let (mut bench, request) =
            Bench::queueing(Policy { start_deadline: Some(seconds(1_800)), ..Policy::default() });
        cause(&mut bench, request.token);
        assert_eq!(bench.lock_left().token, request.token, "{why}");
        assert_eq!(bench.given_back().message.as_deref(), Some(why));
        let is_told = |event: &Event| matches!(event, Event::Unstarted { attempt: 1, why: told, locks } if told == why && locks.len() == 1);
        assert!(bench.told(is_told), "{why}");
        bench.silent();
        assert!(bench.machine.leaves_locks());
        bench.lock_reply(request.token, LockReply::Released(Ok(LockRelease::Released)));
        assert!(!bench.machine.leaves_locks(), "{why}");
    }
}

#[test]
fn an_attempt_that_only_waited_is_no_run_beside_another_one() {
    let (mut bench, _) = Bench::queueing(Policy::default());
    bench.until_timer();
    bench.renew();
    bench.renewal(Ok(Renewal::Lost { to: Some(other()) }));
    bench.lock_left();
    bench.given_back();
    assert!(bench.told(|event| matches!(event, Event::LeaseLost { attempt: 1, unstarted: true, .. })));
    bench.release(Ok(Release::Overtaken { by: other() }));
    assert!(bench.told(|event| matches!(event, Event::Overtaken { attempt: 1, unstarted: true, .. })));
}

#[test]
fn a_pause_ends_the_wait_once_it_is_heard_of_and_a_store_that_does_not_say_changes_nothing() {
    let (mut bench, request) = Bench::queueing(Policy::default());
    bench.machine.handle_wake(bench.now(), &Wake::Job(slot().job().clone()));
    assert_eq!(bench.action(), Action::AskPause);
    bench.machine.handle_wake(bench.now(), &Wake::Job(slot().job().clone()));
    bench.silent();
    bench.machine.handle_pause(bench.now(), Err(error(Applied::No)));
    assert!(bench.told(|event| matches!(event, Event::StoreFailed { .. })));
    bench.silent();
    bench.until_timer();
    bench.renew();
    bench.renewed();
    assert!(bench.machine.is_queueing());
    bench.until_timer();
    bench.renew();
    bench.renewal(Ok(Renewal::Renewed));
    assert_eq!(bench.action(), Action::AskPause);
    bench.machine.handle_pause(bench.now(), Ok(true));
    assert_eq!(bench.lock_left().token, request.token);
    assert_eq!(bench.given_back().message.as_deref(), Some("the job was paused while it waited for db"));
    bench.release(Ok(Release::Released));
    bench.until_timer();
    bench.claim();
}

/// It has left its queue because its job is paused, and the store says so of its slot.
fn paused(poll: Option<Duration>) -> Bench {
    let (mut bench, _) = Bench::with(Assignment { poll, ..locking(Policy::default()) });
    bench.machine.handle_claim(bench.now(), granted(1));
    let request = bench.acquire();
    bench.machine.handle_wake(bench.now(), &Wake::Job(slot().job().clone()));
    assert_eq!(bench.action(), Action::AskPause);
    bench.machine.handle_pause(bench.now(), Ok(true));
    assert_eq!(bench.lock_left().token, request.token);
    bench.given_back();
    bench.release(Ok(Release::Released));
    assert!(bench.until_timer() < seconds(1), "for how long is the store's to say");
    bench.claim();
    bench.machine.handle_claim(bench.now(), Ok(Claim::Paused { remaining: None }));
    bench
}

#[test]
fn who_left_its_queue_for_a_pause_asks_at_once_when_the_job_is_resumed() {
    let mut bench = paused(None);
    bench.machine.handle_wake(bench.now(), &Wake::Job(slot().job().clone()));
    assert!(bench.until_timer() < seconds(1));
    bench.claim();
    bench.machine.handle_claim(bench.now(), granted(2));
    bench.acquire();
    // It has tried nothing, and waited for nothing in vain.
    bench.machine.handle_wake(bench.now(), &Wake::Job(slot().job().clone()));
    assert_eq!(bench.action(), Action::AskPause);
    bench.machine.handle_pause(bench.now(), Ok(false));
    assert!(bench.machine.is_queueing());
}

#[test]
fn without_a_hint_a_resume_is_found_at_the_next_poll_or_after_one_ttl() {
    assert!(paused(Some(seconds(5))).until_timer() <= seconds(5));
    let unheard = paused(None).until_timer();
    assert!(unheard > seconds(5) && unheard <= TTL + seconds(1), "{unheard:?}");
}

#[test]
fn a_run_is_not_asked_for_a_pause_and_an_answer_that_comes_late_does_not_end_it() {
    let (mut bench, request) = Bench::queueing(Policy::default());
    bench.machine.handle_wake(bench.now(), &Wake::Job(slot().job().clone()));
    assert_eq!(bench.action(), Action::AskPause);
    bench.lock_held(request.token);
    bench.spawned();
    bench.machine.handle_started(bench.now());
    bench.machine.handle_pause(bench.now(), Ok(true));
    bench.silent();
    bench.until_timer();
    bench.renew();
    bench.renewal(Ok(Renewal::Renewed));
    bench.silent();
}

#[test]
fn the_end_of_the_slot_ends_the_wait_and_of_a_past_slot_it_does_not() {
    let (mut bench, _) = Bench::queueing(Policy::default());
    bench.until_timer();
    bench.renew();
    assert_eq!(bench.until_timer(), seconds(3_580));
    bench.lock_left();
    assert_eq!(bench.given_back().message.as_deref(), Some("the slot ended while it waited for db"));
    let (mut bench, _) = Bench::with(Assignment { past: true, ..locking(Policy::default()) });
    bench.machine.handle_claim(bench.now(), granted(1));
    bench.acquire();
    bench.pause(seconds(3_700));
    bench.machine.handle_timeout(bench.now());
    bench.renew();
    assert!(bench.machine.is_queueing());
}

#[test]
fn who_leaves_for_a_shutdown_is_gone_when_the_store_has_it() {
    let (mut bench, request) = Bench::queueing(Policy::default());
    bench.machine.handle_shutdown(bench.now(), Duration::ZERO);
    bench.lock_left();
    bench.given_back();
    bench.release(Ok(Release::Released));
    assert_eq!(bench.machine.ended(), Some(End::Left));
    assert!(bench.machine.leaves_locks(), "the driver waits for that a while");
    bench.lock_reply(request.token, LockReply::Released(Ok(LockRelease::Released)));
    assert!(!bench.machine.leaves_locks());
}

#[test]
fn what_was_never_written_is_left_without_a_word_to_the_store() {
    let (mut bench, request) = Bench::queueing(Policy::default());
    let denied = StoreError::new(ErrorKind::Denied, Applied::No, Op::Acquire, "redis://x", "no permission");
    bench.lock_reply(request.token, LockReply::Acquired(Err(denied)));
    assert_eq!(bench.given_back().message.as_deref(), Some("db: redis://x: acquire: no permission"));
    bench.silent();
    assert!(!bench.machine.leaves_locks());
}

#[test]
fn a_store_that_does_not_answer_is_asked_on_and_told_once() {
    let (mut bench, request) = Bench::queueing(Policy::default());
    for _ in 0..3 {
        bench.lock_reply(request.token, LockReply::Acquired(Err(error(Applied::Maybe))));
        bench.until_lock_timer();
        assert_eq!(bench.acquire(), request);
    }
    assert!(bench.machine.is_queueing());
    let told = bench.events();
    assert_eq!(told.iter().filter(|event| matches!(event, Event::StoreFailed { .. })).count(), 1, "{told:?}");
}

#[test]
fn behind_an_entry_of_its_own_slot_it_asks_anew_and_keeps_its_lease() {
    let (mut bench, request) = Bench::queueing(Policy::default());
    bench.lock_reply(request.token, refused(LockRefusal::WaitsForItself));
    bench.lock_left();
    bench.silent();
    assert!(bench.machine.is_queueing());
    assert_eq!(bench.until_timer(), seconds(20));
    bench.renew();
    let again = bench.acquire();
    assert_ne!(again.token, request.token, "the other one is spent");
    assert_eq!(again.owner, request.owner);
    bench.lock_held(request.token);
    bench.silent();
    bench.lock_held(again.token);
    bench.spawned();
    assert!(bench.told(|event| matches!(event, Event::LockHeld(grant) if grant.waited == seconds(20))), "in all");
}

#[test]
fn of_a_wait_the_first_word_is_told_and_changes_once_for_each_lease() {
    let (mut bench, request) = Bench::queueing(Policy::default());
    let look = |bench: &mut Bench, ahead| {
        bench.machine.handle_lock_hint(bench.now(), LockHint::Ready(request.token));
        bench.acquire();
        // Its renewal, where one is due.
        while bench.machine.poll_action().is_some() {}
        bench.lock_waits(request.token, ahead);
        bench.waits_told()
    };
    bench.lock_waits(request.token, 3);
    assert_eq!(bench.waits_told(), 1);
    assert_eq!(look(&mut bench, 2), 0, "too soon");
    bench.pause(TTL);
    assert_eq!(look(&mut bench, 3), 0, "no news");
    assert_eq!(look(&mut bench, 1), 1);
}

#[test]
fn what_somebody_does_to_the_lease_of_a_slot_that_waits_is_learnt_at_once() {
    let (mut bench, _) = Bench::queueing(Policy::default());
    bench.wake(WakeKind::Released);
    bench.renew();
    bench.renewal(Ok(Renewal::Lost { to: None }));
    bench.lock_left();
    bench.given_back();
}

#[test]
fn a_hint_that_comes_while_the_lease_is_being_renewed_is_a_reason_to_renew_it_again() {
    let (mut bench, _) = Bench::queueing(Policy::default());
    bench.until_timer();
    bench.renew();
    bench.wake(WakeKind::Released);
    bench.silent();
    bench.renewed();
    bench.renew();
    bench.renewed();
    bench.silent();
}

#[test]
fn the_locks_are_free_as_soon_as_the_command_is_over_and_a_release_is_repeated_while_the_retry_waits() {
    let (mut bench, token) = Bench::running_locked(Policy::default());
    bench.exits(1);
    assert_eq!(bench.lock_left().token, token, "before the store knows how it ended");
    assert!(matches!(bench.action(), Action::Fail { .. }));
    bench.release(Ok(Release::Released));
    bench.lock_reply(token, LockReply::Released(Err(error(Applied::Maybe))));
    assert!(bench.machine.is_waiting());
    bench.until_lock_timer();
    assert_eq!(bench.lock_left().token, token);
    assert!(bench.machine.is_waiting(), "that is no look at the slot");
    bench.lock_reply(token, LockReply::Released(Ok(LockRelease::Overtaken { by: Some(export()) })));
    assert_eq!(bench.machine.poll_lock_timeout(), None);
    let node = NodeName::new("c").unwrap();
    assert!(bench.told(|event| matches!(event, Event::LockLeft(leave) if leave.by.as_ref() == Some(&node))));
}

#[test]
fn with_kill_the_command_is_dead_before_its_locks_can_be_anothers() {
    let (mut bench, _) = Bench::running_locked(kill());
    bench.until_timer();
    bench.renew();
    bench.renewal(Ok(Renewal::Renewed));
    bench.machine.handle_lock_timeout(bench.now());
    assert!(matches!(bench.action(), Action::Lock(LockAction::Renew(_))), "not answered");
    assert_eq!(bench.until_timer(), seconds(20));
    bench.renew();
    bench.renewal(Ok(Renewal::Renewed));
    // The lease is trusted until 98 s, the locks until 58 s: TERM comes 5 s before that.
    assert_eq!(bench.until_timer(), seconds(13));
    assert_eq!(bench.action(), Action::Terminate);
    let deadline = bench.machine.lease_deadline().unwrap();
    assert_eq!(deadline.kill_at.since(bench.now().mono), seconds(5), "the keeper goes by the same");
    assert_eq!(bench.until_timer(), seconds(5));
    assert_eq!(bench.action(), Action::Kill);
    bench.machine.handle_exit(bench.now(), Exit { status: ExitStatus::Signal(9), ..exit(0) });
    bench.lock_left();
    match bench.action() {
        Action::Fail { run, .. } => assert_eq!(run.outcome, Some(Outcome::LostLease)),
        action => panic!("{action:?}"),
    }
}

#[test]
fn locks_that_are_anothers_are_told_and_with_kill_they_end_the_run() {
    let lost = || LockReply::Renewed(Ok(LockRenewal::Lost { to: Some(export()) }));
    for (policy, is_killed) in [(Policy::default(), false), (kill(), true)] {
        let (mut bench, token) = Bench::running_locked(policy);
        bench.until_lock_timer();
        assert!(matches!(bench.action(), Action::Lock(LockAction::Renew(_))));
        bench.lock_reply(token, lost());
        let node = NodeName::new("c").unwrap();
        let is_told = |event: &Event| matches!(event, Event::LockLost(loss) if loss.killing == is_killed && !loss.unstarted && loss.to.as_ref() == Some(&node));
        assert!(bench.told(is_told));
        let ordered: Vec<Action> = std::iter::from_fn(|| bench.machine.poll_action()).collect();
        assert_eq!(ordered, if is_killed { vec![Action::Terminate, Action::Kill] } else { Vec::new() });
    }
}

#[test]
fn a_doubt_that_a_stalled_node_slept_through_is_told_with_the_end_of_the_run() {
    let (mut bench, _) = Bench::running_locked(Policy::default());
    bench.pause(seconds(59));
    bench.exits(0);
    assert!(bench.told(|event| matches!(event, Event::LockLost(loss) if loss.in_doubt)));
}

#[test]
fn of_a_command_that_its_keeper_killed_the_doubt_says_so() {
    for killing in [false, true] {
        let (mut bench, _) = Bench::running_locked(kill());
        bench.pause(seconds(59));
        let lapsed = killing.then(|| bench.now().mono);
        bench.machine.handle_exit(bench.now(), Exit { lapsed, status: ExitStatus::Signal(9), ..exit(0) });
        let is_told =
            |event: &Event| matches!(event, Event::LockLost(loss) if loss.in_doubt && loss.killing == killing);
        assert!(bench.told(is_told), "{killing}");
    }
}

#[test]
fn where_it_is_found_out_that_the_store_may_not_tell_it_looks_each_second_from_then_on() {
    let second = Some(seconds(1));
    let (mut bench, request) = Bench::queueing(Policy { lock_wait: Some(seconds(30)), ..Policy::default() });
    bench.machine.poll_locks_each(second);
    bench.lock_waits(request.token, 1);
    assert_eq!(bench.until_lock_timer(), seconds(1));
    assert_eq!(bench.acquire(), request);
    // So does the next attempt.
    bench.lock_waits(request.token, 1);
    bench.pause(seconds(30));
    bench.machine.handle_timeout(bench.now());
    bench.lock_left();
    bench.given_back();
    bench.release(Ok(Release::Released));
    bench.until_timer();
    bench.claim();
    bench.machine.handle_claim(bench.now(), granted(2));
    let request = bench.acquire();
    bench.lock_waits(request.token, 1);
    assert_eq!(bench.until_lock_timer(), seconds(1));
}

#[test]
fn a_slot_that_ended_in_the_queue_is_looked_at_no_later_for_having_waited_in_vain_before() {
    let (mut bench, request) = Bench::queueing(Policy { lock_wait: Some(seconds(600)), ..Policy::default() });
    let mut token = request.token;
    for attempt in 2.. {
        bench.lock_waits(token, 1);
        bench.pause(seconds(600));
        bench.machine.handle_timeout(bench.now());
        while bench.machine.poll_action().is_some() {}
        bench.release(Ok(Release::Released));
        if bench.now().wall >= slot().end() {
            break;
        }
        bench.until_timer();
        bench.claim();
        let grant = Claim::Claimed { attempt, used: 1, at: bench.now().wall, revision: None };
        bench.machine.handle_claim(bench.now(), Ok(grant));
        token = bench.acquire().token;
    }
    assert_eq!(bench.until_timer(), Duration::from_millis(12_500), "as after a wait that was the first");
}

#[test]
fn a_store_without_locks_starts_nothing_that_names_some() {
    let (mut bench, _) = Bench::with(Assignment { locks: None, ..locking(Policy::default()) });
    bench.machine.handle_claim(bench.now(), granted(1));
    assert_eq!(bench.given_back().message.as_deref(), Some("the store keeps no locks"));
    bench.silent();
}

#[test]
fn without_a_guard_nothing_runs_that_names_locks() {
    let policy = Policy { on_store_error: crate::job::OnStoreError::Run, ..Policy::default() };
    let (mut bench, _) = Bench::with(locking(policy));
    for _ in 0..40 {
        bench.machine.handle_claim(bench.now(), Err(error(Applied::No)));
        bench.until_timer();
        bench.claim();
    }
}
