//! Cases: how a run ends. Done is absorbing; whoever no longer holds changes nothing but its own record.

use std::time::Duration;

use crate::slot::{Lease, Mark, Outcome as Ended, OutputTail, RunRecord, Verdict};
use crate::store::conformance::bench::{DONE, LEASE, WAIT, case, failed, given_back, is_about, is_recent, succeeded};
use crate::store::conformance::{Bench, Case, CaseOutcome};
use crate::store::{Claim, Release, Settlement};

pub(super) const CASES: &[Case] = &[
    case!("settle", success_is_recorded_with_marker_run_and_verdict, I3, I7, L2),
    case!("settle", success_is_written_even_when_the_lease_had_lapsed, I3, I7),
    case!("settle", success_is_written_over_another_ones_lease, I3, I7),
    case!("settle", success_is_written_over_another_ones_wait, I3, I7),
    case!("settle", success_is_written_to_a_store_that_restarted_empty, I2, I3, I7),
    case!("settle", a_second_success_leaves_the_marker_as_it_is, I3),
    case!("settle", whoever_was_overtaken_hears_of_one_who_came_and_went, L2),
    case!("settle", whoever_was_followed_by_a_smaller_number_hears_of_it, L2),
    case!("settle", success_counts_past_the_end_of_the_slot, I7),
    case!("settle", a_failure_releases_and_begins_the_wait, I5),
    case!("settle", a_failure_without_wait_frees_the_slot_at_once, I5),
    case!("settle", a_failure_after_the_lease_lapsed_begins_no_wait, I4),
    case!("settle", a_stale_failure_leaves_the_holder_alone, I1, I4),
    case!("settle", a_stale_failure_leaves_done_alone, I3, I4),
    case!("settle", a_stale_failure_is_recorded_all_the_same, L2),
    case!("settle", an_attempt_given_back_is_refunded_once, I2, I5),
    case!("settle", a_lapsed_attempt_is_not_refunded, I4, I5),
    case!("settle", a_stale_give_back_leaves_the_holder_alone, I1, I4, I5),
    case!("settle", a_failure_after_success_changes_nothing, I3, I7),
    case!("settle", one_attempt_number_of_two_tokens_keeps_both_records, L2),
    case!("settle", each_run_has_an_output_of_its_own, L2),
    case!("settle", a_failure_after_success_leaves_its_output),
];

async fn each_run_has_an_output_of_its_own(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let first = bench.grant(&slot, "a").await?;
    bench.store.fail(&first, &failed(&first), Duration::ZERO).await?;
    let second = bench.grant(&slot, "b").await?;
    let read = async |lease: &Lease| bench.store.output(&slot, lease.attempt, lease.token).await;
    ensure_eq!(read(&second).await?, None, "no output before the end");
    bench.store.complete(&second, &succeeded(&second), DONE).await?;
    ensure_eq!(read(&first).await?, failed(&first).output);
    ensure_eq!(read(&second).await?, succeeded(&second).output);
    ensure_eq!(bench.store.output(&slot, 1, second.token).await?, None, "an attempt of another token");
    Ok(())
}

async fn a_failure_after_success_leaves_its_output(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
    let output = Some(OutputTail { text: "late".to_owned(), dropped_bytes: 0, loss: None });
    bench.store.fail(&lease, &RunRecord { output, ..failed(&lease) }, WAIT).await?;
    ensure_eq!(bench.store.output(&slot, lease.attempt, lease.token).await?, succeeded(&lease).output);
    Ok(())
}

async fn success_is_recorded_with_marker_run_and_verdict(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    let run = succeeded(&lease);
    ensure_eq!(bench.store.complete(&lease, &run, DONE).await?, Settlement::Recorded);
    let known = bench.record(&slot).await?;
    let mark = take!(&known.mark, Mark::Done(mark) => mark);
    ensure_eq!((mark.by.node.as_str(), mark.by.attempt), ("a", 1));
    ensure!(is_recent(bench, mark.at), "done at {}", mark.at);
    ensure_eq!(known.runs, vec![run]);
    let verdict = take!(known.verdict, Some(record) => record);
    ensure_eq!((verdict.verdict, verdict.by), (Verdict::Done, lease.node));
    ensure!(is_recent(bench, verdict.at), "recorded at {}", verdict.at);
    let ttl = bench.probe.mark_ttl(&slot).await?.unwrap_or_default();
    ensure!(is_about(ttl, DONE), "the marker lasts {ttl:?}");
    Ok(())
}

async fn success_is_written_even_when_the_lease_had_lapsed(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    ensure_eq!(bench.store.complete(&lease, &succeeded(&lease), DONE).await?, Settlement::Recorded);
    ensure_is!(bench.claim(&slot, "b").await?, Claim::Done(_));
    Ok(())
}

async fn whoever_was_overtaken_hears_of_one_who_came_and_went(bench: &Bench) -> CaseOutcome {
    for (job, succeeds) in [("success", true), ("failure", false)] {
        let slot = bench.slot(job)?;
        let lease = bench.grant(&slot, "a").await?;
        bench.expire(&slot).await?;
        let next = bench.grant(&slot, "b").await?;
        ensure_eq!(bench.store.fail(&next, &failed(&next), Duration::ZERO).await?, Release::Released);
        let by = if succeeds {
            let answer = bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
            take!(answer, Settlement::Overtaken { by } => by)
        } else {
            let answer = bench.store.fail(&lease, &failed(&lease), WAIT).await?;
            take!(answer, Release::Overtaken { by } => by)
        };
        ensure_eq!((by.node.as_str(), by.attempt), ("b", 2));
        // The later attempt was overtaken by nobody, however often it is told.
        ensure_is!(bench.record(&slot).await?.mark, Mark::Done(_) | Mark::Free);
    }
    Ok(())
}

async fn whoever_was_followed_by_a_smaller_number_hears_of_it(bench: &Bench) -> CaseOutcome {
    for (job, succeeds) in [("success", true), ("failure", false)] {
        let slot = bench.slot(job)?;
        let first = bench.grant(&slot, "a").await?;
        bench.expire(&slot).await?;
        let stale = bench.grant(&slot, "b").await?;
        ensure_eq!((first.attempt, stale.attempt), (1, 2));
        // The store loses its data, and numbers begin anew.
        bench.probe.wipe().await?;
        bench.after(stale.claimed_at).await?;
        let next = bench.grant(&slot, "c").await?;
        ensure_eq!(next.attempt, 1);
        ensure_eq!(bench.store.fail(&next, &failed(&next), Duration::ZERO).await?, Release::Released);
        let by = if succeeds {
            let answer = bench.store.complete(&stale, &succeeded(&stale), DONE).await?;
            take!(answer, Settlement::Overtaken { by } => by)
        } else {
            let answer = bench.store.fail(&stale, &failed(&stale), WAIT).await?;
            take!(answer, Release::Overtaken { by } => by)
        };
        ensure_eq!((by.node.as_str(), by.attempt), ("c", 1));
    }
    Ok(())
}

async fn success_is_written_over_another_ones_lease(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let stale = bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    let holder = bench.grant(&slot, "b").await?;
    let by = take!(
        bench.store.complete(&stale, &succeeded(&stale), DONE).await?, Settlement::Overtaken { by } => by
    );
    ensure_eq!((by.node.as_str(), by.attempt), ("b", 2));
    let mark = take!(bench.claim(&slot, "c").await?, Claim::Done(mark) => mark);
    ensure_eq!((mark.by.node.as_str(), mark.by.attempt), ("a", 1));
    // The other one is still running. Its success is recorded beside, and the marker stays.
    let by = take!(
        bench.store.complete(&holder, &succeeded(&holder), DONE).await?, Settlement::Overtaken { by } => by
    );
    ensure_eq!((by.node.as_str(), by.attempt), ("a", 1));
    let known = bench.record(&slot).await?;
    ensure_eq!(known.runs, vec![succeeded(&stale), succeeded(&holder)]);
    ensure_eq!(known.mark, Mark::Done(mark));
    Ok(())
}

async fn success_is_written_over_another_ones_wait(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let stale = bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    let other = bench.grant(&slot, "b").await?;
    bench.store.fail(&other, &failed(&other), WAIT).await?;
    let by = take!(
        bench.store.complete(&stale, &succeeded(&stale), DONE).await?, Settlement::Overtaken { by } => by
    );
    ensure_eq!((by.node.as_str(), by.attempt), ("b", 2));
    ensure_is!(bench.claim(&slot, "c").await?, Claim::Done(_));
    Ok(())
}

async fn success_is_written_to_a_store_that_restarted_empty(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let first = bench.grant(&slot, "a").await?;
    bench.store.fail(&first, &failed(&first), Duration::ZERO).await?;
    let lease = bench.grant(&slot, "a").await?;
    bench.probe.wipe().await?;
    ensure_eq!(bench.store.complete(&lease, &succeeded(&lease), DONE).await?, Settlement::Recorded);
    let known = bench.record(&slot).await?;
    ensure_eq!((known.attempts, bench.probe.attempts(&slot).await?), (2, Some(2)));
    ensure_eq!(known.runs, vec![succeeded(&lease)]);
    Ok(())
}

async fn a_second_success_leaves_the_marker_as_it_is(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
    let before = bench.record(&slot).await?;
    ensure_eq!(bench.store.complete(&lease, &succeeded(&lease), DONE * 2).await?, Settlement::Recorded);
    let ttl = bench.probe.mark_ttl(&slot).await?.unwrap_or_default();
    ensure!(is_about(ttl, DONE), "the marker lasts {ttl:?}");
    ensure_eq!(bench.record(&slot).await?, before);
    Ok(())
}

async fn success_counts_past_the_end_of_the_slot(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    let over = bench.span("job", -600, -1)?;
    bench.expire(&slot).await?;
    bench.store.close(&over, 3, &lease.node).await?;
    let late = crate::slot::Lease { slot: over, ..lease };
    ensure_eq!(bench.store.complete(&late, &succeeded(&late), DONE).await?, Settlement::Recorded);
    let verdict = take!(bench.record(&slot).await?.verdict, Some(record) => record.verdict);
    ensure_eq!(verdict, Verdict::Done, "success is a fact, also after the verdict");
    Ok(())
}

async fn a_failure_releases_and_begins_the_wait(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    ensure_eq!(bench.store.fail(&lease, &failed(&lease), WAIT).await?, Release::Released);
    let known = bench.record(&slot).await?;
    let (by, remaining) = take!(&known.mark, Mark::Backoff { by, remaining } => (by, *remaining));
    ensure_eq!((by.node.as_str(), by.attempt), ("a", 1));
    ensure!(is_about(remaining, WAIT), "{remaining:?} remain");
    ensure_eq!(known.runs, vec![failed(&lease)]);
    ensure_eq!((known.attempts, known.forgiven, known.verdict), (1, 0, None));
    Ok(())
}

async fn a_failure_without_wait_frees_the_slot_at_once(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    ensure_eq!(bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?, Release::Released);
    ensure_eq!(bench.record(&slot).await?.mark, Mark::Free);
    ensure_eq!(bench.probe.mark_ttl(&slot).await?, None);
    ensure_eq!(bench.another().await?.claim(&bench.request(&slot, "b")?).await?.as_str(), "claimed");
    Ok(())
}

async fn a_failure_after_the_lease_lapsed_begins_no_wait(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    ensure_eq!(bench.store.fail(&lease, &failed(&lease), WAIT).await?, Release::Expired);
    let known = bench.record(&slot).await?;
    ensure_eq!((known.mark, known.runs), (Mark::Free, vec![failed(&lease)]));
    Ok(())
}

async fn a_stale_failure_leaves_the_holder_alone(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let stale = bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    let holder = bench.grant(&slot, "b").await?;
    for retry_after in [WAIT, Duration::ZERO] {
        let by = take!(
            bench.store.fail(&stale, &failed(&stale), retry_after).await?, Release::Overtaken { by } => by
        );
        ensure_eq!((by.node.as_str(), by.attempt), ("b", 2));
        let (token, left) = take!(
            bench.record(&slot).await?.mark, Mark::Leased { token, remaining, .. } => (token, remaining)
        );
        ensure_eq!(token, holder.token);
        ensure!(is_about(left, LEASE), "{left:?} remain");
    }
    ensure_is!(bench.claim(&slot, "c").await?, Claim::Held { .. });
    // Nor is the wait of somebody else begun anew or ended.
    bench.store.fail(&holder, &failed(&holder), WAIT).await?;
    ensure_is!(bench.store.fail(&stale, &failed(&stale), WAIT * 3).await?, Release::Overtaken { .. });
    let left = take!(bench.claim(&slot, "c").await?, Claim::Backoff { remaining } => remaining);
    ensure!(is_about(left, WAIT), "{left:?} remain");
    Ok(())
}

async fn a_stale_failure_leaves_done_alone(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let stale = bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    let holder = bench.grant(&slot, "b").await?;
    bench.store.complete(&holder, &succeeded(&holder), DONE).await?;
    ensure_is!(bench.store.fail(&stale, &failed(&stale), WAIT).await?, Release::Overtaken { .. });
    ensure_is!(bench.store.give_back(&stale, &given_back(&stale)).await?, Release::Overtaken { .. });
    let mark = take!(bench.claim(&slot, "c").await?, Claim::Done(mark) => mark);
    ensure_eq!((mark.by.node.as_str(), mark.by.attempt), ("b", 2));
    ensure_eq!(bench.record(&slot).await?.mark, Mark::Done(mark));
    Ok(())
}

async fn a_stale_failure_is_recorded_all_the_same(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let stale = bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    let holder = bench.grant(&slot, "b").await?;
    bench.store.fail(&stale, &failed(&stale), WAIT).await?;
    let known = bench.record(&slot).await?;
    ensure_eq!(known.attempts, 2);
    let (first, second) = take!(known.runs.as_slice(), [first, second] => (first, second));
    ensure_eq!(*first, failed(&stale));
    ensure_eq!((second.token, second.outcome), (holder.token, None));
    Ok(())
}

async fn an_attempt_given_back_is_refunded_once(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    for _ in 0..3 {
        ensure_eq!(bench.store.give_back(&lease, &given_back(&lease)).await?, Release::Released);
        let known = bench.record(&slot).await?;
        ensure_eq!((known.attempts, known.forgiven, known.used()), (1, 1, 0));
        ensure_eq!((known.mark, known.runs), (Mark::Free, vec![given_back(&lease)]));
    }
    ensure_eq!(bench.probe.attempts(&slot).await?, Some(1), "the counter never falls");
    for attempt in 2..=4 {
        let claim = bench.claim(&slot, "b").await?;
        let (number, used) = take!(claim, Claim::Claimed { attempt, used, .. } => (attempt, used));
        ensure_eq!((number, used), (attempt, attempt - 1));
        bench.expire(&slot).await?;
    }
    ensure_eq!(bench.claim(&slot, "b").await?, Claim::Exhausted { used: 3 });
    Ok(())
}

async fn a_lapsed_attempt_is_not_refunded(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    ensure_eq!(bench.store.give_back(&lease, &given_back(&lease)).await?, Release::Expired);
    ensure_eq!(bench.record(&slot).await?.used(), 1);
    // A failed attempt counts, and giving it back afterwards does not help.
    let second = bench.grant(&slot, "a").await?;
    bench.store.fail(&second, &failed(&second), WAIT).await?;
    bench.store.give_back(&second, &given_back(&second)).await?;
    let known = bench.record(&slot).await?;
    ensure_eq!(known.used(), 2);
    ensure_is!(known.mark, Mark::Backoff { .. });
    Ok(())
}

async fn a_stale_give_back_leaves_the_holder_alone(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let stale = bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    let holder = bench.grant(&slot, "b").await?;
    let by = take!(
        bench.store.give_back(&stale, &given_back(&stale)).await?, Release::Overtaken { by } => by
    );
    ensure_eq!((by.node.as_str(), by.attempt), ("b", 2));
    let known = bench.record(&slot).await?;
    let token = take!(known.mark, Mark::Leased { token, .. } => token);
    ensure_eq!((token, known.forgiven), (holder.token, 0));
    Ok(())
}

async fn a_failure_after_success_changes_nothing(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
    let before = bench.record(&slot).await?;
    ensure_is!(bench.store.fail(&lease, &failed(&lease), WAIT).await?, Release::Overtaken { .. });
    ensure_is!(bench.store.give_back(&lease, &given_back(&lease)).await?, Release::Overtaken { .. });
    ensure_eq!(bench.record(&slot).await?, before);
    Ok(())
}

async fn one_attempt_number_of_two_tokens_keeps_both_records(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let stale = bench.grant(&slot, "a").await?;
    bench.probe.wipe().await?;
    let holder = bench.grant(&slot, "b").await?;
    ensure_is!(bench.store.fail(&stale, &failed(&stale), WAIT).await?, Release::Overtaken { .. });
    bench.store.complete(&holder, &succeeded(&holder), DONE).await?;
    let known = bench.record(&slot).await?;
    let outcome = |token| known.runs.iter().find(|run: &&RunRecord| run.token == token).and_then(|run| run.outcome);
    ensure_eq!(known.runs.len(), 2);
    ensure_eq!(outcome(stale.token), Some(Ended::Failure));
    ensure_eq!(outcome(holder.token), Some(Ended::Success));
    ensure_eq!(known.attempts, 1);
    Ok(())
}
