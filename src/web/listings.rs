//! What is listed from the store, and how often the store is asked for it: once a second at the most, however many look.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Bytes;
use tokio::sync::Mutex;

use crate::clock::{Clock, Mono};

/// How old a listing may be.
const FRESH: Duration = Duration::from_secs(1);

/// Reads listings from the store, as the commands of their names print them with `--json`.
#[async_trait]
pub trait Listings: fmt::Debug + Send + Sync {
    /// `cronward jobs --json`.
    ///
    /// # Errors
    /// The store did not answer.
    async fn jobs(&self) -> Result<Vec<u8>, Away>;

    /// `cronward nodes --json`.
    ///
    /// # Errors
    /// The store did not answer.
    async fn nodes(&self) -> Result<Vec<u8>, Away>;
}

/// The store did not answer. Why is told in the log: who asks over HTTP can do nothing about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Away;

/// One listing, as it was read last.
#[derive(Debug)]
pub(super) struct Cached {
    clock: Arc<dyn Clock>,
    read: Mutex<Option<(Mono, Result<Bytes, Away>)>>,
}

impl Cached {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, read: Mutex::new(None) }
    }

    /// What was read within the last second, that the store was away included; else what is read now. Whoever comes meanwhile waits for that.
    pub(super) async fn get(&self, read: impl Future<Output = Result<Vec<u8>, Away>>) -> Result<Bytes, Away> {
        let mut kept = self.read.lock().await;
        if let Some((at, listing)) = &*kept
            && self.clock.now().mono.since(*at) < FRESH
        {
            return listing.clone();
        }
        let listing = read.await.map(Bytes::from);
        *kept = Some((self.clock.now().mono, listing.clone()));
        listing
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::clock::ManualClock;

    #[tokio::test]
    async fn many_who_look_within_a_second_are_one_who_asks_the_store() {
        let clock = ManualClock::at("2026-11-21T15:00:00Z".parse().unwrap());
        let (cached, asked) = (Cached::new(Arc::new(clock.clone())), AtomicUsize::new(0));
        let look = || {
            cached.get(async {
                tokio::task::yield_now().await;
                let count = asked.fetch_add(1, Ordering::Relaxed);
                if count == 1 { Err(Away) } else { Ok(vec![b'0']) }
            })
        };
        let all = futures_util::future::join_all((0..50).map(|_| look())).await;
        assert!(all.iter().all(|listing| listing.is_ok()));
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        clock.advance(Duration::from_secs(1));
        assert_eq!((look().await, look().await), (Err(Away), Err(Away)), "nor is a store that is away asked by each");
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }
}
