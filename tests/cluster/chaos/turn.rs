//! Only so many clusters are struck at once: on a machine that is too busy nothing is on time, and nothing is shown.

use std::sync::{Condvar, Mutex, PoisonError};

/// Runs wait more than they compute, but they do compute.
const AT_ONCE: usize = 2;

static TAKEN: Mutex<usize> = Mutex::new(0);
static GIVEN: Condvar = Condvar::new();

/// Given back when dropped.
pub(super) struct Turn(());

impl Turn {
    /// Waits for it.
    pub(super) fn take() -> Self {
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        *GIVEN.wait_while(taken, |taken| *taken >= AT_ONCE).unwrap_or_else(PoisonError::into_inner) += 1;
        Self(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        GIVEN.notify_one();
    }
}
