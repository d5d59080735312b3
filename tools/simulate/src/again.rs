//! What a node has done itself, told again to a store that has forgotten it, as `drive::again` has it: whenever hints were
//! lost it is looked up, and completed again where the store has no record of the run. A later round takes an earlier one's
//! place.

use cronward::drive::{Fact, Facts};
use cronward::event::Event as Told;
use cronward::slot::{Outcome, Overlap, Slot};
use cronward::store::Settlement;

use crate::checks::Bug;
use crate::desk::Desk;
use crate::message::{Answer, Ask};
use crate::nature::Event;
use crate::requests::{Asked, Requests};

/// The facts of slots that last, and the round that is under way.
#[derive(Debug, Default)]
pub(super) struct Again {
    facts: Facts,
    round: u64,
}

impl Again {
    /// The store has acknowledged this, and from now on it is to be told again if it forgets.
    pub(super) fn acknowledged(desk: &mut Desk<'_>, fact: &Fact) {
        if let Some(story) = desk.nature.story(&fact.lease.slot).filter(|_| fact.run.outcome == Some(Outcome::Success))
        {
            story.keepers.push(desk.process);
        }
    }

    /// The store is being told of this.
    pub(super) fn keep(&self, desk: &Desk<'_>, fact: Fact) {
        self.facts.keep(fact, desk.now.wall);
    }

    /// Hints were lost, and perhaps all that the store knew.
    pub(super) fn begin(&mut self, desk: &mut Desk<'_>, requests: &mut Requests) {
        self.round += 1;
        if !desk.nature.is_bug(Bug::NeverDoneAgain) {
            self.look_up(desk, requests, self.round);
        }
    }

    /// What the store knows of the slots that were done here.
    pub(super) fn look_up(&self, desk: &mut Desk<'_>, requests: &mut Requests, round: u64) {
        let facts = self.facts.lasting(desk.now.wall);
        if round != self.round || facts.is_empty() {
            return;
        }
        let slots: Vec<Slot> = facts.iter().map(|fact| fact.lease.slot.clone()).collect();
        requests.ask(desk, Asked::Inspect(round, facts), Ask::Inspect(slots), None);
    }

    /// The answer to that.
    pub(super) fn looked_up(
        &self,
        desk: &mut Desk<'_>,
        requests: &mut Requests,
        (round, facts): (u64, Vec<Fact>),
        answer: Option<Answer>,
    ) {
        let Some(Answer::Records(records)) = answer else { return later(desk, round) };
        let both = facts.into_iter().zip(records).rev();
        let forgotten = both.filter(|(fact, record)| fact.is_forgotten(record)).map(|(fact, _)| fact).collect();
        self.tell_next(desk, requests, (round, forgotten));
    }

    /// One after the other; the last comes first.
    fn tell_next(&self, desk: &mut Desk<'_>, requests: &mut Requests, (round, mut facts): (u64, Vec<Fact>)) {
        let Some(fact) = facts.pop().filter(|_| round == self.round) else { return };
        let node = desk.process.node + 1;
        desk.nature.note(|_| format!("  n{node} {}: done again", fact.lease.slot));
        let Fact { lease, run, done_ttl } = fact.clone();
        requests.ask(desk, Asked::Again(round, Box::new(fact), facts), Ask::Complete { lease, run, done_ttl }, None);
    }

    /// One was told again; the rest is told after it.
    pub(super) fn told_again(
        &self,
        desk: &mut Desk<'_>,
        requests: &mut Requests,
        (round, fact, rest): (u64, &Fact, Vec<Fact>),
        answer: Option<Answer>,
    ) {
        if round != self.round {
            return;
        }
        let Some(Answer::Settlement(settlement)) = answer else { return later(desk, round) };
        desk.tell(&Told::DoneAgain { of: fact.lease.slot.to_string() });
        if let Settlement::Overtaken { by } = settlement {
            desk.nature.hear(
                desk.process,
                desk.uncorrected.wall,
                &fact.lease.slot,
                &Told::Overtaken {
                    attempt: fact.lease.attempt,
                    by: by.node,
                    by_attempt: by.attempt,
                    unstarted: false,
                    overlap: Overlap::Possible,
                },
            );
        }
        self.tell_next(desk, requests, (round, rest));
    }
}

fn later(desk: &mut Desk<'_>, round: u64) {
    let at = desk.clock.when(desk.now.mono + Facts::TRY_AGAIN).max(desk.nature.now);
    desk.nature.queue.push(at, Event::Again { of: desk.process, round });
}
