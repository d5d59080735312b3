//! Cases: hints. A store that pushes tells every other connection; one that does not stays silent. A hint may be lost, so
//! each case causes the change anew until it is heard: a subscription may only just have begun.

use std::time::Duration;

use crate::store::conformance::bench::{DONE, LEASE, audit, case, failed, given_back, succeeded};
use crate::store::conformance::{Bench, Case, CaseOutcome, Failure};
use crate::store::{Wake, WakeKind, Wakeups};

pub(super) const CASES: &[Case] = &[
    case!("wake", a_failure_wakes_the_others, L1),
    case!("wake", an_attempt_given_back_wakes_the_others, L1),
    case!("wake", success_wakes_the_others),
    case!("wake", an_unlock_wakes_the_others, L1),
    case!("wake", a_reset_wakes_the_others, L1),
    case!("wake", mark_done_wakes_the_others),
    case!("wake", a_resume_wakes_the_others, L1),
    case!("wake", two_listeners_are_both_told, L1),
];

/// How long each change's hint is listened for before the change is made anew.
const LISTEN: Duration = Duration::from_millis(200);

/// Times that a change is made anew before its hint counts as never told.
fn tries(bench: &Bench) -> i64 {
    i64::try_from(bench.scale().patience.as_millis() / LISTEN.as_millis() + 1).unwrap_or(i64::MAX)
}

/// Hears `wanted` within a short while, passing over everything else.
async fn hears(wakeups: &mut Wakeups, wanted: impl Fn(&Wake) -> bool) -> bool {
    let listening = async {
        loop {
            match wakeups.recv().await {
                Ok(wake) if wanted(&wake) => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    };
    tokio::time::timeout(LISTEN, listening).await.unwrap_or(false)
}

/// Makes the change at one slot after the other until its hint is heard. A store that does not push stays silent.
async fn told(
    bench: &Bench,
    wakeups: &mut Wakeups,
    (job, what): (&str, WakeKind),
    mut change: impl AsyncFnMut(&crate::slot::Slot) -> CaseOutcome,
) -> CaseOutcome {
    for index in 0..tries(bench) {
        let slot = bench.span(job, -600 - index, 7_200)?;
        change(&slot).await?;
        if !bench.store.capability().push {
            return silent(wakeups);
        }
        let ours = |wake: &Wake| matches!(wake, Wake::Slot { job, key, what: kind } if job == slot.job() && *key == slot.key() && *kind == what);
        if hears(wakeups, ours).await {
            return Ok(());
        }
    }
    Err(Failure::from(format!("no hint {what:?} for {job} within {:?}", bench.scale().patience)))
}

fn silent(wakeups: &mut Wakeups) -> CaseOutcome {
    while let Ok(wake) = wakeups.try_recv() {
        ensure_eq!(wake, Wake::Resync, "a store that does not push told");
    }
    Ok(())
}

/// Completes slots of `job` until the hint is heard.
pub(super) async fn until_told(bench: &Bench, wakeups: &mut Wakeups, job: &str, what: WakeKind) -> CaseOutcome {
    told(bench, wakeups, (job, what), async |slot| {
        let lease = bench.grant(slot, "a").await?;
        bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
        Ok(())
    })
    .await
}

async fn a_failure_wakes_the_others(bench: &Bench) -> CaseOutcome {
    let listener = bench.another().await?;
    let mut wakeups = listener.subscribe();
    told(bench, &mut wakeups, ("job", WakeKind::Released), async |slot| {
        let lease = bench.grant(slot, "a").await?;
        bench.store.fail(&lease, &failed(&lease), LEASE).await?;
        Ok(())
    })
    .await
}

async fn an_attempt_given_back_wakes_the_others(bench: &Bench) -> CaseOutcome {
    let listener = bench.another().await?;
    let mut wakeups = listener.subscribe();
    told(bench, &mut wakeups, ("job", WakeKind::Released), async |slot| {
        let lease = bench.grant(slot, "a").await?;
        bench.store.give_back(&lease, &given_back(&lease)).await?;
        Ok(())
    })
    .await
}

async fn success_wakes_the_others(bench: &Bench) -> CaseOutcome {
    let listener = bench.another().await?;
    let mut wakeups = listener.subscribe();
    until_told(bench, &mut wakeups, "job", WakeKind::Done).await
}

async fn an_unlock_wakes_the_others(bench: &Bench) -> CaseOutcome {
    let listener = bench.another().await?;
    let mut wakeups = listener.subscribe();
    told(bench, &mut wakeups, ("job", WakeKind::Released), async |slot| {
        bench.grant(slot, "a").await?;
        bench.store.unlock(slot, &audit("unlock")).await?;
        Ok(())
    })
    .await
}

async fn a_reset_wakes_the_others(bench: &Bench) -> CaseOutcome {
    let listener = bench.another().await?;
    let mut wakeups = listener.subscribe();
    told(bench, &mut wakeups, ("job", WakeKind::Released), async |slot| {
        bench.grant(slot, "a").await?;
        bench.expire(slot).await?;
        bench.store.reset(slot, &audit("reset")).await?;
        Ok(())
    })
    .await
}

async fn mark_done_wakes_the_others(bench: &Bench) -> CaseOutcome {
    let listener = bench.another().await?;
    let mut wakeups = listener.subscribe();
    told(bench, &mut wakeups, ("job", WakeKind::Done), async |slot| {
        bench.store.mark_done(slot, &audit("mark_done"), DONE).await?;
        Ok(())
    })
    .await
}

async fn a_resume_wakes_the_others(bench: &Bench) -> CaseOutcome {
    let listener = bench.another().await?;
    let mut wakeups = listener.subscribe();
    let name = crate::store::conformance::bench::job_name("job")?;
    for _ in 0..tries(bench) {
        bench.store.pause(&name, None, &audit("pause")).await?;
        bench.store.resume(&name, &audit("resume")).await?;
        if !bench.store.capability().push {
            return silent(&mut wakeups);
        }
        let ours = |wake: &Wake| matches!(wake, Wake::Job(job) if *job == name);
        if hears(&mut wakeups, ours).await {
            return Ok(());
        }
    }
    Err(Failure::from(format!("no hint for job {name} within {:?}", bench.scale().patience)))
}

async fn two_listeners_are_both_told(bench: &Bench) -> CaseOutcome {
    let connection = bench.another().await?;
    let (mut first, mut second) = (connection.subscribe(), connection.subscribe());
    until_told(bench, &mut first, "one", WakeKind::Done).await?;
    until_told(bench, &mut second, "two", WakeKind::Done).await
}
