//! From a world that breaks a promise to the smallest one of the same seed that still does: fewer kinds of faults, nodes,
//! jobs, and less time.

use crate::sim::faults::Fault;
use crate::sim::finding::Check;
use crate::sim::scenario::Limits;
use crate::sim::world::{Options, run};

/// A world that breaks a promise, as small as could be found.
#[derive(Clone, Copy, Debug)]
pub struct Shrunk {
    /// What it has.
    pub options: Options,
    /// Worlds that were run to find it.
    pub tried: u32,
}

/// Cuts down a world that breaks this promise, as long as it breaks it.
pub fn shrink(seed: u64, options: Options, check: Check) -> Shrunk {
    let mut shrunk = Shrunk { options, tried: 0 };
    loop {
        let before = shrunk.options.limits;
        for limits in smaller(before) {
            shrunk.attempt(seed, limits, check);
        }
        if shrunk.options.limits == before {
            return shrunk;
        }
    }
}

impl Shrunk {
    /// Takes these limits, less what has been cut already, if the world still breaks a promise with them.
    fn attempt(&mut self, seed: u64, limits: Limits, check: Check) {
        let now = self.options.limits;
        let limits = Limits {
            nodes: limits.nodes.min(now.nodes),
            jobs: limits.jobs.min(now.jobs),
            periods: limits.periods.min(now.periods),
            faults: limits.faults.and(now.faults),
        };
        if limits == now {
            return;
        }
        self.tried += 1;
        let options = Options { limits, ..self.options };
        if run(seed, &options).is_ok_and(|outcome| outcome.finding.is_some_and(|finding| finding.check == check)) {
            self.options = options;
        }
    }
}

/// Each way to make a world a little smaller, the largest cuts first.
fn smaller(now: Limits) -> Vec<Limits> {
    let mut all = Vec::new();
    all.extend([1, 2, 3].map(|nodes| Limits { nodes, ..now }));
    all.extend([1, 2].map(|jobs| Limits { jobs, ..now }));
    all.extend(Fault::ALL.iter().map(|fault| Limits { faults: now.faults.without(*fault), ..now }));
    all.extend([1, 2, 3, 5, 8, 12, 18, 24].map(|periods| Limits { periods, ..now }));
    all
}
