//! What one call may change: the queues before it and after it, at one instant of the store's clock, and who was hinted.

use std::collections::BTreeSet;

use cronward::job::LockName;
use cronward::resource::{LockEntry, LockRecord};
use cronward::slot::Token;

use super::laws::{Fact, Facts};
use super::world::{State, World, client_of};

/// Judges the step of this client, which named these locks.
pub(super) fn judge(
    world: &World,
    (client, names): (usize, &[LockName]),
    (from, to): (&State, &State),
    hinted: &[Token],
) -> Facts {
    let mut facts = to.facts;
    let (before, after) = (world.records(from), world.records(to));
    let pairs = || before.iter().zip(after.iter());
    if pairs().any(|(before, after)| touched(client, before, after)) {
        facts.add(Fact::TouchedAnother);
    }
    // What a renewal sets again was granted before.
    let is_grant = to.granted.len() > from.granted.len();
    if is_grant && pairs().any(|(before, after)| overtook(world, client, before, after)) {
        facts.add(Fact::Overtook);
    }
    let able = |records: &[LockRecord]| -> BTreeSet<Token> {
        let of_others =
            records.iter().flat_map(|record| &record.entries).filter(|entry| client_of(entry.token) != client);
        let untold: Vec<&LockEntry> = of_others.filter(|entry| entry.by.fence.is_none()).collect();
        let everywhere = |token| untold.iter().filter(|entry| entry.token == token).all(|entry| entry.holds);
        untold.iter().map(|entry| entry.token).filter(|token| everywhere(*token)).collect()
    };
    let stored = |state: &State| world.stored(state, &world.locks());
    let by_departure = able(&after).difference(&able(&before)).all(|token| hinted.contains(token));
    // Who has lapsed itself waits for nothing any more.
    let lives = |token: &&Token| after.iter().flat_map(|record| &record.entries).any(|entry| entry.token == **token);
    let (were, are) = (able(&stored(from)), able(&stored(to)));
    let by_lapse = are.difference(&were).filter(lives).all(|token| hinted.contains(token));
    if !(by_departure && by_lapse) {
        facts.add(Fact::Unhinted);
    }
    if !hinted.iter().all(|token| was_let_in(world, names, (from, to), *token)) {
        facts.add(Fact::HintedInVain);
    }
    facts
}

/// Of the locks that the call named it came to hold one, and now holds every one in which it stands.
fn was_let_in(world: &World, names: &[LockName], (from, to): (&State, &State), token: Token) -> bool {
    let (before, after) = (world.stored(from, names), world.stored(to, names));
    let holds = |record: &LockRecord| record.entries.iter().find(|entry| entry.token == token).map(|entry| entry.holds);
    let came =
        before.iter().zip(&after).any(|(before, after)| holds(before) == Some(false) && holds(after) == Some(true));
    came && after.iter().all(|record| holds(record) != Some(false))
}

/// An entry of another client is not as it was.
fn touched(client: usize, before: &LockRecord, after: &LockRecord) -> bool {
    let what = |entry: &LockEntry| (entry.token, entry.place, entry.by.fence, entry.remaining);
    let kept: Vec<_> = after.entries.iter().map(what).collect();
    let others = before.entries.iter().filter(|entry| client_of(entry.token) != client);
    others.into_iter().any(|entry| !kept.contains(&what(entry)))
}

/// It was told in this step that it holds, and somebody stood before it who cannot hold beside it. Its owner held nothing here already.
fn overtook(world: &World, client: usize, before: &LockRecord, after: &LockRecord) -> bool {
    let own = |entry: &&LockEntry| client_of(entry.token) == client;
    let Some(granted) = after.entries.iter().find(own).filter(|entry| entry.by.fence.is_some()) else { return false };
    let was = before.entries.iter().find(own);
    let owner_holds =
        before.holders().any(|entry| entry.by.owner == world.owner(client) && client_of(entry.token) != client);
    if owner_holds || was.is_some_and(|was| was.by.fence == granted.by.fence) {
        return false;
    }
    let clash = |entry: &LockEntry| {
        let sum = u64::from(entry.demand.weight()) + u64::from(granted.demand.weight());
        sum > u64::from(entry.demand.of().min(granted.demand.of()))
    };
    before.entries.iter().take_while(|entry| !own(entry)).any(clash)
}
