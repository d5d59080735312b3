//! Which faults strike when: a pure function of a seed and a shape, drawn before anything runs.
//!
//! Storms, in which faults of all kinds come close together and last into each other, take turns with calms, in which
//! jobs fail and one node is killed: only there nothing else excuses a late recovery.

use std::time::Duration;

use super::backend::Bears;
use super::fault::{Fault, NodeFault, ServerFault};
use super::random::Random;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) nodes: usize,
    pub(super) storms: u32,
    pub(super) storm: Duration,
    pub(super) calm: Duration,
    pub(super) bears: Bears,
}

/// One fault of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Injection {
    /// From the beginning of the run.
    pub(super) at: Duration,
    pub(super) lasts: Duration,
    pub(super) fault: Fault,
    /// The node that it strikes, for those that strike one.
    pub(super) node: usize,
    /// Chooses among variants of the fault, and which run it strikes.
    pub(super) pick: u64,
    /// It waits for the next slots: it strikes while they are done.
    pub(super) amid_work: bool,
}

/// From one fault of a storm to the next, in milliseconds.
const BETWEEN: std::ops::Range<u64> = 1_100..2_000;
/// From one fault of an outsider to the next.
const BETWEEN_OUTSIDERS: std::ops::Range<u64> = 1_800..3_000;
/// How long a failover that opens a storm leaves the replica behind: the next slots are done meanwhile, in milliseconds.
const LEFT_BEHIND: std::ops::Range<u64> = 900..1_400;
/// A node is left alone so long: it has to start.
pub(super) const NODE_RESTS: Duration = Duration::from_millis(700);
/// How much of a calm is over when its node is killed: consequences of the storm are over by then.
const KILLED_AFTER: f64 = 0.55;
const KILLED_FOR: Duration = Duration::from_secs(3);

/// Draws the plan of a seed.
pub(super) fn draw(seed: u64, shape: &Shape) -> Vec<Injection> {
    let kinds = Fault::of_the_cluster(&shape.bears);
    let free = Free { nodes: vec![Duration::ZERO; shape.nodes], server: Duration::ZERO };
    let Bears { rests, forgets, .. } = shape.bears;
    let mut table = Table { random: Random::new(seed), kinds, deck: Vec::new(), free, rests, plan: Vec::new() };
    for number in 0..shape.storms {
        let start = (shape.storm + shape.calm) * number;
        let end = start + shape.storm;
        let mut at = start + Duration::from_millis(500);
        if forgets {
            table.open_with_a_failover(at);
        }
        while at < end {
            table.deal(at, end);
            at += table.random.span(BETWEEN);
        }
        table.kill_in_the_calm(end + shape.calm.mul_f64(KILLED_AFTER));
    }
    table.plan.extend(draw_outsiders(seed, shape));
    table.plan.sort_by_key(|injection| injection.at);
    table.plan
}

/// What strikes the outsiders, in storms too: drawn apart, so that a seed does to the cluster what it always did.
fn draw_outsiders(seed: u64, shape: &Shape) -> Vec<Injection> {
    let kinds = Fault::of_outsiders(&shape.bears);
    if kinds.is_empty() {
        return Vec::new();
    }
    let (mut random, mut deck, mut plan) = (Random::new(!seed), Vec::new(), Vec::new());
    for number in 0..shape.storms {
        let start = (shape.storm + shape.calm) * number;
        let end = start + shape.storm;
        let mut at = start + Duration::from_millis(200);
        while at < end {
            if deck.is_empty() {
                deck.clone_from(&kinds);
                random.shuffle(&mut deck);
            }
            let (fault, pick) = (deck.remove(0), random.bits());
            let lasts = fault.lasts();
            let lasts = if lasts.is_empty() { Duration::ZERO } else { random.span(lasts).min(end - at) };
            plan.push(Injection { at, lasts, fault, node: 0, pick, amid_work: false });
            at += random.span(BETWEEN_OUTSIDERS);
        }
    }
    plan
}

/// From when on something can be struck again.
struct Free {
    nodes: Vec<Duration>,
    server: Duration,
}

struct Table {
    random: Random,
    kinds: Vec<Fault>,
    /// Every kind comes once before one comes again.
    deck: Vec<Fault>,
    free: Free,
    /// The server is left alone so long after each fault of its own: a replica needs it to follow again.
    rests: Duration,
    plan: Vec<Injection>,
}

impl Table {
    fn shuffle_if_empty(&mut self) {
        if self.deck.is_empty() {
            self.deck.clone_from(&self.kinds);
            self.random.shuffle(&mut self.deck);
        }
    }

    /// With its card where that is left in the deck.
    fn open_with_a_failover(&mut self, at: Duration) {
        self.shuffle_if_empty();
        let fault = Fault::Server(ServerFault::Failover);
        if let Some(index) = self.deck.iter().position(|card| *card == fault) {
            self.deck.remove(index);
        }
        let (lasts, pick) = (self.random.span(LEFT_BEHIND), self.random.bits());
        self.play(Injection { at, lasts, fault, node: 0, pick, amid_work: true });
    }

    /// The first card of the deck that can be played now, one for the server before others, since it is struck seldom enough;
    /// none when all that are left have to wait.
    fn deal(&mut self, at: Duration, end: Duration) {
        self.shuffle_if_empty();
        let nodes = self.free_nodes(at);
        let server_is_free = self.free.server <= at;
        let fits = |fault: &Fault| match fault {
            Fault::Node(_) | Fault::Link(_) => !nodes.is_empty(),
            Fault::Server(_) => server_is_free,
            Fault::Run(_) | Fault::Outsider(_) => true,
        };
        let of_server = |fault: &Fault| matches!(fault, Fault::Server(_)) && fits(fault);
        let found = self.deck.iter().position(of_server).or_else(|| self.deck.iter().position(fits));
        let Some(index) = found else { return };
        let fault = self.deck.remove(index);
        let node = if fault.strikes_a_node() { nodes[self.random.below(nodes.len())] } else { 0 };
        let lasts = self.length(fault, end + Duration::from_secs(1) - at);
        let pick = self.random.bits();
        self.play(Injection { at, lasts, fault, node, pick, amid_work: false });
    }

    /// A wrong clock may last into the calm: it excuses nothing.
    fn length(&mut self, fault: Fault, most: Duration) -> Duration {
        let range = fault.lasts();
        if range.is_empty() {
            return Duration::ZERO;
        }
        let drawn = self.random.span(range);
        if fault == Fault::Node(NodeFault::Clock) { drawn } else { drawn.min(most) }
    }

    fn play(&mut self, injection: Injection) {
        let until = injection.at + injection.lasts;
        match injection.fault {
            Fault::Node(_) | Fault::Link(_) => self.free.nodes[injection.node] = until + NODE_RESTS,
            Fault::Server(_) => self.free.server = until + self.rests,
            Fault::Run(_) | Fault::Outsider(_) => {}
        }
        self.plan.push(injection);
    }

    /// Nodes that nothing ails; none when only one is left, for one has to be well.
    fn free_nodes(&self, at: Duration) -> Vec<usize> {
        let free: Vec<usize> = (0..self.free.nodes.len()).filter(|node| self.free.nodes[*node] <= at).collect();
        if free.len() > 1 { free } else { Vec::new() }
    }

    fn kill_in_the_calm(&mut self, at: Duration) {
        let nodes = self.free_nodes(at);
        if nodes.is_empty() {
            return;
        }
        let (node, pick) = (nodes[self.random.below(nodes.len())], self.random.bits());
        let fault = Fault::Node(NodeFault::Kill);
        self.play(Injection { at, lasts: KILLED_FOR, fault, node, pick, amid_work: false });
    }
}
