//! A door for the fuzz target: any bytes as the document that a store keeps of a lock, and on to the rules. Only behind its feature.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{LockState, LockStep};
use crate::job::{LockName, NodeName};
use crate::reply::Intervention;
use crate::resource::{AcquireRequest, Acquired, Demand, Demands, LockExit, LockHold, LockRelease, OwnerId};
use crate::slot::{Audit, Fence, Token};

const TTL: Duration = Duration::from_secs(30);

/// A request of nobody who is there: what seeds and dictionary name is small.
const STRANGER: Token = Token::from_bits(u128::MAX);

/// A queue that was read is shown, is the same when it is written, and every rule takes it. True when the bytes are one.
pub fn lock_document(bytes: &[u8]) -> bool {
    let Ok(state) = serde_json::from_slice::<LockState>(bytes) else { return false };
    reads_back(&state);
    let (Ok(lock), Ok(node)) = (LockName::new("a"), NodeName::new("n")) else { return false };
    // Before everything that was written, in the middle, and long after.
    let newest = state.entries().map(|entry| entry.until).max().unwrap_or(DateTime::UNIX_EPOCH);
    let before = DateTime::UNIX_EPOCH + TimeDelta::milliseconds(1);
    for now in [before, newest.checked_sub_signed(TimeDelta::milliseconds(1)).unwrap_or(newest), newest] {
        is_shown(&state, &lock, now, bytes.len());
        for demand in [Demand::exclusive(lock.clone()), Demand::shared(lock.clone())] {
            is_judged(&state, now, &demand, &node);
        }
    }
    !state.is_untouched()
}

fn reads_back(state: &LockState) {
    let written = serde_json::to_vec(state).unwrap_or_default();
    assert_eq!(serde_json::from_slice::<LockState>(&written).ok().as_ref(), Some(state), "{state:?}");
}

/// What people see is no more than what stands there, and nobody holds behind somebody who does not.
fn is_shown(state: &LockState, lock: &LockName, now: DateTime<Utc>, length: usize) {
    let record = state.record(lock, now);
    assert!(record.entries.len() + record.audit.len() <= length, "no more comes out than went in");
    assert!(record.entries.is_sorted_by_key(|entry| !entry.holds), "the prefix holds");
    for retention in [Duration::ZERO, Duration::MAX] {
        let _ = (state.is_idle(now, retention), state.needed_until(retention));
    }
}

/// Somebody asks, keeps and leaves, and an operator takes out whoever stands first.
fn is_judged(state: &LockState, now: DateTime<Utc>, demand: &Demand, node: &NodeName) {
    let step = || LockStep::new(BTreeMap::from([(demand.lock().clone(), state.clone())]), now);
    let request = AcquireRequest::new(STRANGER, node.clone(), STRANGER, TTL, Demands::from(demand.clone()));
    // What is there is asked for again, kept and left by its own words.
    let there = state.entries().next().map(|entry| (entry.token, entry.owner, Fence(entry.fence), entry.place));
    for (token, owner, fence, place) in [(STRANGER, OwnerId::new(STRANGER), Fence(1), 1)].into_iter().chain(there) {
        let own = AcquireRequest { token, owner, ..request.clone() };
        let mut asked = step();
        if let Acquired::Held { fence, places, .. } = asked.acquire(&own) {
            assert!(asked.lock(demand.lock()).holds(token), "who is told so holds");
            let _ = asked.renew(&own.granted(fence, places));
        }
        let mut tried = step();
        if !matches!(tried.acquire(&AcquireRequest { queue: false, ..own.clone() }), Acquired::Held { .. }) {
            assert_eq!(tried.locks.get(demand.lock()), Some(state), "who does not wait leaves no trace");
        }
        let hold: LockHold = own.granted(fence, vec![place]);
        let mut kept = step();
        let _ = kept.renew(&hold);
        let mut left = step();
        let first = left.release(&hold.exit(true));
        assert!(left.lock(demand.lock()).find(token).is_none() || duplicates(state, token), "{first:?}");
        let never_told = LockExit { fence: None, ..hold.exit(false) };
        assert_eq!(step().release(&never_told), LockRelease::Released);
        for written in [asked, kept, left] {
            written.locks.values().for_each(reads_back);
        }
    }
    if let Some((token, ..)) = there {
        let mut taken = step();
        let who = || "o".to_owned();
        let audit = Audit { verb: "unlock".to_owned(), who: who(), host: who(), why: String::new(), at: now };
        let answer = taken.evict(demand.lock(), token, &audit);
        assert!(matches!(answer, Intervention::Applied | Intervention::Unchanged));
        taken.locks.values().for_each(reads_back);
    }
}

/// No store writes one request twice, and a document may say so all the same.
fn duplicates(state: &LockState, token: Token) -> bool {
    state.entries().filter(|entry| entry.token == token).count() > 1
}
