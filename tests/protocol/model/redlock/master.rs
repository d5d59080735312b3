//! One master, by the scripts that it runs (`src/store/redis/redlock/lua`, `src/store/redis/lua`). Each call is one step.

use super::world::{Tick, Tok};

/// What stands at the slot's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Mark {
    Free,
    /// A lease; a reservation has the number 0.
    Held {
        token: Tok,
        number: u8,
        until: Tick,
    },
    Done {
        token: Tok,
        number: u8,
    },
}

/// A recorded attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Run {
    pub(crate) number: u8,
    pub(crate) token: Tok,
    pub(crate) ended: bool,
}

/// A master's memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Master {
    pub(crate) mark: Mark,
    pub(crate) counter: u8,
    /// Sorted.
    pub(crate) runs: Vec<Run>,
    /// When it began to remember; none: long ago.
    pub(crate) born: Option<Tick>,
}

/// A request to one master.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Request {
    Reserve,
    Grant(u8),
    Undo(u8),
    /// No later claim is to be given this number.
    Burn(u8),
    Renew(u8),
    Complete(u8),
    Release(u8),
    /// The done marker of another attempt, brought by who has met it elsewhere.
    Heal(Tok, u8),
}

/// The age of a master that has always been there.
pub(crate) const ALWAYS: Tick = Tick::MAX;

/// What a request is carried out by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    pub(crate) now: Tick,
    /// Until when a reservation lasts that begins now.
    pub(crate) reserved: Tick,
    /// Until when a lease of this claim lasts that begins now.
    pub(crate) leased: Tick,
    pub(crate) max_attempts: u8,
}

/// Its answer. What nobody reads is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Answer {
    /// For how long the master has kept its data.
    pub(crate) age: Tick,
    pub(crate) counter: u8,
    pub(crate) said: Said,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Said {
    /// With the number that is written there for this very claim, or 0.
    Reserved(u8),
    Granted,
    Done {
        token: Tok,
        number: u8,
    },
    Held {
        token: Tok,
        number: u8,
    },
    Exhausted,
    Spent,
    Taken,
    Renewed,
    Restored,
    Lost,
    /// A request without an answer of interest was carried out.
    Ok,
}

impl Master {
    pub(crate) const fn new(born: Option<Tick>) -> Self {
        Self { mark: Mark::Free, counter: 0, runs: Vec::new(), born }
    }

    /// What has run out is gone, and whoever is old enough is as good as one who was always there.
    pub(crate) fn age(&mut self, now: Tick, longest: Tick) {
        if matches!(self.mark, Mark::Held { until, .. } if until <= now) {
            self.mark = Mark::Free;
        }
        if self.born.is_some_and(|born| born + longest <= now) {
            self.born = None;
        }
    }

    pub(crate) const fn holds(&self, of: Tok) -> bool {
        matches!(self.mark, Mark::Held { token, .. } if token.is(of))
    }

    pub(crate) fn serve(&mut self, of: Tok, request: Request, given: Given) -> Answer {
        let said = match request {
            Request::Reserve => self.reserve(of, given),
            Request::Grant(number) => self.grant(of, number, given.leased),
            Request::Burn(number) => self.burn(number),
            Request::Undo(number) => self.undo(of, number),
            Request::Renew(number) => self.renew(of, number, given.leased),
            Request::Complete(number) => self.complete(of, number),
            Request::Release(number) => self.release(of, number),
            Request::Heal(token, number) => self.heal(token, number),
        };
        Answer { age: self.born.map_or(ALWAYS, |born| given.now - born), counter: self.counter, said }
    }

    fn reserve(&mut self, of: Tok, given: Given) -> Said {
        match self.mark {
            Mark::Done { token, number } => return Said::Done { token, number },
            Mark::Held { token, number, .. } if token.is(of) && number > 0 => return Said::Reserved(number),
            Mark::Held { token, number, .. } if !token.is(of) => return Said::Held { token, number },
            Mark::Held { .. } | Mark::Free => {}
        }
        let again = self.unanswered(of);
        if again.is_none() {
            if self.counter >= given.max_attempts {
                return Said::Exhausted;
            }
            if self.spent(of) {
                return Said::Spent;
            }
        }
        if self.mark == Mark::Free {
            self.mark = Mark::Held { token: of, number: 0, until: given.reserved };
        }
        Said::Reserved(again.unwrap_or(0))
    }

    /// The newest number, where it is this claim's alone and its run has no end: its answer may have been lost.
    fn unanswered(&self, of: Tok) -> Option<u8> {
        let newest = self.runs.iter().filter(|run| run.number >= self.counter);
        let own = self.counter > 0 && newest.clone().all(|run| run.token.is(of) && !run.ended);
        (own && newest.count() > 0).then_some(self.counter)
    }

    fn grant(&mut self, of: Tok, number: u8, until: Tick) -> Said {
        match self.mark {
            Mark::Done { token, number } => return Said::Done { token, number },
            Mark::Held { token, number, .. } if !token.is(of) => return Said::Held { token, number },
            Mark::Held { .. } | Mark::Free => {}
        }
        let others = self.runs.iter().any(|run| run.number >= number && !run.token.is(of));
        if self.counter > number || others || self.spent(of) {
            return Said::Taken;
        }
        self.mark = Mark::Held { token: of, number, until };
        self.counter = number;
        self.record(of, number, false);
        Said::Granted
    }

    fn burn(&mut self, number: u8) -> Said {
        self.counter = self.counter.max(number);
        Said::Ok
    }

    fn undo(&mut self, of: Tok, number: u8) -> Said {
        if matches!(self.mark, Mark::Held { token, number: held, .. } if token.is(of) && (held == 0 || held == number))
        {
            self.mark = Mark::Free;
        }
        self.runs.retain(|run| number == 0 || *run != Run { number, token: of, ended: false });
        Said::Ok
    }

    fn renew(&mut self, of: Tok, number: u8, until: Tick) -> Said {
        match self.mark {
            Mark::Done { token, number } => return Said::Done { token, number },
            Mark::Held { token, number, .. } if !token.is(of) => return Said::Held { token, number },
            Mark::Held { number, .. } => {
                self.mark = Mark::Held { token: of, number, until };
                return Said::Renewed;
            }
            Mark::Free => {}
        }
        let ended = self.runs.iter().any(|run| run.number == number && run.token.is(of) && run.ended);
        let followed = self.runs.iter().any(|run| run.number >= number && !run.token.is(of));
        if self.counter > number || ended || followed {
            return Said::Lost;
        }
        self.mark = Mark::Held { token: of, number, until };
        self.counter = number;
        self.record(of, number, false);
        Said::Restored
    }

    fn complete(&mut self, of: Tok, number: u8) -> Said {
        if !matches!(self.mark, Mark::Done { .. }) {
            self.mark = Mark::Done { token: of, number };
        }
        self.counter = self.counter.max(number);
        self.record(of, number, true);
        Said::Ok
    }

    fn release(&mut self, of: Tok, number: u8) -> Said {
        if self.holds(of) {
            self.mark = Mark::Free;
        }
        self.record(of, number, true);
        // As a counter that is gone: the records are asked.
        self.counter = self.counter.max(number);
        Said::Ok
    }

    fn heal(&mut self, token: Tok, number: u8) -> Said {
        self.complete(token, number)
    }

    fn spent(&self, of: Tok) -> bool {
        self.runs.iter().any(|run| run.token.is(of) && run.ended)
    }

    fn record(&mut self, of: Tok, number: u8, ended: bool) {
        let same = |run: &&mut Run| run.number == number && run.token.is(of);
        match self.runs.iter_mut().find(same) {
            Some(run) => run.ended |= ended,
            None => self.runs.push(Run { number, token: of, ended }),
        }
        self.runs.sort_unstable();
    }
}
