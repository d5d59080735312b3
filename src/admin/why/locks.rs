//! The locks that a slot waits or waited for, in words.

use crate::admin::why::facts::Facts;
use crate::admin::why::queued::Queued;
use crate::admin::why::texts::WhyTexts;
use crate::resource::{DeadlockStep, LockEntry, LockRecord};
use crate::slot::{Attempt, Decision, Outcome};

/// What the attempt waits for: by the store, or where that was noted of it last.
pub(super) fn waits(facts: &Facts, attempt: Attempt, t: &WhyTexts) -> Option<String> {
    match &facts.queued {
        Queued::Waits(behind) => waits_behind(facts, behind, t),
        Queued::Holds => None,
        Queued::Nowhere => waits_by_the_log(facts, attempt, t),
    }
}

fn waits_behind(facts: &Facts, behind: &[(LockRecord, LockEntry)], t: &WhyTexts) -> Option<String> {
    let locks: Vec<String> = behind.iter().map(|(_, entry)| entry.demand.to_string()).collect();
    let (record, entry) = behind.iter().max_by_key(|(record, entry)| record.before(entry).count())?;
    let first = record.before(entry).next()?;
    let since = first.since().map(|since| facts.at(since));
    let holder = (t.slot.holder)(first.by.node.as_str(), &first.by.label, since.as_deref());
    let ahead = u32::try_from(record.before(entry).count()).unwrap_or(u32::MAX);
    Some((t.slot.waits_for)(&locks.join(", "), ahead, &holder))
}

/// Who waits behind whom in a ring, and the words of the command that opens it; none of no ring.
pub(super) fn deadlock(ring: &[DeadlockStep], t: &WhyTexts) -> Option<(String, String)> {
    let last = ring.last()?;
    let step = |step: &DeadlockStep| {
        let by = &step.entry.by;
        ((t.slot.holder)(by.node.as_str(), &by.label, None), step.lock.to_string())
    };
    let steps: Vec<(String, String)> = ring.iter().map(step).collect();
    Some(((t.slot.deadlock)(&steps), format!("unlock --lock {} --token {}", last.lock, last.entry.token)))
}

fn waits_by_the_log(facts: &Facts, attempt: Attempt, t: &WhyTexts) -> Option<String> {
    let mut notes = facts.pages.iter().flat_map(|page| &page.notes).map(|note| &note.decision);
    match notes.rfind(|decision| decision.attempt() == Some(attempt))? {
        Decision::LockWaiting { locks, ahead, by, label, since: from, .. } => {
            let holder = (t.slot.holder)(by.as_str(), label, from.map(|from| facts.at(from)).as_deref());
            Some((t.slot.waits_for)(locks, *ahead, &holder))
        }
        _ => None,
    }
}

/// What became of the last attempt, where each was given back before its command was started.
pub(super) fn given_back(facts: &Facts, t: &WhyTexts) -> Option<String> {
    let record = &facts.record;
    let run = record.runs.last().filter(|run| record.used() == 0 && run.outcome == Some(Outcome::GivenBack))?;
    let (at, why) = (facts.at(run.ended_at.filter(|_| run.started_at.is_none())?), run.message.as_ref()?);
    Some((t.attempt.given_back)(run.attempt, run.node.as_str(), Some(&at), Some(why)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::admin::command_line::CommandLine;
    use crate::admin::fixture::{Scene, node, token};
    use crate::admin::why::{explain, facts};
    use crate::resource::{AcquireRequest, Acquired, Demands, OwnerId};

    async fn said(scene: &Scene) -> String {
        let session = scene.session().await;
        explain(&facts(&session, &"billing".parse().unwrap(), CommandLine::default()).await.unwrap()).sentence
    }

    #[tokio::test]
    async fn a_ring_that_the_attempt_waits_in_through_its_command_is_named_with_what_opens_it() {
        let mut scene = Scene::at("2026-11-21T12:00:00Z");
        scene.register("billing", "0 * * * *").await;
        scene.claim("billing", "b").await;
        let slot = OwnerId::of_text("billing@2026-11-21T12Z");
        let of_slot = |request: AcquireRequest| AcquireRequest { owner: slot, ..request };
        let demands = |lock: &str| Demands::new(vec![lock.parse().unwrap()]).unwrap();
        let request = |number, node_name: &str, label: &str, lock: &str| {
            let (token, ttl) = (token(number), Duration::from_secs(60));
            AcquireRequest::new(token, node(node_name), token, ttl, demands(lock)).labelled(label)
        };
        let attempt = of_slot(request(11, "b", "billing@2026-11-21T12Z#1", "db"));
        let nested = of_slot(request(12, "b", "psql", "gpu"));
        let owner = OwnerId::of_text("other");
        let outer = AcquireRequest { owner, ..request(13, "c", "sh", "gpu") };
        let other = AcquireRequest { owner, ..request(14, "c", "sh", "db") };
        for asked in [&attempt, &outer, &nested] {
            scene.locks().acquire(asked).await.unwrap();
        }
        assert!(!said(&scene).await.contains("deadlock"), "{}", said(&scene).await);
        scene.locks().acquire(&other).await.unwrap();
        let deadlock = "; deadlock: psql on node b waits for gpu, sh on node c waits for db, each behind the next";
        assert!(said(&scene).await.starts_with("the slot is running: node b "), "{}", said(&scene).await);
        assert!(said(&scene).await.ends_with(deadlock), "{}", said(&scene).await);
        let session = scene.session().await;
        let facts = facts(&session, &"billing".parse().unwrap(), CommandLine::default()).await.unwrap();
        let evicts = format!("cronward unlock --lock db --token {}", token(14));
        assert_eq!(explain(&facts).fix, Some(evicts));
    }

    /// Asks as the attempt of this label would.
    async fn ask(scene: &Scene, number: u32, node_name: &str, label: &str, locks: &[&str]) -> AcquireRequest {
        let demands = Demands::new(locks.iter().map(|lock| lock.parse().unwrap()).collect()).unwrap();
        let request = AcquireRequest::new(token(number), node(node_name), token(9), Duration::from_secs(60), demands);
        let request = request.labelled(label);
        scene.locks().acquire(&request).await.unwrap();
        request
    }

    #[tokio::test]
    async fn what_the_store_says_of_the_queues_comes_before_the_decision_log() {
        let mut scene = Scene::at("2026-11-21T12:00:00Z");
        scene.register("billing", "0 * * * *").await;
        scene.claim("billing", "b").await;
        assert!(said(&scene).await.starts_with("the slot is running: node b "));
        let other = ask(&scene, 11, "c", "sh", &["gpu", "db"]).await;
        let label = "billing@2026-11-21T12Z#1";
        let asking = ask(&scene, 12, "b", label, &["disk", "gpu"]).await;
        ask(&scene, 13, "a", "billing@2026-11-21T11Z#1", &["db"]).await;
        let waits = "the slot waits for gpu: 1 ahead, held by sh on node c since 12:00:00; node b has held the lease";
        assert!(said(&scene).await.starts_with(waits), "{}", said(&scene).await);
        let Acquired::Held { fence, places, .. } = scene.locks().acquire(&other).await.unwrap() else { panic!() };
        scene.locks().release(&other.granted(fence, places).exit(false)).await.unwrap();
        scene.locks().acquire(&asking).await.unwrap();
        assert!(said(&scene).await.starts_with("the slot is running: node b "));
    }
}
