//! What must always hold, and what must be possible. The numbers are those of `docs/PROTOCOL.md`.

use stateright::Property;

use super::master::{Mark, Master};
use super::node::Phase;
use super::world::{MASTERS, MAX_ATTEMPTS, State, World};

pub(crate) const ONE_VALID: &str = "I1 at most one run within its validity";
pub(crate) const BACKED: &str = "I1 a run within its validity has a majority";
pub(crate) const RISING: &str = "I2 numbers rise while a majority keeps them";
pub(crate) const ABSORBING: &str = "I3 done is absorbing while a majority keeps it, or one that is heard";
pub(crate) const BOUNDED: &str = "I5 at most max_attempts grants";
pub(crate) const RELEASED: &str = "a claim that failed leaves nothing behind";

pub(crate) const RETRY: &str = "a retry";
pub(crate) const EXHAUSTED: &str = "exhaustion";
pub(crate) const TAKEOVER: &str = "a takeover beside a stalled holder";
pub(crate) const DONE: &str = "success";
pub(crate) const VETOED: &str = "a veto by a minority that knows of success";
pub(crate) const REPAIRED: &str = "a marker brought to those that lack it";
pub(crate) const YOUNG: &str = "a claim refused for masters that lost their data";
pub(crate) const CONTENDED: &str = "a contest that one wins by going first";
pub(crate) const SAME_GRANT: &str = "a lost answer that burns no number";
pub(crate) const VOIDED: &str = "a number taken back";
pub(crate) const RENEWED: &str = "a renewal";
pub(crate) const RESTORED: &str = "a lease set again";
pub(crate) const RENEWAL_LOST: &str = "a renewal that finds another";

/// What the last step was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Fact {
    AttemptFell = 1,
    DoneRepeated = 1 << 1,
    LeftBehind = 1 << 2,
    Retry = 1 << 3,
    Exhausted = 1 << 4,
    Takeover = 1 << 5,
    Done = 1 << 6,
    Vetoed = 1 << 7,
    Repaired = 1 << 8,
    Young = 1 << 9,
    Contended = 1 << 10,
    SameGrant = 1 << 11,
    Voided = 1 << 12,
    Renewed = 1 << 13,
    Restored = 1 << 14,
    RenewalLost = 1 << 15,
}

/// Several of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Facts(u16);

impl Facts {
    pub(crate) const fn add(&mut self, fact: Fact) {
        self.0 |= fact as u16;
    }

    const fn has(self, fact: Fact) -> bool {
        self.0 & fact as u16 != 0
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
        Property::always(ONE_VALID, |_: &World, state: &State| valid(state).count() < 2),
        Property::always(BACKED, |_: &World, state: &State| valid(state).all(|run| backed(state, run))),
        never!(RISING, AttemptFell),
        never!(ABSORBING, DoneRepeated),
        Property::always(BOUNDED, |world: &World, state: &State| {
            state.granted.len() <= usize::from(MAX_ATTEMPTS + forgotten(world, state))
        }),
        never!(RELEASED, LeftBehind),
        possible!(RETRY, Retry),
        possible!(EXHAUSTED, Exhausted),
        possible!(TAKEOVER, Takeover),
        possible!(DONE, Done),
        possible!(VETOED, Vetoed),
        possible!(REPAIRED, Repaired),
        possible!(YOUNG, Young),
        possible!(CONTENDED, Contended),
        possible!(SAME_GRANT, SameGrant),
        possible!(VOIDED, Voided),
        possible!(RENEWED, Renewed),
        possible!(RESTORED, Restored),
        possible!(RENEWAL_LOST, RenewalLost),
    ]
}

/// The nodes whose commands run and may believe that they hold the lease.
fn valid(state: &State) -> impl Iterator<Item = usize> {
    let runs = |phase: &Phase| matches!(phase, Phase::Running { trusted, .. } if state.now < *trusted);
    state.nodes.iter().enumerate().filter(move |(_, node)| runs(&node.phase)).map(|(index, _)| index)
}

/// Numbers that may have been given twice. A master that lost its data does so only where another one was not heard besides:
/// two faults.
const fn forgotten(world: &World, state: &State) -> u8 {
    let (all, left) = (world.faults, state.left);
    (all.wipes - left.wipes) * (all.losses - left.losses + all.late - left.late)
}

/// Success, also another's, ends the slot: its marker stands in the place of any lease. A master that lost its data had it, as
/// far as anybody knows, and does not count before that lease is over.
fn backed(state: &State, node: usize) -> bool {
    let token = state.nodes[node].token;
    let backs =
        |master: &&Master| master.holds(token) || matches!(master.mark, Mark::Done { .. }) || master.born.is_some();
    state.masters.iter().filter(backs).count() > MASTERS / 2
}
