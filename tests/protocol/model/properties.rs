//! What must always hold, and what must be possible, by the numbers of `docs/PROTOCOL.md`.

use cronward::job::OnLost;
use cronward::slot::Token;
use stateright::Property;

use super::judge::Fact;
use super::node::Machine;
use super::setup::{Faults, Pace, Setup, Tag};
use super::world::{Command, Node, State, World, running};

/// Something that is so in a state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Law {
    pub(crate) name: &'static str,
    pub(crate) holds: fn(&World, &State) -> bool,
}

/// The name under which the checker knows all laws of a world.
const EVERY_LAW: &str = "every law holds";

pub(crate) const ONE_LEASE: &str = "I1 one lease";
pub(crate) const RISE: &str = "I2 attempts rise";
pub(crate) const DONE: &str = "I3 done is absorbing";
pub(crate) const STALE: &str = "I4 a stale holder changes nothing";
pub(crate) const MAXIMUM: &str = "I5 at most max_attempts grants";
pub(crate) const SAME_TOKEN: &str = "I5 the same token is one grant";
pub(crate) const WITHIN: &str = "I6 granted within the slot";
pub(crate) const SUCCESS: &str = "I7 done means success";
pub(crate) const ERRORS: &str = "I8 an error starts nothing";
pub(crate) const STARTS: &str = "a run starts under its lease";
pub(crate) const VERDICT: &str = "L2 one verdict, the right one";
pub(crate) const TOLD: &str = "an overlap is told";
pub(crate) const ANSWERS: &str = "an answer is its own claim's";
pub(crate) const LOOKED_AT: &str = "L1 a slot is not left alone for longer than a lease and a look";
pub(crate) const CLOSED: &str = "L2 a slot that is over has a verdict";
pub(crate) const KNOWN: &str = "a lease does not outlast its node's look at the slot";
pub(crate) const LOOKS_AGAIN: &str = "a node that waits looks again by the slot's end";
pub(crate) const LOCKED: &str = "a run starts while its locks are held";
pub(crate) const UNDER_LOCKS: &str = "a run whose locks are held no more is told so";
pub(crate) const COSTS: &str = "only a start, a crash, a loss or a copy uses an attempt";
pub(crate) const LEFT: &str = "nothing is held for a slot that needs it no more";
pub(crate) const PAUSED: &str = "nothing is granted while the job is paused";
pub(crate) const HEARD: &str = "an attempt that was told of a pause while it waited for locks starts nothing";
pub(crate) const HEEDED: &str = "a pause ends a wait for locks within a renewal";
pub(crate) const UNLOCKED: &str = "a lease that an operator took is renewed no more";
pub(crate) const REOPENED: &str = "a slot that an operator opened is not done by a repetition";
pub(crate) const KILLED: &str = "on_lost = kill: no two commands run at once";

pub(crate) const RETRY: &str = "a retry";
pub(crate) const EXHAUSTED: &str = "exhaustion";
pub(crate) const TAKEOVER: &str = "a takeover after a crash";
pub(crate) const RESTORED: &str = "a restored lease";
pub(crate) const OVERLAP: &str = "an overlap, told";
pub(crate) const LOST_REPLY: &str = "a lost reply that burns no attempt";
pub(crate) const REFUND: &str = "a refund";
pub(crate) const EARLY: &str = "a claim that is too early";
pub(crate) const WAITED: &str = "a wait for locks";
pub(crate) const AFTER_WAIT: &str = "a start after a wait for locks";
pub(crate) const IN_VAIN: &str = "a wait in vain, given back";
pub(crate) const ALL_HELD: &str = "a start under two locks";
pub(crate) const OWN_ENTRY: &str = "an earlier attempt's entry in the way";
pub(crate) const LATE_COPY: &str = "a late copy of a request for locks is refused";
pub(crate) const ENDED_BY_PAUSE: &str = "a wait for locks that a pause ended";
pub(crate) const SKIPPED: &str = "a slot that was skipped";
pub(crate) const LOCKS_LOST: &str = "locks that were lost";

macro_rules! never {
    ($name:ident, $($fact:ident),+) => {
        Law { name: $name, holds: |_, state| !($(state.facts.has(Fact::$fact))||+) }
    };
}

macro_rules! seen {
    ($name:ident, $fact:ident) => {
        Law { name: $name, holds: |_, state| state.facts.has(Fact::$fact) }
    };
}

/// The laws that a step can break.
const SAFETY: [Law; 13] = [
    never!(ONE_LEASE, TwoLeases),
    never!(RISE, AttemptFell),
    never!(DONE, DoneTakenBack),
    never!(STALE, StaleHolderChanged),
    never!(MAXIMUM, TooManyGrants),
    never!(SAME_TOKEN, TokenGrantedTwice),
    never!(WITHIN, GrantedOutside),
    never!(SUCCESS, DoneWithoutSuccess),
    never!(ERRORS, ErrorStarted),
    never!(STARTS, StartedWithoutLease),
    never!(VERDICT, ToldTwice, WrongVerdict),
    never!(TOLD, SilentOverlap),
    never!(ANSWERS, AnswerMixedUp),
];

/// With prompt nodes and messages. Everything that can go on without a fault ends within bounds, so each is a property of
/// single states. A call that failed is repeated within two ticks.
const LIVENESS: [Law; 4] = [
    Law {
        name: LOOKED_AT,
        holds: |world, state| {
            // Whoever waits for locks looks again within a third of the TTL: a tick here.
            let look = 1 + u8::from(world.setup.locks.is_some());
            state.idle <= world.setup.ttl.max(world.setup.retry) + look + delay(world, state)
        },
    },
    Law {
        name: CLOSED,
        holds: |world, state| {
            let over = state.now > world.setup.end && state.nodes.iter().any(|node| node.machine.is_some());
            let (held, recorded) = if over { world.holder(state) } else { (None, true) };
            recorded || held.is_some() || !world.is_calm(state)
        },
    },
    // While it stands, it keeps out the next slot of a job that may not overlap itself.
    Law {
        name: KNOWN,
        holds: |world, state| {
            let ended = |machine: Machine| machine.ended.is_some();
            let forgot = |token| state.nodes[usize::from(Tag::from(token).node)].machine.is_some_and(ended);
            // What was sent for somebody who has died, was told to leave, or holds what the store forgot, may come late.
            let orderly =
                Faults { losses: state.left.losses, pauses: state.left.pauses, ..world.setup.faults } == state.left;
            let held = if orderly && world.is_calm(state) { world.holder(state).0 } else { None };
            !held.is_some_and(forgot)
        },
    },
    Law {
        name: LOOKS_AGAIN,
        holds: |world, state| {
            let latest = (world.setup.end + 1).max(state.now + 2);
            let looks = |machine: Machine| machine.ended.is_some() || machine.due.is_some_and(|due| due <= latest);
            let waiting = state.nodes.iter().filter(|node| node.command == Command::None);
            !world.is_calm(state) || waiting.filter_map(|node| node.machine).all(looks)
        },
    },
];

/// Where the job names locks.
const OF_LOCKS: [Law; 1] = [never!(LOCKED, StartedUnlocked)];

/// The same, with prompt nodes and messages.
const OF_LOCKS_IN_TIME: [Law; 3] = [
    Law {
        name: UNDER_LOCKS,
        holds: |world, state| {
            let untold = |node: &Node| matches!(node.command, Command::Runs | Command::Stopping) && !node.told;
            let held = |node: &Node| node.fence.is_some_and(|fence| world.holds_locks(state, fence));
            let kept = state.left.wipes == world.setup.faults.wipes;
            !kept || !world.is_calm(state) || state.nodes.iter().filter(|node| untold(node)).all(held)
        },
    },
    Law {
        name: COSTS,
        holds: |world, state| {
            let (faults, left) = (&world.setup.faults, &state.left);
            // A copy of a claim may be granted when its node has heard another answer.
            let struck = faults.crashes - left.crashes + faults.losses - left.losses + faults.copies - left.copies;
            // Who is unlocked while it waits has used one.
            let struck = struck + faults.verbs - left.verbs;
            let kept = left.wipes == faults.wipes;
            let waiting =
                state.nodes.iter().filter(|node| node.machine.is_some_and(|machine| machine.queueing)).count();
            let most = usize::from(state.begun + struck) + waiting;
            !kept || !world.is_calm(state) || world.used(state) as usize <= most
        },
    },
    Law {
        name: LEFT,
        holds: |world, state| {
            // Of a node that died, and of one that has started since, the entry lapses. So does one that a renewal, which was under
            // way beside the release, sets again in a store that has forgotten both.
            let kept = state.left.wipes == world.setup.faults.wipes;
            let needed = |token: Token| match state.nodes.get(usize::from(Tag::from(token).node)) {
                Some(node) if node.starts == Tag::from(token).start + 1 => node
                    .machine
                    .is_none_or(|machine| machine.queueing || machine.leaving || node.command != Command::None),
                Some(_) | None => true,
            };
            !kept || !world.is_calm(state) || world.in_queues(state).into_iter().all(needed)
        },
    },
];

/// Where somebody pauses the job.
const OF_PAUSES: [Law; 2] = [never!(PAUSED, GrantedPaused), never!(HEARD, StartedPaused)];

/// Where somebody operates on the slot.
const OF_VERBS: [Law; 2] = [never!(UNLOCKED, UnlockUndone), never!(REOPENED, ResetUndone)];

/// The same as of pauses, with prompt nodes and messages.
const HEEDED_IN_TIME: Law = Law {
    name: HEEDED,
    holds: |world, state| {
        // A renewal is due after a third of the TTL, a tick here, and brings the question with it.
        let long = world.is_calm(state) && state.judge.paused_for() > 1 + delay(world, state);
        let waits = |node: &Node| node.machine.is_some_and(|machine| machine.queueing);
        !long || !state.nodes.iter().any(waits)
    },
};

/// With nodes that do at once what is due.
const NO_OVERLAP: Law = Law { name: KILLED, holds: |_, state| running(state) < 2 };

/// What has to be possible, in one world or another: a law that nothing could break says nothing.
const WITNESSES: [Law; 17] = [
    seen!(RETRY, Retry),
    seen!(EXHAUSTED, Exhausted),
    seen!(TAKEOVER, Takeover),
    seen!(RESTORED, Restored),
    seen!(OVERLAP, OverlapTold),
    seen!(LOST_REPLY, LostReplyFree),
    seen!(REFUND, Refunded),
    seen!(EARLY, TooEarly),
    seen!(WAITED, Waited),
    seen!(AFTER_WAIT, StartedAfterWait),
    seen!(IN_VAIN, GivenBackUnstarted),
    seen!(ALL_HELD, AllHeld),
    seen!(OWN_ENTRY, OwnInTheWay),
    seen!(LATE_COPY, LateAndRefused),
    seen!(LOCKS_LOST, LocksLost),
    seen!(ENDED_BY_PAUSE, PauseHeard),
    seen!(SKIPPED, Skipped),
];

/// The laws of a world.
pub(crate) fn laws(setup: &Setup) -> Vec<Law> {
    let mut laws = SAFETY.to_vec();
    if setup.pace == Pace::Prompt {
        laws.extend(LIVENESS);
    }
    if setup.locks.is_some() {
        laws.extend(OF_LOCKS);
    }
    if setup.locks.is_some() && setup.pace == Pace::Prompt {
        laws.extend(OF_LOCKS_IN_TIME);
    }
    if setup.faults.pauses > 0 {
        laws.extend(OF_PAUSES);
    }
    if setup.faults.verbs > 0 {
        laws.extend(OF_VERBS);
    }
    if setup.faults.pauses > 0 && setup.pace == Pace::Prompt {
        laws.push(HEEDED_IN_TIME);
    }
    if setup.pace == Pace::Responsive && setup.on_lost == OnLost::Kill {
        laws.push(NO_OVERLAP);
    }
    laws
}

/// Every law there is.
pub(crate) fn every() -> impl Iterator<Item = &'static str> {
    let of_locks = OF_LOCKS.iter().chain(&OF_LOCKS_IN_TIME);
    let of_operators = OF_PAUSES.iter().chain([&HEEDED_IN_TIME]).chain(&OF_VERBS);
    SAFETY.iter().chain(&LIVENESS).chain([&NO_OVERLAP]).chain(of_locks).chain(of_operators).map(|law| law.name)
}

/// What the checker looks at. Each property costs it a look-up in each state, so the laws are one where none should be
/// broken; of the witnesses only those are looked for that are asked for.
pub(crate) fn of(world: &World) -> Vec<Property<World>> {
    let mut all = if world.setup.bug.is_some() {
        world.laws.iter().map(|law| Property::always(law.name, law.holds)).collect()
    } else {
        vec![Property::always(EVERY_LAW, |world: &World, state: &State| broken(world, state).is_empty())]
    };
    let asked = WITNESSES.iter().filter(|seen| world.possible.contains(&seen.name));
    all.extend(asked.map(|seen| Property::sometimes(seen.name, seen.holds)));
    all
}

/// The laws that a state breaks.
pub(crate) fn broken(world: &World, state: &State) -> Vec<&'static str> {
    world.laws.iter().filter(|law| !(law.holds)(world, state)).map(|law| law.name).collect()
}

fn delay(world: &World, state: &State) -> u8 {
    2 * (world.setup.faults.losses - state.left.losses)
}
