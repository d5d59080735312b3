//! Which message is claimed, sent, and sent again, when. Pure: what happened comes in, what is to be done goes out, with the instant
//! at which to look again. It knows neither texts nor receivers.
//!
//! Of one sink one thing is done at a time: one message, or the many of a flood as one digest, is claimed, then sent, then recorded.
//! Every node does this of every message that it has learned of, and the store lets one of them through.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::clock::{Mono, Now, between};
use crate::message::{Delivery, MessageKey, Telling};
use crate::notify::entry::{Busy, ClaimState, CourierStep, MessageStage, PendingMessage, Settled, SinkRule, SinkState};
use crate::notify::notice::{Notice, spread_of};
use crate::notify::pace::{LEASE, LONGEST_TRYING, Tally, delivery, spread, store_wait};
use crate::notify::sinks::Receipt;
use crate::slot::Token;

/// Messages that a node keeps until they are told.
pub(super) const MOST_PENDING: usize = 10_000;
/// More than so many within [`WINDOW`] are one digest.
const FLOOD: usize = 5;
/// What counts as at once.
const WINDOW: Duration = Duration::from_secs(30);
/// Messages of one digest.
const MOST_IN_DIGEST: usize = 100;
/// A digest whose claims take longer is sent with what it has by then.
const LONGEST_CLAIMING: Duration = Duration::from_secs(15);
/// Whoever meets another node's flood leaves it to that node for so long.
const ASIDE: Duration = Duration::from_secs(10);

/// The messages of one node. See the module.
#[derive(Debug)]
pub(super) struct Courier {
    sinks: BTreeMap<String, SinkState>,
    entries: BTreeMap<MessageKey, PendingMessage>,
    settled: Settled,
    out: VecDeque<CourierStep>,
    tallies: Vec<(String, Tally)>,
    /// The store keeps which messages were told; else this node sends its own.
    asks: bool,
    /// What tokens are made of.
    next_token: Token,
}

impl Courier {
    /// Of no sink yet. `first_token` is random.
    pub(super) const fn new(asks: bool, first_token: Token) -> Self {
        Self {
            sinks: BTreeMap::new(),
            entries: BTreeMap::new(),
            settled: Settled::new(),
            out: VecDeque::new(),
            tallies: Vec::new(),
            asks,
            next_token: first_token,
        }
    }

    /// Takes these sinks. What waited for one that is gone is dropped.
    pub(super) fn set_sinks(&mut self, rules: &BTreeMap<String, SinkRule>, now: Now) {
        self.sinks.retain(|name, _| rules.contains_key(name));
        for (name, rule) in rules {
            let new = || SinkState { rule: *rule, busy: None, next_digest: now.mono, sent: VecDeque::new() };
            self.sinks.entry(name.clone()).or_insert_with(new).rule = *rule;
        }
        let gone: Vec<MessageKey> =
            self.entries.keys().filter(|key| !rules.contains_key(key.sink())).cloned().collect();
        for key in gone {
            self.entries.remove(&key);
            self.tallies.push((key.sink().to_owned(), Tally::Dropped));
        }
    }

    /// Learns of something that this sink is to be told.
    pub(super) fn learn(&mut self, now: Now, notice: &Notice, sink: &str) {
        let Some(rule) = self.sinks.get(sink).map(|state| state.rule) else { return };
        let Some(key) = notice.key(sink).filter(|key| !self.entries.contains_key(key) && !self.settled.has(key)) else {
            return;
        };
        if self.entries.len() >= MOST_PENDING {
            self.tallies.push((sink.to_owned(), Tally::Dropped));
            return;
        }
        let due = now.mono + spread(rule.spread, &key);
        self.entries.insert(key, PendingMessage::new(notice.clone(), now, due));
    }

    /// The node leaves: nothing waits for its turn any more.
    pub(super) fn hurry(&mut self, now: Now) {
        let is_own = |entry: &&mut PendingMessage| {
            entry.stage == MessageStage::Waiting
                && entry.tries == 0
                && entry.theirs.is_none_or(|until| until <= now.mono)
        };
        self.entries.values_mut().filter(is_own).for_each(|entry| entry.due = entry.due.min(now.mono));
        self.sinks.values_mut().for_each(|sink| sink.next_digest = now.mono);
    }

    /// What waits, by sink: how many, and since when the oldest does.
    pub(super) fn pending(&self) -> BTreeMap<String, (usize, Mono)> {
        let mut pending: BTreeMap<String, (usize, Mono)> = BTreeMap::new();
        for (key, entry) in &self.entries {
            let (count, oldest) = pending.entry(key.sink().to_owned()).or_insert((0, entry.learned.mono));
            (*count, *oldest) = (*count + 1, (*oldest).min(entry.learned.mono));
        }
        pending
    }

    /// What is to be counted since the last call.
    pub(super) fn take_tallies(&mut self) -> Vec<(String, Tally)> {
        std::mem::take(&mut self.tallies)
    }

    /// What is to be done next.
    pub(super) fn poll_step(&mut self) -> Option<CourierStep> {
        self.out.pop_front()
    }

    /// When to look again; none where nothing is waited for.
    pub(super) fn poll_timeout(&self) -> Option<Mono> {
        let idle = |sink: &str| self.sinks.get(sink).is_some_and(|state| state.busy.is_none());
        let due = |(key, entry): (&MessageKey, &PendingMessage)| match entry.stage {
            MessageStage::Waiting => idle(key.sink()).then_some(entry.due),
            MessageStage::Unrecorded(_) => Some(entry.due),
            MessageStage::Claiming | MessageStage::Sending | MessageStage::Recording(_) => None,
        };
        self.entries.iter().filter_map(due).min()
    }

    /// Looks at what is due.
    pub(super) fn handle_timeout(&mut self, now: Now) {
        self.give_up_the_old(now);
        self.record_again(now);
        let idle: Vec<String> =
            self.sinks.iter().filter(|(_, state)| state.busy.is_none()).map(|(name, _)| name.clone()).collect();
        idle.iter().for_each(|sink| self.begin(now, sink));
    }

    /// The store was away for all of a message's time: nobody wants to read it any more.
    fn give_up_the_old(&mut self, now: Now) {
        let old = |entry: &PendingMessage| {
            entry.stage == MessageStage::Waiting && now.mono.since(entry.learned.mono) > LONGEST_TRYING + LEASE
        };
        let keys: Vec<MessageKey> =
            self.entries.iter().filter(|(_, entry)| old(entry)).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.entries.remove(&key);
            self.tallies.push((key.sink().to_owned(), Tally::GaveUp));
        }
    }

    fn record_again(&mut self, now: Now) {
        for (key, entry) in &mut self.entries {
            let MessageStage::Unrecorded(delivery) = &entry.stage else { continue };
            if entry.due <= now.mono {
                self.out.push_back(CourierStep::Record(key.clone(), entry.token, delivery.clone()));
                entry.stage = MessageStage::Recording(delivery.clone());
            }
        }
    }

    /// Begins with what is due for a sink, if anything is.
    fn begin(&mut self, now: Now, sink: &str) {
        let Some(state) = self.sinks.get_mut(sink) else { return };
        while state.sent.front().is_some_and(|at| now.mono.since(*at) >= WINDOW) {
            state.sent.pop_front();
        }
        let waiting = || {
            let of_sink =
                self.entries.iter().filter(|(key, entry)| key.sink() == sink && entry.stage == MessageStage::Waiting);
            of_sink.filter(|(_, entry)| entry.theirs.is_none_or(|until| until <= now.mono))
        };
        let is_due = |entry: &PendingMessage| entry.due <= now.mono;
        let is_fresh = |entry: &PendingMessage| entry.tries == 0 && now.mono.since(entry.learned.mono) < WINDOW;
        // What another node's flood has put off is due with the rest of it.
        let belongs = |entry: &PendingMessage| entry.due <= now.mono + ASIDE || is_fresh(entry);
        let due = waiting().filter(|(_, entry)| is_due(entry));
        let Some((first, _)) = due.min_by_key(|(key, entry)| (entry.due, entry.notice.step(), spread_of(key))) else {
            return;
        };
        let together = waiting().filter(|(_, entry)| belongs(entry)).count();
        let floods = state.rule.digests && together + state.sent.len() > FLOOD;
        let mut batch: Vec<MessageKey> = if floods {
            waiting().filter(|(_, entry)| belongs(entry)).map(|(key, _)| key.clone()).collect()
        } else {
            vec![first.clone()]
        };
        if floods && now.mono < state.next_digest {
            let at = state.next_digest;
            self.put_off(&batch, at);
            return;
        }
        // The same order on every node: whoever is granted the first one sends them all.
        batch.sort_by_key(spread_of);
        batch.truncate(MOST_IN_DIGEST);
        for key in &batch {
            if let Some(entry) = self.entries.get_mut(key) {
                entry.stage = MessageStage::Claiming;
            }
        }
        if let Some(state) = self.sinks.get_mut(sink) {
            let rest = batch.into();
            state.busy = Some(Busy::Claiming { rest, held: Vec::new(), digest: floods, since: now.mono });
        }
        self.claim_next(now, sink);
    }

    fn put_off(&mut self, keys: &[MessageKey], at: Mono) {
        for key in keys {
            if let Some(entry) = self.entries.get_mut(key) {
                (entry.due, entry.stage) = (entry.due.max(at), MessageStage::Waiting);
            }
        }
    }

    fn token(&mut self) -> Token {
        let token = self.next_token;
        self.next_token = token.next();
        token
    }

    /// Asks for the next claim of the batch; sends when all were asked for.
    fn claim_next(&mut self, now: Now, sink: &str) {
        let token = self.token();
        let Some(state) = self.sinks.get_mut(sink) else { return };
        let Some(Busy::Claiming { rest, held, digest, since }) = &mut state.busy else { return };
        let is_late = now.mono.since(*since) > LONGEST_CLAIMING;
        if let Some(key) = rest.front().filter(|_| !is_late || held.is_empty()).cloned() {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.token = token;
            }
            if self.asks {
                self.out.push_back(CourierStep::Tell(key, token));
            } else {
                let tries = self.entries.get(&key).map_or(1, |entry| entry.tries + 1);
                self.granted(now, &key, ClaimState { tries, since: Duration::ZERO });
            }
            return;
        }
        let (left, held, digest) = (rest.drain(..).collect::<Vec<_>>(), std::mem::take(held), *digest);
        self.send(now, sink, held, digest);
        self.put_off(&left, now.mono);
    }

    fn send(&mut self, now: Now, sink: &str, mut held: Vec<MessageKey>, digest: bool) {
        // As this node learned of it; what it learned of in one look, as it happened.
        held.sort_by_cached_key(|key| {
            self.entries.get(key).map(|entry| {
                let happened = entry.notice.happened().unwrap_or(entry.learned.wall);
                (entry.learned.mono, happened, entry.notice.step())
            })
        });
        let mut notices = Vec::new();
        for key in &held {
            if let Some(entry) = self.entries.get_mut(key) {
                entry.stage = MessageStage::Sending;
                notices.push((key.clone(), entry.notice.clone()));
            }
        }
        let Some(state) = self.sinks.get_mut(sink) else { return };
        if notices.is_empty() {
            state.busy = None;
            return;
        }
        let digest = digest && notices.len() > 1;
        if digest {
            state.next_digest = now.mono + WINDOW;
        } else {
            state.sent.push_back(now.mono);
        }
        state.busy = Some(Busy::Sending(held));
        self.out.push_back(CourierStep::Send { sink: sink.to_owned(), notices, digest });
    }

    fn granted(&mut self, now: Now, key: &MessageKey, held: ClaimState) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.tries = held.tries;
            entry.trying = held.since;
        }
        if let Some(Busy::Claiming { rest, held, .. }) =
            self.sinks.get_mut(key.sink()).and_then(|state| state.busy.as_mut())
        {
            rest.retain(|other| other != key);
            held.push(key.clone());
        }
        self.claim_next(now, key.sink());
    }

    /// The store's answer to a claim; none where it did not answer.
    pub(super) fn handle_telling(&mut self, now: Now, key: &MessageKey, telling: Option<Telling>) {
        match telling {
            Some(Telling::Yours { tries, first }) => {
                let since = between(first, now.wall);
                return self.granted(now, key, ClaimState { tries, since });
            }
            Some(Telling::Told { .. } | Telling::GivenUp { .. }) => {
                self.entries.remove(key);
                self.settled.add(key.clone());
                self.forget_claim(key);
            }
            Some(Telling::Theirs { remaining, .. }) => self.aside(now, key, remaining),
            Some(Telling::Later { remaining }) => {
                if let Some(entry) = self.entries.get_mut(key) {
                    (entry.stage, entry.tries) = (MessageStage::Waiting, entry.tries.max(1));
                    entry.due = now.mono + remaining.max(Duration::from_secs(1));
                }
                let others = self.forget_claim(key);
                self.put_off(&others, now.mono + ASIDE);
            }
            None => self.unanswered(now, key),
        }
        self.claim_next(now, key.sink());
    }

    /// Another node sends it: it is looked at again when that one may have died. Where it is the first of a flood, that node is about
    /// to claim the others too.
    fn aside(&mut self, now: Now, key: &MessageKey, remaining: Duration) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.stage = MessageStage::Waiting;
            entry.due = now.mono + remaining + Duration::from_secs(1);
            entry.theirs = Some(entry.due);
        }
        let others = self.forget_claim(key);
        self.put_off(&others, now.mono + ASIDE);
    }

    /// The store is away: all of the batch wait, and none is lost.
    fn unanswered(&mut self, now: Now, key: &MessageKey) {
        let mut others = self.forget_claim(key);
        others.push(key.clone());
        for key in others {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.unanswered = entry.unanswered.saturating_add(1);
                (entry.stage, entry.due) = (MessageStage::Waiting, now.mono + store_wait(entry.unanswered));
            }
        }
    }

    /// Takes it out of the batch. The answer: the rest of the batch, taken out as well where none of it is held yet and the answer
    /// is likely to be the same.
    fn forget_claim(&mut self, key: &MessageKey) -> Vec<MessageKey> {
        let Some(state) = self.sinks.get_mut(key.sink()) else { return Vec::new() };
        let Some(Busy::Claiming { rest, held, .. }) = &mut state.busy else { return Vec::new() };
        rest.retain(|other| other != key);
        let is_told = !self.entries.contains_key(key);
        if held.is_empty() && !is_told { rest.drain(..).collect() } else { Vec::new() }
    }

    /// What became of what was sent to a sink.
    pub(super) fn handle_answer(&mut self, now: Now, sink: &str, answer: &Receipt) {
        let Some(state) = self.sinks.get_mut(sink) else { return };
        let Some(Busy::Sending(keys)) = state.busy.take() else { return };
        for key in keys {
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            let (delivery, tally) = delivery(entry, answer);
            self.tallies.push((sink.to_owned(), tally));
            if self.asks {
                self.out.push_back(CourierStep::Record(key, entry.token, delivery.clone()));
                entry.stage = MessageStage::Recording(delivery);
            } else {
                self.recorded(now, &key, &delivery);
            }
        }
    }

    /// Whether the store has recorded it.
    pub(super) fn handle_recorded(&mut self, now: Now, key: &MessageKey, recorded: bool) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let MessageStage::Recording(delivery) = entry.stage.clone() else { return };
        if recorded {
            self.recorded(now, key, &delivery);
        } else {
            entry.unanswered = entry.unanswered.saturating_add(1);
            (entry.stage, entry.due) = (MessageStage::Unrecorded(delivery), now.mono + store_wait(entry.unanswered));
        }
    }

    fn recorded(&mut self, now: Now, key: &MessageKey, delivery: &Delivery) {
        if let (Delivery::Again { after, .. }, Some(entry)) = (delivery, self.entries.get_mut(key)) {
            (entry.stage, entry.due, entry.unanswered) = (MessageStage::Waiting, now.mono + *after, 0);
        } else {
            self.entries.remove(key);
            self.settled.add(key.clone());
        }
    }

    /// Whether nothing is left to do for now: no claim, no send and no record is on its way.
    pub(super) fn is_idle(&self) -> bool {
        let waits = |entry: &PendingMessage| matches!(entry.stage, MessageStage::Waiting | MessageStage::Unrecorded(_));
        self.out.is_empty() && self.entries.values().all(waits)
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod machine_tests;
