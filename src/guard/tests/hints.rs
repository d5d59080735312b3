//! Wake-ups while a slot is waited for, and hints that were lost.

use super::*;

#[test]
fn a_release_wakes_a_waiting_node_at_once() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), held(TTL));
    bench.wake(WakeKind::Released);
    assert_eq!(bench.until_timer(), Duration::ZERO);
    assert_eq!(bench.claim().trigger, Trigger::Retry);
}

#[test]
fn a_done_message_ends_the_wait_without_asking_the_store() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), held(TTL));
    bench.wake(WakeKind::Done);
    assert_eq!(bench.machine.ended(), Some(End::Done));
    bench.silent();
}

#[test]
fn a_message_about_another_job_changes_nothing() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), held(TTL));
    let timer = bench.machine.poll_timeout();
    let stranger = crate::job::JobName::new("stranger").unwrap();
    for wake in [Wake::Slot { job: stranger.clone(), key: slot().key(), what: WakeKind::Done }, Wake::Job(stranger)] {
        bench.machine.handle_wake(bench.now(), &wake);
    }
    assert_eq!(bench.machine.poll_timeout(), timer);
}

#[test]
fn the_end_of_an_older_run_wakes_only_who_waits_for_it() {
    let older = Slot::parse("push", "2026-11-21T13Z", "2026-11-21T14Z").unwrap();
    let wake = Wake::Slot { job: older.job().clone(), key: older.key(), what: WakeKind::Done };
    let (mut bench, _) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), Ok(Claim::Blocked { key: older.key(), by: other(), remaining: TTL }));
    bench.machine.handle_wake(bench.now(), &wake);
    assert!(bench.until_timer() <= Duration::from_millis(50));
    bench.claim();
    bench.machine.handle_claim(bench.now(), held(TTL));
    bench.machine.handle_wake(bench.now(), &wake);
    assert!(bench.until_timer() >= TTL);
}

#[test]
fn after_lost_hints_who_waits_for_nobody_looks_within_a_second() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), Ok(Claim::Backoff { remaining: TTL }));
    bench.machine.handle_wake(bench.now(), &Wake::Resync);
    assert!(bench.until_timer() <= seconds(1));
    bench.claim();
}

#[test]
fn after_lost_hints_the_holder_is_first_at_a_store_that_may_have_forgotten_it() {
    let mut holder = Bench::running(Policy::default());
    holder.machine.handle_wake(holder.now(), &Wake::Resync);
    assert!(matches!(holder.action(), Action::Renew { .. }));
    let (mut waiter, _) = Bench::at_tick(Policy::default());
    waiter.machine.handle_claim(waiter.now(), held(TTL));
    waiter.machine.handle_wake(waiter.now(), &Wake::Resync);
    let wait = waiter.until_timer();
    assert!(wait >= TTL / 3 + TTL / 10 && wait <= TTL / 3 + TTL / 10 + seconds(1), "{wait:?}");
    waiter.claim();
}

#[test]
fn a_hint_that_comes_while_a_claim_is_on_its_way_is_not_forgotten() {
    for (what, end) in [(WakeKind::Done, Some(End::Done)), (WakeKind::Released, None)] {
        let (mut bench, _) = Bench::at_tick(Policy::default());
        bench.wake(what);
        bench.machine.handle_claim(bench.now(), held(TTL));
        assert_eq!(bench.machine.ended(), end);
        if end.is_none() {
            assert_eq!(bench.until_timer(), Duration::ZERO);
            bench.claim();
        }
    }
}
