//! The world: nodes, their calls, the store, and everything that can happen next.

use std::hash::{Hash, Hasher};
use std::sync::Mutex;

use cronward::reply::Claim;
use cronward::resource::Acquired;
use cronward::slot::{Mark, Token};
use stateright::{Model, Property};

use super::judge::{Fact, Facts, Judge};
use super::memo::Id;
use super::node::{Ending, Machine, Machines, Messages};
use super::properties::{self, Law};
use super::rivals::{self, Stranger};
use super::setup::{Bug, Faults, Pace, Setup, Tag, Tick};
use super::store::{Kind, Ledgers, Reply, Verb};
use super::turn::Turn;

/// One call of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Call {
    Sent(Kind, Id),
    Answered(Kind, Id, Id),
}

/// The command of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Command {
    None,
    Runs,
    /// Asked to stop; it may take its time.
    Stopping,
    /// Its group was killed: it does nothing more, and its end is yet to be told.
    Killed,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// None when it is dead.
    pub(crate) machine: Option<Machine>,
    pub(crate) starts: u8,
    pub(crate) command: Command,
    /// The claim under which its command runs or ran, until the store knows how that ended.
    pub(crate) holds: Option<Tag>,
    /// What is under way, sorted.
    pub(crate) calls: Vec<Call>,
    /// Another node's command began while this one's ran.
    pub(crate) overlapped: bool,
    /// It has told that this could be.
    pub(crate) told: bool,
    /// Under which grant of its locks its command runs, where it names some.
    pub(crate) fence: Option<u64>,
    /// Its attempt has waited for its locks.
    pub(crate) waited: bool,
    /// It was told, while its attempt waited, that the job is paused.
    pub(crate) paused: bool,
}

impl Call {
    const fn kind(self) -> Kind {
        match self {
            Self::Sent(kind, _) | Self::Answered(kind, ..) => kind,
        }
    }
}

// States are hashed as a few words: field by field, hashing would be a third of the work.
impl Hash for Call {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let (answered, kind, op, reply) = match *self {
            Self::Sent(kind, op) => (0, kind, op, 0),
            Self::Answered(kind, op, reply) => (1, kind, op, reply),
        };
        hasher.write_u64(answered << 63 | (kind as u64) << 56 | u64::from(op) << 28 | u64::from(reply));
    }
}

impl Hash for Node {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let machine = self.machine.map_or(0, |machine| u64::from(machine.id) + 1);
        let flags = u64::from(self.paused) << 3
            | u64::from(self.waited) << 2
            | u64::from(self.overlapped) << 1
            | u64::from(self.told);
        let small = u64::from(self.starts) << 8 | (self.command as u64) << 4 | flags;
        let holds = self.holds.map_or(0, |tag| u64::from(tag.bits()) + 1);
        hasher.write_u64(machine << 32 | small);
        hasher.write_u64(holds << 8 | self.calls.len() as u64);
        if let Some(fence) = self.fence {
            hasher.write_u64(fence);
        }
        self.calls.iter().for_each(|call| call.hash(hasher));
    }
}

impl Node {
    pub(crate) const fn dead(starts: u8) -> Self {
        Self {
            machine: None,
            starts,
            command: Command::None,
            holds: None,
            calls: Vec::new(),
            overlapped: false,
            told: false,
            fence: None,
            waited: false,
            paused: false,
        }
    }
}

/// A request that nobody waits for any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Stray {
    pub(crate) op: Id,
    /// It arrives before that, or never: no copy of a request for locks is under way for longer than its TTL.
    pub(crate) until: Tick,
}

/// All there is at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) now: Tick,
    pub(crate) ledger: Id,
    pub(crate) nodes: Vec<Node>,
    /// Requests that nobody waits for any more and that may still arrive.
    pub(crate) strays: Vec<Stray>,
    /// Who else wants the locks of the job.
    pub(crate) strangers: Vec<Stranger>,
    /// Commands that were begun, where the job names locks.
    pub(crate) begun: u8,
    pub(crate) left: Faults,
    pub(crate) judge: Judge,
    /// Ticks in a row, since the last grant, in which a node could have run the slot and none did.
    pub(crate) idle: u8,
    /// What the last step was.
    pub(crate) facts: Facts,
}

/// What can happen. The number is the node's, or the stray's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Happening {
    /// A tick passes. Leases and waits run out by it.
    Tick,
    /// A node does what is due.
    Timer(u8),
    /// The same about its locks.
    LockTimer(u8),
    /// A request arrives at the store and is answered.
    Arrive(u8, usize),
    /// A request arrives, and once more later.
    ArriveTwice(u8, usize),
    /// A reply arrives at its node.
    Hear(u8, usize),
    /// A node gives up a call: the request may still arrive, a reply is lost.
    GiveUp(u8, usize),
    /// A request fails and is known not to have been applied.
    Refuse(u8, usize),
    Stray(usize),
    Exit(u8, Ending),
    Crash(u8),
    Restart(u8),
    Shutdown(u8),
    Wipe,
    Close,
    /// A stranger comes, looks again, or leaves.
    Stranger(u8),
    /// An operator pauses the job, or resumes it.
    Pause,
    Resume,
    Operate(Verb),
}

/// The model: a setup, and what was computed so far.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) setup: Setup,
    /// Whether orders that come to the same are visited, too.
    pub(crate) every_order: bool,
    pub(crate) laws: Vec<Law>,
    /// What has to be possible here.
    pub(crate) possible: Vec<&'static str>,
    pub(crate) memory: Mutex<Memory>,
}

/// Everything that was computed.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) machines: Machines,
    pub(crate) ledgers: Ledgers,
    pub(crate) messages: Messages,
}

impl World {
    pub(crate) fn new(setup: Setup, possible: &[&'static str]) -> Self {
        let memory =
            Memory { machines: Machines::default(), ledgers: Ledgers::new(&setup), messages: Messages::default() };
        Self {
            setup,
            every_order: false,
            laws: properties::laws(&setup),
            possible: possible.to_vec(),
            memory: Mutex::new(memory),
        }
    }

    /// How many different machines and ledgers were met.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        let memory = self.memory.lock().unwrap();
        (memory.machines.len(), memory.ledgers.len())
    }

    /// Who holds the lease, by the store, and whether the verdict is recorded.
    pub(crate) fn holder(&self, state: &State) -> (Option<Token>, bool) {
        let memory = self.memory.lock().unwrap();
        let record = &memory.ledgers.view(state.ledger).record;
        match record.mark {
            Mark::Leased { token, .. } => (Some(token), record.verdict.is_some()),
            _ => (None, record.verdict.is_some()),
        }
    }

    /// Nothing is under way and nothing is due.
    pub(crate) fn is_calm(&self, state: &State) -> bool {
        let due = |node: &Node| self.is_due(state, node);
        let busy = |node: &Node| !node.calls.is_empty() || node.command == Command::Killed;
        !state.nodes.iter().any(|node| busy(node) || due(node)) && !self.can_close(state)
    }

    fn is_due(&self, state: &State, node: &Node) -> bool {
        self.is_slot_due(state, node) || self.is_lock_due(state, node)
    }

    fn is_slot_due(&self, state: &State, node: &Node) -> bool {
        let due = |machine: Machine| machine.due.is_some_and(|due| due <= state.now);
        self.setup.bug != Some(Bug::NeverLooksAgain) && node.machine.is_some_and(due)
    }

    fn is_lock_due(&self, state: &State, node: &Node) -> bool {
        let due = |machine: Machine| machine.lock_due.is_some_and(|due| due <= state.now);
        self.setup.bug != Some(Bug::NeverAsksAgain) && node.machine.is_some_and(due)
    }

    fn timers(&self, state: &State, n: u8, actions: &mut Vec<Happening>) {
        let node = &state.nodes[usize::from(n)];
        if self.is_slot_due(state, node) {
            actions.push(Happening::Timer(n));
        }
        if self.is_lock_due(state, node) {
            actions.push(Happening::LockTimer(n));
        }
    }

    /// Whether this grant of locks holds in the store, in each of them.
    pub(crate) fn holds_locks(&self, state: &State, fence: u64) -> bool {
        self.memory.lock().unwrap().ledgers.holds(state.ledger, fence)
    }

    /// Whoever stands in the queues of the job's locks.
    pub(crate) fn in_queues(&self, state: &State) -> Vec<Token> {
        let memory = self.memory.lock().unwrap();
        memory.ledgers.view(state.ledger).queues.iter().flatten().map(|entry| entry.token).collect()
    }

    /// Attempts that count, by the store's books or by the judge's: whichever says more.
    pub(crate) fn used(&self, state: &State) -> u32 {
        let memory = self.memory.lock().unwrap();
        let view = memory.ledgers.view(state.ledger);
        let by_store = view.counter.unwrap_or(0).saturating_sub(view.record.forgiven);
        by_store.max(state.judge.used())
    }

    fn can_close(&self, state: &State) -> bool {
        let over = state.now >= self.setup.end && state.nodes.iter().any(|node| node.machine.is_some());
        let (held, recorded) = if over { self.holder(state) } else { (None, false) };
        over && held.is_none()
            && self.setup.bug != Some(Bug::NeverCloses)
            && (!recorded || self.setup.bug == Some(Bug::ClosedAgain) && !state.facts.has(Fact::ToldTwice))
    }
}

impl Model for World {
    type State = State;
    type Action = Happening;

    fn init_states(&self) -> Vec<State> {
        let ledger = self.memory.lock().unwrap().ledgers.empty(0);
        let mut state = State {
            now: 0,
            ledger,
            nodes: vec![Node::dead(0); usize::from(self.setup.nodes)],
            strays: Vec::new(),
            strangers: Vec::new(),
            begun: 0,
            left: self.setup.faults,
            judge: Judge::default(),
            idle: 0,
            facts: Facts::default(),
        };
        Turn { world: self, state: &mut state }.settle_strangers();
        for node in 0..self.setup.nodes {
            Turn { world: self, state: &mut state }.start(node);
        }
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Happening>) {
        if let Some(n) = numbers(state).find(|n| self.is_on_locks(state, *n)) {
            return self.happens_on_locks(state, n, actions);
        }
        if let Some(n) = numbers(state).find(|n| self.is_alone(state, *n)) {
            self.timers(state, n, actions);
            return self.happens_to(state, n, actions);
        }
        let may_act = self.may_act(state);
        let due: Vec<u8> = numbers(state).filter(|n| self.is_due(state, &state.nodes[usize::from(*n)])).collect();
        due.iter().for_each(|n| self.timers(state, *n, actions));
        if self.setup.pace == Pace::Responsive && !due.is_empty() {
            return;
        }
        if state.now < self.setup.horizon && (self.setup.pace != Pace::Prompt || self.is_calm(state)) {
            actions.push(Happening::Tick);
        }
        for n in may_act {
            self.happens_to(state, n, actions);
        }
        for (index, stray) in state.strays.iter().enumerate() {
            if index == 0 || state.strays[index - 1] != *stray {
                actions.push(Happening::Stray(index));
            }
        }
        actions.extend(rivals::able(&self.setup, state).into_iter().map(Happening::Stranger));
        // A pause that begins after the slot is nothing to it.
        if state.judge.is_paused() {
            actions.push(Happening::Resume);
        } else if state.left.pauses > 0 && state.now < self.setup.end {
            actions.push(Happening::Pause);
        }
        if state.left.verbs > 0 {
            actions.extend([Verb::Unlock, Verb::Reset, Verb::MarkDone].map(Happening::Operate));
        }
        if state.left.wipes > 0 {
            actions.push(Happening::Wipe);
        }
        if self.can_close(state) {
            actions.push(Happening::Close);
        }
    }

    fn next_state(&self, last: &State, action: Happening) -> Option<State> {
        let mut state = State { facts: Facts::default(), ..last.clone() };
        Turn { world: self, state: &mut state }.take(action);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::of(self)
    }
}

impl World {
    /// Whether all that can happen to this node concerns nobody else, and something has to before time passes: an answer
    /// that starts nothing, or something that is due. Whatever happens elsewhere meanwhile comes to the same when it happens
    /// after that, so other orders need not be visited (partial-order reduction; each law is about single steps, or about
    /// states in which nothing is under way). Where time may pass before, or where the store's wake-ups arrive, the order
    /// matters. While nodes are alike it is kept, for the choice of the first.
    fn is_alone(&self, state: &State, n: u8) -> bool {
        let node = &state.nodes[usize::from(n)];
        let waits = |call: &Call| match *call {
            Call::Sent(..) => false,
            Call::Answered(kind, _, reply) => !self.may_start(kind, reply),
        };
        self.setup.pace == Pace::Prompt
            && !self.every_order
            && !self.setup.wakes
            && node.command == Command::None
            && (!node.calls.is_empty() || self.is_due(state, node))
            && node.calls.iter().all(waits)
    }

    /// Whether this node asks something about its locks. With prompt messages that goes before whatever else happens in this tick: what
    /// the store keeps of locks and of the slot does not touch, and whoever else wants the locks may have come or gone before.
    fn is_on_locks(&self, state: &State, n: u8) -> bool {
        let node = &state.nodes[usize::from(n)];
        self.setup.locks.is_some_and(|locks| !locks.every_order)
            && self.setup.pace == Pace::Prompt
            && !self.every_order
            && !self.setup.wakes
            && (self.is_lock_due(state, node) || node.calls.iter().any(|call| call.kind().is_of_locks()))
    }

    fn happens_on_locks(&self, state: &State, n: u8, actions: &mut Vec<Happening>) {
        let (node, left) = (&state.nodes[usize::from(n)], &state.left);
        if self.is_lock_due(state, node) {
            actions.push(Happening::LockTimer(n));
        }
        for (index, call) in node.calls.iter().enumerate().filter(|(_, call)| call.kind().is_of_locks()) {
            calls(*call, left, (n, index), actions);
        }
        strikes(left, n, actions);
    }

    /// Also the answer to a renewal that the start has waited for.
    fn may_start(&self, kind: Kind, reply: Id) -> bool {
        let held = |reply: &Reply| {
            matches!(reply, Reply::Claim(Claim::Claimed { .. }) | Reply::Acquired(Acquired::Held { .. }))
        };
        kind == Kind::Renew && self.setup.locks.is_some()
            || held(self.memory.lock().unwrap().messages.replies.get(reply))
    }

    /// Nodes to which nothing has happened yet are alike but for their names, and no name decides anything: of these, only
    /// the first may be the next one.
    fn may_act(&self, state: &State) -> Vec<u8> {
        let fresh = |n: &u8| {
            let node = &state.nodes[usize::from(*n)];
            node.starts == 1 && matches!(node.calls[..], [Call::Sent(..)]) && node.machine == self.fresh(*n, state.now)
        };
        let (fresh, others): (Vec<u8>, Vec<u8>) = numbers(state).partition(fresh);
        others.into_iter().chain(fresh.into_iter().take(1)).collect()
    }

    fn fresh(&self, n: u8, now: Tick) -> Option<Machine> {
        let mut memory = self.memory.lock().unwrap();
        let memory = &mut *memory;
        let first = memory.machines.start(&self.setup, (n, 0, 0), &mut memory.messages).machine;
        Some(if now == 0 { first } else { memory.machines.age(&self.setup, first.id, now) })
    }

    fn happens_to(&self, state: &State, n: u8, actions: &mut Vec<Happening>) {
        let (node, left) = (&state.nodes[usize::from(n)], &state.left);
        if node.machine.is_none() {
            if left.restarts > 0 {
                actions.push(Happening::Restart(n));
            }
            return;
        }
        for (index, call) in node.calls.iter().enumerate() {
            calls(*call, left, (n, index), actions);
        }
        let endings: &[Ending] = match node.command {
            Command::None => &[],
            Command::Runs => &[Ending::Success, Ending::Failure],
            Command::Stopping => &[Ending::Success, Ending::Signal],
            Command::Killed => &[Ending::Signal],
        };
        actions.extend(endings.iter().map(|ending| Happening::Exit(n, *ending)));
        strikes(left, n, actions);
    }
}

fn strikes(left: &Faults, n: u8, actions: &mut Vec<Happening>) {
    if left.crashes > 0 {
        actions.push(Happening::Crash(n));
    }
    if left.shutdowns > 0 {
        actions.push(Happening::Shutdown(n));
    }
}

fn calls(call: Call, left: &Faults, (n, lane): (u8, usize), actions: &mut Vec<Happening>) {
    match call {
        Call::Sent(..) => {
            actions.push(Happening::Arrive(n, lane));
            if left.copies > 0 {
                actions.push(Happening::ArriveTwice(n, lane));
            }
            if left.losses > 0 {
                actions.extend([Happening::GiveUp(n, lane), Happening::Refuse(n, lane)]);
            }
        }
        Call::Answered(..) => {
            actions.push(Happening::Hear(n, lane));
            if left.losses > 0 {
                actions.push(Happening::GiveUp(n, lane));
            }
        }
    }
}

pub(crate) fn numbers(state: &State) -> impl Iterator<Item = u8> + use<> {
    0..u8::try_from(state.nodes.len()).expect("few nodes")
}

/// The commands that run.
pub(crate) fn running(state: &State) -> usize {
    state.nodes.iter().filter(|node| matches!(node.command, Command::Runs | Command::Stopping)).count()
}
