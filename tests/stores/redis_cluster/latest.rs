//! What jobs have come to lately, where each is kept by another server.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_stands_with_the_jobs_slots_and_is_told_in_the_order_asked() {
    let group = ClusterGroup::start();
    let store = open(&group.url()).await;
    let mut slots: Vec<Slot> = Vec::new();
    for index in 0..12 {
        let slot = slot_of(&format!("job-{index}"));
        let start = slot.start() - chrono::TimeDelta::hours(index);
        let slot = Slot::new(slot.job().clone(), start, slot.end()).unwrap();
        let lease = granted(&store, &request(&slot, 1)).await;
        store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(60)).await.unwrap();
        let key = format!("cronward:default:{{{}}}:last", slot.job());
        let kept = |server: &crate::redis_server::RedisServer| {
            let own = server.command(&[
                "CLUSTER",
                "GETKEYSINSLOT",
                &cluster_slot(&group, slot.job().as_str()).to_string(),
                "9",
            ]);
            redis::from_redis_value::<Vec<String>>(own).unwrap().contains(&key)
        };
        assert!(group.servers.iter().any(kept), "{key}");
        slots.push(slot);
    }
    let mut jobs: Vec<_> = slots.iter().rev().map(|slot| slot.job().clone()).collect();
    jobs.insert(5, "nobody-knows".parse().unwrap());
    let known = store.latest(&jobs).await.unwrap();
    let mut told: Vec<_> = known.iter().map(|latest| latest.success.map(|success| success.slot)).collect();
    assert_eq!(told.remove(5), None);
    assert_eq!(told, slots.iter().rev().map(|slot| Some(slot.key())).collect::<Vec<_>>());
}
