//! Requests that wait for each other in a ring. One request takes all its locks in one step, so a ring needs owners that took more
//! while they held: two commands that each run a `cronward lock` of their own inside. Pure.
//!
//! What is seen are owners. A command whose children wait for locks side by side is one owner, and may go on when one of them ends; and a
//! guard with an owner of its own inside another hides that the outer one waits for it.

use std::collections::{BTreeMap, BTreeSet};

use crate::job::LockName;
use crate::resource::record::weigh;
use crate::resource::{LockEntry, LockRecord, OwnerId};

/// One request of a ring: it waits in the queue of this lock behind the owner of the next one, and the last behind the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlockStep {
    /// What it waits for.
    pub lock: LockName,
    /// The request.
    pub entry: LockEntry,
}

/// The rings in these queues, each from its oldest request on. Somebody of each has to leave, or to lapse.
pub fn deadlocks(records: &[LockRecord]) -> Vec<Vec<DeadlockStep>> {
    let queues = Queues::of(records);
    let stuck = queues.stuck();
    let mut seen = BTreeSet::new();
    let rings = stuck.iter().filter_map(|owner| queues.ring_from(*owner, &stuck, &mut seen));
    rings.collect()
}

/// The queues, with where each owner stands in them.
struct Queues<'a> {
    records: &'a [LockRecord],
    of_owner: BTreeMap<OwnerId, Vec<(&'a LockRecord, &'a LockEntry)>>,
}

impl<'a> Queues<'a> {
    fn of(records: &'a [LockRecord]) -> Self {
        let mut of_owner: BTreeMap<OwnerId, Vec<(&LockRecord, &LockEntry)>> = BTreeMap::new();
        for record in records {
            for entry in &record.entries {
                of_owner.entry(entry.by.owner).or_default().push((record, entry));
            }
        }
        Self { records, of_owner }
    }

    /// Owners that go on only when one of them leaves. Everybody else ends some day, and makes room.
    fn stuck(&self) -> BTreeSet<OwnerId> {
        let entries = self.records.iter().flat_map(|record| &record.entries);
        let mut waiting: Vec<(u64, OwnerId)> =
            entries.filter(|entry| !entry.holds).map(|entry| (entry.place, entry.by.owner)).collect();
        // In the order in which they are served: so one round is nearly always enough.
        waiting.sort_unstable();
        let mut stuck: BTreeSet<OwnerId> = waiting.iter().map(|(_, owner)| *owner).collect();
        loop {
            let before = stuck.len();
            for (_, owner) in &waiting {
                if stuck.contains(owner) && self.wait_of(*owner, &stuck).is_none() {
                    stuck.remove(owner);
                }
            }
            if stuck.len() == before {
                return stuck;
            }
        }
    }

    /// The ring to which the waits of this owner lead, unless that, or an owner on the way, was seen before.
    fn ring_from(
        &self,
        mut owner: OwnerId,
        stuck: &BTreeSet<OwnerId>,
        seen: &mut BTreeSet<OwnerId>,
    ) -> Option<Vec<DeadlockStep>> {
        let mut path: Vec<(OwnerId, DeadlockStep)> = Vec::new();
        while seen.insert(owner) {
            let (record, entry, next) = self.wait_of(owner, stuck)?;
            path.push((owner, DeadlockStep { lock: record.lock.clone(), entry: entry.clone() }));
            owner = next;
        }
        // What leads into the ring is no part of it; nothing is left where the way leads to one that was found before.
        let ring = path.into_iter().skip_while(|(of, _)| *of != owner);
        let mut ring: Vec<DeadlockStep> = ring.map(|(_, step)| step).collect();
        let oldest = (0..ring.len()).min_by_key(|place| ring.get(*place).map(|step| step.entry.place))?;
        ring.rotate_left(oldest);
        Some(ring)
    }

    /// Where this owner waits although all are gone but these, and one of them behind whom it waits.
    fn wait_of(&self, owner: OwnerId, stuck: &BTreeSet<OwnerId>) -> Option<(&'a LockRecord, &'a LockEntry, OwnerId)> {
        self.of_owner.get(&owner)?.iter().find_map(|(record, entry)| {
            let ahead = || record.before(entry).filter(|other| stuck.contains(&other.by.owner));
            let (weight, limit) = weigh(ahead().chain([*entry]));
            let next = ahead().next().filter(|_| weight > u64::from(limit))?;
            Some((*record, *entry, next.by.owner))
        })
    }
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

    fn rings(texts: &[&str]) -> Vec<Vec<String>> {
        let words = |step: &DeadlockStep| format!("{} waits for {}", step.entry.by.label, step.lock);
        deadlocks(&queues(texts)).iter().map(|ring| ring.iter().map(words).collect()).collect()
    }

    /// The only one; nothing where there is none.
    fn ring(texts: &[&str]) -> Vec<String> {
        let mut rings = rings(texts);
        assert!(rings.len() <= 1, "{rings:?}");
        rings.pop().unwrap_or_default()
    }

    #[test]
    fn each_ring_is_named_once_whoever_waits_behind_it() {
        let mut two = rings(&["a x*, b x, e x", "b y*, a y", "c u*, d u", "d v*, c v, e v"]);
        two.sort();
        assert_eq!(two, [["b waits for x", "a waits for y"], ["d waits for u", "c waits for v"]]);
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
