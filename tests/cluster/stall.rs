//! How long this machine lets a ready process wait. A bound on a node's reaction is only fair with that on top: a thread
//! that sleeps a little at a time notes how much later than asked it wakes, and another one how long it takes to start a
//! process that appends to a file, which on a busy machine waits far longer than one that has slept: for a core, and for the disk.

use std::collections::VecDeque;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const NAP: Duration = Duration::from_millis(10);
/// Stalls that say something.
const WORTH_NOTING: Duration = Duration::from_millis(20);
/// From the end of a wait to a line in the recorder this many processes take turns: the node, the store, the node, the
/// shim, the shell, `date`.
const TURNS: u32 = 6;

/// Of these so many have to be started first: the shim, the shell, `date`.
const STARTS: u32 = 3;
const BETWEEN_STARTS: Duration = Duration::from_millis(400);

type Stalls = Mutex<VecDeque<(Instant, Duration)>>;

static STALLS: Stalls = Mutex::new(VecDeque::new());
static SLOW_STARTS: Stalls = Mutex::new(VecDeque::new());

/// Begins to watch.
pub(crate) fn watch() {
    std::thread::spawn(|| {
        loop {
            let before = Instant::now();
            std::thread::sleep(NAP);
            note(&STALLS, before, before.elapsed().saturating_sub(NAP));
        }
    });
    std::thread::spawn(|| {
        // Where commands of jobs record themselves, and as they do.
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("recorded");
        loop {
            let before = Instant::now();
            let append = ["-c", "echo >>\"$0\""];
            let _ = Command::new("/bin/sh").args(append).arg(&file).stdin(Stdio::null()).status();
            note(&SLOW_STARTS, before, before.elapsed());
            // The next one makes it anew.
            let _ = std::fs::remove_file(&file);
            std::thread::sleep(BETWEEN_STARTS);
        }
    });
}

fn note(stalls: &Stalls, at: Instant, stall: Duration) {
    if stall > WORTH_NOTING {
        stalls.lock().unwrap_or_else(PoisonError::into_inner).push_back((at, stall));
    }
}

fn worst(stalls: &Stalls, since: Instant) -> Duration {
    let stalls = stalls.lock().unwrap_or_else(PoisonError::into_inner);
    stalls.iter().filter(|(at, stall)| *at + *stall >= since).map(|(_, stall)| *stall).max().unwrap_or_default()
}

/// What to grant a chain of processes on top of a bound, for what happened since an instant.
pub(crate) fn allowance(since: Instant) -> Duration {
    worst(&STALLS, since) * TURNS + worst(&SLOW_STARTS, since) * STARTS
}
