//! Cases: the operators' verbs. Each says what it did, and each that did something is recorded with who, when and why.

use std::time::Duration;

use crate::slot::{Mark, Outcome as Ended, Verdict};
use crate::store::conformance::bench::{
    DONE, LEASE, WAIT, audit, case, failed, granted, is_about, is_recent, node_name, record, succeeded,
};
use crate::store::conformance::{Bench, Case, CaseOutcome, Failure};
use crate::store::{Claim, ClaimRequest, Closing, Intervention, Release, Settlement};

pub(super) const CASES: &[Case] = &[
    case!("operator", reset_forgives_all_attempts_and_keeps_the_count, I2, I5),
    case!("operator", reset_ends_a_wait),
    case!("operator", reset_takes_back_done_and_its_verdict),
    case!("operator", reset_takes_back_a_recorded_failure),
    case!("operator", a_success_that_is_told_again_does_not_undo_a_reset, I1, I4),
    case!("operator", nothing_is_reset_or_marked_under_a_running_node, I1),
    case!("operator", unlock_takes_the_lease_and_the_attempt_counts, I1, I4, I5),
    case!("operator", unlock_without_a_holder_changes_nothing),
    case!("operator", mark_done_needs_no_run, I3),
    case!("operator", mark_done_ends_a_wait_and_replaces_a_verdict, I3, L2),
    case!("operator", mark_done_leaves_done_as_it_is, I3),
    case!("operator", a_success_beside_mark_done_is_recorded, I3),
    case!("operator", a_persons_name_need_be_no_node_name),
    case!("operator", every_verb_is_recorded_in_order),
    case!("operator", who_asks_for_a_slot_is_recorded_with_the_grant_and_once),
    case!("operator", who_asks_in_vain_is_not_recorded),
];

async fn reset_forgives_all_attempts_and_keeps_the_count(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    for _ in 0..3 {
        let lease = bench.grant(&slot, "a").await?;
        bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?;
    }
    ensure_eq!(bench.claim(&slot, "a").await?, Claim::Exhausted { used: 3 });
    ensure_eq!(bench.another().await?.reset(&slot, &audit("reset")).await?, Intervention::Applied);
    let known = bench.record(&slot).await?;
    ensure_eq!((known.attempts, known.forgiven, known.runs.len()), (3, 3, 3));
    ensure_eq!(bench.probe.attempts(&slot).await?, Some(3));
    ensure_is!(bench.claim(&slot, "a").await?, Claim::Claimed { attempt: 4, used: 1, .. });
    Ok(())
}

async fn reset_ends_a_wait(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.store.fail(&lease, &failed(&lease), WAIT).await?;
    ensure_eq!(bench.store.reset(&slot, &audit("reset")).await?, Intervention::Applied);
    ensure_eq!(bench.record(&slot).await?.mark, Mark::Free);
    ensure_eq!(bench.grant(&slot, "b").await?.attempt, 2);
    Ok(())
}

async fn a_success_that_is_told_again_does_not_undo_a_reset(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
    bench.store.reset(&slot, &audit("reset")).await?;
    // The answer was lost, and the node tells it again.
    ensure_eq!(bench.store.complete(&lease, &succeeded(&lease), DONE).await?, Settlement::Recorded);
    let known = bench.record(&slot).await?;
    ensure_eq!((known.mark, known.verdict), (Mark::Free, None));
    let next = bench.grant(&slot, "b").await?;
    let answer = bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
    ensure_is!(answer, Settlement::Overtaken { .. });
    ensure_is!(bench.record(&slot).await?.mark, Mark::Leased { .. });
    ensure_eq!(bench.store.complete(&next, &succeeded(&next), DONE).await?, Settlement::Recorded);
    ensure_is!(bench.record(&slot).await?.mark, Mark::Done(_));
    Ok(())
}

async fn reset_takes_back_done_and_its_verdict(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
    ensure_eq!(bench.store.reset(&slot, &audit("reset")).await?, Intervention::Applied);
    let known = bench.record(&slot).await?;
    ensure_eq!((known.mark, known.verdict), (Mark::Free, None));
    ensure_eq!(known.runs, vec![succeeded(&lease)]);
    ensure_is!(bench.claim(&slot, "b").await?, Claim::Claimed { attempt: 2, used: 1, .. });
    Ok(())
}

async fn reset_takes_back_a_recorded_failure(bench: &Bench) -> CaseOutcome {
    let (over, node) = (bench.span("job", -7_200, -3_600)?, node_name("a")?);
    ensure_eq!(bench.store.close(&over, 3, &node).await?, Closing::First(Verdict::Missed));
    ensure_eq!(bench.store.reset(&over, &audit("reset")).await?, Intervention::Applied);
    ensure_eq!(bench.record(&over).await?.verdict, None);
    ensure_eq!(bench.store.close(&over, 3, &node).await?, Closing::First(Verdict::Missed));
    Ok(())
}

async fn nothing_is_reset_or_marked_under_a_running_node(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    bench.grant(&slot, "a").await?;
    let before = bench.record(&slot).await?;
    for answer in [
        bench.store.reset(&slot, &audit("reset")).await?,
        bench.store.mark_done(&slot, &audit("mark_done"), DONE).await?,
    ] {
        let (by, remaining) = take!(answer, Intervention::Held { by, remaining } => (by, remaining));
        ensure_eq!((by.node.as_str(), by.attempt), ("a", 1));
        ensure!(is_about(remaining, LEASE), "{remaining:?} remain");
    }
    let after = bench.record(&slot).await?;
    ensure_eq!((after.attempts, after.forgiven, after.verdict), (before.attempts, before.forgiven, before.verdict));
    ensure_eq!((after.runs, after.audit), (before.runs, before.audit));
    ensure_is!(after.mark, Mark::Leased { .. });
    Ok(())
}

async fn unlock_takes_the_lease_and_the_attempt_counts(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    ensure_eq!(bench.another().await?.unlock(&slot, &audit("unlock")).await?, Intervention::Applied);
    let known = bench.record(&slot).await?;
    ensure_eq!((known.mark, known.attempts, known.forgiven), (Mark::Free, 1, 0));
    ensure_eq!(known.runs.first().and_then(|run| run.outcome), Some(Ended::LostLease));
    let next = bench.grant(&slot, "b").await?;
    ensure_eq!(next.attempt, 2);
    // What the old holder says afterwards is recorded, and changes nothing else.
    ensure_is!(bench.store.fail(&lease, &failed(&lease), WAIT).await?, Release::Overtaken { .. });
    let known = bench.record(&slot).await?;
    ensure_eq!(known.runs.first(), Some(&failed(&lease)));
    let token = take!(known.mark, Mark::Leased { token, .. } => token);
    ensure_eq!(token, next.token);
    Ok(())
}

async fn unlock_without_a_holder_changes_nothing(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    ensure_eq!(bench.store.unlock(&slot, &audit("unlock")).await?, Intervention::Unchanged);
    let lease = bench.grant(&slot, "a").await?;
    bench.store.fail(&lease, &failed(&lease), WAIT).await?;
    ensure_eq!(bench.store.unlock(&slot, &audit("unlock")).await?, Intervention::Unchanged);
    ensure_is!(bench.record(&slot).await?.mark, Mark::Backoff { .. });
    bench.expire(&slot).await?;
    let second = bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    ensure_eq!(bench.store.unlock(&slot, &audit("unlock")).await?, Intervention::Unchanged);
    bench.store.complete(&second, &succeeded(&second), DONE).await?;
    ensure_eq!(bench.store.unlock(&slot, &audit("unlock")).await?, Intervention::Unchanged);
    let known = bench.record(&slot).await?;
    ensure_is!(known.mark, Mark::Done(_));
    ensure_eq!(known.audit, Vec::new());
    Ok(())
}

async fn mark_done_needs_no_run(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    ensure_eq!(bench.store.mark_done(&slot, &audit("mark_done"), DONE).await?, Intervention::Applied);
    let known = bench.record(&slot).await?;
    let mark = take!(&known.mark, Mark::Done(mark) => mark);
    ensure_eq!((mark.by.node.as_str(), mark.by.attempt), ("alice", 0));
    ensure!(is_recent(bench, mark.at), "done at {}", mark.at);
    let verdict = take!(known.verdict, Some(record) => record);
    ensure_eq!((verdict.verdict, verdict.by.as_str()), (Verdict::Done, "alice"));
    ensure_eq!((known.attempts, known.runs.len()), (0, 0));
    let ttl = bench.probe.mark_ttl(&slot).await?.unwrap_or_default();
    ensure!(is_about(ttl, DONE), "the marker lasts {ttl:?}");
    ensure_is!(bench.claim(&slot, "a").await?, Claim::Done(_));
    Ok(())
}

async fn mark_done_ends_a_wait_and_replaces_a_verdict(bench: &Bench) -> CaseOutcome {
    let (slot, over) = (bench.slot("job")?, bench.span("job", -600, -1)?);
    let lease = bench.grant(&slot, "a").await?;
    bench.store.fail(&lease, &failed(&lease), WAIT).await?;
    ensure_eq!(bench.store.close(&over, 1, &lease.node).await?, Closing::First(Verdict::Failed));
    ensure_eq!(bench.store.mark_done(&slot, &audit("mark_done"), DONE).await?, Intervention::Applied);
    let known = bench.record(&slot).await?;
    ensure_is!(known.mark, Mark::Done(_));
    ensure_eq!(known.verdict.map(|record| record.verdict), Some(Verdict::Done));
    Ok(())
}

async fn mark_done_leaves_done_as_it_is(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
    let before = bench.record(&slot).await?;
    ensure_eq!(bench.store.mark_done(&slot, &audit("mark_done"), DONE * 2).await?, Intervention::Unchanged);
    ensure_eq!(bench.record(&slot).await?, before);
    let ttl = bench.probe.mark_ttl(&slot).await?.unwrap_or_default();
    ensure!(is_about(ttl, DONE), "the marker lasts {ttl:?}");
    Ok(())
}

async fn a_success_beside_mark_done_is_recorded(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    bench.store.mark_done(&slot, &audit("mark_done"), DONE).await?;
    let settled = bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
    let by = take!(settled, Settlement::Overtaken { by } => by);
    ensure_eq!((by.node.as_str(), by.attempt), ("alice", 0));
    let known = bench.record(&slot).await?;
    ensure_eq!(known.runs, vec![succeeded(&lease)]);
    let mark = take!(known.mark, Mark::Done(mark) => mark);
    ensure_eq!(mark.by.node.as_str(), "alice");
    Ok(())
}

async fn a_persons_name_need_be_no_node_name(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let odd = crate::slot::Audit { who: "Zoë O'Hara <z@x>\n".to_owned(), ..audit("mark_done") };
    bench.store.mark_done(&slot, &odd, DONE).await?;
    let known = record(&*bench.store, &slot).await?;
    let mark = take!(known.mark, Mark::Done(mark) => mark);
    ensure_eq!(mark.by.node, crate::job::NodeName::nearest(&odd.who));
    ensure_eq!(known.audit.first().map(|entry| entry.who.as_str()), Some(odd.who.as_str()));
    Ok(())
}

async fn every_verb_is_recorded_in_order(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let request = ClaimRequest { max_attempts: 9, ..bench.request(&slot, "a")? };
    bench.store.claim(&request).await?;
    bench.store.unlock(&slot, &audit("unlock")).await?;
    bench.store.reset(&slot, &audit("reset")).await?;
    bench.store.mark_done(&slot, &audit("mark_done"), DONE).await?;
    let known = bench.record(&slot).await?;
    let mut verbs: Vec<&str> = known.audit.iter().map(|entry| entry.verb.as_str()).collect();
    // A verb that a network delivers twice may be recorded twice.
    verbs.dedup();
    ensure_eq!(verbs, vec!["unlock", "reset", "mark_done"]);
    for entry in &known.audit {
        ensure!(is_recent(bench, entry.at), "{} at {}, the store's clock decides", entry.verb, entry.at);
        ensure_eq!((entry.who.as_str(), entry.host.as_str(), entry.why.as_str()), ("alice", "ops-1", "the suite asks"));
    }
    Ok(())
}

async fn who_asks_for_a_slot_is_recorded_with_the_grant_and_once(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let request = ClaimRequest { audit: Some(audit("trigger")), ..bench.request(&slot, "a")? };
    let lease = granted(&request, bench.store.claim(&request).await?)?;
    // The answer was lost: while the lease stands, and after it has lapsed.
    ensure_is!(bench.another().await?.claim(&request).await?, Claim::Claimed { attempt: 1, .. });
    bench.expire(&slot).await?;
    ensure_is!(bench.store.claim(&request).await?, Claim::Claimed { attempt: 1, .. });
    bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?;
    let known = bench.record(&slot).await?;
    let entry = take!(known.audit.as_slice(), [entry] => entry);
    ensure_eq!((entry.verb.as_str(), entry.who.as_str(), entry.host.as_str()), ("trigger", "alice", "ops-1"));
    ensure_eq!((entry.why.as_str(), entry.at), ("the suite asks", lease.claimed_at));
    bench.grant(&slot, "b").await?;
    ensure_eq!(bench.record(&slot).await?.audit.len(), 1, "a schedule's claim is nobody's");
    Ok(())
}

async fn who_asks_in_vain_is_not_recorded(bench: &Bench) -> CaseOutcome {
    let (slot, over) = (bench.slot("job")?, bench.span("job", -600, -1)?);
    let ask = |slot| Ok::<_, Failure>(ClaimRequest { audit: Some(audit("trigger")), ..bench.request(slot, "a")? });
    ensure_eq!(bench.store.claim(&ask(&over)?).await?, Claim::Closed);
    let lease = bench.grant(&slot, "b").await?;
    ensure_is!(bench.store.claim(&ask(&slot)?).await?, Claim::Held { .. });
    bench.store.fail(&lease, &failed(&lease), WAIT).await?;
    ensure_is!(bench.store.claim(&ask(&slot)?).await?, Claim::Backoff { .. });
    let none_left = ClaimRequest { max_attempts: 1, ..ask(&slot)? };
    ensure_is!(bench.store.claim(&none_left).await?, Claim::Exhausted { .. });
    bench.expire(&slot).await?;
    bench.store.pause(slot.job(), None, &audit("pause")).await?;
    ensure_is!(bench.store.claim(&ask(&slot)?).await?, Claim::Paused { .. });
    bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
    ensure_is!(bench.store.claim(&ask(&slot)?).await?, Claim::Done(_));
    ensure_eq!(bench.record(&slot).await?.audit, Vec::new());
    ensure_eq!(bench.record(&over).await?.audit, Vec::new());
    Ok(())
}
