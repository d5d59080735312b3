//! Which locks the jobs of a world name, and how: drawn from a stream of its own.

use std::time::Duration;

use cronward::job::LockName;
use cronward::resource::{Demand, Demands};

use crate::engine::Dice;

/// The first seed whose jobs may name locks: beyond every seed that was drawn anew before there were any, so that the worlds of those that
/// were kept stay what they were.
pub const LOCKS_FROM: u64 = 2_000_000_000_000;

/// What a job names, and for how long it waits.
pub(super) type JobDemands = Option<(Demands, Option<Duration>)>;

/// How a lock is used.
#[derive(Clone, Copy)]
enum LockUsage {
    Exclusive,
    /// Some write, most read.
    Shared,
    /// Two may hold one each, or one both.
    Permits,
}

/// For each of three jobs. As many are drawn however few a world has.
pub(super) fn drawn(seed: u64, period: Duration) -> [JobDemands; 3] {
    let mut dice = Dice::new(seed, 8);
    let has_locks = seed >= LOCKS_FROM && dice.below(2) == 0;
    let two = dice.below(2) == 0;
    let usages = [(); 2].map(|()| {
        dice.pick(
            &[LockUsage::Exclusive, LockUsage::Exclusive, LockUsage::Shared, LockUsage::Permits],
            LockUsage::Exclusive,
        )
    });
    [0, 1, 2].map(|job| {
        let wait = dice.pick(&[None, None, Some(period / 4), Some(period)], None);
        let mut demands = Vec::new();
        for (name, usage, among) in [("x", usages[0], true), ("y", usages[1], two)] {
            // Some job names the first one.
            let named = dice.below(4) > 0 || (job == 0 && name == "x");
            let way = dice.below(4);
            let lock = LockName::new(name).ok().filter(|_| named && among && has_locks);
            demands.extend(lock.and_then(|lock| demand(lock, usage, way)));
        }
        Demands::new(demands).ok().map(|demands| (demands, wait))
    })
}

fn demand(lock: LockName, usage: LockUsage, way: u64) -> Option<Demand> {
    match (usage, way) {
        (LockUsage::Exclusive, _) | (LockUsage::Shared, 0) => Some(Demand::exclusive(lock)),
        (LockUsage::Shared, _) => Some(Demand::shared(lock)),
        (LockUsage::Permits, way) => Demand::permits(lock, if way == 0 { 2 } else { 1 }, 2).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_worlds_have_locks_of_every_kind_and_none_of_an_older_seed() {
        let period = Duration::from_secs(20);
        let all: Vec<_> = (LOCKS_FROM..LOCKS_FROM + 1_000).map(|seed| drawn(seed, period)).collect();
        let with = all.iter().filter(|jobs| jobs.iter().any(Option::is_some)).count();
        assert!((450..550).contains(&with), "{with}");
        let named: Vec<Demand> =
            all.iter().flatten().flatten().flat_map(|(demands, _)| demands.iter().cloned()).collect();
        for text in ["x", "y", "x:shared", "y:shared", "x:1/2", "x:2/2", "y:1/2", "y:2/2"] {
            assert!(named.iter().any(|demand| demand.to_string() == text), "{text}");
        }
        assert!((LOCKS_FROM - 1_000..LOCKS_FROM).all(|seed| drawn(seed, period).iter().all(Option::is_none)));
    }
}
