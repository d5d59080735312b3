//! Messages on real parts: notifiers and daemons over a real Redis, receivers on loopback that hang or die, a mail server with
//! STARTTLS, commands; what `cronward notify test` says.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test says what it expects; real processes are judged by the machine's clock"
)]

mod cluster;
mod command;
mod daemons;
mod hanging;
#[path = "../cluster/chaos/random.rs"]
#[allow(dead_code, reason = "not all of it is needed here")]
mod random;
mod receiver;
mod storm;

#[path = "../support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

/// Nothing here takes so long, on however busy a machine.
const LIMIT: Duration = Duration::from_secs(150);

/// Looks until it is there.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
