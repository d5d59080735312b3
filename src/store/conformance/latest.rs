//! Cases: what a job has come to lately. It is kept with the job, written with the step that changes it, and nothing of it is lost where
//! slots of one job end at the same time.

use std::time::Duration;

use futures_util::future::join_all;

use crate::slot::{JobLatest, LastSuccess, Outcome as Ended, Slot, SlotKey, Verdict};
use crate::store::conformance::bench::{
    DONE, WAIT, audit, case, failed, given_back, granted, is_recent, job_name, node_name, succeeded,
};
use crate::store::conformance::{Bench, Case, CaseOutcome, Failure};
use crate::store::{ClaimRequest, Closing, Intervention, Store};

pub(super) const CASES: &[Case] = &[
    case!("latest", a_job_that_has_come_to_nothing_has_nothing),
    case!("latest", a_success_is_told_with_its_slot_and_its_end),
    case!("latest", the_last_end_of_a_run_is_told_whatever_came_of_it),
    case!("latest", a_repetition_changes_nothing, I7),
    case!("latest", slots_that_failed_or_were_missed_are_counted, L2),
    case!("latest", a_verdict_is_counted_by_whoever_tells_it_and_never_under_a_run, L2),
    case!("latest", a_newer_success_ends_what_was_failing),
    case!("latest", an_older_success_is_not_the_last_one),
    case!("latest", a_verdict_on_an_older_slot_than_the_last_success_counts_nothing),
    case!("latest", a_reset_takes_a_failure_back),
    case!("latest", a_slot_that_is_marked_done_counts_as_one_that_is),
    case!("latest", a_slot_that_is_skipped_in_advance_hides_no_failure_before_it, L2),
    case!("latest", many_jobs_are_answered_in_the_order_asked),
    case!("latest", what_a_job_has_come_to_stays_in_its_namespace, I9),
    case!("latest", slots_of_one_job_that_end_at_the_same_time_lose_nothing),
];

/// What a job has come to.
async fn latest_at(store: &dyn Store, job: &str) -> Result<JobLatest, Failure> {
    let answer = store.latest(&[job_name(job)?]).await?;
    take!(answer.as_slice(), [latest] => Ok(latest.clone()))
}

async fn latest(bench: &Bench) -> Result<JobLatest, Failure> {
    latest_at(&*bench.store, "job").await
}

/// A slot that is over, so many hours ago.
fn over(bench: &Bench, hours: i64) -> Result<Slot, Failure> {
    bench.span("job", -3_600 * (hours + 1), -3_600 * hours)
}

/// Nobody ran it.
async fn missed(bench: &Bench, slot: &Slot) -> CaseOutcome {
    ensure_eq!(bench.store.close(slot, 3, &node_name("closer")?).await?, Closing::First(Verdict::Missed));
    Ok(())
}

/// Its only attempt failed.
async fn failed_at(bench: &Bench, slot: &Slot) -> CaseOutcome {
    let request = ClaimRequest { past: true, max_attempts: 1, ..bench.request(slot, "a")? };
    let lease = granted(&request, bench.store.claim(&request).await?)?;
    bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?;
    ensure_eq!(bench.store.close(slot, 1, &node_name("closer")?).await?, Closing::First(Verdict::Failed));
    Ok(())
}

async fn done(bench: &Bench, slot: &Slot) -> CaseOutcome {
    let request = ClaimRequest { past: true, ..bench.request(slot, "a")? };
    let lease = granted(&request, bench.store.claim(&request).await?)?;
    bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
    Ok(())
}

/// Since when, the newest, its verdict, how many.
fn failing(latest: &JobLatest) -> Option<(SlotKey, SlotKey, Verdict, u32)> {
    latest.failing.map(|failing| (failing.since, failing.last, failing.verdict, failing.slots))
}

fn newest(latest: &JobLatest) -> Option<SlotKey> {
    latest.success.map(|success| success.slot)
}

fn end(latest: &JobLatest) -> Option<(SlotKey, Ended)> {
    latest.end.map(|end| (end.slot, end.outcome))
}

async fn a_job_that_has_come_to_nothing_has_nothing(bench: &Bench) -> CaseOutcome {
    ensure_eq!(bench.store.latest(&[]).await?, Vec::new());
    ensure_eq!(latest(bench).await?, JobLatest::default());
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.store.renew(&lease).await?;
    ensure_eq!(latest(bench).await?, JobLatest::default(), "nothing has ended yet");
    bench.store.unlock(&slot, &audit("unlock")).await?;
    bench.store.reset(&slot, &audit("reset")).await?;
    ensure_eq!(latest(bench).await?, JobLatest::default(), "nor was it ended by a run");
    Ok(())
}

async fn a_success_is_told_with_its_slot_and_its_end(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    done(bench, &slot).await?;
    let known = latest_at(&*bench.another().await?, "job").await?;
    let (success, end) = (take!(known.success, Some(success) => success), take!(known.end, Some(end) => end));
    ensure_eq!((success.slot, end.slot, end.outcome), (slot.key(), slot.key(), Ended::Success));
    ensure!(is_recent(bench, success.at) && is_recent(bench, end.at), "{success:?}, {end:?}");
    ensure_eq!(known.failing, None);
    Ok(())
}

async fn the_last_end_of_a_run_is_told_whatever_came_of_it(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let first = bench.grant(&slot, "a").await?;
    bench.store.fail(&first, &failed(&first), Duration::ZERO).await?;
    ensure_eq!(end(&latest(bench).await?), Some((slot.key(), Ended::Failure)));
    let second = bench.grant(&slot, "b").await?;
    bench.store.give_back(&second, &given_back(&second)).await?;
    ensure_eq!(end(&latest(bench).await?), Some((slot.key(), Ended::GivenBack)));
    let third = bench.grant(&slot, "c").await?;
    bench.expire(&slot).await?;
    let other = bench.span("job", -900, 7_200)?;
    done(bench, &other).await?;
    ensure_eq!(end(&latest(bench).await?), Some((other.key(), Ended::Success)), "of an older slot, and later");
    // It lost its lease long ago, and tells of its end now.
    bench.store.fail(&third, &failed(&third), WAIT).await?;
    let known = latest(bench).await?;
    ensure_eq!(
        (end(&known), known.failing),
        (Some((slot.key(), Ended::Failure)), None),
        "a slot that lasts has no verdict"
    );
    Ok(())
}

async fn a_repetition_changes_nothing(bench: &Bench) -> CaseOutcome {
    let (slot, later) = (bench.slot("job")?, bench.span("job", -300, 7_200)?);
    let lease = bench.grant(&slot, "a").await?;
    bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?;
    let next = bench.grant(&slot, "a").await?;
    bench.store.complete(&next, &succeeded(&next), DONE).await?;
    done(bench, &later).await?;
    let known = latest(bench).await?;
    let ended = take!(known.end, Some(end) => end);
    bench.after(ended.at).await?;
    bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?;
    bench.store.complete(&next, &succeeded(&next), DONE).await?;
    // Success is not replaced, so that this is no end of that run.
    bench.store.fail(&next, &failed(&next), Duration::ZERO).await?;
    ensure_eq!(latest(bench).await?, known);
    let missing = over(bench, 1)?;
    bench.store.close(&missing, 3, &node_name("a")?).await?;
    bench.store.close(&missing, 3, &node_name("b")?).await?;
    ensure_eq!(latest(bench).await?, known);
    Ok(())
}

async fn slots_that_failed_or_were_missed_are_counted(bench: &Bench) -> CaseOutcome {
    let (first, second, third) = (over(bench, 3)?, over(bench, 2)?, over(bench, 1)?);
    missed(bench, &second).await?;
    let one = (second.key(), second.key(), Verdict::Missed, 1);
    ensure_eq!(failing(&latest(bench).await?), Some(one));
    failed_at(bench, &third).await?;
    ensure_eq!(failing(&latest(bench).await?), Some((second.key(), third.key(), Verdict::Failed, 2)));
    missed(bench, &first).await?;
    let known = latest(bench).await?;
    ensure_eq!(failing(&known), Some((first.key(), third.key(), Verdict::Failed, 3)), "told of last, and the oldest");
    ensure_eq!((known.success, end(&known)), (None, Some((third.key(), Ended::Failure))), "nobody ran the others");
    Ok(())
}

async fn a_verdict_is_counted_by_whoever_tells_it_and_never_under_a_run(bench: &Bench) -> CaseOutcome {
    let slot = over(bench, 1)?;
    let request = ClaimRequest { past: true, ..bench.request(&slot, "a")? };
    let lease = granted(&request, bench.store.claim(&request).await?)?;
    ensure_is!(bench.store.close(&slot, 1, &node_name("b")?).await?, Closing::Running { .. });
    let lasting = bench.slot("job")?;
    ensure_is!(bench.store.close(&lasting, 1, &node_name("b")?).await?, Closing::Open { .. });
    ensure_eq!(latest(bench).await?, JobLatest::default());
    bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?;
    for closer in ["a", "b", "c"] {
        bench.another().await?.close(&slot, 1, &node_name(closer)?).await?;
    }
    ensure_eq!(failing(&latest(bench).await?), Some((slot.key(), slot.key(), Verdict::Failed, 1)));
    Ok(())
}

async fn a_newer_success_ends_what_was_failing(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    missed(bench, &over(bench, 2)?).await?;
    missed(bench, &over(bench, 1)?).await?;
    done(bench, &slot).await?;
    let known = latest(bench).await?;
    ensure_eq!((newest(&known), known.failing), (Some(slot.key()), None));
    Ok(())
}

async fn an_older_success_is_not_the_last_one(bench: &Bench) -> CaseOutcome {
    let (older, between, newer) = (over(bench, 3)?, over(bench, 2)?, over(bench, 1)?);
    missed(bench, &newer).await?;
    done(bench, &older).await?;
    let known = latest(bench).await?;
    let count = Some((newer.key(), newer.key(), Verdict::Missed, 1));
    ensure_eq!((newest(&known), failing(&known)), (Some(older.key()), count), "what failed is newer");
    done(bench, &newer).await?;
    let done_at = latest(bench).await?.success;
    done(bench, &between).await?;
    let known = latest(bench).await?;
    ensure_eq!((known.success, known.failing), (done_at, None));
    ensure_eq!(end(&known), Some((between.key(), Ended::Success)), "but the last end of a run");
    Ok(())
}

async fn a_verdict_on_an_older_slot_than_the_last_success_counts_nothing(bench: &Bench) -> CaseOutcome {
    done(bench, &bench.slot("job")?).await?;
    let before = latest(bench).await?;
    missed(bench, &over(bench, 1)?).await?;
    ensure_eq!(latest(bench).await?, before);
    Ok(())
}

async fn a_reset_takes_a_failure_back(bench: &Bench) -> CaseOutcome {
    let (older, newer) = (over(bench, 2)?, over(bench, 1)?);
    missed(bench, &older).await?;
    missed(bench, &newer).await?;
    ensure_eq!(bench.store.reset(&older, &audit("reset")).await?, Intervention::Applied);
    let left = latest(bench).await?.failing;
    ensure_eq!(left.map(|failing| (failing.last, failing.slots)), Some((newer.key(), 1)));
    // Nothing is taken back twice.
    bench.store.reset(&older, &audit("reset")).await?;
    ensure_eq!(latest(bench).await?.failing, left);
    missed(bench, &older).await?;
    ensure_eq!(failing(&latest(bench).await?), Some((older.key(), newer.key(), Verdict::Missed, 2)));
    for slot in [&newer, &older] {
        bench.store.reset(slot, &audit("reset")).await?;
    }
    ensure_eq!(latest(bench).await?, JobLatest::default());
    Ok(())
}

async fn a_slot_that_is_marked_done_counts_as_one_that_is(bench: &Bench) -> CaseOutcome {
    let slot = over(bench, 1)?;
    missed(bench, &slot).await?;
    ensure_eq!(bench.store.mark_done(&slot, &audit("mark_done"), DONE).await?, Intervention::Applied);
    let known = latest(bench).await?;
    let LastSuccess { slot: done, at } = take!(known.success, Some(success) => success);
    ensure_eq!((done, known.end, known.failing), (slot.key(), None, None), "nobody ran it");
    ensure!(is_recent(bench, at), "marked at {at}");
    bench.after(at).await?;
    ensure_eq!(bench.store.mark_done(&slot, &audit("mark_done"), DONE).await?, Intervention::Unchanged);
    ensure_eq!(latest(bench).await?, known);
    Ok(())
}

async fn a_slot_that_is_skipped_in_advance_hides_no_failure_before_it(bench: &Bench) -> CaseOutcome {
    let (older, newer, ahead) = (over(bench, 2)?, over(bench, 1)?, bench.span("job", 86_400, 90_000)?);
    missed(bench, &older).await?;
    ensure_eq!(bench.store.mark_done(&ahead, &audit("mark_done"), DONE).await?, Intervention::Applied);
    missed(bench, &newer).await?;
    let known = latest(bench).await?;
    let both = Some((older.key(), newer.key(), Verdict::Missed, 2));
    ensure_eq!((known.success, failing(&known)), (None, both), "nothing was done, and all that failed is counted");
    bench.store.reset(&ahead, &audit("reset")).await?;
    ensure_eq!(failing(&latest(bench).await?), both, "nor does taking it back change that");
    Ok(())
}

async fn many_jobs_are_answered_in_the_order_asked(bench: &Bench) -> CaseOutcome {
    let mut names = (0..150).map(|index| job_name(&format!("j{index}"))).collect::<Result<Vec<_>, _>>()?;
    for index in [3, 141] {
        let slot = bench.span(&format!("j{index}"), -7_200, -3_600 - index)?;
        missed(bench, &slot).await?;
    }
    names.reverse();
    names.push(job_name("j3")?);
    let answers = bench.store.latest(&names).await?;
    ensure_eq!(answers.len(), names.len());
    for (name, answer) in names.iter().zip(answers) {
        let wanted = ["j3", "j141"].contains(&name.as_str());
        ensure_eq!(answer.failing.is_some(), wanted, "{name}");
    }
    Ok(())
}

async fn what_a_job_has_come_to_stays_in_its_namespace(bench: &Bench) -> CaseOutcome {
    let (other, _probe) = bench.neighbour().await?;
    missed(bench, &over(bench, 1)?).await?;
    ensure_eq!(latest_at(&*other, "job").await?, JobLatest::default());
    other.mark_done(&bench.slot("job")?, &audit("mark_done"), DONE).await?;
    let known = latest(bench).await?;
    ensure!(known.success.is_none() && known.failing.is_some(), "{known:?}");
    Ok(())
}

async fn slots_of_one_job_that_end_at_the_same_time_lose_nothing(bench: &Bench) -> CaseOutcome {
    let mut closers = Vec::new();
    for hours in 1..=8 {
        closers.push((bench.another().await?, over(bench, hours)?, node_name(&format!("n{hours}"))?));
    }
    let closings = closers.into_iter().map(|(store, slot, node)| {
        tokio::spawn(async move { store.close(&slot, 3, &node).await.map(|closing| (closing, slot.key())) })
    });
    let mut keys = Vec::new();
    for closing in join_all(closings).await {
        let (closing, key) = closing.map_err(|error| Failure::from(error.to_string()))??;
        ensure_eq!(closing, Closing::First(Verdict::Missed));
        keys.push(key);
    }
    let (oldest, newest) = take!((keys.iter().min(), keys.iter().max()), (Some(min), Some(max)) => (*min, *max));
    ensure_eq!(failing(&latest(bench).await?), Some((oldest, newest, Verdict::Missed, 8)));

    let mut leases = Vec::new();
    for seconds in 0..16_i64 {
        let lease = bench.grant(&bench.span("job", -600 - seconds, 7_200)?, "a").await?;
        leases.push((bench.another().await?, lease));
    }
    // The first of them are the newest: whoever writes over what others wrote leaves an older one.
    let ends = leases
        .into_iter()
        .map(|(store, lease)| tokio::spawn(async move { store.complete(&lease, &succeeded(&lease), DONE).await }));
    for ended in join_all(ends).await {
        ended.map_err(|error| Failure::from(error.to_string()))??;
    }
    let known = latest(bench).await?;
    ensure_eq!(known.success.map(|success| success.slot), Some(bench.span("job", -600, 7_200)?.key()));
    ensure_eq!((known.failing, known.end.map(|end| end.outcome)), (None, Some(Ended::Success)));
    Ok(())
}
