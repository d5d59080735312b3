//! The world: clients, the store, copies of requests that are still under way, and everything that can happen next.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use cronward::clock::later;
use cronward::job::{LockName, NodeName};
use cronward::resource::{
    AcquireRequest, Acquired, Demand, Demands, LockEntry, LockHold, LockRecord, LockRefusal, LockRelease, LockRenewal,
    OwnerId,
};
use cronward::slot::{Audit, Fence, Token};
use cronward::store::memory::Ledger;
use stateright::{Model, Property};

use super::flawed::{self, Bug};
use super::laws::{self, Fact, Facts};
use super::step;

/// Whole ticks since the world began, by every clock.
pub(crate) type Tick = u8;

const TICK: Duration = Duration::from_secs(1);

/// What one client asks for, once.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) demands: Vec<Demand>,
    /// It is the same owner as that client, and asks while that one holds.
    pub(crate) after: Option<usize>,
}

impl Client {
    pub(crate) const fn new(demands: Vec<Demand>) -> Self {
        Self { demands, after: None }
    }
}

/// How often each fault may strike in one history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Faults {
    /// Requests that arrive, and whose answers do not.
    pub(crate) losses: u8,
    /// Requests that arrive when nobody waits for them any more: until one TTL after their client's release was answered.
    pub(crate) late: u8,
    /// Clients that die.
    pub(crate) crashes: u8,
    /// The store forgets everything.
    pub(crate) flushes: u8,
    /// An operator takes a client out of one queue.
    pub(crate) evictions: u8,
}

/// The model.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) clients: Vec<Client>,
    pub(crate) horizon: Tick,
    /// How long entries last.
    pub(crate) ttl: Tick,
    pub(crate) faults: Faults,
    pub(crate) bug: Option<Bug>,
}

/// What a client is at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Idle,
    Waiting,
    /// It was told that it holds, and trusts that until a tick.
    Held {
        fence: u64,
        places: Vec<u64>,
        trusted: Tick,
        lost: bool,
    },
    /// It has left, and was not told that the store knows.
    Leaving,
    /// Its release was answered, at that tick.
    Left(Tick),
    Dead,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) phase: Phase,
    /// Some acquire of it had no answer.
    unsure: bool,
    /// Locks that it has entered, where each is entered by itself.
    entered: u8,
    /// The locks that an operator took it out of: a bit for each of [`World::locks`].
    evicted: u8,
}

/// A request that nobody waits for and that may still arrive.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Stray {
    client: usize,
    /// A renewal of this; an acquire where there is none.
    renews: Option<(u64, Vec<u64>)>,
}

/// The store: alike where it keeps the same.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) ledger: Arc<Ledger>,
    key: (u64, u64),
}

impl Kept {
    fn new(ledger: Ledger) -> Self {
        let text = format!("{ledger:?}");
        let hash = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, &text).hash(&mut hasher);
            hasher.finish()
        };
        Self { key: (hash(1), hash(2)), ledger: Arc::new(ledger) }
    }
}

impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Kept {}

impl Hash for Kept {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

/// What the store shows in one state. It follows from the rest, and every law asks for it: it is made once.
#[derive(Clone, Debug, Default)]
struct Shown(OnceLock<Arc<[LockRecord]>>);

impl PartialEq for Shown {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Shown {}

impl Hash for Shown {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// All there is at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) now: Tick,
    pub(crate) store: Kept,
    shown: Shown,
    pub(crate) nodes: Vec<Node>,
    strays: Vec<Stray>,
    left: Faults,
    /// Grants that clients, or the copies of their requests, were given: whose, and under which number.
    pub(crate) granted: Vec<(usize, u64)>,
    pub(crate) flushed: bool,
    /// Who was hinted in this step; nobody between two.
    pub(super) hinted: Vec<Token>,
    /// What the last step was.
    pub(crate) facts: Facts,
}

/// How a call fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fate {
    Answered,
    /// It arrives, and its answer does not.
    Unheard,
    /// It arrives later, or never.
    Late,
}

/// What can happen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Happening {
    Tick,
    Ask(usize, Fate),
    Renew(usize, Fate),
    Leave(usize, Fate),
    Crash(usize),
    Arrive(usize),
    Flush,
    /// Of a client, and which of [`World::locks`].
    Evict(usize, usize),
}

pub(crate) fn clock(now: Tick) -> DateTime<Utc> {
    later("2026-11-21T14:00:00Z".parse().unwrap(), TICK * u32::from(now))
}

pub(crate) fn token(client: usize) -> Token {
    Token::from_bits(client as u128 + 1)
}

/// The name under which a flawed store takes a copy for something new.
fn alias(client: usize) -> Token {
    Token::from_bits(client as u128 + 1_001)
}

/// Whose entry it is, under whatever name.
pub(crate) fn client_of(token: Token) -> usize {
    let bits = token.bits() as usize;
    if bits > 1_000 { bits - 1_001 } else { bits - 1 }
}

impl State {
    /// The store is this from now on; its hints are on their way.
    pub(super) fn keep(&mut self, mut ledger: Ledger) {
        self.hinted.extend(ledger.take_lock_wakes().into_iter().map(|(_, token)| token));
        self.store = Kept::new(ledger);
        self.shown = Shown::default();
    }
}

impl World {
    pub(crate) fn owner(&self, client: usize) -> OwnerId {
        OwnerId::new(token(self.clients[client].after.unwrap_or(client)))
    }

    fn request(&self, client: usize, demands: &[Demand]) -> AcquireRequest {
        let node = NodeName::new(&format!("n{client}")).unwrap();
        let demands = Demands::new(demands.to_vec()).unwrap();
        let request = AcquireRequest::new(token(client), node, token(client), TICK * u32::from(self.ttl), demands);
        AcquireRequest { owner: self.owner(client), ..request }
    }

    pub(super) fn whole(&self, client: usize) -> AcquireRequest {
        self.request(client, &self.clients[client].demands)
    }

    pub(super) fn hold(&self, client: usize, fence: u64, places: &[u64]) -> LockHold {
        self.whole(client).granted(Fence(fence), places.to_vec())
    }

    pub(crate) fn locks(&self) -> Vec<LockName> {
        let mut names: Vec<_> =
            self.clients.iter().flat_map(|client| client.demands.iter().map(|demand| demand.lock().clone())).collect();
        names.sort();
        names.dedup();
        names
    }

    pub(crate) fn records(&self, state: &State) -> Arc<[LockRecord]> {
        let show = || {
            let mut records = state.store.ledger.lock_records(&self.locks(), clock(state.now));
            if self.bug == Some(Bug::PromotionLost) {
                records.iter_mut().for_each(flawed::only_the_named_hold);
            }
            records.into()
        };
        Arc::clone(state.shown.0.get_or_init(show))
    }

    /// As they are stored: also what has lapsed while nobody noticed.
    pub(super) fn stored(&self, state: &State, locks: &[LockName]) -> Vec<LockRecord> {
        state.store.ledger.lock_records(locks, clock(0))
    }

    /// Whether an operator took the client out of this lock.
    pub(crate) fn was_evicted(&self, state: &State, client: usize, lock: &LockName) -> bool {
        let at = self.locks().iter().position(|name| name == lock);
        at.is_some_and(|at| state.nodes[client].evicted & (1 << at) != 0)
    }

    /// Whether an operator took the client out of any lock.
    pub(crate) fn is_evicted(&self, state: &State, client: usize) -> bool {
        state.nodes[client].evicted != 0
    }

    /// Whether a client believes now that it holds.
    pub(crate) fn believes(&self, state: &State, client: usize) -> bool {
        match &state.nodes[client].phase {
            Phase::Held { trusted, lost, .. } => {
                !lost && (state.now < *trusted || self.bug == Some(Bug::TrustWithoutEnd))
            }
            _ => false,
        }
    }

    /// Whether the two cannot both hold some lock.
    pub(crate) fn exclude(&self, a: usize, b: usize) -> bool {
        let clash = |one: &Demand, other: &Demand| {
            one.lock() == other.lock()
                && u64::from(one.weight()) + u64::from(other.weight()) > u64::from(one.of().min(other.of()))
        };
        let (one, other) = (&self.clients[a].demands, &self.clients[b].demands);
        self.owner(a) != self.owner(b) && one.iter().any(|one| other.iter().any(|other| clash(one, other)))
    }

    /// The store is asked for a client. Grants are remembered, also where nobody hears of them. None where a part of it is held, which
    /// only a flawed store tells.
    fn acquire(&self, state: &mut State, client: usize, late: bool) -> Option<Acquired> {
        let mut ledger = (*state.store.ledger).clone();
        let now = clock(state.now);
        let mut whole = self.whole(client);
        match self.bug {
            Some(Bug::OwnersAreStrangers) => whole.owner = OwnerId::new(whole.token),
            Some(Bug::PlacesThatDiffer) => return self.acquire_one_by_one(state, client),
            Some(Bug::PromotionLost) if self.waits(state, client) => return None,
            _ => {}
        }
        let behind = self.pushed_back(state, client, &mut ledger);
        let mut answer = ledger.acquire(&whole, now);
        behind.iter().for_each(|other| drop(ledger.acquire(&self.whole(*other), now)));
        if late && self.bug == Some(Bug::NoSpentTokens) && answer == Acquired::Refused(LockRefusal::Spent) {
            answer = ledger.acquire(&AcquireRequest { token: alias(client), ..whole }, now);
        }
        state.keep(ledger);
        if let Acquired::Held { fence, .. } = &answer {
            self.note_grant(state, client, fence.0);
        }
        Some(answer)
    }

    /// One lock a call: the next one is entered once it holds in those before.
    fn acquire_one_by_one(&self, state: &mut State, client: usize) -> Option<Acquired> {
        let mut ledger = (*state.store.ledger).clone();
        let demands = &self.clients[client].demands;
        let entered = usize::from(state.nodes[client].entered) + 1;
        let ask = |demand| ledger.acquire(&self.request(client, std::slice::from_ref(demand)), clock(state.now));
        let answers: Vec<Acquired> = demands.iter().take(entered).map(ask).collect();
        state.keep(ledger);
        if let Some(other) = answers.iter().find(|answer| !matches!(answer, Acquired::Held { .. })) {
            return Some(other.clone());
        }
        if entered < demands.len() {
            state.nodes[client].entered += 1;
            return None;
        }
        answers.last().cloned()
    }

    fn note_grant(&self, state: &mut State, client: usize, fence: u64) {
        if state.granted.contains(&(client, fence)) {
            return;
        }
        // A later grant that excludes an earlier one has the larger number.
        if state.granted.iter().any(|(other, earlier)| self.exclude(*other, client) && *earlier >= fence) {
            state.facts.add(Fact::FenceFell);
        }
        state.granted.push((client, fence));
    }

    fn ask(&self, state: &mut State, client: usize, fate: Fate) {
        if fate == Fate::Late {
            state.strays.push(Stray { client, renews: None });
            state.nodes[client].unsure = true;
            return;
        }
        let answer = self.acquire(state, client, false);
        if fate == Fate::Unheard {
            state.nodes[client].unsure = true;
            return;
        }
        let Some(answer) = answer else {
            state.nodes[client].phase = Phase::Waiting;
            return;
        };
        match answer {
            Acquired::Held { fence, places, .. } => {
                self.check_whole(state, client);
                if (0..self.clients.len()).any(|other| other != client && self.believes(state, other)) {
                    state.facts.add(Fact::Shared);
                }
                if state.nodes.iter().any(|node| node.phase == Phase::Dead) {
                    state.facts.add(Fact::TakenOver);
                }
                let trusted = state.now + self.ttl;
                state.nodes[client].phase = Phase::Held { fence: fence.0, places, trusted, lost: false };
            }
            Acquired::Waiting { .. } => {
                state.facts.add(Fact::Waited);
                self.check_waits_for_others(state, client);
                state.nodes[client].phase = Phase::Waiting;
            }
            Acquired::Refused(LockRefusal::WaitsForItself) => {
                state.facts.add(Fact::Refused);
                self.leave(state, client, Fate::Answered);
            }
            Acquired::Refused(_) | Acquired::Busy { .. } => {
                if state.nodes[client].evicted != 0 {
                    state.facts.add(Fact::TakenOut);
                }
                self.leave(state, client, Fate::Answered);
            }
        }
    }

    /// Whoever is told that it holds does so in every lock.
    fn check_whole(&self, state: &mut State, client: usize) {
        let records = self.records(state);
        let holds = |demand: &Demand| {
            let record = records.iter().find(|record| record.lock == *demand.lock()).unwrap();
            record.holders().any(|entry| entry.token == token(client))
        };
        if !self.clients[client].demands.iter().all(holds) {
            state.facts.add(Fact::HeldInPart);
        }
    }

    /// Whoever is told to wait does not wait for a request of its own owner. Whose is whose is said by the world, not by the store.
    fn check_waits_for_others(&self, state: &mut State, client: usize) {
        let records = self.records(state);
        let wanted =
            |record: &&LockRecord| self.clients[client].demands.iter().any(|demand| *demand.lock() == record.lock);
        let mut holders =
            records.iter().filter(wanted).flat_map(LockRecord::holders).map(|entry| client_of(entry.token));
        if holders.any(|other| other != client && self.owner(other) == self.owner(client)) {
            state.facts.add(Fact::WaitsForItself);
        }
    }

    fn renewal(&self, state: &mut State, client: usize, fence: u64, places: &[u64]) -> LockRenewal {
        let mut ledger = (*state.store.ledger).clone();
        let now = clock(state.now);
        let mut hold = self.hold(client, fence, places);
        if self.bug == Some(Bug::RenewalWithoutFence) {
            let there = self.records(state);
            let mut own = there.iter().flat_map(|record| &record.entries).filter(|entry| entry.token == token(client));
            hold.fence = own.find_map(|entry| entry.by.fence).unwrap_or(hold.fence);
        }
        let mut answer = ledger.renew_lock(&hold, now);
        if self.bug == Some(Bug::RestoredWithoutGone) && answer == (LockRenewal::Lost { to: None }) {
            ledger.acquire(&AcquireRequest { token: alias(client), ..self.whole(client) }, now);
            answer = LockRenewal::Restored;
        }
        if self.bug == Some(Bug::RenewsOthers) && answer == LockRenewal::Renewed {
            self.renew_all(state, &mut ledger);
        }
        state.keep(ledger);
        if matches!(answer, LockRenewal::Renewed | LockRenewal::Restored) {
            let records = self.records(state);
            let own = |entry: &&LockEntry| client_of(entry.token) == client;
            let mut entries = records.iter().flat_map(|record| &record.entries).filter(own);
            if entries.any(|entry| entry.by.fence != Some(Fence(fence))) {
                state.facts.add(Fact::RenewedAnother);
            }
        }
        if answer == LockRenewal::Restored {
            state.facts.add(Fact::Restored);
            let followed = state.granted.iter().any(|(other, later)| *later > fence && self.exclude(*other, client));
            if followed && !state.flushed {
                state.facts.add(Fact::RestoredAfterAnother);
            }
        }
        answer
    }

    fn renew(&self, state: &mut State, client: usize, fate: Fate) {
        let Phase::Held { fence, places, .. } = state.nodes[client].phase.clone() else { return };
        if fate == Fate::Late {
            state.strays.push(Stray { client, renews: Some((fence, places)) });
            return;
        }
        let answer = self.renewal(state, client, fence, &places);
        if fate == Fate::Unheard {
            return;
        }
        let now = state.now;
        let Phase::Held { trusted, lost, .. } = &mut state.nodes[client].phase else { return };
        match answer {
            LockRenewal::Renewed | LockRenewal::Restored => *trusted = now + self.ttl,
            LockRenewal::Lost { .. } => {
                *lost = true;
                state.facts.add(Fact::Lost);
            }
        }
    }

    fn leave(&self, state: &mut State, client: usize, fate: Fate) {
        if self.bug == Some(Bug::LeaksOnCancel) && state.nodes[client].phase == Phase::Waiting {
            state.nodes[client].phase = Phase::Left(state.now);
            return;
        }
        let mut ledger = (*state.store.ledger).clone();
        let request = self.whole(client);
        let unsure = state.nodes[client].unsure;
        let exit = match &state.nodes[client].phase {
            Phase::Held { fence, places, .. } => self.hold(client, *fence, places).exit(unsure),
            _ => request.exit(unsure),
        };
        let answer = ledger.release(&exit, clock(state.now));
        match self.bug {
            Some(Bug::ReleasedByName) => self.remove_holders(state, &mut ledger),
            Some(Bug::PromotionLost) => self.name_the_next(state, client, &mut ledger),
            Some(Bug::WakesAll) => self.wake_all(state, &ledger),
            Some(Bug::WakesWhoFits) => self.wake_who_fits(state, client, &ledger),
            _ => {}
        }
        state.keep(ledger);
        if self.bug == Some(Bug::HintNotPassedOn) && state.nodes[client].phase == Phase::Waiting {
            state.hinted.clear();
        }
        if fate != Fate::Answered {
            match &mut state.nodes[client].phase {
                Phase::Held { lost, .. } => *lost = true,
                phase => *phase = Phase::Leaving,
            }
            return;
        }
        if matches!(answer, LockRelease::Overtaken { .. }) {
            state.facts.add(Fact::Overtaken);
        }
        state.nodes[client].phase = Phase::Left(state.now);
    }

    fn evict(&self, state: &mut State, client: usize, lock: usize) {
        let mut ledger = (*state.store.ledger).clone();
        let name = &self.locks()[lock];
        if self.bug == Some(Bug::EvictedAsLapsed) {
            ledger.expire_lock(name, Some(token(client)), clock(state.now));
        } else {
            let (verb, none, at) = ("unlock".to_owned(), String::new(), clock(state.now));
            let audit = Audit { verb, who: "ana".to_owned(), host: none.clone(), why: none, at };
            ledger.evict(name, token(client), &audit, at);
        }
        state.keep(ledger);
        state.nodes[client].evicted |= 1 << lock;
    }

    fn arrive(&self, state: &mut State, stray: &Stray) {
        if let Some((fence, places)) = &stray.renews {
            self.renewal(state, stray.client, *fence, places);
        } else if self.acquire(state, stray.client, true) == Some(Acquired::Refused(LockRefusal::Spent)) {
            state.facts.add(Fact::Spent);
        }
    }
}

impl Model for World {
    type State = State;
    type Action = Happening;

    fn init_states(&self) -> Vec<State> {
        let node = Node { phase: Phase::Idle, unsure: false, entered: 0, evicted: 0 };
        vec![State {
            now: 0,
            store: Kept::new(Ledger::new(TICK * 100)),
            shown: Shown::default(),
            nodes: vec![node; self.clients.len()],
            strays: Vec::new(),
            left: self.faults,
            granted: Vec::new(),
            flushed: false,
            hinted: Vec::new(),
            facts: Facts::default(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Happening>) {
        if state.now < self.horizon {
            actions.push(Happening::Tick);
        }
        // What forgets everything has restarted, and that takes time: its clock is past the numbers that it gave.
        if state.left.flushes > 0 && state.now < self.horizon {
            actions.push(Happening::Flush);
        }
        if state.left.evictions > 0 {
            let locks = self.records(state);
            let there = locks
                .iter()
                .enumerate()
                .flat_map(|(lock, record)| record.entries.iter().map(move |entry| (lock, entry)));
            actions.extend(there.map(|(lock, entry)| Happening::Evict(client_of(entry.token), lock)));
        }
        let mut fates = vec![Fate::Answered];
        fates.extend((state.left.losses > 0).then_some(Fate::Unheard));
        for (client, node) in state.nodes.iter().enumerate() {
            let before = self.clients[client].after.map(|first| &state.nodes[first].phase);
            let mut each = |happening: fn(usize, Fate) -> Happening, late: bool| {
                actions.extend(fates.iter().map(|fate| happening(client, *fate)));
                actions.extend((late && state.left.late > 0).then(|| happening(client, Fate::Late)));
            };
            match &node.phase {
                Phase::Idle if before.is_some_and(|phase| !matches!(phase, Phase::Held { .. })) => {}
                Phase::Idle | Phase::Waiting => {
                    each(Happening::Ask, true);
                    if node.phase == Phase::Waiting || node.unsure {
                        each(Happening::Leave, false);
                    }
                }
                Phase::Held { lost, .. } => {
                    if !lost {
                        each(Happening::Renew, true);
                    }
                    each(Happening::Leave, false);
                }
                Phase::Leaving => each(Happening::Leave, false),
                Phase::Left(_) | Phase::Dead => continue,
            }
            if state.left.crashes > 0 && node.phase != Phase::Idle {
                actions.push(Happening::Crash(client));
            }
        }
        actions.extend((0..state.strays.len()).map(Happening::Arrive));
    }

    fn next_state(&self, state: &State, happening: Happening) -> Option<State> {
        let mut next = State { facts: Facts::default(), shown: Shown::default(), ..state.clone() };
        let fate = match &happening {
            Happening::Ask(_, fate) | Happening::Renew(_, fate) | Happening::Leave(_, fate) => *fate,
            _ => Fate::Answered,
        };
        next.left.losses -= u8::from(fate == Fate::Unheard);
        next.left.late -= u8::from(fate == Fate::Late);
        let caller = match &happening {
            Happening::Ask(client, _) | Happening::Renew(client, _) | Happening::Leave(client, _) => Some(*client),
            Happening::Arrive(index) => Some(state.strays[*index].client),
            Happening::Evict(client, _) => Some(*client),
            _ => None,
        };
        // An operator takes somebody out of one lock; a client's call names all of its own.
        let named: Vec<LockName> = match (&happening, caller) {
            (Happening::Evict(_, lock), _) => vec![self.locks()[*lock].clone()],
            (_, Some(caller)) => self.clients[caller].demands.iter().map(|demand| demand.lock().clone()).collect(),
            _ => Vec::new(),
        };
        match happening {
            Happening::Tick => next.now += 1,
            Happening::Ask(client, fate) => self.ask(&mut next, client, fate),
            Happening::Renew(client, fate) => self.renew(&mut next, client, fate),
            Happening::Leave(client, fate) => self.leave(&mut next, client, fate),
            Happening::Crash(client) => {
                next.left.crashes -= 1;
                next.nodes[client].phase = Phase::Dead;
            }
            Happening::Arrive(index) => {
                let stray = next.strays.remove(index);
                self.arrive(&mut next, &stray);
            }
            Happening::Evict(client, lock) => {
                next.left.evictions -= 1;
                self.evict(&mut next, client, lock);
            }
            Happening::Flush => {
                next.left.flushes -= 1;
                next.flushed = true;
                next.now += 1;
                next.store = Kept::new(Ledger::new(TICK * 100));
                next.shown = Shown::default();
            }
        }
        let State { nodes, now, strays, .. } = &mut next;
        strays.retain(|stray| !matches!(nodes[stray.client].phase, Phase::Left(at) if *now >= at + self.ttl));
        next.strays.sort();
        let hinted = std::mem::take(&mut next.hinted);
        if let Some(caller) = caller {
            next.facts = step::judge(self, (caller, &named), (state, &next), &hinted);
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        laws::of()
    }
}
