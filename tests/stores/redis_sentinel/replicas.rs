//! `?wait=N`: replicas are waited for, told of when too few are reached, and never a reason to refuse a success.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cronward::slot::Outcome;
use cronward::store::redis::RedisStore;
use cronward::store::{Claim, Settlement, Store, StoreOptions};
use tracing_subscriber::fmt::MakeWriter;

use crate::redis_group::{SentinelGroup, follows, until};
use crate::words::{ended, granted, request, slot_of};

/// For each answer, on a busy machine; half of it is what replicas are waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The log of one test.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Log {
    fn count(&self, message: &str) -> usize {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap().matches(message).count()
    }
}

async fn succeed(store: &RedisStore, job: &str) -> Duration {
    let lease = granted(store, &request(&slot_of(job), 1)).await;
    #[allow(clippy::disallowed_methods, reason = "a real server is measured by the machine's clock")]
    let began = std::time::Instant::now();
    let settled = store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(60)).await.unwrap();
    assert_eq!(settled, Settlement::Recorded);
    began.elapsed()
}

#[tokio::test]
async fn too_few_replicas_are_told_once_and_the_success_counts_all_the_same() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let group = SentinelGroup::start();
    let options = StoreOptions::default().with_op_timeout(PATIENCE);
    let store = RedisStore::open(&format!("{}?wait=1", group.url()), options).await.unwrap();

    succeed(&store, "reached").await;
    assert_eq!(group.master.calls("wait"), 1, "the replica was waited for");
    assert_eq!(log.count("too few replicas reached"), 0);

    group.cut_replication();
    for job in ["one", "two"] {
        let took = succeed(&store, job).await;
        assert!(took < PATIENCE, "no longer than half of op_timeout: {took:?}");
        assert!(matches!(store.claim(&request(&slot_of(job), 2)).await.unwrap(), Claim::Done(_)));
    }
    assert_eq!(log.count("too few replicas reached"), 1, "told once");

    group.replica.command(&["CONFIG", "SET", "masterauth", ""]);
    until("the replica follows again", || follows(&group.replica));
    succeed(&store, "again").await;
    assert_eq!(log.count("replicas reached again"), 1);
}

#[tokio::test]
async fn a_user_who_may_not_wait_succeeds_and_is_told() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let group = SentinelGroup::start();
    let mut rules = crate::redis_server::documented_permissions();
    rules.push("+role".to_owned());
    group.master.allow(&rules);
    let url = group.url().replace("://", "://cronward:secret@") + "?wait=1";
    let store = RedisStore::open(&url, StoreOptions::default().with_op_timeout(PATIENCE));
    succeed(&store.await.unwrap(), "a").await;
    assert_eq!((log.count("too few replicas reached"), log.count("permission")), (1, 1), "{log:?}");
}

#[tokio::test]
async fn without_being_asked_for_nothing_is_waited_for() {
    let group = SentinelGroup::start();
    let url = group.url();
    let store = RedisStore::open(&url, StoreOptions::default().with_op_timeout(PATIENCE));
    succeed(&store.await.unwrap(), "a").await;
    assert_eq!(group.master.calls("wait"), 0);
}
