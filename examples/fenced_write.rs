//! What a fence is for: a process stalls past its lease, another one takes over, and the first one's late write is refused
//! by the resource. No lock can prevent the stall; the number can prevent the harm.
//!
//! The clock is moved by hand, so that it happens at once: `cargo run --example fenced_write`.
#![allow(clippy::print_stdout, reason = "an example")]

use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cronward::testing::{ManualClock, MemoryStore};
use cronward::{Fence, Guard, RunOutcome, Store, StoreOptions};

/// A resource that keeps the largest fence it has seen. In SQL this is one statement:
/// `UPDATE report SET body = $1, fence = $2 WHERE id = $3 AND fence <= $2`, and no row changed means refused.
#[derive(Debug, Default)]
struct Report(Mutex<(Option<Fence>, String)>);

impl Report {
    fn write(&self, fence: Fence, text: &str) -> Result<(), io::Error> {
        let mut report = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if report.0.is_some_and(|seen| fence < seen) {
            return Err(io::Error::other(format!("fence {fence} is older than {:?}", report.0)));
        }
        *report = (Some(fence), text.to_owned());
        Ok(())
    }

    fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::at("2026-11-21T14:10:00Z".parse()?);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(StoreOptions::default(), Arc::new(clock.clone())));
    let guard = |node: &str| {
        Guard::builder(Arc::clone(&store), "report", node).clock(Arc::new(clock.clone())).try_once().build()
    };
    let (slow, quick) = (guard("slow")?, guard("quick")?);
    let (slot, report) = (slow.current_slot()?, Report::default());

    let stalled = slow.run(slot.clone(), |hold| {
        let (clock, quick, slot, report) = (&clock, &quick, &slot, &report);
        async move {
            // This process stands still for longer than its lease, as a suspended machine does. The lease lapses…
            clock.advance(Duration::from_secs(90));
            // …and another one does the work.
            let next = quick.run(slot.clone(), |hold| async move { report.write(hold.fence(), "right") }).await;
            println!("quick: {:?}", next.map_err(io::Error::other)?);
            // Back again, and unaware of it all.
            report.write(hold.fence(), "stale")
        }
    });
    let outcome = stalled.await?;
    println!("slow: {outcome:?}");
    let RunOutcome::Failed { error, run, .. } = outcome else { return Err("the stale write went through".into()) };
    println!("refused: {error}; two runs overlapped: {}; the report says {:?}", run.overlapped, report.text());
    if report.text() == "right" && run.overlapped { Ok(()) } else { Err("the fence did not hold".into()) }
}
