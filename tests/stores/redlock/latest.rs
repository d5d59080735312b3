//! What a job has come to lately, where each master keeps its own.

use super::*;
use cronward::slot::{JobLatest, Verdict};

const KEY: &str = "cronward:default:{job}:last";
const DONE: Duration = Duration::from_secs(7_200);

async fn latest(store: &RedlockStore) -> JobLatest {
    store.latest(&["job".parse().unwrap()]).await.unwrap().remove(0)
}

/// What each master keeps of it.
fn kept(servers: &[RedisServer]) -> Vec<JobLatest> {
    let text = |server: &RedisServer| server.text(&["GET", KEY]).unwrap_or_else(|| "{}".to_owned());
    servers.iter().map(|server| serde_json::from_str(&text(server)).unwrap()).collect()
}

#[tokio::test]
async fn a_success_is_known_while_one_master_knows_it_and_is_brought_to_the_others() {
    let servers = masters(3);
    let store = open(&servers).await;
    let first = request(&slot_of("job"), "a", 1);
    let lease = grant(&store, &first).await;
    store.complete(&lease, &ended(&lease, Outcome::Success), DONE).await.unwrap();
    for server in &servers[1..] {
        server.command(&["FLUSHALL"]);
        server.make_old();
    }
    let known = latest(&store).await;
    assert_eq!(known.success.map(|success| success.slot), Some(lease.slot.key()));
    assert_eq!(known, kept(&servers)[0]);
    store.claim(&request(&lease.slot, "b", 2)).await.unwrap();
    for kept in kept(&servers) {
        assert_eq!(kept.success.map(|success| success.slot), Some(lease.slot.key()));
        assert_eq!(kept.end.map(|end| (end.slot, end.outcome)), Some((lease.slot.key(), Outcome::Success)));
    }
}

#[tokio::test]
async fn a_verdict_is_kept_by_every_master_and_a_reset_takes_it_back() {
    let servers = masters(3);
    let store = open(&servers).await;
    let slot = slot_of("job");
    let over = Slot::new(slot.job().clone(), slot.start() - TimeDelta::hours(2), slot.start()).unwrap();
    store.close(&over, 3, &NodeName::new("a").unwrap()).await.unwrap();
    let failing = latest(&store).await.failing.unwrap();
    assert_eq!((failing.last, failing.verdict, failing.slots), (over.key(), Verdict::Missed, 1));
    assert_eq!(kept(&servers).iter().filter(|kept| kept.failing == Some(failing)).count(), 3);
    let audit = cronward::slot::Audit {
        verb: "reset".into(),
        who: "alice".into(),
        host: "ops".into(),
        why: String::new(),
        at: Utc::now(),
    };
    store.reset(&over, &audit).await.unwrap();
    assert_eq!(latest(&store).await, JobLatest::default());
}
