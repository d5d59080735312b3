//! Locks that services share: readers beside each other and a writer alone, permits, several at once. And what a fence is for: a holder
//! stands still past its lease, another one takes the lock, and the resource refuses the late write of the first.
//!
//! The clock is moved by hand, so that it happens at once: `cargo run --example locks`.
#![allow(clippy::print_stdout, reason = "an example")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use cronward::lock::{Held, Locks, TryLockError};
use cronward::testing::{ManualClock, MemoryStore};
use cronward::{Fence, StoreOptions};

/// A resource that keeps the largest fence it has seen, as one column of a table does.
#[derive(Debug, Default)]
struct Ledger {
    fence: Option<Fence>,
    written_by: &'static str,
}

impl Ledger {
    fn write(&mut self, fence: Fence, by: &'static str) -> Result<(), String> {
        if self.fence.is_some_and(|seen| fence < seen) {
            return Err(format!(
                "the write of {by} is refused: fence {fence} is older than that of {}",
                self.written_by
            ));
        }
        (self.fence, self.written_by) = (Some(fence), by);
        Ok(())
    }
}

fn told(tried: Result<Held, TryLockError>) -> Result<String, Box<dyn Error>> {
    match tried {
        Ok(held) => Ok(format!("holds, fence {}", held.fence())),
        Err(TryLockError::Busy { by, .. }) => Ok(format!("busy: {} holds", by.node)),
        Err(error) => Err(error.into()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::at("2026-11-21T14:10:00Z".parse()?);
    // A service uses `cronward::open_locks("redis://…", …)`.
    let store = Arc::new(MemoryStore::new(StoreOptions::default(), Arc::new(clock.clone())));
    let locks = |node: &str| Locks::builder(store.clone(), node).clock(Arc::new(clock.clone())).build();
    let (web, deploy) = (locks("web")?, locks("deploy")?);

    let readers = (web.rw_lock("schema")?.read().await?, web.rw_lock("schema")?.read().await?);
    println!("deploy writes beside two readers: {}", told(deploy.rw_lock("schema")?.try_write().await)?);
    readers.0.release().await?;
    readers.1.release().await?;

    let two = web.semaphore("reports", 2)?.acquire_many(2).await?;
    println!("deploy wants one of two permits: {}", told(deploy.semaphore("reports", 2)?.try_acquire().await)?);
    two.release().await?;

    // All of them or none: nobody waits for one while holding another.
    let both = deploy.request().exclusive("schema")?.exclusive("ledger")?.lock().await?;
    println!("web wants one of the locks of a migration: {}", told(web.mutex("ledger")?.try_lock().await)?);
    both.release().await?;

    let mut ledger = Ledger::default();
    let stalled = web.mutex("ledger")?.lock().await?;
    ledger.write(stalled.fence(), "web")?;
    // This process stands still for longer than its lease, as a suspended machine does…
    clock.advance(Duration::from_secs(90));
    // …another one takes over…
    let next = deploy.mutex("ledger")?.lock().await?;
    ledger.write(next.fence(), "deploy")?;
    // …and the first one's late write is refused. It knows, too, where it asks: it holds no longer for certain.
    println!("web is back, and {:?}", stalled.standing());
    let Err(refused) = ledger.write(stalled.fence(), "web") else { return Err("the late write went through".into()) };
    println!("{refused}");
    next.release().await?;
    Ok(())
}
