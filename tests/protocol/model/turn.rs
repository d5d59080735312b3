//! One step of the world: what each happening does to the state. Which can happen is in `world`.

use cronward::reply::{Claim, Intervention};
use cronward::resource::{Acquired, LockRefusal, LockRenewal};
use cronward::slot::Fence;
use cronward::wake::WakeKind;

use super::judge::Fact;
use super::memo::Id;
use super::node::{Answer, Effect, Ending, Input, Step};
use super::rivals;
use super::setup::{Bug, MAX_ATTEMPTS, Pace, Tag, Tick};
use super::store::{Kind, Op, Reply, Verb};
use super::world::{Call, Command, Happening, Memory, Node, State, Stray, World, numbers};

/// One step in the making.
pub(crate) struct Turn<'a> {
    pub(crate) world: &'a World,
    pub(crate) state: &'a mut State,
}

impl Turn<'_> {
    pub(crate) fn take(&mut self, happening: Happening) {
        match happening {
            Happening::Tick => self.tick(),
            Happening::Timer(n) => self.tell(n, Input::Timer),
            Happening::LockTimer(n) => self.tell(n, Input::LockTimer),
            Happening::Arrive(n, lane) => self.arrive(n, lane, false),
            Happening::ArriveTwice(n, lane) => self.arrive(n, lane, true),
            Happening::Hear(n, lane) => self.hear(n, lane),
            Happening::GiveUp(n, lane) => self.give_up(n, lane),
            Happening::Refuse(n, lane) => self.refuse(n, lane),
            Happening::Stray(index) => {
                let stray = self.state.strays.remove(index);
                let reply = self.serve(stray.op);
                self.note_late(reply);
            }
            Happening::Exit(n, ending) => self.exit(n, ending),
            Happening::Crash(n) => self.crash(n),
            Happening::Restart(n) => {
                self.state.left.restarts -= 1;
                self.start(n);
            }
            Happening::Shutdown(n) => {
                self.state.left.shutdowns -= 1;
                self.tell(n, Input::Shutdown);
            }
            Happening::Wipe => self.wipe(),
            Happening::Close => self.close(),
            Happening::Stranger(stranger) => self.move_stranger(stranger),
            Happening::Operate(verb) => self.operate(verb),
            Happening::Pause => {
                self.state.left.pauses -= 1;
                self.serve_for_stranger(Op::Pause);
                self.state.judge.paused();
            }
            Happening::Resume => {
                self.serve_for_stranger(Op::Resume);
                let within = self.world.setup.begin < self.state.now;
                self.state.judge.resumed(within);
            }
        }
    }

    /// An operator's verb. One that changes nothing is none.
    fn operate(&mut self, verb: Verb) {
        let holder = self.world.holder(self.state).0.map(Tag::from);
        if self.serve_for_stranger(Op::Operate(verb)).intervention() == Intervention::Applied {
            self.state.left.verbs -= 1;
            self.state.judge.operated(verb, holder);
        }
    }

    fn node(&mut self, n: u8) -> &mut Node {
        &mut self.state.nodes[usize::from(n)]
    }

    pub(crate) fn memory<T>(&self, work: impl FnOnce(&mut Memory) -> T) -> T {
        work(&mut self.world.memory.lock().unwrap())
    }

    fn tick(&mut self) {
        let able = self.state.nodes.iter().any(|node| node.machine.is_some_and(|machine| machine.ended.is_none()));
        let busy = self.state.nodes.iter().any(|node| node.machine.is_some() && node.command != Command::None);
        let open = !self.state.judge.is_done()
            && self.state.judge.used() < MAX_ATTEMPTS
            && (self.world.setup.begin..self.world.setup.end).contains(&self.state.now);
        let counts = self.world.setup.pace == Pace::Prompt
            && able
            && open
            && !busy
            && !rivals::are_there(self.state)
            && !self.state.judge.is_paused();
        self.state.idle = if counts { self.state.idle + 1 } else { 0 };
        self.state.now += 1;
        let (ledger, now) = (self.state.ledger, self.state.now);
        self.state.ledger = self.memory(|memory| memory.ledgers.age(ledger, now));
        for n in numbers(self.state) {
            if let Some(machine) = self.node(n).machine {
                let aged = self.memory(|memory| memory.machines.age(&self.world.setup, machine.id, now));
                self.node(n).machine = Some(aged);
            }
        }
        self.state.judge.passed(now);
        self.state.strays.retain(|stray| now < stray.until);
        self.lapse_strangers();
    }

    /// A request is served; its reply is whoever's waits for it.
    fn serve(&mut self, op: Id) -> Id {
        let (ledger, now) = (self.state.ledger, self.state.now);
        let setup = &self.world.setup;
        let mut guard = self.world.memory.lock().unwrap();
        let memory = &mut *guard;
        let served = memory.ledgers.serve(ledger, op, now, &mut memory.messages);
        self.state.ledger = served.ledger;
        let messages = (memory.messages.ops.get(op), memory.messages.replies.get(served.reply));
        let State { judge, facts, idle, .. } = &mut *self.state;
        if messages.0.kind().is_of_slot() {
            judge.served((setup, now), messages, (&served.before, &served.after), facts);
        }
        let wakes = if setup.wakes { served.wakes.clone() } else { Vec::new() };
        let hints = if setup.wakes { served.hints.clone() } else { Vec::new() };
        if facts.has(Fact::Granted) {
            *idle = 0;
        }
        drop(guard);
        self.wake(&wakes);
        for token in hints {
            let Tag { node, start, .. } = Tag::from(token);
            if self.state.nodes.get(usize::from(node)).is_some_and(|node| node.starts == start + 1) {
                self.tell(node, Input::Hint(token));
            }
        }
        served.reply
    }

    pub(crate) fn serve_for_stranger(&mut self, op: Op) -> Reply {
        let op = self.memory(|memory| memory.messages.ops.id(format!("{op:?}"), op));
        let reply = self.serve(op);
        self.memory(|memory| memory.messages.replies.get(reply).clone())
    }

    /// What a request came to that nobody waited for.
    fn note_late(&mut self, reply: Id) {
        let refused = |reply: &Reply| matches!(reply, Reply::Acquired(Acquired::Refused(LockRefusal::Spent)));
        let refused = self.memory(|memory| refused(memory.messages.replies.get(reply)));
        self.state.facts.note(Fact::LateAndRefused, refused);
    }

    fn wake(&mut self, wakes: &[WakeKind]) {
        for what in wakes {
            for n in numbers(self.state) {
                self.tell(n, Input::Wake(*what));
            }
        }
    }

    fn arrive(&mut self, n: u8, lane: usize, twice: bool) {
        let Call::Sent(kind, op) = self.node(n).calls.remove(lane) else { return };
        if twice {
            self.state.left.copies -= 1;
            self.stray(op);
        }
        let reply = self.serve(op);
        self.call(n, Call::Answered(kind, op, reply));
    }

    fn hear(&mut self, n: u8, lane: usize) {
        let call = self.node(n).calls.remove(lane);
        let Call::Answered(kind, op, reply) = call else { return };
        self.answer(n, (kind, op), Answer::Reply(reply));
    }

    /// A node hears what became of a call.
    fn answer(&mut self, n: u8, (kind, op): (Kind, Id), answer: Answer) {
        let tag = self.memory(|memory| Tag::from(memory.messages.ops.get(op).token()));
        let (before, command) = (self.node(n).machine, self.node(n).command);
        let op = self.mixed_up((kind, op), n).unwrap_or(op);
        let answer = self.taken_for_hold(kind, answer);
        self.note_locks(n, answer);
        self.note_pause(n, answer);
        let strange = kind == Kind::Renew && self.node(n).holds != Some(tag);
        self.tell(n, Input::Answer(kind, op, answer));
        let moved = self.node(n).machine != before;
        self.state.facts.note(Fact::AnswerMixedUp, strange && moved);
        let node = self.node(n);
        let granted = node.machine.is_some_and(|machine| machine.queueing) || node.command != Command::None;
        if command == Command::None && granted && kind == Kind::Claim {
            node.holds = Some(tag);
        }
    }

    fn note_locks(&mut self, n: u8, answer: Answer) {
        let Answer::Reply(id) = answer else { return };
        let fact = self.memory(|memory| match memory.messages.replies.get(id) {
            Reply::Acquired(Acquired::Refused(LockRefusal::WaitsForItself)) => Some(Fact::OwnInTheWay),
            Reply::LockRenewal(LockRenewal::Lost { .. }) => Some(Fact::LocksLost),
            Reply::Acquired(Acquired::Waiting { .. }) => Some(Fact::Waited),
            _ => None,
        });
        if let Some(fact) = fact {
            self.state.facts.note(fact, true);
            let node = self.node(n);
            node.waited |= fact == Fact::Waited && node.machine.is_some_and(|machine| machine.queueing);
        }
    }

    fn note_pause(&mut self, n: u8, answer: Answer) {
        let Answer::Reply(id) = answer else { return };
        let paused = self.memory(|memory| matches!(memory.messages.replies.get(id), Reply::Pause(true)));
        let node = self.node(n);
        node.paused |= paused && node.machine.is_some_and(|machine| machine.queueing);
        let ends = node.paused;
        self.state.facts.note(Fact::PauseHeard, ends);
    }

    /// What a driver that takes anything for a grant of locks makes of an answer.
    fn taken_for_hold(&mut self, kind: Kind, answer: Answer) -> Answer {
        let (bug, world) = (self.world.setup.bug, self.world);
        if kind != Kind::Acquire {
            return answer;
        }
        let waits = |id| {
            matches!(world.memory.lock().unwrap().messages.replies.get(id), Reply::Acquired(Acquired::Waiting { .. }))
        };
        let mistaken = match answer {
            Answer::Reply(id) => bug == Some(Bug::WaitIsHold) && waits(id),
            Answer::Refused | Answer::Unknown => bug == Some(Bug::ErrorIsHold),
        };
        if !mistaken {
            return answer;
        }
        let places = vec![1; usize::from(world.setup.locks.map_or(0, |locks| locks.count))];
        let grant = Reply::Acquired(Acquired::Held { fence: Fence(1), at: world.setup.slot().start(), places });
        Answer::Reply(self.memory(|memory| memory.messages.replies.id(format!("{grant:?}"), grant)))
    }

    fn mixed_up(&mut self, (kind, op): (Kind, Id), n: u8) -> Option<Id> {
        let bug = self.world.setup.bug == Some(Bug::AnswersMixedUp) && kind == Kind::Renew;
        let other = |call: &Call| match *call {
            Call::Sent(Kind::Renew, other) | Call::Answered(Kind::Renew, other, _) if other != op => Some(other),
            Call::Sent(..) | Call::Answered(..) => None,
        };
        if bug { self.node(n).calls.iter().find_map(other) } else { None }
    }

    fn give_up(&mut self, n: u8, lane: usize) {
        self.state.left.losses -= 1;
        let call = self.node(n).calls.remove(lane);
        match call {
            Call::Sent(kind, op) => {
                self.stray(op);
                self.fail(n, (kind, op), Answer::Unknown);
            }
            Call::Answered(kind, op, _) => self.fail(n, (kind, op), Answer::Unknown),
        }
    }

    fn refuse(&mut self, n: u8, lane: usize) {
        self.state.left.losses -= 1;
        let call = self.node(n).calls.remove(lane);
        if let Call::Sent(kind, op) = call {
            self.fail(n, (kind, op), Answer::Refused);
        }
    }

    fn fail(&mut self, n: u8, (kind, op): (Kind, Id), answer: Answer) {
        let answer = if kind == Kind::Claim && self.world.setup.bug == Some(Bug::ErrorIsGrant) {
            Answer::Reply(self.memory(|memory| {
                let at = self.world.setup.slot().start();
                let grant = Reply::Claim(Claim::Claimed { attempt: 1, used: 1, at, revision: None });
                memory.messages.replies.id(format!("{grant:?}"), grant)
            }))
        } else {
            answer
        };
        let before = self.node(n).command;
        self.answer(n, (kind, op), answer);
        // I8: whatever the machine was told, no grant arrived.
        let started = before == Command::None && self.node(n).command != Command::None;
        self.state.facts.note(Fact::ErrorStarted, started);
    }

    fn call(&mut self, n: u8, call: Call) {
        self.node(n).calls.push(call);
        self.node(n).calls.sort_unstable();
    }

    fn stray(&mut self, op: Id) {
        let is_of_locks = self.memory(|memory| memory.messages.ops.get(op).kind().is_of_locks());
        let until = if is_of_locks { self.state.now + self.world.setup.ttl } else { Tick::MAX };
        self.state.strays.push(Stray { op, until });
        self.state.strays.sort_unstable();
    }

    fn exit(&mut self, n: u8, ending: Ending) {
        let success = ending == Ending::Success && self.node(n).command == Command::Runs;
        self.node(n).command = Command::None;
        if success {
            self.state.judge.succeeded();
        }
        self.tell(n, Input::Exit(ending));
    }

    /// The node dies and its command with it; what it has sent may still arrive.
    fn crash(&mut self, n: u8) {
        self.state.left.crashes -= 1;
        for call in std::mem::take(&mut self.node(n).calls) {
            if let Call::Sent(_, op) = call {
                self.stray(op);
            }
        }
        let starts = self.node(n).starts;
        *self.node(n) = Node::dead(starts);
    }

    pub(crate) fn start(&mut self, n: u8) {
        let (now, start) = (self.state.now, self.node(n).starts);
        self.node(n).starts += 1;
        let step =
            self.memory(|memory| memory.machines.start(&self.world.setup, (n, start, now), &mut memory.messages));
        self.follow(n, &step);
    }

    fn wipe(&mut self) {
        self.state.left.wipes -= 1;
        let now = self.state.now;
        self.state.ledger = self.memory(|memory| memory.ledgers.empty(now));
        self.state.judge.wiped();
    }

    fn close(&mut self) {
        let (ledger, now) = (self.state.ledger, self.state.now);
        let (ledger, verdict) = self.memory(|memory| memory.ledgers.close(ledger, now));
        self.state.ledger = ledger;
        let State { judge, facts, .. } = &mut *self.state;
        if let Some(verdict) = verdict {
            judge.closed(verdict, facts);
        }
    }

    /// A machine is told something, and what it answers is done.
    fn tell(&mut self, n: u8, input: Input) {
        let Some(machine) = self.node(n).machine else { return };
        let (now, command) = (self.state.now, self.node(n).command);
        let setup = &self.world.setup;
        let step =
            self.memory(|memory| memory.machines.step(setup, (n, machine.id), (input, now), &mut memory.messages));
        self.follow(n, &step);
        if command == Command::None && self.node(n).command != Command::None {
            self.started(input, self.state.nodes[usize::from(n)].holds);
        }
        if machine.holding && !step.machine.holding {
            self.settled(n);
        }
    }

    fn follow(&mut self, n: u8, step: &Step) {
        let node = self.node(n);
        node.machine = Some(step.machine);
        node.told |= step.alarm;
        self.state.facts.note(Fact::Restored, step.restored);
        let ended = step.machine.ended;
        self.state.facts.note(Fact::Exhausted, ended == Some(cronward::machine::End::Exhausted));
        for effect in &step.effects {
            match *effect {
                Effect::Send(kind, op) => self.call(n, Call::Sent(kind, op)),
                Effect::Start { attempt, fence } => self.run(n, attempt, fence),
                Effect::Terminate if self.node(n).command == Command::Runs => self.node(n).command = Command::Stopping,
                Effect::Kill if self.world.setup.bug == Some(Bug::KillIgnored) => {}
                Effect::Kill => self.node(n).command = Command::Killed,
                Effect::Terminate => {}
            }
        }
    }

    /// A command is started, at once.
    fn run(&mut self, n: u8, attempt: u32, fence: Option<u64>) {
        self.check_locks(fence);
        let paused = self.node(n).paused;
        self.state.facts.note(Fact::StartedPaused, paused);
        self.state.begun += u8::from(fence.is_some());
        let alive = |node: &Node| matches!(node.command, Command::Runs | Command::Stopping);
        let beside = self.state.nodes.iter().any(alive);
        // Whose lease an operator took before it heard of its grant may start later than who followed: it is the one to be told.
        let followed = self.state.judge.was_followed(attempt);
        for other in self.state.nodes.iter_mut().filter(|_| !followed) {
            other.overlapped |= alive(other);
        }
        let node = self.node(n);
        let waited = std::mem::take(&mut node.waited);
        (node.command, node.overlapped, node.told, node.fence) = (Command::Runs, followed && beside, false, fence);
        self.state.facts.note(Fact::StartedAfterWait, waited);
        let nodes: Vec<Node> = self.state.nodes.clone();
        let dead = |tag: Tag| {
            let owner = &nodes[usize::from(tag.node)];
            owner.machine.is_none() || owner.starts > tag.start + 1
        };
        self.state.facts.note(Fact::Retry, attempt > 1);
        self.state.facts.note(Fact::Takeover, attempt > 1 && self.state.judge.left_unsettled(dead));
        self.tell(n, Input::Started);
    }

    /// I8 and the trust window: only a grant starts a command, and only while its lease stands.
    fn started(&mut self, input: Input, held: Option<Tag>) {
        let grant = match input {
            Input::Answer(Kind::Claim, op, Answer::Reply(reply)) => self.memory(|memory| {
                let granted = matches!(memory.messages.replies.get(reply), Reply::Claim(Claim::Claimed { .. }));
                granted.then(|| Tag::from(memory.messages.ops.get(op).token()))
            }),
            // Its attempt has waited for its locks.
            Input::Answer(Kind::Acquire | Kind::RenewLock | Kind::Renew, _, Answer::Reply(_))
            | Input::Timer
            | Input::LockTimer
                if self.world.setup.locks.is_some() =>
            {
                held
            }
            _ => None,
        };
        let (now, kept) = (self.state.now, self.kept());
        let State { judge, facts, .. } = &mut *self.state;
        // A stale holder that succeeds has done the slot, whoever was granted it meanwhile.
        // Nor is a holder whose lease an operator took wrong to start: it has yet to be told.
        let gone = |tag| !judge.stands(tag, now) && !judge.is_done() && !judge.was_ended(tag);
        facts.note(Fact::ErrorStarted, grant.is_none());
        facts.note(Fact::StartedWithoutLease, kept && grant.is_some_and(gone));
    }

    /// Whether the store has kept what it acknowledged.
    pub(crate) fn kept(&self) -> bool {
        self.state.left.wipes == self.world.setup.faults.wipes
    }

    /// The store knows how a run ended. If another ran beside it, this was told.
    fn settled(&mut self, n: u8) {
        let node = self.node(n);
        let (overlapped, told) = (node.overlapped, node.told);
        let in_vain = std::mem::take(&mut node.waited);
        (node.holds, node.overlapped, node.told, node.fence, node.paused) = (None, false, false, None, false);
        self.state.facts.note(Fact::GivenBackUnstarted, in_vain);
        // A store that has forgotten the lease grants another, and both runs may settle before either renews.
        let kept = self.kept();
        self.state.facts.note(Fact::SilentOverlap, overlapped && !told && kept);
        self.state.facts.note(Fact::OverlapTold, overlapped && told);
    }
}
