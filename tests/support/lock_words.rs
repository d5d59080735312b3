//! The words of a store's test about locks: requests, what is held, hints.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a test says what it expects; no test uses all of it"
)]

use std::time::Duration;

use cronward::resource::{
    AcquireRequest, Acquired, Demand, Demands, LockHint, LockHold, LockHolder, LockName, LockRelease,
};
use cronward::slot::Token;
use cronward::store::{LockStore, LockWakeups};

use crate::words::LIMIT;

pub fn lock(name: &str) -> LockName {
    LockName::new(name).unwrap()
}

pub fn write(name: &str) -> Demand {
    Demand::exclusive(lock(name))
}

pub fn read(name: &str) -> Demand {
    Demand::shared(lock(name))
}

/// The process that all requests of a number are of.
pub fn instance(number: u128) -> Token {
    Token::from_bits(number << 64)
}

/// A request of its own for each number, for a minute.
pub fn request(number: u128, demands: &[Demand]) -> AcquireRequest {
    let demands = Demands::new(demands.to_vec()).unwrap();
    let node = format!("node-{number}").parse().unwrap();
    AcquireRequest::new(Token::from_bits(number), node, instance(number), Duration::from_secs(60), demands)
}

pub async fn held(store: &(impl LockStore + ?Sized), request: &AcquireRequest) -> LockHold {
    match store.acquire(request).await.unwrap() {
        Acquired::Held { fence, places, .. } => request.granted(fence, places),
        other => panic!("not held: {other:?}"),
    }
}

/// How many are in front, and who holds.
pub async fn waits(store: &(impl LockStore + ?Sized), request: &AcquireRequest) -> (u32, LockHolder) {
    match store.acquire(request).await.unwrap() {
        Acquired::Waiting { ahead, by, .. } => (ahead, by),
        other => panic!("not waiting: {other:?}"),
    }
}

pub async fn left(store: &(impl LockStore + ?Sized), hold: &LockHold) -> LockRelease {
    store.release(&hold.exit(false)).await.unwrap()
}

/// The next hint.
pub async fn next_hint(hints: &mut LockWakeups) -> LockHint {
    tokio::time::timeout(LIMIT, hints.recv()).await.expect("a hint comes").unwrap()
}

/// The next hint that names a request.
pub async fn next_ready(hints: &mut LockWakeups) -> Token {
    loop {
        if let LockHint::Ready(token) = next_hint(hints).await {
            return token;
        }
    }
}
