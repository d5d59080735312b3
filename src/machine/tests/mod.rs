//! Every transition of the machine, each as a claim. A [`Bench`] plays the driver: time moves only when it says so, and
//! every answer is written out.

mod claiming;
mod locking;
mod queueing;
mod retrying;
mod running;
mod settling;
mod waiting;

use std::time::Duration;

use super::*;
use crate::clock::{Clock, ManualClock, Now};
use crate::error::{Applied, ErrorKind, Op, StoreError};
use crate::event::Event;
use crate::job::{NodeName, Policy};
use crate::reply::{Claim, ClaimRequest, Release, Renewal, Settlement};
use crate::slot::{DoneMark, Exit, ExitStatus, Holder, Lease, RunContext, Slot, Token, Trigger};
use crate::wake::{Wake, WakeKind};

const TTL: Duration = Duration::from_secs(60);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// One machine and its clock.
struct Bench {
    machine: SlotMachine,
    clock: ManualClock,
    /// Whose renewal was asked for last.
    renewing: Token,
}

fn slot() -> Slot {
    Slot::parse("push", "2026-11-21T14Z", "2026-11-21T15Z").unwrap()
}

fn assignment(policy: Policy) -> Assignment {
    Assignment {
        slot: slot(),
        policy,
        success_codes: vec![0],
        node: NodeName::new("a").unwrap(),
        trigger: Trigger::Schedule,
        scheduled_at: slot().start(),
        past: false,
        audit: None,
        poll: None,
        seed: Token::from_bits(42),
        locks: None,
    }
}

fn other() -> Holder {
    Holder { node: NodeName::new("b").unwrap(), attempt: 1 }
}

fn held(remaining: Duration) -> Result<Claim, StoreError> {
    Ok(Claim::Held { by: other(), remaining })
}

fn done_by(by: Holder) -> DoneMark {
    DoneMark { by, at: slot().start(), token: None }
}

fn granted(attempt: u32) -> Result<Claim, StoreError> {
    Ok(Claim::Claimed { attempt, used: attempt, at: slot().start(), revision: None })
}

fn error(applied: Applied) -> StoreError {
    StoreError::new(ErrorKind::Timeout, applied, Op::Claim, "redis://x", "no answer")
}

fn exit(code: i32) -> Exit {
    Exit::of(ExitStatus::Code(code))
}

impl Bench {
    /// A machine at its tick, its claim sent.
    fn at_tick(policy: Policy) -> (Self, ClaimRequest) {
        Self::with(assignment(policy))
    }

    fn with(assignment: Assignment) -> (Self, ClaimRequest) {
        let clock = ManualClock::at(slot().start());
        let machine = SlotMachine::new(assignment, clock.now());
        let renewing = Token::from_bits(0);
        let mut bench = Self { machine, clock, renewing };
        let request = bench.claim();
        (bench, request)
    }

    /// A machine whose command runs as attempt 1.
    fn running(policy: Policy) -> Self {
        let (mut bench, _) = Self::at_tick(policy);
        bench.machine.handle_claim(bench.now(), granted(1));
        bench.spawned();
        bench.machine.handle_started(bench.now());
        bench.silent();
        bench
    }

    fn now(&self) -> Now {
        self.clock.now()
    }

    fn action(&mut self) -> Action {
        let action = self.machine.poll_action().expect("the machine wants nothing");
        if let Action::Renew { lease, .. } = &action {
            self.renewing = lease.token;
        }
        action
    }

    fn silent(&mut self) {
        assert_eq!(self.machine.poll_action(), None);
    }

    fn claim(&mut self) -> ClaimRequest {
        match self.action() {
            Action::Claim(request) => request,
            action => panic!("not a claim: {action:?}"),
        }
    }

    fn spawned(&mut self) -> RunContext {
        match self.action() {
            Action::Spawn(context) => context,
            action => panic!("not a start: {action:?}"),
        }
    }

    fn renew(&mut self) -> (Lease, Duration) {
        match self.action() {
            Action::Renew { lease, within } => (lease, within),
            action => panic!("not a renewal: {action:?}"),
        }
    }

    /// Lets time pass without telling the machine, as a stopped process does.
    fn pause(&mut self, span: Duration) {
        self.clock.advance(span);
    }

    /// Lets time pass up to the machine's next timer, which must be within the span, and fires it.
    fn until_timer(&mut self) -> Duration {
        let at = self.machine.poll_timeout().expect("no timer");
        let wait = at.since(self.now().mono);
        self.clock.advance(wait);
        self.machine.handle_timeout(self.now());
        wait
    }

    /// Lets exactly this much time pass, firing every timer on the way.
    fn pass(&mut self, span: Duration) {
        let until = self.now().mono + span;
        while let Some(at) = self.machine.poll_timeout().filter(|at| *at <= until && self.machine.ended().is_none()) {
            self.clock.advance(at.since(self.now().mono));
            self.machine.handle_timeout(self.now());
            if self.machine.poll_timeout() == Some(at) {
                panic!("a timer that fires for ever");
            }
        }
        self.clock.advance(until.since(self.now().mono));
    }

    fn exits(&mut self, code: i32) {
        self.machine.handle_exit(self.now(), exit(code));
    }

    fn renewal(&mut self, reply: Result<Renewal, StoreError>) {
        self.machine.handle_renewal(self.now(), self.renewing, reply);
    }

    fn release(&mut self, reply: Result<Release, StoreError>) {
        self.machine.handle_release(self.now(), reply);
    }

    fn settlement(&mut self, reply: Result<Settlement, StoreError>) {
        self.machine.handle_settlement(self.now(), reply);
    }

    fn wake(&mut self, what: WakeKind) {
        let wake = Wake::Slot { job: slot().job().clone(), key: slot().key(), what };
        self.machine.handle_wake(self.now(), &wake);
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.machine.poll_event()).collect()
    }

    fn told(&mut self, wanted: impl Fn(&Event) -> bool) -> bool {
        self.events().iter().any(wanted)
    }
}
