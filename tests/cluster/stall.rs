//! How long this machine lets a ready process wait. A bound on a node's reaction is only fair with that on top: a thread
//! that sleeps a little at a time notes how much later than asked it wakes.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const NAP: Duration = Duration::from_millis(10);
/// Stalls that say something.
const WORTH_NOTING: Duration = Duration::from_millis(20);
/// From the end of a wait to a line in the recorder this many processes take turns: the node, the store, the node, the
/// shim, the shell, `date`.
const TURNS: u32 = 6;

static STALLS: Mutex<VecDeque<(Instant, Duration)>> = Mutex::new(VecDeque::new());

/// Begins to watch.
pub(crate) fn watch() {
    std::thread::spawn(|| {
        loop {
            let before = Instant::now();
            std::thread::sleep(NAP);
            let stall = before.elapsed().saturating_sub(NAP);
            if stall > WORTH_NOTING {
                STALLS.lock().unwrap_or_else(PoisonError::into_inner).push_back((before, stall));
            }
        }
    });
}

/// What to grant a chain of processes on top of a bound, for what happened since an instant.
pub(crate) fn allowance(since: Instant) -> Duration {
    let stalls = STALLS.lock().unwrap_or_else(PoisonError::into_inner);
    let worst = stalls.iter().filter(|(at, stall)| *at + *stall >= since).map(|(_, stall)| *stall).max();
    worst.unwrap_or_default() * TURNS
}
