//! The rules of time: what the suite cannot ask of a real store without waiting. The rest is in the suite, which the
//! ledger passes like every other store.

mod lapse;
mod retention;
mod rules;

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::later;
use crate::job::NodeName;
use crate::slot::{Audit, Lease, Outcome, RunRecord, Slot, Token};
use crate::store::memory::Ledger;
use crate::store::{Claim, ClaimRequest};

const LEASE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

fn ledger() -> Ledger {
    Ledger::new(7 * DAY)
}

fn slot() -> Slot {
    Slot::parse("job", "2026-11-21T14Z", "2026-11-21T15Z").unwrap()
}

/// Ten minutes into the slot, and this much later.
fn at(since: Duration) -> DateTime<Utc> {
    later("2026-11-21T14:10:00Z".parse().unwrap(), since)
}

fn start() -> DateTime<Utc> {
    at(Duration::ZERO)
}

fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

fn request(token: u128) -> ClaimRequest {
    ClaimRequest::new(slot(), Token::from_bits(token), node("a"), LEASE, 3)
}

fn grant(ledger: &mut Ledger, token: u128, now: DateTime<Utc>) -> Lease {
    match ledger.claim(&request(token), now) {
        Claim::Claimed { attempt, at, .. } => request(token).granted(attempt, at),
        other => panic!("{other:?}"),
    }
}

fn ended(lease: &Lease, outcome: Outcome) -> RunRecord {
    RunRecord::ended(lease, outcome)
}

fn audit() -> Audit {
    let word = || "x".to_owned();
    Audit { verb: word(), who: "alice".to_owned(), host: word(), why: word(), at: DateTime::UNIX_EPOCH }
}
