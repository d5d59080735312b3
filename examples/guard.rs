//! A service that does something once in each slot, however many of its processes run: here three of them in one program,
//! and slots of one second. Give a store's url to share it with other processes:
//!
//! ```sh
//! cargo run --example guard -- sqlite:/tmp/guard-example.db      # in two terminals
//! cargo run --example guard --no-default-features                # three replicas on a store in memory
//! ```
//!
//! Ends after five slots.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example; a service keeps its own timer")]

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use cronward::testing::{Clock, SystemClock};
use cronward::{Guard, Period, RunOutcome, Skipped, Store, StoreOptions};

const SLOTS: u32 = 5;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory:".to_owned());
    let store = cronward::open(&url, StoreOptions::default()).await?;
    let replicas = ["a", "b", "c"].map(|replica| {
        let node = format!("{replica}-{}", std::process::id());
        tokio::spawn(serve(Arc::clone(&store), node))
    });
    for replica in replicas {
        replica.await??;
    }
    Ok(())
}

/// One process of the service: its own timer calls the guard at each tick.
async fn serve(store: Arc<dyn Store>, node: String) -> Result<(), Box<dyn Error + Send + Sync>> {
    let guard = Guard::builder(store, "push", &*node)
        .period(Period::Fixed(Duration::from_secs(1)))
        .lease_ttl(Duration::from_millis(900))
        .retry_delay(Duration::from_millis(50))
        .build()?;
    // All processes tick at about the same time: at the start of each second.
    let begun = SystemClock.now().wall.timestamp_subsec_nanos();
    let first = tokio::time::Instant::now() + Duration::from_nanos(u64::from(1_000_000_000 - begun % 1_000_000_000));
    let mut ticks = tokio::time::interval_at(first + Duration::from_millis(5), Duration::from_secs(1));
    for _ in 0..SLOTS {
        ticks.tick().await;
        let slot = guard.current_slot()?;
        let outcome = guard.run(slot.clone(), |hold| push(hold.fence().0, hold.attempt())).await?;
        match outcome {
            RunOutcome::Done { value, run } => {
                println!("{slot}: {node} pushed {value} rows, attempt {}, fence {}", run.attempt, run.fence);
            }
            RunOutcome::Skipped(Skipped::Done { by: Some(by) }) => println!("{slot}: {node} left it to {by}"),
            RunOutcome::Failed { error, then, .. } => println!("{slot}: {node} failed: {error}; then {then:?}"),
            other => println!("{slot}: {node}: {other:?}"),
        }
    }
    // What is still held is released before the process ends.
    guard.shutdown(Duration::from_secs(5)).await?;
    Ok(())
}

/// The work. It fails the first time in every third slot, and is then tried again by whichever process comes first.
async fn push(fence: u64, attempt: u32) -> Result<u32, io::Error> {
    tokio::task::yield_now().await;
    if (fence / 1_000).is_multiple_of(3) && attempt == 1 {
        return Err(io::Error::other("the other side hung up"));
    }
    Ok(42)
}
