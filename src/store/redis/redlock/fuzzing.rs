//! A door for the fuzz target: an answer of one of several masters, through the decoders of `master`, and what a quorum
//! that says the same comes to. Only behind its feature.

use std::time::Duration;

use redis::Value;

use super::master;
use crate::job::NodeName;
use crate::reply::ClaimRequest;
use crate::slot::{Lease, Slot, Token, Trigger};
use crate::store::redis::decode::Corrupt;
use crate::store::redlock::Quorum;
use crate::store::redlock::claim::{Look, Step, Terms};
use crate::store::redlock::lease::{MasterRenewal, renewal};

/// A minute.
const TTL: Duration = Duration::from_secs(60);

/// What each decoder makes of the answer.
pub(in crate::store::redis) fn answers(reply: &Value, slot: &Slot) -> [Result<(), Corrupt>; 5] {
    [
        master::look(reply).map(|look| decided(slot, &[Some(look.clone()), None, Some(look)])),
        master::ack(reply).map(drop),
        master::renewal(reply).map(|answer| renewed(slot, &[Some(answer.clone()), Some(answer), None])),
        master::conclusion(reply, "log").map(drop),
        master::done(reply),
    ]
}

fn decided(slot: &Slot, looks: &[Option<Look>]) {
    let (Ok(quorum), Ok(node)) = (Quorum::of(3), NodeName::new("n")) else { return };
    let request =
        ClaimRequest { exclusive: true, ..ClaimRequest::new(slot.clone(), Token::from_bits(1), node, TTL, 3) };
    let terms = Terms { quorum, request: &request, longest_lease: TTL, done_is_stale: false }.having_heard(looks);
    if let Step::Grant(grant) = terms.after_looks(looks) {
        assert!(grant.attempt > 0 && grant.used <= grant.attempt, "{grant:?}");
        let _ = terms.after_grants(&grant, &[None, None, None], Duration::ZERO);
    }
}

fn renewed(slot: &Slot, answers: &[Option<MasterRenewal>]) {
    let (Ok(quorum), Ok(node)) = (Quorum::of(3), NodeName::new("n")) else { return };
    let lease = Lease {
        slot: slot.clone(),
        token: Token::from_bits(1),
        node,
        attempt: 1,
        ttl: TTL,
        trigger: Trigger::Schedule,
        claimed_at: slot.start(),
        revision: None,
    };
    let _ = renewal(quorum, &lease, TTL, answers);
}
