//! The locks of a store with a layer around it: the store that is the current one keeps them, and each operation is handed to the layer
//! as every other.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::sync::broadcast;

use crate::error::Reply;
use crate::job::LockName;
use crate::resource::{AcquireRequest, Acquired, LockExit, LockHold, LockRecord, LockRelease, LockRenewal};
use crate::slot::{Audit, Token};
use crate::store::layer::{Layer, Layered};
use crate::store::{Applied, ErrorKind, Intervention, LockStore, LockWakeups, Op, Store, StoreError};

/// Passes every operation on.
macro_rules! layered_locks {
    ($($op:ident $name:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl<L: Layer> LockStore for Layered<L> {
            $(async fn $name(&self, $($arg: $type),*) -> Reply<$answer> {
                self.around(Op::$op, &|store| {
                    Box::pin(async move { locks_of(store, Op::$op)?.$name($($arg),*).await })
                })
                .await
            })*

            /// Those of the current store: of one that takes its place later a new request hears.
            fn listen(&self, instance: Token) -> LockWakeups {
                let locks = self.inner.store().lock_store();
                locks.map_or_else(|| broadcast::Sender::new(1).subscribe(), |locks| locks.listen(instance))
            }

            fn lock_poll(&self) -> Option<Duration> {
                self.inner.store().lock_store()?.lock_poll()
            }
        }
    };
}
layered_locks! {
    Acquire acquire(request: &AcquireRequest) -> Acquired;
    RenewLock renew_lock(hold: &LockHold) -> LockRenewal;
    Release release(exit: &LockExit) -> LockRelease;
    Locks locks(names: &[LockName]) -> (DateTime<Utc>, Vec<LockRecord>);
    Locks lock_names() -> Vec<LockName>;
    Evict evict(lock: &LockName, token: Token, audit: &Audit) -> Intervention;
    Purge purge_locks() -> u64;
}

fn locks_of(store: Arc<dyn Store>, op: Op) -> Reply<Arc<dyn LockStore>> {
    let location = store.location().to_owned();
    let none = || StoreError::new(ErrorKind::Unsupported, Applied::No, op, &location, "it keeps no locks");
    store.lock_store().ok_or_else(none)
}
