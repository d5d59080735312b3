//! How far one call to a database server came: what its time limit may say of it hangs on that.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::store::{Applied, Op};

/// One call: what it is, how far it came, and whether something was sent whose outcome is not known.
pub(super) struct ServerCall {
    pub(super) op: Op,
    asked: AtomicBool,
    sent: AtomicBool,
}

impl ServerCall {
    pub(super) const fn new(op: Op) -> Self {
        Self { op, asked: AtomicBool::new(false), sent: AtomicBool::new(false) }
    }

    /// It has a connection: what is waited for from now on is the server's answer.
    pub(super) fn ask(&self) {
        self.asked.store(true, Ordering::Release);
    }

    pub(super) fn has_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    pub(super) fn send(&self) {
        self.sent.store(true, Ordering::Release);
    }

    /// The server said that nothing of it was written.
    pub(super) fn settle(&self) {
        self.sent.store(false, Ordering::Release);
    }

    pub(super) fn applied(&self) -> Applied {
        if self.sent.load(Ordering::Acquire) { Applied::Maybe } else { Applied::No }
    }
}
