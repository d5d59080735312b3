//! The frame of every call: one time limit, and whether it may have been applied.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::store::{Op, StoreError};

/// One call: what it is, and whether something was sent that may be applied and has no answer.
pub(in crate::store) struct Call {
    op: Op,
    sent: AtomicBool,
}

/// Where a call goes, without secrets, and how long it may take.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct Frame<'s> {
    pub(in crate::store) location: &'s str,
    pub(in crate::store) limit: Duration,
}

/// What goes wrong below the trait.
pub(in crate::store) trait Trouble: Send {
    /// Nothing was heard for so long.
    fn timed_out(limit: Duration) -> Self;

    /// The one error of every store; `sent` where something has no answer.
    fn into_error(self, op: Op, sent: bool, location: &str) -> StoreError;
}

impl Call {
    pub(in crate::store) const fn new(op: Op) -> Self {
        Self { op, sent: AtomicBool::new(false) }
    }

    #[cfg_attr(not(feature = "etcd"), allow(dead_code, reason = "others write a lease's end themselves"))]
    pub(in crate::store) fn is_a(&self, op: Op) -> bool {
        self.op == op
    }

    pub(in crate::store) fn sending(&self) {
        self.sent.store(true, Ordering::Release);
    }

    pub(in crate::store) fn answered(&self) {
        self.sent.store(false, Ordering::Release);
    }

    pub(in crate::store) fn is_sent(&self) -> bool {
        self.sent.load(Ordering::Acquire)
    }

    /// Runs a call's work within the limit and gives its error the words of the contract.
    pub(in crate::store) async fn within<T, F: Trouble>(
        &self,
        frame: Frame<'_>,
        work: impl Future<Output = Result<T, F>>,
    ) -> Result<T, StoreError> {
        let Frame { location, limit } = frame;
        let answer = tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(F::timed_out(limit)));
        answer.map_err(|fault| fault.into_error(self.op, self.is_sent(), location))
    }
}
