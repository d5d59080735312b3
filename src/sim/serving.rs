//! The store's side of the network: requests that arrive, what is looked at as they are answered, and the hints that follow.

use std::time::Duration;

use crate::job::NodeName;
use crate::sim::backend::SlotId;
use crate::sim::faults::Fault;
use crate::sim::message::{Answer, Ask, NoAnswer, Process, Request};
use crate::sim::nature::Event;
use crate::sim::story::Story;
use crate::sim::world::World;
use crate::slot::{Slot, Token, Trigger};
use crate::store::ClaimRequest;

/// Requests between two looks at all slots; the slot that a request is about is looked at each time.
const COMPARED_EVERY: u64 = 100;

impl World {
    /// No slot is another than its shadow, also those that nobody asked for.
    fn compare_all(&mut self) {
        let (now, stories) = (self.nature.instant(), &self.nature.stories);
        let differs = |(id, story): (&SlotId, &Story)| {
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
        let slow = self.nature.dice.span(Duration::ZERO, self.slow);
        if matches!(request.ask, Ask::Heartbeat(_)) {
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
        if let Some(answer) = processed.answer {
            self.nature.reply(request, Ok(answer), slow);
        }
    }

    fn publish(&mut self, wake: &crate::store::Wake) {
        if self.nature.scenario.poll.is_some() {
            return;
        }
        for node in 0..self.hosts.len() {
            let calm = self.nature.is_calm();
            let lost = !calm && self.nature.dice.chance(self.nature.scenario.rates.hint_lost);
            let cut_off = self.nature.cut_off_until.get(node).is_some_and(|until| *until > self.nature.now);
            let Some(host) = self.hosts.get(node).filter(|host| host.daemon.is_some()) else { continue };
            let to = Process { node, start: host.start };
            if lost || cut_off || self.nature.is_deaf(node) {
                self.nature.strike(Fault::HintLost);
                self.nature.enter_node("hint_lost", node, self.nature.now);
                self.nature.trouble(node, self.nature.now);
                continue;
            }
            let delayed = if calm { 0 } else { self.nature.scenario.rates.delay };
            let way = self.nature.way((node, None), delayed, self.nature.scenario.rates.longest_delay);
            self.nature.queue.push(self.nature.now + way, Event::Hint { to, wake: Box::new(wake.clone()) });
        }
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
        Some(Answer::Heartbeat(reply)) => format!("now {:?}", reply.now),
        Some(Answer::Nodes(_, nodes)) => format!("{} nodes", nodes.len()),
        Some(Answer::Records(records)) => format!("{} records", records.len()),
        Some(Answer::Jobs(jobs)) => format!("{} jobs", jobs.len()),
        Some(answer) => format!("{answer:?}"),
        None => "nothing".to_owned(),
    }
}
