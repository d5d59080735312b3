//! Requests that wait for each other in a ring. One request takes all its locks in one step, so a ring needs owners that took more
//! while they held: two commands that each run a `cronward lock` of their own inside. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::job::LockName;
use crate::resource::{LockEntry, LockRecord, OwnerId};

/// One request of a ring: it waits in the queue of this lock for the owner of the next one, and the last for the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlockStep {
    /// What it waits for.
    pub lock: LockName,
    /// The request.
    pub entry: LockEntry,
}

/// A ring in these queues, from its oldest request on; empty where there is none. Somebody of it has to leave, or to lapse.
pub fn deadlock(records: &[LockRecord]) -> Vec<DeadlockStep> {
    let stuck = stuck(records);
    let Some(mut owner) = stuck.first().copied() else { return Vec::new() };
    let mut path: Vec<(OwnerId, DeadlockStep)> = Vec::new();
    while !path.iter().any(|(before, _)| *before == owner) {
        let Some((record, entry, next)) = wait_of(records, owner, &stuck) else { return Vec::new() };
        path.push((owner, DeadlockStep { lock: record.lock.clone(), entry: entry.clone() }));
        owner = next;
    }
    // What leads into the ring is no part of it.
    let mut ring: Vec<DeadlockStep> =
        path.into_iter().skip_while(|(of, _)| *of != owner).map(|(_, step)| step).collect();
    let oldest = (0..ring.len()).min_by_key(|place| ring.get(*place).map(|step| step.entry.place));
    ring.rotate_left(oldest.unwrap_or(0));
    ring
}

/// Owners that go on only when one of them leaves. Everybody else ends some day, and makes room.
fn stuck(records: &[LockRecord]) -> BTreeSet<OwnerId> {
    let waits = |entry: &&LockEntry| !entry.holds;
    let mut waiting: Vec<(u64, OwnerId)> = records
        .iter()
        .flat_map(|record| &record.entries)
        .filter(waits)
        .map(|entry| (entry.place, entry.by.owner))
        .collect();
    // In the order in which they are served: so one round is nearly always enough.
    waiting.sort_unstable();
    let mut stuck: BTreeSet<OwnerId> = waiting.iter().map(|(_, owner)| *owner).collect();
    loop {
        let before = stuck.len();
        for (_, owner) in &waiting {
            if stuck.contains(owner) && wait_of(records, *owner, &stuck).is_none() {
                stuck.remove(owner);
            }
        }
        if stuck.len() == before {
            return stuck;
        }
    }
}

/// Where this owner waits although all are gone but these, and one of them for whom it waits.
fn wait_of<'a>(
    records: &'a [LockRecord],
    owner: OwnerId,
    stuck: &BTreeSet<OwnerId>,
) -> Option<(&'a LockRecord, &'a LockEntry, OwnerId)> {
    let own = |record: &'a LockRecord| record.entries.iter().filter(move |entry| entry.by.owner == owner);
    let mut entries = records.iter().flat_map(|record| own(record).map(move |entry| (record, entry)));
    entries.find_map(|(record, entry)| {
        let ahead = || record.before(entry).filter(|other| stuck.contains(&other.by.owner));
        let mut weights: BTreeMap<OwnerId, u32> = BTreeMap::new();
        let mut limit = entry.demand.of();
        for other in ahead().chain([entry]) {
            let weight = weights.entry(other.by.owner).or_default();
            *weight = other.demand.weight().max(*weight);
            limit = limit.min(other.demand.of());
        }
        let sum: u64 = weights.values().map(|weight| u64::from(*weight)).sum();
        let next = ahead().next().filter(|_| sum > u64::from(limit))?;
        Some((record, entry, next.by.owner))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::time::Duration;

    use crate::job::NodeName;
    use crate::resource::LockHolder;
    use crate::slot::Token;

    /// Queues, each as `lock: owner demand, …` in order; who holds is marked with a star.
    fn queues(texts: &[&str]) -> Vec<LockRecord> {
        let mut place = 0;
        let mut entry = |text: &str| {
            let (text, holds) = text.strip_suffix('*').map_or((text, false), |text| (text, true));
            let (owner, demand) = text.split_once(' ').unwrap();
            place += 1;
            let by = LockHolder {
                node: NodeName::new("n").unwrap(),
                label: owner.to_owned(),
                owner: OwnerId::of_text(owner),
                fence: None,
            };
            let (token, demand) = (Token::from_bits(place.into()), demand.parse().unwrap());
            LockEntry { token, by, demand, place, holds, remaining: Duration::from_secs(1) }
        };
        let record = |text: &&str| {
            let entries: Vec<LockEntry> = text.split(", ").map(&mut entry).collect();
            LockRecord { lock: entries[0].demand.lock().clone(), entries, audit: Vec::new() }
        };
        texts.iter().map(record).collect()
    }

    fn ring(texts: &[&str]) -> Vec<String> {
        let steps = deadlock(&queues(texts));
        steps.iter().map(|step| format!("{} waits for {}", step.entry.by.label, step.lock)).collect()
    }

    #[test]
    fn two_that_hold_what_the_other_waits_for_are_named_from_the_oldest_wait_on() {
        assert_eq!(ring(&["a x*, b x", "b y*, a y"]), ["b waits for x", "a waits for y"]);
    }

    #[test]
    fn a_ring_of_three_is_found_and_who_waits_behind_it_is_no_part_of_it() {
        let three = ["a x*, c x, d x", "b y*, a y, e y", "c z*, b z"];
        assert_eq!(ring(&three), ["c waits for x", "a waits for y", "b waits for z"]);
    }

    #[test]
    fn who_waits_in_turn_is_in_no_ring() {
        assert_eq!(ring(&["a x*, b x, c x", "a y*, c y, d y"]), [""; 0]);
        assert_eq!(ring(&[]), [""; 0]);
    }

    #[test]
    fn a_ring_that_somebody_outside_of_it_can_open_is_none() {
        // Each waits for a permit of the other, and a third one has a permit of each.
        assert_eq!(ring(&["a x:1/2*, c x:1/2*, b x:1/2", "b y:1/2*, c y:1/2*, a y:1/2"]), [""; 0]);
        // Without it, neither gets on.
        let closed = ring(&["a x:2/2*, b x:1/2", "b y:1/2*, a y:2/2"]);
        assert_eq!(closed, ["b waits for x", "a waits for y"]);
    }

    #[test]
    fn readers_that_both_want_to_write_elsewhere_wait_only_where_they_exclude_each_other() {
        assert_eq!(ring(&["a x:shared*, b x:shared*", "a y*, b y"]), [""; 0]);
        assert_eq!(ring(&["a x:shared*, b x", "b y:shared*, a y"]).len(), 2);
    }

    #[test]
    fn a_thousand_in_one_queue_are_looked_through_at_once() {
        let queue = (0..1_000).map(|number| format!("o{number} x{}", if number == 0 { "*" } else { "" }));
        assert_eq!(ring(&[queue.collect::<Vec<_>>().join(", ").as_str()]), [""; 0]);
    }
}
