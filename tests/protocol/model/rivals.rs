//! The locks of the job, and strangers who want them too: other jobs and programs, which the model sees from outside. A stranger asks,
//! holds and leaves, each at any moment, and never fails; what it does by itself is in `locks`.

use std::time::Duration;

use cronward::job::LockName;
use cronward::resource::{AcquireRequest, Acquired, Demand, Demands, LockHold};
use cronward::slot::Token;

use super::judge::Fact;
use super::setup::{Setup, Tick, name, ticks};
use super::store::{Op, Reply};
use super::turn::Turn;
use super::world::{Command, State};

/// The first number of a node that is none.
const STRANGERS: u8 = 30;

/// What the job names, and who has it at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Locks {
    /// How many, each exclusive.
    pub(crate) count: u8,
    /// Strangers that hold one of them each, from the first on.
    pub(crate) holders: u8,
    /// Strangers that come for the last one at some moment.
    pub(crate) rivals: u8,
    /// When the entries of the holders lapse, who have died; none where they leave at some moment.
    pub(crate) lapse: Option<Tick>,
    /// The job's `lock_wait`.
    pub(crate) wait: Option<Tick>,
    /// Whether with prompt messages, too, what a node does about its locks is in any order with all else.
    pub(crate) every_order: bool,
}

/// One lock, and one stranger that holds it until it leaves.
pub(crate) const ONE: Locks = Locks { count: 1, holders: 1, rivals: 0, lapse: None, wait: None, every_order: false };

/// One lock, and one stranger that comes for it.
pub(crate) const RIVAL: Locks = Locks { holders: 0, rivals: 1, ..ONE };

/// What a stranger is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stranger {
    Away,
    Waits,
    Holds { fence: u64, place: u64 },
    Gone,
}

impl Locks {
    pub(crate) fn names(self) -> Vec<LockName> {
        (0..self.count).map(lock).collect()
    }

    pub(crate) fn demands(self) -> Demands {
        Demands::new(self.names().into_iter().map(Demand::exclusive).collect()).unwrap()
    }

    const fn strangers(self) -> u8 {
        self.holders + self.rivals
    }

    /// What this one wants.
    fn wanted(self, stranger: u8) -> LockName {
        lock(if stranger < self.holders { stranger } else { self.count - 1 })
    }

    fn request(self, stranger: u8) -> AcquireRequest {
        let token = Token::from_bits((u128::from(STRANGERS + stranger) * 8 + 1) << 64);
        let demands = Demands::new(vec![Demand::exclusive(self.wanted(stranger))]).unwrap();
        let lapse = self.lapse.filter(|_| stranger < self.holders);
        let ttl = lapse.map_or(Duration::from_secs(10_000), ticks);
        AcquireRequest::new(token, name(STRANGERS + stranger), token, ttl, demands)
    }
}

fn lock(number: u8) -> LockName {
    LockName::new(&format!("lock-{number}")).unwrap()
}

/// Whether somebody else has, or waits for, what the job names.
pub(crate) fn are_there(state: &State) -> bool {
    state.strangers.iter().any(|stranger| matches!(stranger, Stranger::Waits | Stranger::Holds { .. }))
}

/// Those of this world who can do something.
pub(crate) fn able(setup: &Setup, state: &State) -> Vec<u8> {
    let holders_die = setup.locks.is_some_and(|locks| locks.lapse.is_some());
    let holders = setup.locks.map_or(0, |locks| locks.holders);
    let can = |(number, stranger): (u8, &Stranger)| match stranger {
        Stranger::Gone => false,
        Stranger::Holds { .. } => !holders_die || number >= holders,
        Stranger::Away | Stranger::Waits => true,
    };
    (0..).zip(&state.strangers).filter(|stranger| can(*stranger)).map(|(number, _)| number).collect()
}

impl Turn<'_> {
    /// Before anything else those hold who are there first.
    pub(crate) fn settle_strangers(&mut self) {
        let Some(locks) = self.world.setup.locks else { return };
        self.state.strangers = vec![Stranger::Away; usize::from(locks.strangers())];
        (0..locks.holders).for_each(|stranger| self.ask_as(stranger));
    }

    /// A stranger comes, looks again, or leaves.
    pub(crate) fn move_stranger(&mut self, stranger: u8) {
        match self.state.strangers[usize::from(stranger)] {
            Stranger::Away | Stranger::Waits => self.ask_as(stranger),
            Stranger::Holds { fence, place } => self.leave_as(stranger, (fence, place)),
            Stranger::Gone => {}
        }
    }

    fn ask_as(&mut self, stranger: u8) {
        let Some(locks) = self.world.setup.locks else { return };
        let op = Op::Acquire(locks.request(stranger));
        let answer = match self.serve_for_stranger(op) {
            Reply::Acquired(Acquired::Held { fence, places, .. }) => {
                Stranger::Holds { fence: fence.0, place: places.first().copied().unwrap_or_default() }
            }
            _ => Stranger::Waits,
        };
        self.state.strangers[usize::from(stranger)] = answer;
        if matches!(answer, Stranger::Holds { .. }) {
            // Its command begins, beside those that are under the same lock.
            let alive = |command| matches!(command, Command::Runs | Command::Stopping);
            for node in self.state.nodes.iter_mut().filter(|node| alive(node.command)) {
                node.overlapped = true;
            }
        }
    }

    fn leave_as(&mut self, stranger: u8, (fence, place): (u64, u64)) {
        let Some(locks) = self.world.setup.locks else { return };
        let hold: LockHold = locks.request(stranger).granted(cronward::slot::Fence(fence), vec![place]);
        self.serve_for_stranger(Op::Release(hold.exit(false)));
        self.state.strangers[usize::from(stranger)] = Stranger::Gone;
    }

    /// A tick has passed: those who have died may hold no more.
    pub(crate) fn lapse_strangers(&mut self) {
        let Some(locks) = self.world.setup.locks else { return };
        if locks.lapse.is_some_and(|lapse| lapse <= self.state.now) {
            self.state.strangers[..usize::from(locks.holders)].fill(Stranger::Gone);
        }
    }

    /// The command of a node begins. It may do so only while its request holds in every lock, whatever the node believes.
    pub(crate) fn check_locks(&mut self, fence: Option<u64>) {
        let Some(locks) = self.world.setup.locks else { return };
        let holds = fence.is_some_and(|fence| self.memory(|memory| memory.ledgers.holds(self.state.ledger, fence)));
        self.state.facts.note(Fact::StartedUnlocked, !holds && self.kept());
        self.state.facts.note(Fact::AllHeld, holds && locks.count > 1);
    }
}
