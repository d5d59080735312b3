//! Which message is claimed, sent, and sent again, when. Pure: what happened comes in, what is to be done goes out, with the instant
//! at which to look again. It knows neither texts nor receivers.
//!
//! Of one sink one thing is done at a time: one message, or the many of a flood as one digest, is claimed, then sent, then recorded.
//! Every node does this of every message that it has learned of, and the store lets one of them through.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::clock::{Mono, Now, between};
use crate::message::{Delivery, MessageKey, Telling};
use crate::notify::entry::{Held, Pending, Settled, Stage};
use crate::notify::notice::{Notice, spread_of};
use crate::notify::sinks::Answer;
use crate::slot::Token;

/// Messages that a node keeps until they are told.
pub(super) const MOST_PENDING: usize = 10_000;
/// More than so many within [`WINDOW`] are one digest.
const FLOOD: usize = 5;
/// What counts as at once.
const WINDOW: Duration = Duration::from_secs(30);
/// Messages of one digest.
const MOST_IN_DIGEST: usize = 100;
/// A claim lasts so long: then another node may send, so that no message waits for a dead one for more than a minute.
pub const LEASE: Duration = Duration::from_secs(55);
/// A digest whose claims take longer is sent with what it has by then.
const LONGEST_CLAIMING: Duration = Duration::from_secs(15);
/// Whoever meets another node's flood leaves it to that node for so long.
const ASIDE: Duration = Duration::from_secs(10);
/// Between two tries, by how many there were.
const RETRIES: [Duration; 6] = [
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(120),
    Duration::from_secs(600),
    Duration::from_secs(1_800),
    Duration::from_secs(3_600),
];
/// A message that was not taken for so long is given up.
const LONGEST_TRYING: Duration = Duration::from_secs(86_400);
/// Between two questions to a store that does not answer: the first wait, doubled up to the last.
const STORE_WAITS: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Claim it.
    Tell(MessageKey, Token),
    /// Send these as one message; `digest`: as one that names several.
    Send { sink: String, notices: Vec<(MessageKey, Notice)>, digest: bool },
    /// Record what became of it.
    Record(MessageKey, Token, Delivery),
}

/// What the machine has to know of a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SinkRule {
    /// Several messages may be told as one.
    pub(super) digests: bool,
    /// Messages of one moment are spread over so long.
    pub(super) spread: Duration,
}

/// What happened to messages, for who counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tally {
    Sent,
    Retried,
    GaveUp,
    Dropped,
}

/// Something is being done for a sink.
#[derive(Debug)]
enum Busy {
    /// Claims of a batch are asked for, one after the other.
    Claiming { rest: VecDeque<MessageKey>, held: Vec<MessageKey>, digest: bool, since: Mono },
    /// They are being sent.
    Sending(Vec<MessageKey>),
}

#[derive(Debug)]
struct SinkState {
    rule: SinkRule,
    busy: Option<Busy>,
    /// No digest before that.
    next_digest: Mono,
    /// When messages were sent one by one.
    sent: VecDeque<Mono>,
}

/// The messages of one node. See the module.
#[derive(Debug)]
pub(super) struct Courier {
    sinks: BTreeMap<String, SinkState>,
    entries: BTreeMap<MessageKey, Pending>,
    settled: Settled,
    out: VecDeque<Step>,
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
        self.entries.insert(key, Pending::new(notice.clone(), now, due));
    }

    /// The node leaves: nothing waits for its turn any more.
    pub(super) fn hurry(&mut self, now: Now) {
        for entry in self.entries.values_mut().filter(|entry| entry.stage == Stage::Waiting && entry.tries == 0) {
            entry.due = entry.due.min(now.mono);
        }
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
    pub(super) fn poll_step(&mut self) -> Option<Step> {
        self.out.pop_front()
    }

    /// When to look again; none where nothing is waited for.
    pub(super) fn poll_timeout(&self) -> Option<Mono> {
        let idle = |sink: &str| self.sinks.get(sink).is_some_and(|state| state.busy.is_none());
        let due = |(key, entry): (&MessageKey, &Pending)| match entry.stage {
            Stage::Waiting => idle(key.sink()).then_some(entry.due),
            Stage::Unrecorded(_) => Some(entry.due),
            Stage::Claiming | Stage::Sending | Stage::Recording(_) => None,
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
        let old = |entry: &Pending| {
            entry.stage == Stage::Waiting && now.mono.since(entry.learned.mono) > LONGEST_TRYING + LEASE
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
            let Stage::Unrecorded(delivery) = &entry.stage else { continue };
            if entry.due <= now.mono {
                self.out.push_back(Step::Record(key.clone(), entry.token, delivery.clone()));
                entry.stage = Stage::Recording(delivery.clone());
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
                self.entries.iter().filter(|(key, entry)| key.sink() == sink && entry.stage == Stage::Waiting);
            of_sink.filter(|(_, entry)| entry.theirs.is_none_or(|until| until <= now.mono))
        };
        let is_due = |entry: &Pending| entry.due <= now.mono;
        let is_fresh = |entry: &Pending| entry.tries == 0 && now.mono.since(entry.learned.mono) < WINDOW;
        // What another node's flood has put off is due with the rest of it.
        let belongs = |entry: &Pending| entry.due <= now.mono + ASIDE || is_fresh(entry);
        let due = waiting().filter(|(_, entry)| is_due(entry));
        let Some((first, _)) = due.min_by_key(|(key, entry)| (entry.due, spread_of(key))) else { return };
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
                entry.stage = Stage::Claiming;
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
                (entry.due, entry.stage) = (entry.due.max(at), Stage::Waiting);
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
                self.out.push_back(Step::Tell(key, token));
            } else {
                let tries = self.entries.get(&key).map_or(1, |entry| entry.tries + 1);
                self.granted(now, &key, Held { tries, since: Duration::ZERO });
            }
            return;
        }
        let (left, held, digest) = (rest.drain(..).collect::<Vec<_>>(), std::mem::take(held), *digest);
        self.send(now, sink, held, digest);
        self.put_off(&left, now.mono);
    }

    fn send(&mut self, now: Now, sink: &str, held: Vec<MessageKey>, digest: bool) {
        let mut notices = Vec::new();
        for key in &held {
            if let Some(entry) = self.entries.get_mut(key) {
                entry.stage = Stage::Sending;
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
        self.out.push_back(Step::Send { sink: sink.to_owned(), notices, digest });
    }

    fn granted(&mut self, now: Now, key: &MessageKey, held: Held) {
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
                return self.granted(now, key, Held { tries, since });
            }
            Some(Telling::Told { .. } | Telling::GivenUp { .. }) => {
                self.entries.remove(key);
                self.settled.add(key.clone());
                self.forget_claim(key);
            }
            Some(Telling::Theirs { remaining, .. }) => self.aside(now, key, remaining),
            Some(Telling::Later { remaining }) => {
                if let Some(entry) = self.entries.get_mut(key) {
                    (entry.stage, entry.tries) = (Stage::Waiting, entry.tries.max(1));
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
            entry.stage = Stage::Waiting;
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
                let wait = STORE_WAITS.0.saturating_mul(1 << entry.unanswered.min(6).saturating_sub(1));
                (entry.stage, entry.due) = (Stage::Waiting, now.mono + wait.min(STORE_WAITS.1));
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
    pub(super) fn handle_answer(&mut self, now: Now, sink: &str, answer: &Answer) {
        let Some(state) = self.sinks.get_mut(sink) else { return };
        let Some(Busy::Sending(keys)) = state.busy.take() else { return };
        for key in keys {
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            let (delivery, tally) = delivery(entry, answer);
            self.tallies.push((sink.to_owned(), tally));
            if self.asks {
                self.out.push_back(Step::Record(key, entry.token, delivery.clone()));
                entry.stage = Stage::Recording(delivery);
            } else {
                self.recorded(now, &key, &delivery);
            }
        }
    }

    /// Whether the store has recorded it.
    pub(super) fn handle_recorded(&mut self, now: Now, key: &MessageKey, recorded: bool) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Stage::Recording(delivery) = entry.stage.clone() else { return };
        if recorded {
            self.recorded(now, key, &delivery);
        } else {
            entry.unanswered = entry.unanswered.saturating_add(1);
            let wait = STORE_WAITS.0.saturating_mul(1 << entry.unanswered.min(6).saturating_sub(1));
            (entry.stage, entry.due) = (Stage::Unrecorded(delivery), now.mono + wait.min(STORE_WAITS.1));
        }
    }

    fn recorded(&mut self, now: Now, key: &MessageKey, delivery: &Delivery) {
        if let (Delivery::Again { after, .. }, Some(entry)) = (delivery, self.entries.get_mut(key)) {
            (entry.stage, entry.due, entry.unanswered) = (Stage::Waiting, now.mono + *after, 0);
        } else {
            self.entries.remove(key);
            self.settled.add(key.clone());
        }
    }

    /// Whether nothing is left to do for now: no claim, no send and no record is on its way.
    pub(super) fn is_idle(&self) -> bool {
        let waits = |entry: &Pending| matches!(entry.stage, Stage::Waiting | Stage::Unrecorded(_));
        self.out.is_empty() && self.entries.values().all(waits)
    }
}

/// A part of the spread at least, so that a flood is known as one before its first message is sent.
fn spread(over: Duration, key: &MessageKey) -> Duration {
    let least = over / 4;
    let room = u64::try_from((over - least).as_millis()).unwrap_or(0);
    least + Duration::from_millis(if room == 0 { 0 } else { spread_of(key) % room })
}

fn delivery(entry: &Pending, answer: &Answer) -> (Delivery, Tally) {
    match answer {
        Answer::Taken(_) => (Delivery::Delivered, Tally::Sent),
        Answer::Refused(error) => (Delivery::GaveUp { error: error.clone() }, Tally::GaveUp),
        Answer::Again { error, .. } if entry.trying > LONGEST_TRYING => {
            (Delivery::GaveUp { error: format!("tried for 24 h; {error}") }, Tally::GaveUp)
        }
        Answer::Again { after, error } => {
            let made = usize::try_from(entry.tries.saturating_sub(1)).unwrap_or(usize::MAX);
            let usual = RETRIES.get(made).or(RETRIES.last()).copied().unwrap_or(LEASE);
            let after = after.map_or(usual, |wished| wished.max(Duration::from_secs(1)));
            (Delivery::Again { after, error: error.clone() }, Tally::Retried)
        }
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod machine_tests;
