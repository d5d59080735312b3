//! Flaws of messages that are told once.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::broken::{Control, Flaw};
use cronward::job::NodeName;
use cronward::slot::Token;
use cronward::store::memory::Ledger;
use cronward::store::{Delivery, DeliveryReply, MessageKey, Telling};

pub(super) fn controls() -> Vec<Control> {
    vec![
        Control {
            flaw: Arc::new(EverybodySends),
            caught_by: &[
                "messages::a_message_is_of_the_first_who_asks",
                "messages::of_many_who_ask_at_the_same_time_one_sends",
            ],
        },
        Control {
            flaw: Arc::new(ToldIsForgotten),
            caught_by: &["messages::what_was_told_stays_told", "messages::a_lost_answer_changes_nothing"],
        },
        Control {
            flaw: Arc::new(RetriesAtOnce),
            caught_by: &["messages::a_try_that_failed_is_not_repeated_before_its_time"],
        },
        Control { flaw: Arc::new(ClaimsForEver), caught_by: &["messages::a_claim_that_has_lapsed_passes_to_the_next"] },
        Control {
            flaw: Arc::new(TokensAreNotKnownAgain),
            caught_by: &["messages::the_same_token_is_the_same_claim", "messages::a_lost_answer_changes_nothing"],
        },
        Control { flaw: Arc::new(NothingIsGivenUp), caught_by: &["messages::what_was_given_up_is_sent_by_nobody"] },
    ]
}

/// Looks for no claim before it grants one.
#[derive(Debug)]
struct EverybodySends;

impl Flaw for EverybodySends {
    fn tell(
        &self,
        ledger: &mut Ledger,
        key: &MessageKey,
        by: (&NodeName, Token),
        lease: Duration,
        now: DateTime<Utc>,
    ) -> Telling {
        match ledger.tell(key, by, lease, now) {
            Telling::Theirs { .. } => Telling::Yours { tries: 1, first: now },
            telling => telling,
        }
    }
}

/// Drops what it is told of a delivery.
#[derive(Debug)]
struct ToldIsForgotten;

impl Flaw for ToldIsForgotten {
    fn told(
        &self,
        ledger: &mut Ledger,
        (key, token): (&MessageKey, Token),
        delivery: &Delivery,
        now: DateTime<Utc>,
    ) -> DeliveryReply {
        match delivery {
            Delivery::Delivered => DeliveryReply::Recorded,
            _ => ledger.told(key, token, delivery, now),
        }
    }
}

/// Does not wait for the next try.
#[derive(Debug)]
struct RetriesAtOnce;

impl Flaw for RetriesAtOnce {
    fn told(
        &self,
        ledger: &mut Ledger,
        (key, token): (&MessageKey, Token),
        delivery: &Delivery,
        now: DateTime<Utc>,
    ) -> DeliveryReply {
        let hasty = match delivery {
            Delivery::Again { error, .. } => Delivery::Again { after: Duration::ZERO, error: error.clone() },
            other => other.clone(),
        };
        ledger.told(key, token, &hasty, now)
    }
}

/// Grants claims that never lapse.
#[derive(Debug)]
struct ClaimsForEver;

impl Flaw for ClaimsForEver {
    fn tell(
        &self,
        ledger: &mut Ledger,
        key: &MessageKey,
        by: (&NodeName, Token),
        _lease: Duration,
        now: DateTime<Utc>,
    ) -> Telling {
        ledger.tell(key, by, Duration::from_secs(86_400), now)
    }
}

/// Takes each request for a new one.
#[derive(Debug)]
struct TokensAreNotKnownAgain;

impl Flaw for TokensAreNotKnownAgain {
    fn tell(
        &self,
        ledger: &mut Ledger,
        key: &MessageKey,
        (by, token): (&NodeName, Token),
        lease: Duration,
        now: DateTime<Utc>,
    ) -> Telling {
        let other = Token::from_bits(u128::from(now.timestamp_micros().unsigned_abs()) << 32);
        match ledger.tell(key, (by, other), lease, now) {
            Telling::Yours { .. } => {
                // The claim is this token's, whatever it was before.
                ledger.forget_messages(key.topic());
                ledger.tell(key, (by, token), lease, now)
            }
            telling => telling,
        }
    }
}

/// Goes on trying.
#[derive(Debug)]
struct NothingIsGivenUp;

impl Flaw for NothingIsGivenUp {
    fn told(
        &self,
        ledger: &mut Ledger,
        (key, token): (&MessageKey, Token),
        delivery: &Delivery,
        now: DateTime<Utc>,
    ) -> DeliveryReply {
        let stubborn = match delivery {
            Delivery::GaveUp { error } => Delivery::Again { after: Duration::ZERO, error: error.clone() },
            other => other.clone(),
        };
        ledger.told(key, token, &stubborn, now)
    }
}
