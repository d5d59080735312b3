//! One message on its way, those that have arrived, and what is being done for a sink. Pure.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::clock::{Mono, Now};
use crate::message::{Delivery, MessageKey};
use crate::notify::notice::Notice;
use crate::slot::Token;

/// Messages that are known to be told: one that is learned of once more asks the store nothing.
const REMEMBERED: usize = 10_000;

/// How a message stands on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MessageStage {
    /// Until it is due.
    Waiting,
    /// A claim of its batch is on its way.
    Claiming,
    /// It is being sent.
    Sending,
    /// What became of it is on its way to the store.
    Recording(Delivery),
    /// The store did not take that.
    Unrecorded(Delivery),
}

/// One message on its way.
#[derive(Clone, Debug)]
pub(super) struct PendingMessage {
    pub(super) notice: Notice,
    pub(super) stage: MessageStage,
    pub(super) learned: Now,
    pub(super) due: Mono,
    /// Another node had it, until then.
    pub(super) theirs: Option<Mono>,
    /// Of its last claim.
    pub(super) token: Token,
    /// Tries of all nodes, as far as this one knows.
    pub(super) tries: u32,
    /// Since its first claim, at the last.
    pub(super) trying: Duration,
    /// Questions to the store in a row that went without an answer.
    pub(super) unanswered: u32,
}

impl PendingMessage {
    pub(super) const fn new(notice: Notice, learned: Now, due: Mono) -> Self {
        let (theirs, token) = (None, Token::from_bits(0));
        Self {
            notice,
            stage: MessageStage::Waiting,
            learned,
            due,
            theirs,
            token,
            tries: 0,
            trying: Duration::ZERO,
            unanswered: 0,
        }
    }
}

/// What a claim says of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClaimState {
    /// Tries so far, this one included.
    pub(super) tries: u32,
    /// Since the first.
    pub(super) since: Duration,
}

/// The messages that were told last.
#[derive(Debug)]
pub(super) struct Settled {
    order: VecDeque<MessageKey>,
    keys: BTreeSet<MessageKey>,
}

impl Settled {
    pub(super) const fn new() -> Self {
        Self { order: VecDeque::new(), keys: BTreeSet::new() }
    }

    pub(super) fn has(&self, key: &MessageKey) -> bool {
        self.keys.contains(key)
    }

    pub(super) fn add(&mut self, key: MessageKey) {
        if !self.keys.insert(key.clone()) {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
        }
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CourierStep {
    /// Claim it.
    Tell(MessageKey, Token),
    /// Send these as one message; `digest`: as one that names several.
    Send { sink: String, notices: Vec<(MessageKey, Notice)>, digest: bool },
    /// Record what became of it.
    Record(MessageKey, Token, Delivery),
}

/// Something is being done for a sink.
#[derive(Debug)]
pub(super) enum Busy {
    /// Claims of a batch are asked for, one after the other.
    Claiming { rest: VecDeque<MessageKey>, held: Vec<MessageKey>, digest: bool, since: Mono },
    /// They are being sent.
    Sending(Vec<MessageKey>),
}

/// One sink, as the machine sees it.
#[derive(Debug)]
pub(super) struct SinkState {
    pub(super) rule: SinkRule,
    pub(super) busy: Option<Busy>,
    /// No digest before that.
    pub(super) next_digest: Mono,
    /// When messages were sent one by one.
    pub(super) sent: VecDeque<Mono>,
}

/// What the machine has to know of a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SinkRule {
    /// Several messages may be told as one.
    pub(super) digests: bool,
    /// Messages of one moment are spread over so long.
    pub(super) spread: Duration,
}
