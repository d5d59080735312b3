//! The words of a store's test about locks: requests, what is held, hints, and what holds of every store on a server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a test says what it expects; no test uses all of it"
)]

use std::sync::Arc;
use std::time::Duration;

use cronward::resource::{
    AcquireRequest, Acquired, Demand, Demands, LockHint, LockHold, LockHolder, LockName, LockRelease, LockRenewal,
};
use cronward::slot::Token;
use cronward::store::{LockStore, LockWakeups};

use crate::words::{LIMIT, eventually};

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

/// A request of its own for these locks, each alone.
pub fn asking(token: u128, locks: &[&str]) -> AcquireRequest {
    request(token, &locks.iter().map(|lock| write(lock)).collect::<Vec<_>>())
}

/// Many at once over two connections, each of whom wants two of three locks: each stands once in both of its queues, and all of them
/// are served, one after the other.
pub async fn each_is_served_once(stores: &[Arc<dyn LockStore>; 2]) {
    let names = ["x", "y", "z"];
    let asked: Vec<AcquireRequest> =
        (0..12).map(|at| asking(at as u128 + 1, &[names[at % 3], names[(at + 1) % 3]])).collect();
    let calls = asked.iter().enumerate().map(|(at, request)| {
        let (store, request) = (Arc::clone(&stores[at % 2]), request.clone());
        tokio::spawn(async move { store.acquire(&request).await.unwrap() })
    });
    let answers = futures_util::future::join_all(calls.collect::<Vec<_>>()).await;
    let holders = answers.iter().flatten().filter(|answer| matches!(answer, Acquired::Held { .. })).count();
    assert!(holders <= 1, "each two have a lock in common: {answers:?}");
    let locks = names.map(lock);
    let (_, records) = stores[0].locks(&locks).await.unwrap();
    assert_eq!(records.iter().map(|record| record.entries.len()).collect::<Vec<_>>(), [8, 8, 8]);
    let mut waiting = asked;
    while !waiting.is_empty() {
        let before = waiting.len();
        let mut left = Vec::new();
        for request in waiting {
            match stores[1].acquire(&request).await.unwrap() {
                Acquired::Held { fence, places, .. } => {
                    let exit = request.granted(fence, places).exit(false);
                    assert_eq!(stores[0].release(&exit).await.unwrap(), LockRelease::Released);
                }
                Acquired::Waiting { .. } => left.push(request),
                other => panic!("{other:?}"),
            }
        }
        assert!(left.len() < before, "somebody is always first");
        waiting = left;
    }
}

/// Whoever may hold a lock is told in another process, and nobody else is.
pub async fn one_is_told_elsewhere([store, other]: &[Arc<dyn LockStore>; 2]) {
    let (first, second) = (asking(1, &["a"]), asking(2, &["a"]));
    let mut hints = [&second, &first].map(|request| other.listen(request.instance));
    let next =
        async |hints: &mut LockWakeups| tokio::time::timeout(LIMIT, hints.recv()).await.expect("a hint").unwrap();
    for hints in &mut hints {
        assert_eq!(next(hints).await, LockHint::Resync);
    }
    let lease = held(&**store, &first).await;
    assert!(matches!(other.acquire(&second).await.unwrap(), Acquired::Waiting { .. }));
    store.release(&lease.exit(false)).await.unwrap();
    assert_eq!(next(&mut hints[0]).await, LockHint::Ready(second.token));
    assert!(hints[1].try_recv().is_err(), "it is not for this one");
}

/// The server goes and comes again: whoever listens hears hints as before, and is told to look where some may be lost.
pub async fn hints_come_again([store, other]: &[Arc<dyn LockStore>; 2], are_lost: bool, restart: impl FnOnce()) {
    async fn once_it_answers(store: &dyn LockStore, request: &AcquireRequest) -> Acquired {
        let mut answer = None;
        eventually("the server answers again", async || {
            answer = store.acquire(request).await.ok();
            answer.is_some()
        })
        .await;
        answer.unwrap()
    }
    let (first, second) = (asking(1, &["a"]), asking(2, &["a"]));
    let mut hints = other.listen(second.instance);
    assert_eq!(next_hint(&mut hints).await, LockHint::Resync);
    let before = held(&**store, &asking(3, &["a"])).await;
    store.release(&before.exit(false)).await.unwrap();
    restart();
    if are_lost {
        assert_eq!(next_hint(&mut hints).await, LockHint::Resync, "who waits looks");
    }
    let Acquired::Held { fence, places, .. } = once_it_answers(&**store, &first).await else { panic!("it is free") };
    assert!(fence > before.fence);
    assert!(matches!(once_it_answers(&**other, &second).await, Acquired::Waiting { .. }));
    let exit = first.granted(fence, places).exit(false);
    assert_eq!(store.release(&exit).await.unwrap(), LockRelease::Released);
    assert_eq!(next_ready(&mut hints).await, second.token);
}

/// Locks that were used and left are removed once the retention is over, and one that is held is kept.
pub async fn idle_locks_are_removed([patient, hasty]: &[Arc<dyn LockStore>; 2]) {
    let lease = held(&**patient, &asking(1, &["kept"])).await;
    for token in 2..5 {
        let short = AcquireRequest { ttl: Duration::from_millis(1), ..asking(token, &[&format!("gone-{token}")]) };
        let gone = held(&**patient, &short).await;
        patient.release(&gone.exit(false)).await.unwrap();
    }
    assert_eq!(patient.purge_locks().await.unwrap(), 0);
    let gone = async || {
        let mut gone = 0;
        while gone < 3 {
            gone += hasty.purge_locks().await.unwrap();
        }
        gone
    };
    assert_eq!(tokio::time::timeout(LIMIT, gone()).await.expect("they go"), 3);
    let (_, left) = patient.locks(&[]).await.unwrap();
    assert_eq!(left.iter().map(|record| record.lock.as_str()).collect::<Vec<_>>(), ["kept"]);
    assert_eq!(patient.renew_lock(&lease).await.unwrap(), LockRenewal::Renewed);
}
