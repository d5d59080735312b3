//! Round trips, counted by the time that a slow link adds to a call.
#![allow(unreachable_pub, missing_docs, reason = "each test crate has its own copy")]

use std::time::{Duration, Instant};

/// Whole round trips in the shortest of several calls over a link that delays each direction so much: by much more than a call
/// takes on a fast one, also on a busy machine.
#[allow(clippy::disallowed_methods, reason = "the figure is a time")]
pub async fn round_trips(delay: Duration, mut call: impl AsyncFnMut(u32)) -> u128 {
    let mut shortest = Duration::MAX;
    for turn in 0..5 {
        let begun = Instant::now();
        call(turn).await;
        shortest = shortest.min(begun.elapsed());
    }
    shortest.as_millis() / (2 * delay).as_millis()
}
