//! Faults that strike at a moment: drawn before the world begins, each kind from a stream of its own.

use std::time::Duration;

use crate::engine::{Dice, Time};
use crate::faults::Fault;
use crate::scenario::Scenario;

/// Something that happens to nodes, store or clocks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Weather {
    /// A node dies and comes back after this.
    Crash(usize, Duration),
    /// A node's daemon starts.
    Boot(usize),
    /// A node stands still for this long.
    Pause(usize, Duration),
    /// A node cannot reach the store for this long.
    CutOff(usize, Duration),
    /// A node's requests reach the store and no answer reaches the node for this long.
    Deafen(usize, Duration),
    /// The store is away for this long; it refuses connections, or is silent.
    Down(Duration, bool),
    /// Each answer takes up to this long more; until it is lifted.
    Slow(Duration),
    /// The store forgets everything.
    Wipe,
    /// The replica has everything.
    Replicate,
    /// The replica takes over.
    FailOver,
    /// A node's wall clock is stepped by so many nanoseconds.
    Jump(usize, i64),
    /// A node is shut down, with so much time for its runs, and comes back after that much.
    Drain(usize, Duration, Duration),
    /// A node reads its file again.
    Reload(usize),
    /// A node reads a file with one job more.
    AddJob(usize),
    /// A lost subscription is back, at one node or at all.
    Resync(Option<usize>),
    /// Faults are over: what is down comes up.
    Calm,
}

/// When what happens.
pub(super) fn drawn(scenario: &Scenario) -> Vec<(Time, Weather)> {
    let mut all = vec![(scenario.faults_until, Weather::Calm)];
    if let Some(at) = scenario.added {
        let mut dice = Dice::new(scenario.seed, 21);
        let mut soon = || at + dice.span(Duration::ZERO, Duration::from_secs(1));
        all.extend((0..scenario.nodes.len()).map(|node| (soon(), Weather::AddJob(node))));
    }
    for (index, fault) in (100_u64..).zip(Fault::ALL.iter().copied()) {
        if scenario.mix.has(fault) {
            let mut dice = Dice::new(scenario.seed, index);
            for _ in 0..1 + dice.below(5) {
                strike(fault, scenario, &mut dice, &mut all);
            }
        }
    }
    all
}

fn strike(fault: Fault, scenario: &Scenario, dice: &mut Dice, all: &mut Vec<(Time, Weather)>) {
    let ttl = scenario.lease_ttl;
    let at = dice.span(Time::ZERO, scenario.faults_until);
    let count = u64::try_from(scenario.nodes.len()).unwrap_or(1);
    let node = usize::try_from(dice.below(count)).unwrap_or(0);
    // In short slots most outlast some slots, and not a lease.
    let most = if scenario.short { dice.pick(&[ttl / 8, ttl / 2, ttl * 2], ttl) } else { ttl * 3 };
    let while_ = dice.span(Duration::from_millis(1), most);
    match fault {
        Fault::Crash => all.push((at, Weather::Crash(node, while_))),
        Fault::Pause => all.push((at, Weather::Pause(node, while_))),
        Fault::Partition => all.push((at, Weather::CutOff(node, while_ * 2))),
        Fault::StoreDown => all.push((at, Weather::Down(while_, dice.below(2) == 0))),
        Fault::StoreSlow => {
            all.push((at, Weather::Slow(dice.pick(&[ttl / 3, ttl], ttl))));
            all.push((at + while_, Weather::Slow(Duration::ZERO)));
        }
        Fault::Wipe => all.push((at, Weather::Wipe)),
        Fault::Failover => {
            all.push((at, Weather::Replicate));
            all.push((at + while_ / 4, Weather::FailOver));
        }
        Fault::ClockJump => all.push((at, Weather::Jump(node, wrong(scenario, dice)))),
        Fault::Drain => all.push((at, Weather::Drain(node, dice.span(Duration::ZERO, ttl * 2), while_))),
        Fault::Reload => {
            // Mostly a file is rolled out to all nodes within a second.
            let all_nodes = dice.below(3) > 0;
            let nodes = if all_nodes { 0..scenario.nodes.len() } else { node..node + 1 };
            all.extend(
                nodes.map(|node| (at + dice.span(Duration::ZERO, Duration::from_secs(1)), Weather::Reload(node))),
            );
        }
        Fault::ReplyLost if scenario.short => all.push((at, Weather::Deafen(node, while_))),
        Fault::RequestLost
        | Fault::ReplyLost
        | Fault::Delay
        | Fault::Duplicate
        | Fault::HintLost
        | Fault::CrashAtStep
        | Fault::ClockOff
        | Fault::ClockDrift
        | Fault::Unlike
        | Fault::NoStart
        | Fault::ContentRefused => {}
    }
}

/// How wrong a clock is, in nanoseconds: a little, some seconds, or about a slot; either way.
pub(super) fn wrong(scenario: &Scenario, dice: &mut Dice) -> i64 {
    let most = dice.pick(&[Duration::from_millis(300), Duration::from_secs(5), scenario.period * 2], Duration::ZERO);
    let nanos = i64::try_from(dice.span(Duration::ZERO, most).as_nanos()).unwrap_or(0);
    if dice.below(2) == 0 { nanos } else { -nanos }
}
