//! The node's side: the real `machine::SlotMachine`, each of whose steps is computed once and remembered.

use std::sync::Arc;

use cronward::error::{Applied, ErrorKind, Op as Operation, StoreError};
use cronward::event::Event;
use cronward::machine::{Action as Order, End, LockAction, LockReply, SlotMachine};
use cronward::reply::Renewal;
use cronward::resource::{LockHint, LockRenewal};
use cronward::slot::{Exit, ExitStatus, Token};
use cronward::wake::{Wake, WakeKind};

use super::key;
use super::memo::{Id, Memo, Numbered};
use super::setup::{Bug, Setup, Tick, name, tick_of, ticks};
use super::store::{Kind, Op, Reply};

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ending {
    Success,
    Failure,
    Signal,
}

/// What a call brings back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    Reply(Id),
    /// Not applied.
    Refused,
    /// Perhaps applied.
    Unknown,
}

/// What a machine is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Input {
    Timer,
    LockTimer,
    Answer(Kind, Id, Answer),
    Started,
    Exit(Ending),
    Shutdown,
    Wake(WakeKind),
    /// This request for locks may hold now.
    Hint(Token),
}

/// What a machine answers, as far as the model follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Send(Kind, Id),
    /// By this grant of its locks, where it names some.
    Start {
        attempt: u32,
        fence: Option<u64>,
    },
    Terminate,
    Kill,
}

/// One step of a machine.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) machine: Machine,
    pub(crate) effects: Vec<Effect>,
    /// Told that another run of the slot may have been made beside this one.
    pub(crate) alarm: bool,
    pub(crate) restored: bool,
}

/// A machine, and what is to be known of it without a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    pub(crate) id: Id,
    pub(crate) holding: bool,
    pub(crate) ended: Option<End>,
    /// When something is due.
    pub(crate) due: Option<Tick>,
    /// The same about its locks.
    pub(crate) lock_due: Option<Tick>,
    /// Its attempt waits for its locks.
    pub(crate) queueing: bool,
    /// The store has yet to answer that they were left.
    pub(crate) leaving: bool,
}

impl PartialEq for Machine {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Machine {}

/// All machines that were met, and all steps that were made.
#[derive(Debug, Default)]
pub(crate) struct Machines {
    known: Numbered<(SlotMachine, Machine)>,
    steps: Memo<(u8, Id, Input, Tick), Arc<Step>>,
    started: Memo<(u8, u8, Tick), Arc<Step>>,
    aged: Memo<(Id, Tick), Machine>,
}

/// What is sent and answered, by number.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    pub(crate) ops: Numbered<Op>,
    pub(crate) replies: Numbered<Reply>,
}

impl Machines {
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// A node starts, for the `start`-th time.
    pub(crate) fn start(
        &mut self,
        setup: &Setup,
        (node, start, now): (u8, u8, Tick),
        messages: &mut Messages,
    ) -> Arc<Step> {
        let key = (node, start, now);
        if !self.started.contains_key(&key) {
            let machine = SlotMachine::new(setup.assignment(node, start), Setup::now(now));
            let step = self.finish(setup, (machine, now), messages);
            self.started.insert(key, Arc::new(step));
        }
        Arc::clone(&self.started[&key])
    }

    pub(crate) fn step(
        &mut self,
        setup: &Setup,
        (node, machine): (u8, Id),
        (input, now): (Input, Tick),
        messages: &mut Messages,
    ) -> Arc<Step> {
        let key = (node, machine, input, now);
        if !self.steps.contains_key(&key) {
            let mut moved = self.known.get(machine).0.clone();
            tell(&mut moved, setup, now, input, messages);
            let step = self.finish(setup, (moved, now), messages);
            self.steps.insert(key, Arc::new(step));
        }
        Arc::clone(&self.steps[&key])
    }

    fn finish(&mut self, setup: &Setup, (mut machine, now): (SlotMachine, Tick), messages: &mut Messages) -> Step {
        let mut effects = Vec::new();
        while let Some(order) = machine.poll_action() {
            if order == Order::AskPause && setup.faults.pauses == 0 {
                // Nobody pauses the job here.
                machine.handle_pause(Setup::now(now), Ok(false));
                continue;
            }
            effects.extend(effect(setup, order, (&mut machine, now), messages));
        }
        let events: Vec<Event> = std::iter::from_fn(|| machine.poll_event()).collect();
        let alarm = |event: &Event| {
            matches!(
                event,
                Event::LeaseInDoubt { .. } | Event::LeaseLost { .. } | Event::Overtaken { .. } | Event::LockLost(_)
            )
        };
        let restored = |event: &Event| matches!(event, Event::LeaseRestored { .. });
        let (alarm, restored) = (events.iter().any(alarm), events.iter().any(restored));
        let machine = self.keep(setup, machine, now);
        Step { machine, effects, alarm, restored }
    }

    /// The same machine at a later tick.
    pub(crate) fn age(&mut self, setup: &Setup, machine: Id, now: Tick) -> Machine {
        if let Some(aged) = self.aged.get(&(machine, now)) {
            return *aged;
        }
        let aged = self.keep(setup, self.known.get(machine).0.clone(), now);
        self.aged.insert((machine, now), aged);
        aged
    }

    fn keep(&mut self, setup: &Setup, machine: SlotMachine, now: Tick) -> Machine {
        let due = machine.poll_timeout().map(|at| tick_of(at).clamp(now, setup.far()));
        let lock_due = machine.poll_lock_timeout().map(|at| tick_of(at).clamp(now, setup.far()));
        let (holding, ended) = (machine.is_holding(), machine.ended());
        let (queueing, leaving) = (machine.is_queueing(), machine.leaves_locks());
        let next = Machine { id: self.known.next(), holding, ended, due, lock_due, queueing, leaving };
        let id = self.known.id(key::of(&machine, setup, now), (machine, next));
        self.known.get(id).1
    }
}

/// What the driver does of an order, unless it has a bug by which it answers the order itself.
fn effect(
    setup: &Setup,
    order: Order,
    (machine, now): (&mut SlotMachine, Tick),
    messages: &mut Messages,
) -> Option<Effect> {
    let op = match order {
        Order::Spawn(context) => {
            let fence = context.locks.map(|locks| locks.fence.0);
            return Some(Effect::Start { attempt: context.attempt, fence });
        }
        Order::Terminate => return Some(Effect::Terminate),
        Order::Kill => return Some(Effect::Kill),
        Order::Renew { lease, .. } if setup.bug == Some(Bug::LeaseLeftAlone) && machine.is_queueing() => {
            machine.handle_renewal(Setup::now(now), lease.token, Ok(Renewal::Renewed));
            return None;
        }
        Order::Lock(LockAction::Renew(hold)) if setup.bug == Some(Bug::LocksLeftAlone) => {
            machine.handle_lock_reply(Setup::now(now), hold.token, LockReply::Renewed(Ok(LockRenewal::Renewed)));
            return None;
        }
        Order::Claim(request) => Op::Claim(request),
        Order::Renew { lease, .. } => Op::Renew(lease),
        Order::Complete { lease, run, done_ttl } => Op::Complete(lease, run, done_ttl),
        Order::Fail { lease, run, retry_after } => Op::Fail(lease, run, retry_after),
        Order::GiveBack { lease, run } if setup.bug == Some(Bug::WaitCounts) => Op::Fail(lease, run, ticks(0)),
        Order::GiveBack { lease, run } => Op::GiveBack(lease, run),
        Order::Lock(LockAction::Acquire(request)) => Op::Acquire(request),
        Order::Lock(LockAction::Renew(hold)) => Op::RenewLock(hold),
        Order::Lock(LockAction::Release(exit)) => Op::Release(exit),
        Order::AskPause => Op::AskPause,
    };
    let op = op.without_times();
    Some(Effect::Send(op.kind(), messages.ops.id(format!("{op:?}"), op)))
}

fn tell(machine: &mut SlotMachine, setup: &Setup, tick: Tick, input: Input, messages: &Messages) {
    let late = setup.bug == Some(Bug::ClockStops) && matches!(input, Input::Answer(Kind::Claim, ..))
        || setup.bug == Some(Bug::LockClockStops) && matches!(input, Input::Answer(Kind::Acquire, ..));
    let now = Setup::now(if late { tick.saturating_sub(setup.ttl) } else { tick });
    match input {
        Input::Timer => machine.handle_timeout(now),
        Input::LockTimer => machine.handle_lock_timeout(now),
        Input::Hint(token) => machine.handle_lock_hint(now, LockHint::Ready(token)),
        Input::Started => machine.handle_started(now),
        Input::Exit(ending) => machine.handle_exit(now, exit(ending)),
        Input::Shutdown => machine.handle_shutdown(now, ticks(0)),
        Input::Wake(what) => {
            let slot = setup.slot();
            machine.handle_wake(now, &Wake::Slot { job: slot.job().clone(), key: slot.key(), what });
        }
        Input::Answer(Kind::Claim, _, answer) => machine.handle_claim(now, hear(answer, messages, Reply::claim)),
        Input::Answer(Kind::Renew, op, answer) => {
            let of = messages.ops.get(op).token();
            machine.handle_renewal(now, of, hear(answer, messages, Reply::renewal));
        }
        Input::Answer(Kind::Complete, _, answer) => {
            machine.handle_settlement(now, hear(answer, messages, Reply::settlement));
        }
        Input::Answer(Kind::Fail | Kind::GiveBack, _, answer) => {
            machine.handle_release(now, hear(answer, messages, Reply::release));
        }
        Input::Answer(Kind::AskPause, _, answer) => {
            let heard = hear(answer, messages, Reply::pause);
            machine.handle_pause(now, heard.map(|paused| paused && setup.bug != Some(Bug::PauseUnheard)));
        }
        Input::Answer(Kind::Pause | Kind::Resume | Kind::Operate, ..) => unreachable!("no node's call"),
        Input::Answer(kind @ (Kind::Acquire | Kind::RenewLock | Kind::Release), op, answer) => {
            let reply = match kind {
                Kind::Acquire => LockReply::Acquired(hear(answer, messages, Reply::acquired)),
                Kind::RenewLock => LockReply::Renewed(hear(answer, messages, Reply::lock_renewal)),
                _ => LockReply::Released(hear(answer, messages, Reply::lock_release)),
            };
            machine.handle_lock_reply(now, messages.ops.get(op).token(), reply);
        }
    }
}

fn hear<T>(answer: Answer, messages: &Messages, read: fn(&Reply) -> T) -> Result<T, StoreError> {
    let applied = match answer {
        Answer::Reply(id) => return Ok(read(messages.replies.get(id))),
        Answer::Refused => Applied::No,
        Answer::Unknown => Applied::Maybe,
    };
    // The operation is told to people; nothing is decided by it.
    Err(StoreError::new(ErrorKind::Timeout, applied, Operation::Claim, "model", name(0).as_str()))
}

fn exit(ending: Ending) -> Exit {
    let status = match ending {
        Ending::Success => ExitStatus::Code(0),
        Ending::Failure => ExitStatus::Code(1),
        Ending::Signal => ExitStatus::Signal(9),
    };
    Exit::of(status)
}
