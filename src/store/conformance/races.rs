//! Cases: many at the same time. Whatever the order, there is one winner per slot; and beside other slots of its job (`beside::`) an
//! exclusive claim is granted only while none of them is leased.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};
use futures_util::stream::{self, StreamExt};

use crate::slot::{Lease, Mark, Slot};
use crate::store::conformance::bench::{DONE, WAIT, audit, case, failed, given_back, granted, succeeded};
use crate::store::conformance::{Bench, Case, CaseOutcome, Failure};
use crate::store::{Claim, ClaimRequest, Closing, Intervention, Release, Renewal, Settlement, Store};

pub(super) const CASES: &[Case] = &[
    case!("races", one_of_many_claimers_wins, I1, I5),
    case!("races", one_of_many_claimers_wins_each_attempt_until_none_is_left, I1, I2, I5),
    case!("races", one_request_sent_many_times_at_once_is_one_grant, I5),
    case!("races", two_nodes_are_never_granted_the_same_slot, I1),
    case!("races", of_exclusive_claims_at_once_of_a_jobs_slots_one_is_granted),
    case!("races", of_many_finishers_one_sets_the_marker, I3),
    case!("beside", a_newer_slot_blocks_an_exclusive_claim_too),
    case!("beside", the_oldest_of_several_slots_is_named),
    case!("beside", an_exclusive_lease_does_not_block_a_claim_that_is_not),
    case!("beside", a_lease_that_was_settled_blocks_nobody, L1),
    case!("beside", a_lease_that_was_taken_away_blocks_nobody, L1),
    case!("beside", a_lease_that_was_restored_blocks_again),
    case!("beside", of_two_exclusive_claims_at_once_one_is_granted),
    case!("beside", a_grant_that_is_heard_of_after_the_slots_end_is_given_back, I5, L1),
    case!("beside", a_lapsed_grant_that_is_heard_of_after_the_slots_end_is_given_back, I5),
];

/// A task for each claimer, on a connection of its own.
async fn contest(bench: &Bench, slot: &Slot, max_attempts: u32) -> Result<Vec<(ClaimRequest, Claim)>, Failure> {
    let mut claimers = Vec::new();
    for index in 0..bench.scale().claimers {
        let store = bench.another().await?;
        let request = ClaimRequest { max_attempts, ..bench.request(slot, &format!("n{index}"))? };
        claimers.push((store, request));
    }
    race(claimers).await
}

async fn race(claimers: Vec<(Arc<dyn Store>, ClaimRequest)>) -> Result<Vec<(ClaimRequest, Claim)>, Failure> {
    let tasks = claimers.into_iter().map(|(store, request)| {
        tokio::spawn(async move {
            let claim = store.claim(&request).await;
            (request, claim)
        })
    });
    let mut answers = Vec::new();
    for task in join_all(tasks).await {
        let (request, claim) = task.map_err(|error| Failure::from(error.to_string()))?;
        answers.push((request, claim?));
    }
    Ok(answers)
}

async fn one_of_many_claimers_wins(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let mut winners = Vec::new();
    for (request, claim) in contest(bench, &slot, 3).await? {
        match claim {
            Claim::Claimed { attempt, .. } => winners.push((request.node, attempt)),
            other => ensure_is!(other, Claim::Held { .. }),
        }
    }
    ensure_eq!(winners.len(), 1, "{winners:?}");
    ensure_eq!(winners.first().map(|(_, attempt)| *attempt), Some(1));
    ensure_eq!(bench.probe.attempts(&slot).await?, Some(1));
    Ok(())
}

async fn one_of_many_claimers_wins_each_attempt_until_none_is_left(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    for attempt in 1..=2 {
        let mut won = Vec::new();
        for (request, claim) in contest(bench, &slot, 2).await? {
            if let Claim::Claimed { .. } = claim {
                won.push(granted(&request, claim)?);
            }
        }
        let lease = take!(won.as_slice(), [lease] => lease);
        ensure_eq!(lease.attempt, attempt);
        bench.store.fail(lease, &failed(lease), std::time::Duration::ZERO).await?;
    }
    for (_, claim) in contest(bench, &slot, 2).await? {
        ensure_eq!(claim, Claim::Exhausted { used: 2 });
    }
    Ok(())
}

async fn one_request_sent_many_times_at_once_is_one_grant(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let request = bench.request(&slot, "a")?;
    let mut claimers = Vec::new();
    for _ in 0..bench.scale().claimers {
        claimers.push((bench.another().await?, request.clone()));
    }
    for (_, claim) in race(claimers).await? {
        ensure_is!(claim, Claim::Claimed { attempt: 1, used: 1, .. });
    }
    ensure_eq!(bench.probe.attempts(&slot).await?, Some(1));
    Ok(())
}

/// The slots that this node was granted, of all those that it asked for.
async fn claim_all(
    store: Arc<dyn Store>,
    requests: Vec<ClaimRequest>,
    in_flight: usize,
) -> Result<BTreeSet<Slot>, Failure> {
    let claims = requests.into_iter().map(|request| {
        let store = Arc::clone(&store);
        async move { (store.claim(&request).await, request.slot) }
    });
    let mut answers = stream::iter(claims).buffer_unordered(in_flight);
    let mut won = BTreeSet::new();
    while let Some((claim, slot)) = answers.next().await {
        match claim? {
            Claim::Claimed { attempt, .. } => {
                ensure_eq!(attempt, 1, "{slot}");
                won.insert(slot);
            }
            other => ensure_is!(other, Claim::Held { .. }),
        }
    }
    Ok(won)
}

async fn two_nodes_are_never_granted_the_same_slot(bench: &Bench) -> CaseOutcome {
    let scale = bench.scale();
    let starts = (0_i64..).take(scale.slots);
    let slots = starts.map(|second| bench.span("job", -600 - second, 7_200)).collect::<Result<Vec<_>, _>>()?;
    // Long enough for the slowest machine: a lease that lapsed during the contest would be granted twice, and rightly.
    let lease_ttl = std::time::Duration::from_secs(3_600);
    let mut nodes = Vec::new();
    for node in ["a", "b"] {
        let ask = |slot| Ok(ClaimRequest { lease_ttl, ..bench.request(slot, node)? });
        let requests = slots.iter().map(ask).collect::<Result<Vec<_>, Failure>>()?;
        nodes.push(tokio::spawn(claim_all(bench.another().await?, requests, scale.in_flight)));
    }
    let mut won = Vec::new();
    for node in join_all(nodes).await {
        won.push(node.map_err(|error| Failure::from(error.to_string()))??);
    }
    let (a, b) = take!(won.as_slice(), [a, b] => (a, b));
    let both: Vec<&Slot> = a.intersection(b).collect();
    ensure!(both.is_empty(), "granted to both: {both:?}");
    ensure_eq!(a.len() + b.len(), scale.slots, "slots granted to one of them");
    Ok(())
}

/// Of slots that nobody has touched, and of slots that have had an attempt: stores may grant these in another way.
async fn of_exclusive_claims_at_once_of_a_jobs_slots_one_is_granted(bench: &Bench) -> CaseOutcome {
    for (job, again) in [("a", false), ("b", true), ("c", false), ("d", true)] {
        let mut claimers = Vec::new();
        for index in 0..8_u8 {
            let slot = bench.span(job, -600 - i64::from(index), 7_200)?;
            if again {
                let lease = bench.grant(&slot, "z").await?;
                bench.store.fail(&lease, &failed(&lease), std::time::Duration::ZERO).await?;
            }
            let request = ClaimRequest { exclusive: true, ..bench.request(&slot, &format!("n{index}"))? };
            claimers.push((bench.another().await?, request));
        }
        let (won, blocked): (Vec<_>, Vec<_>) =
            race(claimers).await?.into_iter().partition(|(_, claim)| matches!(claim, Claim::Claimed { .. }));
        let winner = take!(won.as_slice(), [(winner, _)] => winner);
        for (request, claim) in &blocked {
            let (key, by) = take!(claim, Claim::Blocked { key, by, .. } => (*key, by));
            // A store of several masters may answer with another contender's reservation, which is of no attempt yet.
            let is_other = |(other, _): &&(ClaimRequest, Claim)| (other.slot.key(), &other.node) == (key, &by.node);
            let of_contender = by.attempt == 0 && key != request.slot.key() && blocked.iter().any(|it| is_other(&it));
            ensure!(
                of_contender || (key, &by.node) == (winner.slot.key(), &winner.node),
                "{}: {claim:?}",
                request.slot
            );
        }
        ensure_eq!(blocked.len(), 7);
    }
    Ok(())
}

async fn of_many_finishers_one_sets_the_marker(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let mut finishers = Vec::new();
    for index in 0..16 {
        let request = ClaimRequest { max_attempts: 99, ..bench.request(&slot, &format!("n{index}"))? };
        let lease = granted(&request, bench.store.claim(&request).await?)?;
        bench.expire(&slot).await?;
        finishers.push((bench.another().await?, lease));
    }
    let tasks = finishers
        .into_iter()
        .map(|(store, lease)| tokio::spawn(async move { store.complete(&lease, &succeeded(&lease), DONE).await }));
    let mut answers = Vec::new();
    for task in join_all(tasks).await {
        answers.push(task.map_err(|error| Failure::from(error.to_string()))??);
    }
    let known = bench.record(&slot).await?;
    let marker = take!(&known.mark, Mark::Done(mark) => mark.by.clone());
    let verdict = take!(known.verdict, Some(ref record) => record.done());
    ensure_eq!(verdict.map(|mark| mark.by), Some(marker.clone()), "the verdict is the first finisher's too");
    // Whoever set the marker is not told of itself: `Recorded`, or who held the slot after it.
    let others = answers.iter().filter(|answer| **answer == Settlement::Overtaken { by: marker.clone() }).count();
    ensure_eq!(others, 15, "finishers that hear of the one that set the marker");
    ensure!(known.runs.len() == 16 && known.runs.iter().all(|run| run.outcome.is_some()), "{:?}", known.runs);
    Ok(())
}

fn exclusive(bench: &Bench, slot: &Slot) -> Result<ClaimRequest, Failure> {
    Ok(ClaimRequest { exclusive: true, ..bench.request(slot, "b")? })
}

/// Two slots of a job, the older one first; both are open.
fn two(bench: &Bench, job: &str) -> Result<[Slot; 2], Failure> {
    Ok([bench.span(job, -900, 7_200)?, bench.slot(job)?])
}

async fn a_newer_slot_blocks_an_exclusive_claim_too(bench: &Bench) -> CaseOutcome {
    let [older, newer] = two(bench, "job")?;
    bench.grant(&newer, "a").await?;
    let key = take!(bench.store.claim(&exclusive(bench, &older)?).await?, Claim::Blocked { key, .. } => key);
    ensure_eq!(key, newer.key());
    ensure_eq!(bench.probe.attempts(&older).await?, None);
    ensure_is!(bench.store.claim(&exclusive(bench, &bench.slot("another")?)?).await?, Claim::Claimed { .. });
    Ok(())
}

async fn the_oldest_of_several_slots_is_named(bench: &Bench) -> CaseOutcome {
    // An hour, a minute and a second of it: the shorter key is the older slot.
    let hour = bench.span("job", -86_400, 7_200)?;
    for start in [-600, -86_400, -660, -3_601] {
        bench.grant(&bench.span("job", start, 7_200)?, "a").await?;
    }
    let request = exclusive(bench, &bench.span("job", -300, 7_200)?)?;
    let key = take!(bench.another().await?.claim(&request).await?, Claim::Blocked { key, .. } => key);
    ensure_eq!(key, hour.key());
    Ok(())
}

async fn an_exclusive_lease_does_not_block_a_claim_that_is_not(bench: &Bench) -> CaseOutcome {
    let [older, newer] = two(bench, "job")?;
    ensure_is!(bench.store.claim(&exclusive(bench, &older)?).await?, Claim::Claimed { .. });
    ensure_is!(bench.claim(&newer, "a").await?, Claim::Claimed { .. });
    Ok(())
}

async fn a_lease_that_was_settled_blocks_nobody(bench: &Bench) -> CaseOutcome {
    for job in ["failed", "waits", "given-back", "done"] {
        let [older, newer] = two(bench, job)?;
        let (lease, request) = (bench.grant(&older, "a").await?, exclusive(bench, &newer)?);
        ensure_is!(bench.store.claim(&request).await?, Claim::Blocked { .. });
        match job {
            "failed" => drop(bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?),
            "waits" => drop(bench.store.fail(&lease, &failed(&lease), WAIT).await?),
            "given-back" => drop(bench.store.give_back(&lease, &given_back(&lease)).await?),
            _ => drop(bench.store.complete(&lease, &succeeded(&lease), DONE).await?),
        }
        ensure_is!(bench.store.claim(&request).await?, Claim::Claimed { attempt: 1, .. });
    }
    Ok(())
}

async fn a_lease_that_was_taken_away_blocks_nobody(bench: &Bench) -> CaseOutcome {
    let [older, newer] = two(bench, "job")?;
    let (lease, request) = (bench.grant(&older, "a").await?, exclusive(bench, &newer)?);
    ensure_is!(bench.store.claim(&request).await?, Claim::Blocked { .. });
    ensure_eq!(bench.store.unlock(&older, &audit("unlock")).await?, Intervention::Applied);
    ensure_is!(bench.store.renew(&lease).await?, Renewal::Lost { .. });
    ensure_is!(bench.store.claim(&request).await?, Claim::Claimed { attempt: 1, .. });
    Ok(())
}

async fn a_lease_that_was_restored_blocks_again(bench: &Bench) -> CaseOutcome {
    let [older, newer] = two(bench, "job")?;
    let lease: Lease = bench.grant(&older, "a").await?;
    bench.expire(&older).await?;
    ensure_eq!(bench.store.renew(&lease).await?, Renewal::Restored);
    ensure_is!(bench.store.claim(&exclusive(bench, &newer)?).await?, Claim::Blocked { .. });
    Ok(())
}

async fn of_two_exclusive_claims_at_once_one_is_granted(bench: &Bench) -> CaseOutcome {
    let (here, there) = (bench.another().await?, bench.another().await?);
    for round in 0..20 {
        let [older, newer] = two(bench, &format!("job-{round}"))?;
        let (one, other) = (exclusive(bench, &older)?, exclusive(bench, &newer)?);
        let (one, other) = join(here.claim(&one), there.claim(&other)).await;
        let granted = [one?, other?].iter().filter(|claim| matches!(claim, Claim::Claimed { .. })).count();
        ensure_eq!(granted, 1, "round {round}");
    }
    Ok(())
}

/// The answer to a claim was lost, and the slot is over when its sender reaches the store again.
async fn a_grant_that_is_heard_of_after_the_slots_end_is_given_back(bench: &Bench) -> CaseOutcome {
    let (slot, next) = (bench.slot("job")?, bench.span("job", -60, 7_200)?);
    let request = bench.request(&slot, "a")?;
    granted(&request, bench.store.claim(&request).await?)?;
    let blocked = exclusive(bench, &next)?;
    ensure_is!(bench.store.claim(&blocked).await?, Claim::Blocked { .. });
    let late = ClaimRequest { slot: bench.span("job", -600, -60)?, ..request };
    let claim = bench.another().await?.claim(&late).await?;
    ensure_is!(claim, Claim::Claimed { attempt: 1, used: 1, .. });
    let lease = granted(&late, claim)?;
    ensure_eq!(bench.store.give_back(&lease, &given_back(&lease)).await?, Release::Released);
    ensure_is!(bench.store.claim(&blocked).await?, Claim::Claimed { attempt: 1, .. });
    ensure_eq!(bench.record(&slot).await?.forgiven, 1);
    ensure_eq!(bench.store.claim(&ClaimRequest { token: bench.token(), ..late }).await?, Claim::Closed);
    Ok(())
}

async fn a_lapsed_grant_that_is_heard_of_after_the_slots_end_is_given_back(bench: &Bench) -> CaseOutcome {
    let (slot, node) = (bench.slot("job")?, crate::store::conformance::bench::node_name("b")?);
    let request = bench.request(&slot, "a")?;
    granted(&request, bench.store.claim(&request).await?)?;
    bench.expire(&slot).await?;
    let late = ClaimRequest { slot: bench.span("job", -600, -60)?, ..request };
    let claim = bench.store.claim(&late).await?;
    ensure_is!(claim, Claim::Claimed { attempt: 1, used: 1, .. });
    let lease = granted(&late, claim)?;
    ensure_eq!(bench.store.give_back(&lease, &given_back(&lease)).await?, Release::Released);
    ensure_eq!(bench.record(&slot).await?.forgiven, 1);
    let verdict = bench.store.close(&late.slot, 1, &node).await?;
    ensure_eq!(verdict, Closing::First(crate::slot::Verdict::Missed), "no attempt was used up");
    Ok(())
}
