//! Waiting for what other processes do in their own time: until it is so, or a deadline.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Nothing here takes so long, on however busy a machine: whoever waits for it in vain has failed.
pub(crate) const LIMIT: Duration = Duration::from_secs(45);

/// A tick so far ahead comes after the nodes of a trial are up, and soon enough to be waited for.
pub(crate) const SOON: Duration = Duration::from_secs(4);

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Looks until something is there.
pub(crate) fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(LIMIT, what, look)
}

/// Looks until something is there, for so long.
pub(crate) fn within<T>(limit: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Looks until it is so.
pub(crate) fn until_true(what: &str, mut look: impl FnMut() -> bool) {
    until(what, || look().then_some(()));
}

/// Lets time pass during which something must *not* happen, or has to last. What must happen is waited for instead.
pub(crate) fn let_pass(span: Duration) {
    std::thread::sleep(span);
}

/// Waits for the first tenth of a slot of this length: what begins then has a whole slot before it.
pub(crate) fn early_in_a_slot(length_ms: i64) {
    until_true("a slot's first moment", || now_ms() % length_ms < length_ms / 10);
}

/// Milliseconds since the Unix epoch, as the recorder counts.
pub(crate) fn now_ms() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}
