//! Locks behind sentinels: a failover that loses the queue, and what comes back.

use super::{PATIENCE, SentinelGroup, instant, open_to_master};
use crate::lock_words::{held, instance, left, next_hint, next_ready, request, waits, write};
use cronward::resource::{Acquired, LockHint, LockRelease, LockRenewal};
use cronward::store::{LockStore, StoreError};

/// Asks again until the new master answers.
#[allow(clippy::disallowed_methods, reason = "real servers: there is no signal to wait for but their answers")]
async fn answered<T>(mut ask: impl AsyncFnMut() -> Result<T, StoreError>) -> T {
    let began = instant();
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => assert!(error.is_transient() && began.elapsed() < PATIENCE, "{error}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_that_lost_the_queue_is_told_and_the_holder_sets_its_entries_again() {
    let mut group = SentinelGroup::start();
    let store = open_to_master(&group.url()).await;
    let mut hints = store.listen(instance(2));
    assert_eq!(next_hint(&mut hints).await, LockHint::Resync);
    group.cut_replication();
    let hold = held(&store, &request(1, &[write("x"), write("y")])).await;
    let waiting = request(2, &[write("y")]);
    waits(&store, &waiting).await;

    group.master.kill();
    group.wait_for_failover();
    assert_eq!(next_hint(&mut hints).await, LockHint::Resync, "holders are to renew, and who waits is to look");
    assert_eq!(answered(async || store.renew_lock(&hold).await).await, LockRenewal::Restored);
    assert!(matches!(answered(async || store.acquire(&waiting).await).await, Acquired::Waiting { ahead: 1, .. }));
    assert_eq!(left(&store, &hold).await, LockRelease::Released);
    assert_eq!(next_ready(&mut hints).await, waiting.token);
    let next = held(&store, &waiting).await;
    assert!(next.fence > hold.fence);
}
