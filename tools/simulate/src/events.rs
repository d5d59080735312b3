//! What comes to a world from outside its nodes: requests that arrive at the store, with what is looked at as they are answered and
//! the hints that follow; and how faults that strike at a moment change it.

use std::time::Duration;

use cronward::job::NodeName;
use cronward::resource::LockHint;
use cronward::slot::{Slot, Token, Trigger};
use cronward::store::{ClaimRequest, Wake};

use crate::backend::SlotId;
use crate::engine::Time;
use crate::faults::Fault;
use crate::history::{SimulatedRun, SlotHistory};
use crate::message::{Answer, Ask, NoAnswer, Process, Request};
use crate::nature::Event;
use crate::shadow::Shadow;
use crate::weather::Weather;
use crate::world::{World, file};

/// Requests between two looks at all slots; the slot that a request is about is looked at each time.
const COMPARED_EVERY: u64 = 100;

impl World {
    /// No slot is another than its shadow, also those that nobody asked for.
    fn compare_all(&mut self) {
        let (now, stories) = (self.nature.instant(), &self.nature.stories);
        let differs = |(id, story): (&SlotId, &SlotHistory)| {
            let (check, text) = self.backend.compare(&story.slot, *id, now)?;
            Some((check, format!("{} was not asked for: {text}", story.slot)))
        };
        if let Some((check, text)) = stories.iter().find_map(differs) {
            self.nature.break_off(check, text);
        }
    }

    /// A request reaches the store.
    pub(super) fn arrival(&mut self, request: &Request) {
        let now = self.nature.instant();
        if let Some((until, silent)) = self.down.filter(|(until, _)| *until > self.nature.now) {
            self.nature.trouble(request.from.node, until);
            return if silent {
                self.nature.never_answered(request);
            } else {
                self.nature.reply(request, Err(NoAnswer::REFUSED), Duration::ZERO);
            };
        }
        if self.refuses_content(request) {
            return;
        }
        let slow = self.nature.dice.span(Duration::ZERO, self.slow);
        if matches!(request.ask, Ask::Heartbeat { .. }) {
            self.nature.heartbeats.insert((request.from.node, request.from.start));
        }
        let id = request.ask.slot().and_then(|slot| self.nature.id(slot));
        self.look_at_completion(request);
        let held = id.is_some_and(|id| self.holds_for(id, &request.ask));
        self.nature.summary.classes.requests += 1;
        let by = self.nature.scenario.nodes.get(request.from.node).cloned().unwrap_or_else(|| NodeName::nearest("n"));
        let processed = self.backend.process(request, id, now, &by);
        let from = request.from.node + 1;
        let op = request.ask.op();
        self.nature.note(|_| {
            let slot = request.ask.slot().map(Slot::to_string).unwrap_or_default();
            format!("store: {op} of n{from} {slot}: {}", shown(processed.answer.as_ref()))
        });
        if let Some((check, text)) = processed.broken {
            let slot = request.ask.slot().map(Slot::to_string).unwrap_or_default();
            self.nature.break_off(check, format!("{op} of {slot} by n{from}: {text}"));
        }
        if self.nature.summary.classes.requests.is_multiple_of(COMPARED_EVERY) {
            self.compare_all();
        }
        if let (Some(Answer::Settlement(_)), Some(id)) = (&processed.answer, id) {
            self.completed(id, held);
        }
        if let (Some(grant), Some(id), Ask::Claim(claim)) = (processed.grant, id, &request.ask) {
            self.granted(request.from, id, claim, grant);
        }
        if let Some(id) = id {
            self.note_holder(request, id, processed.answer.as_ref());
        }
        if let (Some(lapsed), Some(id), Some(slot)) = (processed.restored, id, request.ask.slot()) {
            self.look_at_lapse(id, slot, lapsed);
        }
        if let (Some(Answer::Closing(closing)), Some(slot)) = (&processed.answer, request.ask.slot()) {
            self.verdict(request.from, slot, closing);
        }
        for wake in processed.wakes {
            self.publish(&wake);
        }
        self.look_at_queues(request, processed.answer.as_ref());
        for (instance, token) in processed.lock_wakes {
            let to = Process::of(instance);
            if self.nature.scenario.poll.is_none() && self.hosts.get(to.node).is_some_and(|host| host.start == to.start)
            {
                self.hint(to.node, |to| Event::LockHint { to, hint: LockHint::Ready(token) });
            }
        }
        if let Some(answer) = processed.answer {
            self.nature.reply(request, Ok(answer), slow);
        }
    }

    /// One end of a run in four is refused with its output; of another one in four the output takes longer than the time-out, if it is
    /// long. It is so each time, also after all other faults.
    fn refuses_content(&mut self, request: &Request) -> bool {
        let Some((token, length)) = request.ask.output().filter(|_| self.nature.scenario.has_outputs()) else {
            return false;
        };
        match (token.bits() % 4, length) {
            (0, 1..) => self.nature.reply(request, Err(NoAnswer::CONTENT), Duration::ZERO),
            (1, 4_097..) => {
                self.nature.enter_message("loss", (request.from.node, request.ask.slot()), request.until);
                self.nature.never_answered(request);
            }
            _ => return false,
        }
        self.nature.strike(Fault::ContentRefused);
        true
    }

    fn publish(&mut self, wake: &cronward::store::Wake) {
        if self.nature.scenario.poll.is_some() {
            return;
        }
        for node in 0..self.hosts.len() {
            self.hint(node, |to| Event::Hint { to, wake: Box::new(wake.clone()) });
        }
    }

    /// A hint to one node; it may be lost, or late.
    fn hint(&mut self, node: usize, hint: impl FnOnce(Process) -> Event) {
        let calm = self.nature.is_calm();
        let lost = !calm && self.nature.dice.chance(self.nature.scenario.rates.hint_lost);
        let cut_off = self.nature.cut_off_until.get(node).is_some_and(|until| *until > self.nature.now);
        let Some(host) = self.hosts.get(node).filter(|host| host.daemon.is_some()) else { return };
        let to = Process { node, start: host.start };
        if lost || cut_off || self.nature.is_deaf(node) {
            self.nature.strike(Fault::HintLost);
            self.nature.enter_node("hint_lost", node, self.nature.now);
            return self.nature.trouble(node, self.nature.now);
        }
        let delayed = if calm { 0 } else { self.nature.scenario.rates.delay };
        let way = self.nature.way((node, None), delayed, self.nature.scenario.rates.longest_delay);
        self.nature.queue.push(self.nature.now + way, hint(to));
    }

    /// Another cluster, with another namespace of the same store, has a job of the same name.
    pub(super) fn stranger(&mut self, id: SlotId) {
        let Some(story) = self.nature.stories.get(&id) else { return };
        let policy = self.nature.scenario.jobs.get(id.0).map(|job| job.spec.policy.clone()).unwrap_or_default();
        let request = ClaimRequest {
            slot: story.slot.clone(),
            token: Token::from_bits(u128::MAX),
            node: NodeName::nearest("stranger"),
            lease_ttl: policy.lease_ttl,
            max_attempts: policy.max_attempts,
            trigger: Trigger::Schedule,
            exclusive: false,
            past: false,
            audit: None,
        };
        if let Some((check, text)) = self.backend.stranger(&request, id, self.nature.instant()) {
            self.nature.break_off(check, text);
        }
    }
}

fn shown(answer: Option<&Answer>) -> String {
    match answer {
        Some(Answer::Heartbeat(reply, _)) => format!("now {:?}", reply.now),
        Some(Answer::Nodes(_, nodes)) => format!("{} nodes", nodes.len()),
        Some(Answer::Records(records)) => format!("{} records", records.len()),
        Some(Answer::Jobs(jobs)) => format!("{} jobs", jobs.len()),
        Some(answer) => format!("{answer:?}"),
        None => "nothing".to_owned(),
    }
}

impl World {
    pub(super) fn strike(&mut self, weather: Weather) {
        self.nature.note(|_| format!("--- {weather:?}"));
        let now = self.nature.now;
        match weather {
            Weather::Crash(node, after) => {
                self.nature.strike(Fault::Crash);
                // Nobody kills what is gone, and the checker believes when it is told that somebody was.
                if self.hosts.get(node).is_some_and(|host| host.daemon.is_some()) {
                    self.nature.enter_node("kill", node, now);
                }
                self.die(node, Some(after));
            }
            Weather::Boot(node) => self.boot(node),
            Weather::Pause(node, span) => self.pause(node, now + span),
            Weather::CutOff(node, span) => {
                self.nature.strike(Fault::Partition);
                self.nature.enter_node("partition", node, now + span);
                self.nature.trouble(node, now + span);
                self.reconnect(Some(node), now + span);
                self.nature.cut_off_until.iter_mut().skip(node).take(1).for_each(|until| *until = now + span);
                if self.nature.scenario.short {
                    self.deafen(node, now + span);
                }
            }
            Weather::Deafen(node, span) => {
                self.nature.enter_node("partition", node, now + span);
                self.nature.trouble(node, now + span);
                self.reconnect(Some(node), now + span);
                self.deafen(node, now + span);
            }
            Weather::Down(span, silent) => {
                self.nature.strike(Fault::StoreDown);
                self.nature.enter("store_down", "store", now + span);
                self.down = Some((now + span, silent));
                self.nature.trouble_all(now + span);
                self.reconnect(None, now + span);
            }
            Weather::Slow(span) => {
                self.nature.strike(Fault::StoreSlow);
                self.nature.lift("store_slow");
                self.nature.enter("store_slow", "store", if span.is_zero() { now } else { Time::MAX });
                self.slow = span;
                self.nature.trouble_all(if span.is_zero() { now } else { Time::MAX / 2 });
                if span.is_zero() {
                    self.well_again();
                }
            }
            Weather::Wipe => self.lose(Fault::Wipe),
            Weather::Replicate => self.backend.replicate(),
            Weather::FailOver => self.lose(Fault::Failover),
            Weather::Jump(node, nanos) => {
                self.nature.strike(Fault::ClockJump);
                self.nature.enter_node("clock", node, now);
                self.nature.trouble(node, now + Duration::from_secs(2));
                let epoch = self.nature.scenario.epoch;
                for host in self.hosts.iter_mut().skip(node).take(1) {
                    host.clock.offset += nanos;
                    host.looked = host.clock.now(epoch, now).wall;
                }
            }
            Weather::Drain(node, drain, after) => {
                self.nature.strike(Fault::Drain);
                self.nature.enter_node("drain", node, now);
                self.nature.trouble(node, now);
                self.with_daemon(node, |daemon, desk| daemon.shut_down(desk, drain));
                self.nature.queue.push(now + drain + after, Event::Weather(Weather::Boot(node)));
            }
            Weather::Reload(node) => self.reload(node),
            Weather::AddJob(node) => self.add_job(node),
            Weather::Resync(node) => self.resync(node),
            Weather::Calm => self.calm(),
        }
    }

    /// No answer reaches a node, also none that is on its way.
    fn deafen(&mut self, node: usize, until: Time) {
        self.nature.deaf_until.iter_mut().skip(node).take(1).for_each(|deaf| *deaf = until);
    }

    /// A node's daemon dies, and its commands with it: the shim sees to that. It comes back after a while, if it is to.
    pub(super) fn die(&mut self, node: usize, after: Option<Duration>) {
        let now = self.nature.now;
        let Some(host) = self.hosts.get_mut(node) else { return };
        host.daemon = None;
        let process = Process { node, start: host.start };
        self.nature.note(|_| format!("n{} is gone", node + 1));
        self.nature.trouble(node, now);
        let soon = self.nature.dice.span(Duration::from_millis(1), Duration::from_millis(20));
        let alive = |run: &&mut SimulatedRun| run.by == process && run.ended.is_none();
        let runs = self.nature.runs.iter_mut().enumerate().rev();
        for (index, run) in runs.filter_map(|(index, run)| alive(&&mut *run).then_some((index, run))) {
            run.orphaned = true;
            run.plan += 1;
            self.nature.queue.push(now + soon, Event::Ends { run: index, plan: run.plan, code: Err(9) });
        }
        let back = after.unwrap_or_else(|| self.nature.scenario.lease_ttl / 2);
        self.nature.queue.push(now + back, Event::Weather(Weather::Boot(node)));
    }

    fn pause(&mut self, node: usize, until: Time) {
        self.nature.strike(Fault::Pause);
        self.nature.enter_node("stop", node, until);
        self.nature.trouble(node, until);
        let Some(host) = self.hosts.get_mut(node) else { return };
        host.stopped_until = host.stopped_until.max(Some(until));
        let process = Process { node, start: host.start };
        self.nature.runs.iter_mut().filter(|run| run.by == process && !run.settled).for_each(|run| run.paused = true);
    }

    /// The store loses data. What it lost is marked, for the judge.
    fn lose(&mut self, fault: Fault) {
        let now = self.nature.instant();
        self.nature.strike(fault);
        self.nature.enter(fault.as_str(), "store", self.nature.now);
        self.nature.losses.push(self.nature.now);
        let before = self.backend.kept.shadows.clone();
        if fault == Fault::Wipe {
            self.backend.wipe(now);
        } else {
            self.backend.fail_over(now);
        }
        for (id, shadow) in before {
            let Some(story) = self.nature.stories.get_mut(&id) else { continue };
            let after = self.backend.kept.shadows.get(&id);
            // A replica that still has the lease may not have the done marker that took its place.
            let stood = |shadow: &Shadow| [shadow.lease_at(now), shadow.done].map(|it| it.map(|it| it.token));
            let had = stood(&shadow);
            story.losses += u32::from(had != [None, None] && after.map(stood) != Some(had));
            story.done_lost |= shadow.done.is_some() && after.is_none_or(|after| after.done.is_none());
            story.lost |= after.is_none_or(|after| *after != shadow);
            let kept = |token: Token| after.is_some_and(|after| after.runs.iter().any(|run| run.token == token));
            let gone: Vec<Token> = shadow.runs.iter().map(|run| run.token).filter(|token| !kept(*token)).collect();
            forget(&mut self.nature.runs, &story.runs, &gone);
        }
        // What stands again may be what its holder has given back.
        self.holders.clear();
        self.nature.trouble_all(self.nature.now);
        self.reconnect(None, self.nature.now);
    }

    /// A connection was lost; some time after it is back each node hears that hints may have been lost.
    fn reconnect(&mut self, node: Option<usize>, at: Time) {
        let soon = self.nature.dice.span(Duration::from_millis(5), Duration::from_millis(500));
        self.nature.queue.push(at + soon, Event::Weather(Weather::Resync(node)));
    }

    fn resync(&mut self, only: Option<usize>) {
        for (node, host) in self.hosts.iter().enumerate().filter(|(node, _)| only.is_none_or(|only| only == *node)) {
            let to = Process { node, start: host.start };
            self.nature.queue.push(self.nature.now, Event::Hint { to, wake: Box::new(Wake::Resync) });
            if self.nature.scenario.has_locks() {
                self.nature.queue.push(self.nature.now, Event::LockHint { to, hint: LockHint::Resync });
            }
        }
    }

    fn reload(&mut self, node: usize) {
        self.nature.strike(Fault::Reload);
        self.nature.enter_node("reload", node, self.nature.now);
        let Some(host) = self.hosts.get_mut(node) else { return };
        host.version += 1;
        host.looked = host.clock.now(self.nature.scenario.epoch, self.nature.now).wall;
        let version = host.version;
        let specs = file(&self.nature.scenario, self.nature.now, node, version);
        // A job that a node did not have before is one that it could not run before.
        let gained =
            host.daemon.as_ref().is_some_and(|daemon| specs.iter().any(|spec| daemon.job(&spec.name).is_none()));
        if gained {
            self.nature.trouble(node, self.nature.now);
        }
        self.with_daemon(node, |daemon, desk| daemon.reload(desk, specs));
    }

    /// A node reads its file again, which has one job more.
    fn add_job(&mut self, node: usize) {
        self.nature.enter_node("reload", node, self.nature.now);
        self.nature.trouble(node, self.nature.now);
        let Some(version) = self.hosts.get(node).map(|host| host.version) else { return };
        let specs = file(&self.nature.scenario, self.nature.now, node, version);
        self.with_daemon(node, |daemon, desk| daemon.reload(desk, specs));
    }

    /// The store answers in time again; what else keeps a node from its work still does.
    fn well_again(&mut self) {
        let soon = self.nature.now + self.nature.scenario.network.timeout;
        let down = self.down.map_or(Time::ZERO, |(until, _)| until);
        let cut_off = self.nature.cut_off_until.iter().zip(&self.nature.deaf_until).map(|(cut, deaf)| cut.max(deaf));
        for ((since, host), cut_off) in self.nature.good_since.iter_mut().zip(&self.hosts).zip(cut_off) {
            *since = soon.max(down).max(*cut_off).max(host.stopped_until.unwrap_or_default());
        }
    }

    fn calm(&mut self) {
        let now = self.nature.now;
        self.nature.lift("store_down");
        self.nature.lift("store_slow");
        self.nature.lift("partition");
        self.down = None;
        self.slow = Duration::ZERO;
        self.nature.cut_off_until.iter_mut().chain(&mut self.nature.deaf_until).for_each(|until| *until = now);
        self.well_again();
        for node in 0..self.hosts.len() {
            self.boot(node);
        }
    }
}

/// The store has lost the records of these `gone`: what ran before them and is not settled yet will not hear of them.
fn forget(all: &mut [SimulatedRun], of_slot: &[usize], gone: &[Token]) {
    let token = |index: &usize| all.get(*index).map(|run| run.token).filter(|token| gone.contains(token));
    let gone: Vec<(usize, Token)> = of_slot.iter().filter_map(|index| Some((*index, token(index)?))).collect();
    for earlier in of_slot {
        if let Some(run) = all.get_mut(*earlier).filter(|run| !run.settled) {
            run.unnameable.extend(gone.iter().filter(|(later, _)| later > earlier).map(|(_, token)| *token));
        }
    }
}
