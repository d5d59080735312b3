//! A node: the claim, the run and the end of it, each a round of calls to all masters.

use super::master::{Answer, Request};
use super::world::{MASTERS, Tick, Tok};

/// A call to one master.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Call {
    /// Under way.
    Sent,
    /// Given up.
    Silent,
    Said(Answer),
    /// Not made.
    None,
}

/// What the round that is under way is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Idle,
    /// Since when, and whether a majority kept a done marker then.
    Looking {
        since: Tick,
        done: bool,
    },
    Granting {
        since: Tick,
        done: bool,
        number: u8,
        again: bool,
        vetoed: bool,
    },
    /// A number that came to nothing is burnt, before it is taken back.
    Burning {
        number: u8,
    },
    /// A claim is taken back, number 0 for a reservation.
    Undoing {
        number: u8,
    },
    /// Another attempt's done marker is brought to whom it lacks.
    Healing {
        token: Tok,
        number: u8,
    },
    /// A command runs. With calls: a renewal, sent then.
    Running {
        number: u8,
        trusted: Tick,
        renewed: Tick,
    },
    Completing {
        number: u8,
    },
    Releasing {
        number: u8,
    },
    Ended,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) token: Tok,
    pub(crate) phase: Phase,
    /// The calls of the round, one per master; none between rounds.
    pub(crate) calls: Option<Vec<Call>>,
    pub(crate) not_before: Tick,
    /// Claims that it has begun.
    pub(crate) looks: u8,
}

impl Node {
    pub(crate) const fn new(index: u8) -> Self {
        Self { token: Tok(index), phase: Phase::Idle, calls: None, not_before: 0, looks: 0 }
    }

    pub(crate) fn call(&self, master: usize) -> Option<Call> {
        self.calls.as_ref().map(|calls| calls[master])
    }

    pub(crate) fn reorder(&mut self, order: &[usize]) {
        if let Some(calls) = &mut self.calls {
            *calls = order.iter().map(|old| calls[*old]).collect();
        }
    }

    /// Begins a round with all masters.
    pub(crate) fn ask(&mut self, phase: Phase) {
        self.phase = phase;
        self.calls = Some(vec![Call::Sent; MASTERS]);
    }

    /// A round that takes nothing: it gives back, or keeps what it has.
    pub(crate) const fn is_together(&self) -> bool {
        matches!(
            self.phase,
            Phase::Burning { .. }
                | Phase::Undoing { .. }
                | Phase::Healing { .. }
                | Phase::Running { .. }
                | Phase::Releasing { .. }
        )
    }

    /// What is asked in this round.
    pub(crate) fn request(&self) -> Request {
        match self.phase {
            Phase::Looking { .. } => Request::Reserve,
            Phase::Granting { number, .. } => Request::Grant(number),
            Phase::Burning { number } => Request::Burn(number),
            Phase::Undoing { number } => Request::Undo(number),
            Phase::Healing { token, number } => Request::Heal(token, number),
            Phase::Running { number, .. } => Request::Renew(number),
            Phase::Completing { number } => Request::Complete(number),
            Phase::Releasing { number } => Request::Release(number),
            Phase::Idle | Phase::Ended => unreachable!("no round"),
        }
    }

    /// The answers that came, and the places of those that did not.
    pub(crate) fn heard(&self) -> Vec<Option<Answer>> {
        let calls = self.calls.as_deref().unwrap_or_default();
        calls.iter().map(|call| if let Call::Said(answer) = call { Some(*answer) } else { None }).collect()
    }

    /// Its next claim has another token.
    pub(crate) fn forget_token(&mut self) {
        self.token = Tok(self.token.0 + 2);
    }
}
