//! A request for locks, as its driver carries it out: the one call of each order, and the hints. It decides nothing.

use std::sync::Arc;

use tokio::sync::broadcast::error::RecvError;

use crate::job::JobName;
#[cfg(any(feature = "daemon", test))]
use crate::machine::LockPort;
use crate::machine::{LockAction, LockReply};
use crate::resource::LockHint;
#[cfg(any(feature = "daemon", test))]
use crate::slot::Token;
use crate::store::{LockStore, LockWakeups, Store, StoreError};

/// How this store tells the process of this instance of locks; none where it keeps none.
#[cfg(any(feature = "daemon", test))]
pub(crate) fn port(store: &Arc<dyn Store>, instance: Token) -> Option<LockPort> {
    let store = Arc::clone(store).lock_store()?;
    Some(LockPort { instance, poll: store.lock_poll() })
}

/// Carries one order out.
pub(crate) async fn ask(store: Arc<dyn LockStore>, action: LockAction) -> LockReply {
    match action {
        LockAction::Acquire(request) => LockReply::Acquired(store.acquire(&request).await),
        LockAction::Renew(hold) => LockReply::Renewed(store.renew_lock(&hold).await),
        LockAction::Release(exit) => LockReply::Released(store.release(&exit).await),
    }
}

/// Whether a job is paused now, by the store's clock: a claim is judged by that one, too.
pub(super) async fn is_paused(store: &dyn Store, job: &JobName) -> Result<bool, StoreError> {
    let (now, pause) = store.pause_of(job).await?;
    Ok(pause.is_some_and(|pause| pause.remaining(now).is_some()))
}

/// The next hint; none ever comes once the store has no more.
pub(crate) async fn heard(hints: &mut Option<LockWakeups>) -> LockHint {
    loop {
        let Some(open) = hints else { return std::future::pending().await };
        match open.recv().await {
            Ok(hint) => return hint,
            Err(RecvError::Lagged(_)) => return LockHint::Resync,
            Err(RecvError::Closed) => *hints = None,
        }
    }
}
