//! The rules of messages that are told once: pure steps on what is known of one topic. They never say what a message contains or
//! where it goes.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::clock::{between, later};
use crate::job::NodeName;
use crate::message::{
    Delivery, DeliveryReply, LONGEST_REASON, MOST_MESSAGES, MessageKey, Telling, Topic, UntoldMessage, UntoldStage,
};
use crate::slot::Token;
use crate::store::state::Moment;
use crate::text::message;

/// How a message stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum MessageStage {
    Sending {
        node: NodeName,
        #[serde(rename = "until_ms", with = "chrono::serde::ts_milliseconds")]
        until: DateTime<Utc>,
    },
    Waiting {
        #[serde(rename = "until_ms", with = "chrono::serde::ts_milliseconds")]
        until: DateTime<Utc>,
    },
    Told,
    GivenUp,
}

impl MessageStage {
    /// What goes first where there are too many.
    const fn rank(&self) -> u8 {
        match self {
            Self::Told => 0,
            Self::GivenUp => 1,
            Self::Sending { .. } | Self::Waiting { .. } => 2,
        }
    }
}

/// One message as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredMessage {
    subject: String,
    sink: String,
    #[serde(flatten)]
    stage: MessageStage,
    /// Of the claim that was granted last, or of the one that told it.
    token: Token,
    tries: u32,
    #[serde(rename = "first_ms", with = "chrono::serde::ts_milliseconds")]
    first: DateTime<Utc>,
    /// The last change: what it is kept for counts from there.
    #[serde(rename = "changed_ms", with = "chrono::serde::ts_milliseconds")]
    changed: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl StoredMessage {
    fn is_of(&self, key: &MessageKey) -> bool {
        self.subject == key.subject() && self.sink == key.sink()
    }

    /// The same for people; none where it is told.
    fn untold(&self, topic: &Topic, now: DateTime<Utc>) -> Option<UntoldMessage> {
        let stage = match &self.stage {
            MessageStage::Told => return None,
            MessageStage::GivenUp => UntoldStage::GivenUp,
            MessageStage::Waiting { until } => UntoldStage::Waiting { remaining: between(now, *until) },
            MessageStage::Sending { node, until } => {
                UntoldStage::Sending { by: node.clone(), remaining: between(now, *until) }
            }
        };
        let key = MessageKey::new(topic.clone(), &self.subject, &self.sink).ok()?;
        let Self { tries, first, changed, error, .. } = self.clone();
        Some(UntoldMessage { key, stage, tries, first, changed, error })
    }
}

/// All that is known of one topic's messages, in the order of their first claims. This is the document that stores keep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct TopicState {
    messages: Vec<StoredMessage>,
}

impl TopicState {
    /// What counts of it at that instant: what was kept for its time is gone.
    pub(in crate::store) fn current(&self, at: Moment) -> Self {
        let kept = |message: &&StoredMessage| later(message.changed, at.retention) > at.now;
        Self { messages: self.messages.iter().filter(kept).cloned().collect() }
    }

    /// Until when anything of it counts.
    pub(in crate::store) fn needed_until(&self, retention: Duration) -> DateTime<Utc> {
        let last = self.messages.iter().map(|message| message.changed).max();
        last.map_or(DateTime::UNIX_EPOCH, |last| later(last, retention))
    }

    /// What was begun and is not told ([`crate::store::Store::untold`]).
    pub(in crate::store) fn untold(&self, topic: &Topic, at: Moment) -> Vec<UntoldMessage> {
        self.current(at).messages.iter().filter_map(|message| message.untold(topic, at.now)).collect()
    }

    /// Makes room: the oldest that were told go first, then the oldest that were given up, then the oldest.
    fn trim(&mut self) {
        while self.messages.len() > MOST_MESSAGES {
            let order = |(_, message): &(usize, &StoredMessage)| (message.stage.rank(), message.changed);
            let Some((oldest, _)) = self.messages.iter().enumerate().min_by_key(order) else { return };
            self.messages.remove(oldest);
        }
    }
}

/// All that a rule sees, and what it leaves to be written.
#[derive(Debug)]
pub(in crate::store) struct MessageStep {
    /// The store's clock.
    now: DateTime<Utc>,
    /// What counts of the topic at that instant, as it was read.
    read: TopicState,
    /// The same as the step leaves it.
    pub(in crate::store) state: TopicState,
}

impl MessageStep {
    pub(in crate::store) fn new(stored: &TopicState, at: Moment) -> Self {
        let read = stored.current(at);
        Self { now: at.now, state: read.clone(), read }
    }

    /// Whether there is something to be written.
    pub(in crate::store) fn is_changed(&self) -> bool {
        self.state != self.read
    }

    fn known(&mut self, key: &MessageKey) -> Option<&mut StoredMessage> {
        self.state.messages.iter_mut().find(|message| message.is_of(key))
    }

    fn add(&mut self, key: &MessageKey, token: Token, stage: MessageStage, error: Option<String>) {
        let (subject, sink, now) = (key.subject().to_owned(), key.sink().to_owned(), self.now);
        self.state.messages.push(StoredMessage {
            subject,
            sink,
            stage,
            token,
            tries: 1,
            first: now,
            changed: now,
            error,
        });
        self.state.trim();
    }

    /// Claims a message ([`crate::store::Store::tell`]).
    pub(in crate::store) fn tell(&mut self, key: &MessageKey, by: &NodeName, token: Token, lease: Duration) -> Telling {
        let (now, until) = (self.now, later(self.now, lease));
        let sending = |until| MessageStage::Sending { node: by.clone(), until };
        let Some(known) = self.known(key) else {
            self.add(key, token, sending(until), None);
            return Telling::Yours { tries: 1, first: now };
        };
        let own = known.token == token;
        match &known.stage {
            MessageStage::Told => return Telling::Told { at: known.changed },
            MessageStage::GivenUp => return Telling::GivenUp { at: known.changed },
            MessageStage::Waiting { until } if own || *until > now => {
                return Telling::Later { remaining: between(now, *until) };
            }
            // The same claim: it lasts for its lease from now on, never shorter.
            MessageStage::Sending { until: lapses, .. } if own => {
                let until = until.max(*lapses);
                known.stage = sending(until);
            }
            MessageStage::Sending { node, until: lapses } if *lapses > now => {
                return Telling::Theirs { by: node.clone(), remaining: between(now, *lapses) };
            }
            MessageStage::Sending { .. } | MessageStage::Waiting { .. } => {
                known.tries = known.tries.saturating_add(1);
                known.stage = sending(until);
            }
        }
        known.token = token;
        known.changed = now;
        Telling::Yours { tries: known.tries, first: known.first }
    }

    /// Records what became of a try ([`crate::store::Store::told`]).
    pub(in crate::store) fn told(&mut self, key: &MessageKey, token: Token, delivery: &Delivery) -> DeliveryReply {
        let now = self.now;
        let (stage, error) = match delivery {
            Delivery::Delivered => (MessageStage::Told, None),
            Delivery::Again { after, error } => (MessageStage::Waiting { until: later(now, *after) }, Some(error)),
            Delivery::GaveUp { error } => (MessageStage::GivenUp, Some(error)),
        };
        let error = error.map(|error: &String| message(error, LONGEST_REASON));
        let Some(known) = self.known(key) else {
            // The claim was lost with the store's data. What is known of it is this.
            self.add(key, token, stage, error);
            return DeliveryReply::Recorded;
        };
        let own = known.token == token;
        let changes = match known.stage {
            MessageStage::Told => false,
            // What was sent was sent, whoever has the claim by now.
            _ if stage == MessageStage::Told => true,
            MessageStage::Sending { .. } => own,
            MessageStage::Waiting { .. } | MessageStage::GivenUp => false,
        };
        if changes {
            (known.stage, known.error, known.token, known.changed) = (stage, error, token, now);
        }
        if changes || own { DeliveryReply::Recorded } else { DeliveryReply::Overtaken }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(60);
    const DAY: Duration = Duration::from_secs(86_400);

    /// One topic of a store, and its clock.
    #[derive(Debug)]
    struct Desk {
        state: TopicState,
        now: DateTime<Utc>,
    }

    impl Desk {
        fn new() -> Self {
            Self { state: TopicState::default(), now: "2026-11-21T14:00:00Z".parse().unwrap() }
        }

        fn at(&self) -> Moment {
            Moment { now: self.now, retention: DAY }
        }

        fn step<T>(&mut self, rule: impl FnOnce(&mut MessageStep) -> T) -> T {
            let mut step = MessageStep::new(&self.state, self.at());
            let answer = rule(&mut step);
            // What is kept is what can be read back.
            let text = serde_json::to_string(&step.state).unwrap();
            self.state = serde_json::from_str(&text).unwrap();
            assert_eq!(self.state, step.state, "{text}");
            answer
        }

        fn tell(&mut self, key: &MessageKey, token: u128) -> Telling {
            let by = NodeName::new(&format!("n{token}")).unwrap();
            self.step(|step| step.tell(key, &by, Token::from_bits(token), LEASE))
        }

        fn told(&mut self, key: &MessageKey, token: u128, delivery: &Delivery) -> DeliveryReply {
            self.step(|step| step.told(key, Token::from_bits(token), delivery))
        }

        fn untold(&self) -> Vec<UntoldMessage> {
            self.state.untold(&Topic::Cluster, self.at())
        }

        fn wait(&mut self, span: Duration) {
            self.now = later(self.now, span);
        }
    }

    fn key(subject: &str) -> MessageKey {
        MessageKey::new(Topic::Cluster, subject, "ops").unwrap()
    }

    fn again(after: Duration) -> Delivery {
        Delivery::Again { after, error: "answered 500".to_owned() }
    }

    fn is_yours(telling: &Telling, tries: u32) -> bool {
        matches!(telling, Telling::Yours { tries: made, .. } if *made == tries)
    }

    #[test]
    fn a_message_is_of_the_first_who_asks_until_the_claim_lapses() {
        let (mut desk, key) = (Desk::new(), key("x failed"));
        assert!(is_yours(&desk.tell(&key, 1), 1));
        desk.wait(LEASE / 2);
        let Telling::Theirs { by, remaining } = desk.tell(&key, 2) else { panic!("it is being sent") };
        assert_eq!((by.as_str(), remaining), ("n1", LEASE / 2));
        desk.wait(LEASE / 2);
        assert!(is_yours(&desk.tell(&key, 2), 2), "whoever had it may be dead");
        assert!(matches!(desk.tell(&key, 1), Telling::Theirs { .. }));
        assert!(is_yours(&desk.tell(&self::key("y failed"), 1), 1), "another message is another claim");
    }

    #[test]
    fn the_same_token_is_the_same_claim_also_once_it_has_lapsed() {
        let (mut desk, key) = (Desk::new(), key("x failed"));
        let first = desk.tell(&key, 1);
        desk.wait(LEASE / 2);
        assert_eq!(desk.tell(&key, 1), first);
        desk.wait(LEASE / 2);
        assert!(matches!(desk.tell(&key, 2), Telling::Theirs { .. }), "it lasts from its repetition on");
        desk.wait(LEASE);
        assert_eq!(desk.tell(&key, 1), first);
    }

    #[test]
    fn what_was_told_stays_told_whoever_says_what_later() {
        let (mut desk, key) = (Desk::new(), key("x failed"));
        desk.tell(&key, 1);
        assert_eq!(desk.told(&key, 1, &Delivery::Delivered), DeliveryReply::Recorded);
        let at = desk.now;
        desk.wait(LEASE * 2);
        assert_eq!(desk.told(&key, 1, &Delivery::Delivered), DeliveryReply::Recorded);
        assert_eq!(desk.told(&key, 2, &again(LEASE)), DeliveryReply::Overtaken);
        assert_eq!(desk.told(&key, 1, &again(LEASE)), DeliveryReply::Recorded);
        for token in [1, 2] {
            assert_eq!(desk.tell(&key, token), Telling::Told { at });
        }
        assert!(desk.untold().is_empty());
    }

    #[test]
    fn a_late_sender_who_was_overtaken_has_told_it_all_the_same_and_fails_for_nobody() {
        let (mut desk, key) = (Desk::new(), key("x failed"));
        desk.tell(&key, 1);
        desk.wait(LEASE);
        desk.tell(&key, 2);
        assert_eq!(desk.told(&key, 1, &again(LEASE)), DeliveryReply::Overtaken);
        assert_eq!(desk.told(&key, 1, &Delivery::GaveUp { error: String::new() }), DeliveryReply::Overtaken);
        assert!(matches!(desk.tell(&key, 3), Telling::Theirs { .. }));
        assert_eq!(desk.told(&key, 1, &Delivery::Delivered), DeliveryReply::Recorded);
        assert!(matches!(desk.tell(&key, 3), Telling::Told { .. }));
        assert_eq!(desk.told(&key, 2, &Delivery::Delivered), DeliveryReply::Overtaken, "it went out twice");
    }

    #[test]
    fn a_failed_try_is_not_repeated_before_its_time_and_a_token_has_one_try() {
        let (mut desk, key) = (Desk::new(), key("x failed"));
        desk.tell(&key, 1);
        assert_eq!(desk.told(&key, 1, &again(LEASE)), DeliveryReply::Recorded);
        desk.wait(LEASE / 2);
        assert_eq!(desk.told(&key, 1, &again(LEASE)), DeliveryReply::Recorded);
        assert_eq!(desk.tell(&key, 2), Telling::Later { remaining: LEASE / 2 }, "the wait is not begun anew");
        desk.wait(LEASE / 2);
        assert_eq!(desk.tell(&key, 1), Telling::Later { remaining: Duration::ZERO }, "a late copy claims nothing");
        assert!(is_yours(&desk.tell(&key, 2), 2));
        let untold = desk.untold();
        assert_eq!((untold[0].tries, untold[0].error.as_deref()), (2, Some("answered 500")));
    }

    #[test]
    fn what_was_given_up_stays_so_unless_it_was_sent_after_all() {
        let (mut desk, key) = (Desk::new(), key("x failed"));
        desk.tell(&key, 1);
        let error = "é\n".repeat(1_000);
        assert_eq!(desk.told(&key, 1, &Delivery::GaveUp { error }), DeliveryReply::Recorded);
        let at = desk.now;
        desk.wait(LEASE);
        assert_eq!(desk.tell(&key, 2), Telling::GivenUp { at });
        let untold = desk.untold();
        assert_eq!(untold[0].stage, UntoldStage::GivenUp);
        assert!(untold[0].error.as_ref().unwrap().len() < 1_000, "a reason is short");
        assert_eq!(desk.told(&key, 1, &Delivery::Delivered), DeliveryReply::Recorded);
        assert!(matches!(desk.tell(&key, 2), Telling::Told { .. }));
    }

    #[test]
    fn what_became_of_a_message_that_the_store_has_lost_is_recorded() {
        let (mut desk, key) = (Desk::new(), key("x failed"));
        assert_eq!(desk.told(&key, 1, &Delivery::Delivered), DeliveryReply::Recorded);
        assert!(matches!(desk.tell(&key, 2), Telling::Told { .. }));
    }

    #[test]
    fn a_message_is_kept_for_the_retention_after_its_last_change() {
        let (mut desk, key) = (Desk::new(), key("x failed"));
        desk.tell(&key, 1);
        desk.wait(LEASE);
        desk.told(&key, 1, &Delivery::Delivered);
        let needed = desk.state.needed_until(DAY);
        desk.wait(DAY - Duration::from_millis(1));
        assert!(needed > desk.now && matches!(desk.tell(&key, 2), Telling::Told { .. }));
        desk.wait(Duration::from_millis(1));
        assert!(needed == desk.now && is_yours(&desk.tell(&key, 2), 1));
    }

    #[test]
    fn of_too_many_the_oldest_that_were_told_go_first_and_none_that_is_due_before_them() {
        let mut desk = Desk::new();
        let name = |at: usize| key(&format!("{at} failed"));
        for at in 0..MOST_MESSAGES {
            desk.tell(&name(at), 1);
            desk.wait(Duration::from_millis(1));
        }
        desk.told(&name(7), 1, &Delivery::GaveUp { error: String::new() });
        desk.told(&name(9), 1, &Delivery::Delivered);
        desk.wait(Duration::from_millis(1));
        desk.told(&name(8), 1, &Delivery::Delivered);
        for (new, gone) in [(1_000, 9), (1_001, 8), (1_002, 7), (1_003, 0), (1_004, 1)] {
            desk.tell(&name(new), 1);
            desk.wait(Duration::from_millis(1));
            assert_eq!(desk.state.messages.len(), MOST_MESSAGES);
            assert!(desk.state.messages.iter().all(|message| !message.is_of(&name(gone))), "{gone} goes");
            assert!(desk.state.messages.iter().any(|message| message.is_of(&name(new))), "{new} stays");
        }
        let text = serde_json::to_string(&desk.state).unwrap();
        assert!(text.len() < 128 * 1_024, "{} bytes", text.len());
    }

    /// What happens next: time passes, a sender asks, sends and says so, dies, or its word is lost.
    #[derive(Clone, Copy, Debug)]
    enum Turn {
        Wait(u16),
        /// Asks; once more where the answer is lost.
        Ask {
            node: usize,
            is_lost: bool,
        },
        /// Sends, where the node was told to; what it says of it may not arrive, or arrive twice.
        Send {
            node: usize,
            arrives: u8,
            fails: bool,
        },
        Die {
            node: usize,
        },
    }

    fn turns() -> impl proptest::strategy::Strategy<Value = Vec<Turn>> {
        use proptest::prelude::*;
        let turn = prop_oneof![
            (0..90_u16).prop_map(Turn::Wait),
            (0..3_usize, any::<bool>()).prop_map(|(node, is_lost)| Turn::Ask { node, is_lost }),
            (0..3_usize, 0..3_u8, any::<bool>()).prop_map(|(node, arrives, fails)| Turn::Send { node, arrives, fails }),
            (0..3_usize).prop_map(|node| Turn::Die { node }),
        ];
        proptest::collection::vec(turn, 0..40)
    }

    /// Three nodes, each with the claim that it believes to have.
    #[derive(Debug)]
    struct Senders {
        desk: Desk,
        claims: [Option<(u128, DateTime<Utc>)>; 3],
        last_token: u128,
        sent: u32,
        /// What was said of something sent did not arrive in time, or its claim had lapsed when it was sent.
        excuses: u32,
    }

    impl Senders {
        fn ask(&mut self, key: &MessageKey, node: usize, is_lost: bool) {
            self.last_token += 1;
            let token = self.last_token;
            for _ in 0..=u8::from(is_lost) {
                let until = later(self.desk.now, LEASE);
                let telling = self.desk.tell(key, token);
                self.claims[node] = matches!(telling, Telling::Yours { .. }).then_some((token, until));
            }
        }

        /// A node sends only while it may trust its claim, as it trusts a lease.
        fn send(&mut self, key: &MessageKey, node: usize, arrives: u8, fails: bool) {
            let Some((token, _)) = self.claims[node].take().filter(|(_, until)| *until > self.desk.now) else { return };
            let delivery = if fails { again(LEASE) } else { Delivery::Delivered };
            self.sent += u32::from(!fails);
            self.excuses += u32::from(!fails && arrives == 0);
            for _ in 0..arrives {
                self.desk.told(key, token, &delivery);
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn a_message_is_told_and_twice_only_after_a_word_that_was_lost(turns in turns()) {
            let key = key("x failed");
            let mut senders =
                Senders { desk: Desk::new(), claims: [None; 3], last_token: 0, sent: 0, excuses: 0 };
            for turn in turns {
                match turn {
                    Turn::Wait(seconds) => senders.desk.wait(Duration::from_secs(seconds.into())),
                    Turn::Ask { node, is_lost } => senders.ask(&key, node, is_lost),
                    Turn::Send { node, arrives, fails } => senders.send(&key, node, arrives, fails),
                    Turn::Die { node } => senders.claims[node] = None,
                }
            }
            assert!(senders.sent <= 1 + senders.excuses, "{senders:?}");
            // Whatever came before: somebody who goes on asking gets it told.
            for _ in 0..3 {
                senders.desk.wait(LEASE * 2);
                senders.ask(&key, 0, false);
                senders.send(&key, 0, 1, false);
            }
            assert!((1..=1 + senders.excuses).contains(&senders.sent), "{senders:?}");
            assert!(senders.desk.untold().is_empty());
        }
    }
}
