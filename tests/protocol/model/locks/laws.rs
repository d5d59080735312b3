//! What must always hold, and what must be possible. The numbers are those of `docs/locks.md`.

use std::collections::BTreeMap;

use cronward::resource::LockRecord;
use stateright::Property;

use super::world::{Phase, State, World, client_of};

pub(crate) const EXCLUSION: &str = "K1 what clients believe to hold fits together";
pub(crate) const FITS: &str = "K1 who holds fits together in the store";
pub(crate) const PREFIX: &str = "K2 who holds stands in front";
pub(crate) const ONE_ENTRY: &str = "K3 one token, one entry";
pub(crate) const TURN: &str = "L3 who asked first is told first";
pub(crate) const UNTOUCHED: &str = "K4 a call changes nothing of another's";
pub(crate) const HINTED: &str = "L4 who comes to hold by a departure, or a lapse that was noticed, is hinted";
pub(crate) const HINTED_ALONE: &str = "L5 nobody else is hinted";
pub(crate) const WHOLE: &str = "K5 held in all locks or told nothing";
pub(crate) const RISING: &str = "K6 a later grant that excludes an earlier one has the larger fence";
pub(crate) const GONE: &str = "K7 what was left never comes back";
pub(crate) const RETURNED: &str = "K7 who was taken out never stands there again";
pub(crate) const NUMBERED: &str = "K3 a renewal renews its own grant alone";
pub(crate) const UNFOLLOWED: &str = "K8 set again only where nobody who excludes it was granted since";
pub(crate) const ITSELF: &str = "K9 nobody is told to wait for a lock that its own owner holds";
pub(crate) const PROGRESS: &str = "L6 somebody holds in all locks that it named";

pub(crate) const WAITED: &str = "somebody waits";
pub(crate) const SHARED: &str = "two hold at once";
pub(crate) const LOST: &str = "a holder is told that it lost";
pub(crate) const RESTORED: &str = "a holder sets its entry again";
pub(crate) const OVERTAKEN: &str = "a release tells of another";
pub(crate) const SPENT: &str = "a late copy is refused";
pub(crate) const REFUSED: &str = "an owner would wait for itself";
pub(crate) const TAKEN_OUT: &str = "a waiter that was taken out is refused";
pub(crate) const TAKEN_OVER: &str = "a grant after a death";

/// What the last step was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Fact {
    HeldInPart = 1,
    FenceFell = 1 << 1,
    RenewedAnother = 1 << 2,
    RestoredAfterAnother = 1 << 3,
    Waited = 1 << 4,
    Shared = 1 << 5,
    Lost = 1 << 6,
    Restored = 1 << 7,
    Overtaken = 1 << 8,
    Spent = 1 << 9,
    Refused = 1 << 10,
    TakenOver = 1 << 11,
    Overtook = 1 << 12,
    TouchedAnother = 1 << 13,
    Unhinted = 1 << 14,
    HintedInVain = 1 << 15,
    WaitsForItself = 1 << 16,
    TakenOut = 1 << 17,
}

/// Several of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Facts(u32);

impl Facts {
    pub(crate) const fn add(&mut self, fact: Fact) {
        self.0 |= fact as u32;
    }

    const fn has(self, fact: Fact) -> bool {
        self.0 & fact as u32 != 0
    }
}

macro_rules! never {
    ($name:ident, $fact:ident) => {
        Property::always($name, |_: &World, state: &State| !state.facts.has(Fact::$fact))
    };
}

macro_rules! possible {
    ($name:ident, $fact:ident) => {
        Property::sometimes($name, |_: &World, state: &State| state.facts.has(Fact::$fact))
    };
}

pub(crate) fn of() -> Vec<Property<World>> {
    vec![
        Property::always(EXCLUSION, |world: &World, state: &State| state.flushed || believed_fits(world, state)),
        Property::always(FITS, |world: &World, state: &State| world.records(state).iter().all(fits)),
        Property::always(PREFIX, |world: &World, state: &State| world.records(state).iter().all(is_prefix)),
        Property::always(ONE_ENTRY, |world: &World, state: &State| world.records(state).iter().all(one_entry)),
        never!(TURN, Overtook),
        never!(UNTOUCHED, TouchedAnother),
        never!(HINTED, Unhinted),
        never!(HINTED_ALONE, HintedInVain),
        never!(WHOLE, HeldInPart),
        never!(RISING, FenceFell),
        Property::always(GONE, |world: &World, state: &State| state.flushed || gone(world, state)),
        Property::always(RETURNED, |world: &World, state: &State| state.flushed || stays_out(world, state)),
        never!(NUMBERED, RenewedAnother),
        never!(UNFOLLOWED, RestoredAfterAnother),
        never!(ITSELF, WaitsForItself),
        Property::always(PROGRESS, progress),
        possible!(WAITED, Waited),
        possible!(SHARED, Shared),
        possible!(LOST, Lost),
        possible!(RESTORED, Restored),
        possible!(OVERTAKEN, Overtaken),
        possible!(SPENT, Spent),
        possible!(REFUSED, Refused),
        possible!(TAKEN_OVER, TakenOver),
        possible!(TAKEN_OUT, TakenOut),
    ]
}

/// The demands of those who believe that they hold, by lock: each owner weighs once. Said by itself, not by the rules.
fn believed_fits(world: &World, state: &State) -> bool {
    world.locks().iter().all(|lock| {
        let (mut weights, mut limit) = (BTreeMap::new(), u64::MAX);
        // Whom an operator took out finds that out at its next renewal, and may overlap until then.
        let believes = |client: &usize| world.believes(state, *client) && !world.was_evicted(state, *client, lock);
        for client in (0..world.clients.len()).filter(believes) {
            for demand in world.clients[client].demands.iter().filter(|demand| demand.lock() == lock) {
                let weight: &mut u64 = weights.entry(world.owner(client)).or_default();
                *weight = u64::from(demand.weight()).max(*weight);
                limit = limit.min(u64::from(demand.of()));
            }
        }
        weights.values().sum::<u64>() <= limit
    })
}

fn fits(record: &LockRecord) -> bool {
    let (mut weights, mut limit) = (BTreeMap::new(), u64::MAX);
    for entry in record.holders() {
        let weight: &mut u64 = weights.entry(entry.by.owner).or_default();
        *weight = u64::from(entry.demand.weight()).max(*weight);
        limit = limit.min(u64::from(entry.demand.of()));
    }
    weights.values().sum::<u64>() <= limit
}

fn is_prefix(record: &LockRecord) -> bool {
    let ordered = record.entries.windows(2).all(|pair| pair[0].place <= pair[1].place);
    ordered && record.entries.iter().skip_while(|entry| entry.holds).all(|entry| !entry.holds)
}

fn one_entry(record: &LockRecord) -> bool {
    let mut tokens: Vec<_> = record.entries.iter().map(|entry| entry.token).collect();
    tokens.sort_unstable();
    tokens.windows(2).all(|pair| pair[0] != pair[1])
}

/// Nothing stands anywhere of a client that has left.
fn gone(world: &World, state: &State) -> bool {
    let left = |client: usize| matches!(state.nodes[client].phase, Phase::Left(_));
    world.records(state).iter().flat_map(|record| &record.entries).all(|entry| !left(client_of(entry.token)))
}

/// Nobody stands in a queue that an operator took it out of.
fn stays_out(world: &World, state: &State) -> bool {
    let returned = |record: &LockRecord, token| world.was_evicted(state, client_of(token), &record.lock);
    world.records(state).iter().all(|record| !record.entries.iter().any(|entry| returned(record, entry.token)))
}

/// Where anybody stands in a queue, somebody holds wherever they stand: those leave, or lapse, and the next ones hold.
fn progress(world: &World, state: &State) -> bool {
    let records = world.records(state);
    let mut parts: BTreeMap<_, bool> = BTreeMap::new();
    for entry in records.iter().flat_map(|record| &record.entries) {
        let holds = parts.entry(entry.token).or_insert(true);
        *holds &= entry.holds;
    }
    // A request that has entered a part of its locks does not hold all of them.
    let whole = |token: &cronward::slot::Token| {
        let there = records.iter().flat_map(|record| &record.entries).filter(|entry| entry.token == *token).count();
        let named = world.clients[client_of(*token)].demands.len();
        // A store that has lost a part has the request join anew: it waits for nobody until then.
        // So does one that an operator took out of a part, until its next look, at which it leaves.
        there == named || state.flushed || world.is_evicted(state, client_of(*token))
    };
    parts.is_empty() || parts.iter().any(|(token, holds)| *holds && whole(token))
}
