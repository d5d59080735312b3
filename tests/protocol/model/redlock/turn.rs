//! One step of the world.

use std::time::Duration;

use cronward::reply::{Claim, Renewal};
use cronward::slot::{DoneMark, Holder, Lease, Trigger};
use cronward::store::redlock::claim::{Found, Grant, Look, Own, Step};
use cronward::store::redlock::lease::{self, Ack, Outcome};

use super::master::{ALWAYS, Answer, Given, Mark, Master, Request, Said};
use super::node::{Call, Phase};
use super::properties::Fact;
use super::world::{Bug, Happening, RESERVATION, State, Stray, Tok, World, name, slot, start, ticks};

pub(crate) fn take(world: &World, state: &mut State, happening: Happening) {
    match happening {
        Happening::Tick => {
            state.now += 1;
            let now = state.now;
            state.masters.iter_mut().for_each(|master| master.age(now, world.longest()));
        }
        Happening::Look(node) => {
            state.nodes[node].looks += 1;
            look(state, node, state.now);
        }
        Happening::Call(node, master) => {
            let answer = serve(world, state, node, master);
            set(world, state, (node, master), Call::Said(answer));
        }
        Happening::Calls(node) => {
            for master in 0..state.masters.len() {
                if state.nodes[node].call(master) == Some(Call::Sent) {
                    let answer = serve(world, state, node, master);
                    set(world, state, (node, master), Call::Said(answer));
                }
            }
        }
        Happening::LoseRequest(node, master) => {
            state.left.losses -= 1;
            set(world, state, (node, master), Call::Silent);
        }
        Happening::LoseAnswer(node, master) => {
            state.left.losses -= 1;
            serve(world, state, node, master);
            set(world, state, (node, master), Call::Silent);
        }
        Happening::Delay(node, master) => {
            state.left.late -= 1;
            let (token, request) = (state.nodes[node].token, state.nodes[node].request());
            state.strays.push(Stray { master, token, request });
            set(world, state, (node, master), Call::Silent);
        }
        Happening::Stray(index) => {
            let Stray { master, token, request } = state.strays.remove(index);
            let now = state.now;
            apply(world, &mut state.masters[master], token, request, now);
        }
        Happening::Succeed(node) => end(state, node, |number| Phase::Completing { number }),
        Happening::Fail(node) => end(state, node, |number| Phase::Releasing { number }),
        Happening::Renew(node) => {
            state.left.renewals -= 1;
            let now = state.now;
            let Phase::Running { number, trusted, .. } = state.nodes[node].phase else { unreachable!() };
            state.nodes[node].ask(Phase::Running { number, trusted, renewed: now });
        }
        Happening::Wipe(master) => {
            state.left.wipes -= 1;
            state.masters[master] = Master::new(Some(state.now));
        }
    }
}

fn look(state: &mut State, node: usize, since: u8) {
    let done = kept(state);
    state.nodes[node].ask(Phase::Looking { since, done });
}

/// Whether a majority keeps a done marker.
fn kept(state: &State) -> bool {
    state.masters.iter().filter(|master| matches!(master.mark, Mark::Done { .. })).count() > state.masters.len() / 2
}

/// A call has come to its end. With the last one the node decides; that it may stall before that is the same as a call that
/// takes longer, or as a run that begins late.
fn set(world: &World, state: &mut State, (node, master): (usize, usize), call: Call) {
    let calls = state.nodes[node].calls.as_mut().unwrap();
    calls[master] = call;
    if calls.iter().all(|call| *call != Call::Sent) {
        decide(world, state, node);
    }
}

fn serve(world: &World, state: &mut State, node: usize, master: usize) -> Answer {
    let (token, request, now) = (state.nodes[node].token, state.nodes[node].request(), state.now);
    apply(world, &mut state.masters[master], token, request, now)
}

fn apply(world: &World, master: &mut Master, token: Tok, request: Request, now: u8) -> Answer {
    let answer = master.serve(token, request, given(world, token, now));
    let age = if world.bug == Some(Bug::YoungCounts) { ALWAYS } else { answer.age };
    Answer { age, ..answer }
}

fn given(world: &World, token: Tok, now: u8) -> Given {
    let leased = now + world.lease(token);
    let reserved = if world.bug == Some(Bug::NumberOnOne) { leased } else { now + RESERVATION };
    Given { now, reserved, leased, max_attempts: world.max_attempts() }
}

fn end(state: &mut State, node: usize, then: impl Fn(u8) -> Phase) {
    let Phase::Running { number, .. } = state.nodes[node].phase else { unreachable!() };
    state.nodes[node].ask(then(number));
}

fn decide(world: &World, state: &mut State, node: usize) {
    let heard = state.nodes[node].heard();
    state.nodes[node].calls = None;
    let acknowledged = heard.iter().flatten().count() >= world.quorum().majority();
    match state.nodes[node].phase {
        Phase::Looking { since, done } => looked(world, state, node, (since, done), &heard),
        Phase::Granting { .. } => granted(world, state, node, &heard),
        Phase::Burning { number } => undo(world, state, node, if acknowledged { number } else { 0 }, &heard),
        Phase::Undoing { number } => undone(world, state, node, number, &heard),
        Phase::Healing { .. } => {
            state.facts.add(Fact::Repaired);
            state.nodes[node].phase = Phase::Ended;
        }
        Phase::Running { .. } => renewed(world, state, node, &heard),
        Phase::Completing { .. } if acknowledged => {
            state.done = true;
            state.facts.add(Fact::Done);
            state.nodes[node].phase = Phase::Ended;
        }
        Phase::Releasing { .. } if acknowledged => {
            state.nodes[node].forget_token();
            pause(state, node);
        }
        // Told until a majority knows.
        phase @ (Phase::Completing { .. } | Phase::Releasing { .. }) => state.nodes[node].ask(phase),
        Phase::Idle | Phase::Ended => unreachable!("no round"),
    }
}

fn pause(state: &mut State, node: usize) {
    state.nodes[node].phase = Phase::Idle;
    state.nodes[node].not_before = state.now + 1;
}

fn holder(token: Tok, number: u8) -> Holder {
    Holder { node: name(token), attempt: u32::from(number) }
}

fn mark(token: Tok, number: u8) -> DoneMark {
    DoneMark { by: holder(token, number), at: start(), token: None }
}

fn age(of: u8) -> Duration {
    if of == ALWAYS { Duration::MAX } else { ticks(of) }
}

fn looked(world: &World, state: &mut State, node: usize, (since, done): (u8, bool), heard: &[Option<Answer>]) {
    let token = state.nodes[node].token;
    let veto = heard.iter().flatten().find_map(|answer| match answer.said {
        Said::Done { token, number } => Some((token, number)),
        _ => None,
    });
    let deaf = world.bug == Some(Bug::DoneIsNoVeto);
    let looks: Vec<Option<Look>> = heard.iter().map(|answer| answer.and_then(|answer| seen(answer, deaf))).collect();
    let step = world.with_terms(token, |terms| terms.after_looks(&looks));
    match step {
        Step::Grant(Grant { attempt, again, .. }) | Step::Unfinished(Grant { attempt, again, .. }) => {
            let number = u8::try_from(attempt).unwrap();
            if again {
                state.facts.add(Fact::SameGrant);
            }
            state.nodes[node].ask(Phase::Granting { since, done, number, again, vetoed: veto.is_some() });
            if world.bug == Some(Bug::NumberOnOne) {
                let calls = state.nodes[node].calls.as_mut().unwrap();
                calls[1..].fill(Call::None);
            }
        }
        Step::Again(_) if state.now == since => {
            state.facts.add(Fact::Contended);
            state.nodes[node].ask(Phase::Looking { since, done });
        }
        Step::ReadAll | Step::Answer(Claim::Done(_)) => {
            let (token, number) = veto.unwrap();
            let known = heard.iter().flatten().filter(|answer| matches!(answer.said, Said::Done { .. })).count();
            if known < world.quorum().majority() {
                state.facts.add(Fact::Vetoed);
            }
            state.nodes[node].ask(Phase::Healing { token, number });
        }
        refused => {
            match refused {
                Step::Answer(Claim::Exhausted { .. }) => state.facts.add(Fact::Exhausted),
                Step::Young { .. } => state.facts.add(Fact::Young),
                _ => {}
            }
            undo(world, state, node, 0, heard);
        }
    }
}

/// What a node makes of an answer to a reservation.
fn seen(answer: Answer, deaf: bool) -> Option<Look> {
    let found = match answer.said {
        Said::Reserved(0) => Found::Reserved { own: None },
        Said::Reserved(number) => Found::Reserved { own: Some(Own { attempt: u32::from(number), at: start() }) },
        Said::Done { .. } if deaf => return None,
        Said::Done { token, number } => Found::Done(mark(token, number)),
        Said::Held { token, number } => {
            Found::Held { token: token.real(), by: holder(token, number), remaining: ticks(1) }
        }
        Said::Exhausted => Found::Exhausted,
        Said::Spent => Found::Spent,
        other => unreachable!("{other:?} to a reservation"),
    };
    let counter = u32::from(answer.counter);
    // The longest lease is what the url says: all nodes have it, and a master need not tell of it.
    let longest = Duration::ZERO;
    Some(Look { age: age(answer.age), longest, now: start(), counter, forgiven: 0, latest: None, found })
}

fn undo(world: &World, state: &mut State, node: usize, number: u8, heard: &[Option<Answer>]) {
    state.nodes[node].ask(Phase::Undoing { number });
    if world.bug == Some(Bug::ReleasedWhereGranted) {
        let calls = state.nodes[node].calls.as_mut().unwrap();
        for (call, answer) in calls.iter_mut().zip(heard) {
            let said = answer.map(|answer| answer.said);
            if !matches!(said, Some(Said::Reserved(_) | Said::Granted)) {
                *call = Call::None;
            }
        }
    }
}

fn undone(world: &World, state: &mut State, node: usize, number: u8, heard: &[Option<Answer>]) {
    let token = state.nodes[node].token;
    // What was lost or came late in this history may have kept the taking back from arriving, or have come after it.
    let disturbed = state.left.late < world.faults.late;
    let rest = state.masters.iter().zip(heard);
    let asked = |answer: &Option<Answer>| answer.is_some() || world.bug == Some(Bug::ReleasedWhereGranted);
    let left = rest.filter(|(master, answer)| {
        let held = matches!(master.mark, Mark::Held { token: by, number: held, .. } if by.is(token) && held == number);
        asked(answer) && held
    });
    if left.count() > 0 && !disturbed {
        state.facts.add(Fact::LeftBehind);
    }
    pause(state, node);
}

fn granted(world: &World, state: &mut State, node: usize, heard: &[Option<Answer>]) {
    let Phase::Granting { since, done, number, again, vetoed } = state.nodes[node].phase else { unreachable!() };
    let token = state.nodes[node].token;
    let grant = Grant { attempt: u32::from(number), used: 1, at: start(), forgiven: 0, again };
    let deaf = |answer: &Answer| world.bug == Some(Bug::DoneIsNoVeto) && matches!(answer.said, Said::Done { .. });
    let acks: Vec<Option<Ack>> =
        heard.iter().map(|answer| answer.filter(|answer| !deaf(answer)).map(acknowledged)).collect();
    let met = heard.iter().flatten().find_map(|answer| match answer.said {
        Said::Done { token, number } => Some((token, number)),
        _ => None,
    });
    let spent = ticks(state.now - since);
    let mut outcome = world.with_terms(token, |terms| terms.after_grants(&grant, &acks, spent));
    if world.bug == Some(Bug::NumberOnOne)
        && acks.iter().flatten().any(|ack| matches!(ack.said, lease::Said::Granted { .. }))
    {
        outcome = Outcome::Claimed(Claim::Closed);
    }
    match outcome {
        Outcome::Claimed(_) => begin(state, node, (since + world.lease(token), number), (done && state.done) || vetoed),
        Outcome::Void(_) => {
            state.facts.add(Fact::Voided);
            match world.bug {
                _ if again => undo(world, state, node, 0, heard),
                Some(Bug::NumbersComeBack) => undo(world, state, node, number, heard),
                _ => state.nodes[node].ask(Phase::Burning { number }),
            }
        }
        Outcome::ReadAll => {
            let (token, number) = met.unwrap();
            state.facts.add(Fact::Vetoed);
            state.nodes[node].ask(Phase::Healing { token, number });
        }
        Outcome::Unknown => pause(state, node),
    }
}

fn acknowledged(answer: Answer) -> Ack {
    let said = match answer.said {
        Said::Granted => lease::Said::Granted { at: start() },
        Said::Done { token, number } => lease::Said::Done(mark(token, number)),
        Said::Held { token, number } => lease::Said::Held { by: holder(token, number), remaining: ticks(1) },
        _ => lease::Said::Taken,
    };
    Ack { age: age(answer.age), said }
}

/// A command begins: what may not be is noted.
fn begin(state: &mut State, node: usize, (trusted, number): (u8, u8), after_success: bool) {
    let token = state.nodes[node].token;
    state.nodes[node].phase = Phase::Running { number, trusted, renewed: 0 };
    if after_success {
        state.facts.add(Fact::DoneRepeated);
    }
    let keepers = |known: u8| state.masters.iter().filter(|master| master.counter >= known).count();
    if state.granted.iter().any(|(_, known)| number <= *known && keepers(*known) > state.masters.len() / 2) {
        state.facts.add(Fact::AttemptFell);
    }
    let others = state.nodes.iter().enumerate().filter(|(index, _)| *index != node);
    if others.into_iter().any(|(_, other)| matches!(other.phase, Phase::Running { .. })) {
        state.facts.add(Fact::Takeover);
    }
    if !state.granted.is_empty() {
        state.facts.add(Fact::Retry);
    }
    state.granted.push((token, number));
    state.granted.sort_unstable();
}

fn renewed(world: &World, state: &mut State, node: usize, heard: &[Option<Answer>]) {
    let Phase::Running { number, trusted, renewed } = state.nodes[node].phase else { unreachable!() };
    let token = state.nodes[node].token;
    let answers: Vec<Option<lease::MasterRenewal>> = heard.iter().map(|answer| answer.map(of_renewal)).collect();
    let lease = Lease {
        slot: slot(token),
        token: token.real(),
        node: name(token),
        attempt: u32::from(number),
        trigger: Trigger::Schedule,
        claimed_at: start(),
        ttl: ticks(world.lease(token)),
        revision: None,
    };
    let answer = lease::renewal(world.quorum(), &lease, world.longest_lease(), &answers);
    match answer {
        Some(Renewal::Renewed | Renewal::Restored) => {
            let fact = if answer == Some(Renewal::Renewed) { Fact::Renewed } else { Fact::Restored };
            state.facts.add(fact);
            state.nodes[node].phase =
                Phase::Running { number, trusted: trusted.max(renewed + world.lease(token)), renewed };
        }
        // The command goes on, and is no longer within its lease.
        Some(Renewal::Lost { .. } | Renewal::Done(_)) => {
            state.facts.add(Fact::RenewalLost);
            state.nodes[node].phase = Phase::Running { number, trusted: 0, renewed };
        }
        None if world.bug == Some(Bug::FailedRenewalUnlocks) => {
            let given = given(world, token, state.now);
            for master in &mut state.masters {
                master.serve(token, Request::Undo(number), given);
            }
        }
        None => {}
    }
}

fn of_renewal(answer: Answer) -> lease::MasterRenewal {
    let said = match answer.said {
        Said::Renewed => Renewal::Renewed,
        Said::Restored => Renewal::Restored,
        Said::Held { token, number } => Renewal::Lost { to: Some(holder(token, number)) },
        Said::Done { token, number } => Renewal::Done(mark(token, number)),
        _ => Renewal::Lost { to: None },
    };
    lease::MasterRenewal { age: age(answer.age), longest: Duration::ZERO, said }
}
