//! Many who want one lock at once: a refusal costs the server no more than a count.

use cronward::resource::{Acquired, LockRefusal};
use cronward::store::LockStore;
use cronward::testing::{Clock, SystemClock};

use crate::lock_words::{held, request, waits, write};
use crate::redis::store;
use crate::redis_server::RedisServer;

/// Reads of parts of the queue that one scan of a full queue is made of.
const SCAN: u64 = 8;

#[tokio::test]
async fn a_full_queue_refuses_by_its_length_and_scans_at_most_once_a_second() {
    let server = RedisServer::start();
    let store = store(&server).await;
    held(&store, &request(1, &[write("x")])).await;
    for number in 2..=1_024 {
        waits(&store, &request(number, &[write("x")])).await;
    }
    let full = Acquired::Refused(LockRefusal::Full);
    assert_eq!(store.acquire(&request(2_000, &[write("x")])).await.unwrap(), full);
    server.command(&["CONFIG", "RESETSTAT"]);
    let begun = SystemClock.now().mono;
    for number in 2_001..=2_100 {
        assert_eq!(store.acquire(&request(number, &[write("x")])).await.unwrap(), full);
    }
    // The front of the queue is read each time.
    let scans = SystemClock.now().mono.since(begun).as_secs() + 1;
    let reads = server.calls("zrange");
    assert!(reads <= 100 + SCAN * scans, "{reads} reads, {scans} scans allowed");
    assert_eq!(server.calls("hset"), 0, "nothing of the queue is written");
}
