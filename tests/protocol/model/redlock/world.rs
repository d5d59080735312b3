//! The world: masters, nodes, messages, and everything that can happen next.

use std::sync::LazyLock;
use std::time::Duration;

use chrono::{DateTime, Utc};
use cronward::clock::later;
use cronward::job::NodeName;
use cronward::reply::ClaimRequest;
use cronward::slot::{Slot, Token};
use cronward::store::redlock::Quorum;
use cronward::store::redlock::claim::Terms;
use stateright::{Model, Property};

use super::master::{Master, Request};
use super::node::{Call, Node, Phase};
use super::properties::{self, Facts};
use super::turn;

/// Whole ticks since the world began, by every clock.
pub(crate) type Tick = u8;

/// TTL of a reservation.
pub(crate) const RESERVATION: Tick = 1;
pub(crate) const MAX_ATTEMPTS: u8 = 2;
pub(crate) const MASTERS: usize = 3;
const NODES: usize = 2;

/// A claim's token: which node, which of its claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Tok(pub(crate) u8);

impl Tok {
    pub(crate) const fn is(self, other: Self) -> bool {
        self.0 == other.0
    }

    pub(crate) const fn real(self) -> Token {
        Token::from_bits(self.0 as u128)
    }
}

/// How often each fault may strike in one history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Faults {
    /// Requests that never arrive, or whose answers do not.
    pub(crate) losses: u8,
    /// Requests that arrive at any later time, when nobody waits for them any more.
    pub(crate) late: u8,
    /// Masters that lose all their data.
    pub(crate) wipes: u8,
    /// No fault: renewals that a history may have.
    pub(crate) renewals: u8,
}

/// What a flawed Redlock could do. Each must break a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// One master is a majority.
    QuorumOfOne,
    /// A master counts however short a time ago it lost its data.
    YoungCounts,
    /// A done marker that a minority tells of is passed over.
    DoneIsNoVeto,
    /// A claim that failed is taken back only where it is known to have been granted.
    ReleasedWhereGranted,
    /// A run begins when its number is on one master.
    NumberOnOne,
    /// A renewal that too few answered gives the lease up.
    FailedRenewalUnlocks,
    /// A number is taken back that was not burnt before, so that the next claim may be given it.
    NumbersComeBack,
    /// Nobody asks how many attempts there were.
    LimitIgnored,
    /// A master counts that is older than the claim's own lease, however long another's may be.
    LongestForgotten,
}

/// The model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    /// TTL of each node's leases. All of them know the longest.
    pub(crate) leases: [Tick; NODES],
    pub(crate) horizon: Tick,
    /// Claims that each node may begin.
    pub(crate) looks: [u8; NODES],
    pub(crate) faults: Faults,
    pub(crate) bug: Option<Bug>,
}

/// A request that nobody waits for and that may still arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Stray {
    pub(crate) master: usize,
    pub(crate) token: Tok,
    pub(crate) request: Request,
}

/// All there is at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) now: Tick,
    pub(crate) masters: Vec<Master>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) strays: Vec<Stray>,
    pub(crate) left: Faults,
    /// Numbers that were granted so far, with their claims.
    pub(crate) granted: Vec<(Tok, u8)>,
    /// A majority has acknowledged a success.
    pub(crate) done: bool,
    /// What the last step was.
    pub(crate) facts: Facts,
}

/// What can happen: to a node, at a master.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Happening {
    Tick,
    /// A node begins to claim.
    Look(usize),
    /// A call arrives and is answered.
    Call(usize, usize),
    /// All calls of a round that nobody else's order matters to arrive and are answered.
    Calls(usize),
    /// It never arrives.
    LoseRequest(usize, usize),
    /// It arrives, and its answer does not.
    LoseAnswer(usize, usize),
    /// It is given up and arrives later.
    Delay(usize, usize),
    Stray(usize),
    Succeed(usize),
    Fail(usize),
    Renew(usize),
    Wipe(usize),
}

impl World {
    /// Leases of one tick, and two of them one after the other.
    pub(crate) const fn small(faults: Faults) -> Self {
        Self { leases: [1; NODES], horizon: 2, looks: [2; NODES], faults, bug: None }
    }

    /// The same where each node claims once.
    pub(crate) const fn brief(faults: Faults) -> Self {
        Self { looks: [1; NODES], ..Self::small(faults) }
    }

    /// Leases of two ticks, which end at different times at different masters.
    pub(crate) const fn staggered(faults: Faults) -> Self {
        Self { leases: [2; NODES], horizon: 3, looks: [2; NODES], faults, bug: None }
    }

    /// One node's leases are longer than the other's, and longer than this world lasts.
    pub(crate) const fn uneven(faults: Faults) -> Self {
        Self { leases: [2, 1], horizon: 1, ..Self::brief(faults) }
    }

    pub(crate) const fn lease(&self, token: Tok) -> Tick {
        self.leases[token.0 as usize % NODES]
    }

    /// The longest lease that anybody may hold.
    pub(crate) fn longest(&self) -> Tick {
        self.leases.into_iter().max().unwrap()
    }

    /// What the nodes take for it.
    pub(crate) fn longest_lease(&self) -> Duration {
        if self.bug == Some(Bug::LongestForgotten) { Duration::ZERO } else { ticks(self.longest()) }
    }

    pub(crate) fn max_attempts(&self) -> u8 {
        if self.bug == Some(Bug::LimitIgnored) { u8::MAX } else { MAX_ATTEMPTS }
    }

    pub(crate) fn quorum(&self) -> Quorum {
        match self.bug {
            Some(Bug::QuorumOfOne) => Quorum::flawed(MASTERS, 1),
            _ => Quorum::of(MASTERS).unwrap(),
        }
    }

    /// Judges by the real code.
    pub(crate) fn with_terms<T>(&self, token: Tok, judge: impl FnOnce(&Terms<'_>) -> T) -> T {
        let (lease_ttl, max_attempts) = (ticks(self.lease(token)), u32::from(self.max_attempts()));
        let request = ClaimRequest { lease_ttl, max_attempts, ..REQUESTS[usize::from(token.0)].clone() };
        let longest_lease = self.longest_lease();
        judge(&Terms { quorum: self.quorum(), request: &request, longest_lease, done_is_stale: false })
    }
}

/// More claims than any history has.
const CLAIMS: u8 = 16;
static REQUESTS: LazyLock<Vec<ClaimRequest>> = LazyLock::new(|| (0..CLAIMS).map(|index| request(Tok(index))).collect());

pub(crate) fn start() -> DateTime<Utc> {
    DateTime::from_timestamp_nanos(1_795_269_600_000_000_000)
}

pub(crate) fn ticks(count: Tick) -> Duration {
    Duration::from_secs(u64::from(count) * 100)
}

pub(crate) fn name(token: Tok) -> NodeName {
    REQUESTS[usize::from(token.0)].node.clone()
}

pub(crate) fn slot(token: Tok) -> Slot {
    REQUESTS[usize::from(token.0)].slot.clone()
}

fn request(token: Tok) -> ClaimRequest {
    ClaimRequest::new(
        Slot::new("a".parse().unwrap(), start(), later(start(), ticks(100))).unwrap(),
        token.real(),
        NodeName::new(&format!("node-{}", token.0 & 1)).unwrap(),
        ticks(1),
        u32::from(MAX_ATTEMPTS),
    )
}

impl State {
    /// The masters are alike: of all states that differ in their order only, one is visited.
    fn normal(mut self) -> Self {
        self.strays.sort_unstable();
        let mut order: Vec<usize> = (0..MASTERS).collect();
        let key = |master: usize| {
            let calls: Vec<Option<Call>> = self.nodes.iter().map(|node| node.call(master)).collect();
            let strays: Vec<_> = self
                .strays
                .iter()
                .filter(|stray| stray.master == master)
                .map(|stray| (stray.token, stray.request))
                .collect();
            (self.masters[master].clone(), calls, strays)
        };
        order.sort_by_cached_key(|master| key(*master));
        if order.is_sorted() {
            return self;
        }
        self.masters = order.iter().map(|master| self.masters[*master].clone()).collect();
        for node in &mut self.nodes {
            node.reorder(&order);
        }
        for stray in &mut self.strays {
            stray.master = order.iter().position(|old| *old == stray.master).unwrap();
        }
        self.strays.sort_unstable();
        self
    }
}

impl Model for World {
    type State = State;
    type Action = Happening;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            now: 0,
            masters: vec![Master::new(None); MASTERS],
            nodes: (0..NODES as u8).map(Node::new).collect(),
            strays: Vec::new(),
            left: self.faults,
            granted: Vec::new(),
            done: false,
            facts: Facts::default(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Happening>) {
        if state.now < self.horizon {
            actions.push(Happening::Tick);
        }
        for (index, node) in state.nodes.iter().enumerate() {
            of_node(self, state, index, node, actions);
        }
        actions.extend((0..state.strays.len()).map(Happening::Stray));
        if state.left.wipes > 0 {
            actions.extend((0..MASTERS).map(Happening::Wipe));
        }
    }

    fn next_state(&self, last: &State, action: Happening) -> Option<State> {
        let mut state = last.clone();
        state.facts = Facts::default();
        turn::take(self, &mut state, action);
        Some(state.normal())
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::of()
    }
}

fn of_node(world: &World, state: &State, index: usize, node: &Node, actions: &mut Vec<Happening>) {
    match &node.phase {
        Phase::Idle if node.not_before <= state.now && node.looks < world.looks[index] => {
            actions.push(Happening::Look(index));
        }
        Phase::Running { .. } if node.calls.is_none() => {
            actions.extend([Happening::Succeed(index), Happening::Fail(index)]);
            if state.left.renewals > 0 {
                actions.push(Happening::Renew(index));
            }
        }
        _ => {}
    }
    let Some(calls) = &node.calls else { return };
    // Where no two of these calls can compete with another node's, one order stands for all; with a fault it is looked at.
    let together = node.is_together() && calls.iter().all(|call| matches!(call, Call::Sent | Call::None));
    if together {
        actions.push(Happening::Calls(index));
        if state.left.losses == 0 && state.left.late == 0 {
            return;
        }
    }
    for (master, call) in calls.iter().enumerate() {
        if *call != Call::Sent {
            continue;
        }
        if !together {
            actions.push(Happening::Call(index, master));
        }
        if state.left.losses > 0 {
            actions.extend([Happening::LoseRequest(index, master), Happening::LoseAnswer(index, master)]);
        }
        if state.left.late > 0 {
            actions.push(Happening::Delay(index, master));
        }
    }
}
