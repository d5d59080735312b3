//! How many streams of events there are: each holds a connection for as long as a page is open.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Streams at once.
const MOST: usize = 64;

/// The streams that there are.
#[derive(Debug, Default)]
pub(super) struct Streams(AtomicUsize);

impl Streams {
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether there was a place.
    pub(super) fn take(&self) -> bool {
        let more = |count| (count < MOST).then_some(count + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// One has ended.
    pub(super) fn leave(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
