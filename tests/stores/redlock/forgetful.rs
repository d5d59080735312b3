//! Masters that lose their data: what the others know counts, and who has just begun to remember does not.

use super::*;

/// TTL of leases that are to lapse.
const SHORT: Duration = Duration::from_secs(4);
const DONE: Duration = Duration::from_secs(7_200);

#[tokio::test]
async fn success_that_one_master_has_kept_stops_every_claim_and_is_brought_to_the_others() {
    let servers = masters(3);
    let store = open(&servers).await;
    let first = request(&slot_of("job"), "a", 1);
    let lease = grant(&store, &first).await;
    let run = ended(&lease, Outcome::Success);
    store.complete(&lease, &run, DONE).await.unwrap();
    for forgetful in [&servers[1..2], &servers[1..]] {
        for server in forgetful {
            server.command(&["FLUSHALL"]);
            server.make_old();
        }
        let all: Vec<&RedisServer> = servers.iter().collect();
        assert_eq!(having(&all, &lease.slot, "done"), 3 - forgetful.len());
        let claim = store.claim(&request(&lease.slot, "b", 2)).await.unwrap();
        assert!(
            matches!(&claim, Claim::Done(mark) if mark.by.node.as_str() == "a" && mark.by.attempt == 1),
            "{claim:?}"
        );
        assert_eq!(having(&all, &lease.slot, "done"), 3, "success was brought to whom it lacked");
    }
    let (_, records) = store.inspect(std::slice::from_ref(&lease.slot)).await.unwrap();
    assert_eq!((records[0].attempts, &records[0].runs), (1, &vec![run]));
}

#[tokio::test]
async fn a_reset_is_not_undone_by_a_master_that_missed_it() {
    let servers = masters(3);
    let store = open(&servers).await;
    let first = request(&slot_of("job"), "a", 1);
    let lease = grant(&store, &first).await;
    store.complete(&lease, &ended(&lease, Outcome::Success), DONE).await.unwrap();
    let old = servers[2].text(&["GET", &mark_of(&lease.slot)]).unwrap();
    let log = format!("{}:log", mark_of(&lease.slot));
    let verdict = servers[2].text(&["HGET", &log, "verdict"]).unwrap();
    // The verb comes after what it takes back, also by clocks that count milliseconds.
    let done = store.inspect(&[]).await.unwrap().0;
    while store.inspect(&[]).await.unwrap().0 <= done + chrono::TimeDelta::milliseconds(1) {}
    let audit = cronward::slot::Audit {
        verb: "reset".into(),
        who: "alice".into(),
        host: "ops".into(),
        why: String::new(),
        at: Utc::now(),
    };
    store.reset(&lease.slot, &audit).await.unwrap();
    // As if the third had not been told.
    servers[2].command(&["SET", &mark_of(&lease.slot), &old, "EX", "600"]);
    servers[2].command(&["HDEL", &log, "audit.1", "forgiven"]);
    servers[2].command(&["HSET", &log, "verdict", &verdict]);
    let again = request(&lease.slot, "b", 2);
    assert_eq!(grant(&store, &again).await.attempt, 2);
}

#[tokio::test]
async fn a_master_that_lost_its_data_counts_again_after_the_longest_lease_and_not_before() {
    let mut servers = masters(3);
    let store = open(&servers).await;
    let first = ClaimRequest { lease_ttl: SHORT, ..request(&slot_of("job"), "a", 1) };
    let lease = grant(&store, &first).await;
    // One that the claim never reached, one that forgets it, and the one that knows is away.
    servers[2].command(&["DEL", &mark_of(&lease.slot), &format!("{}:attempts", mark_of(&lease.slot))]);
    servers[2].command(&["DEL", &format!("{}:log", mark_of(&lease.slot))]);
    let lost = Instant::now();
    servers[1].restart_empty();
    servers[0].kill();
    let other = ClaimRequest { lease_ttl: SHORT, ..request(&lease.slot, "b", 2) };
    let (_, before) = until_granted(&store, &other).await;
    let took = lost.elapsed();
    assert!(took >= SHORT - Duration::from_millis(600), "a lease of {SHORT:?} was given away after {took:?}");
    let young =
        |answer: &Result<Claim, StoreError>| matches!(answer, Err(error) if error.message.contains("count again"));
    assert!(before.iter().any(young), "{before:?}");
    assert!(before.iter().all(Result::is_err), "{before:?}");
}

/// Another node asks for a shorter one, as after a reload; of the masters that it hears one knows of the longer.
#[tokio::test]
async fn a_master_that_lost_a_longer_lease_than_is_asked_for_does_not_count_before_that_is_over() {
    let mut servers = masters(3);
    let lease = grant(&open(&servers).await, &request(&slot_of("job"), "a", 1)).await;
    let longest = "cronward:default:{job}:longest";
    assert_eq!(servers[2].text(&["GET", longest]), Some(LEASE.as_millis().to_string()));
    assert!(servers[2].number(&["PTTL", longest]) > 0);
    // One that the claim never reached, one that forgets it, and the one that knows is away.
    let mark = mark_of(&lease.slot);
    servers[2].command(&["DEL", &mark, &format!("{mark}:attempts"), &format!("{mark}:log")]);
    servers[1].restart_empty();
    servers[0].kill();
    let other = open(&servers).await;
    let shorter = ClaimRequest { lease_ttl: SHORT, ..request(&lease.slot, "b", 2) };
    let began = Instant::now();
    while began.elapsed() < SHORT * 2 {
        let answer = other.claim(&shorter).await;
        assert!(matches!(&answer, Err(error) if error.message.contains("count again in")), "{answer:?}");
    }
    // A job that never had a longer one does not wait for it.
    let another = ClaimRequest { lease_ttl: SHORT, ..request(&slot_of("other"), "b", 3) };
    assert_eq!(grant(&other, &another).await.attempt, 1);
}

#[tokio::test]
async fn masters_that_were_just_set_up_wait_for_one_lease() {
    let servers: Vec<RedisServer> = (0..3).map(|_| RedisServer::start()).collect();
    let store = open(&servers).await;
    let began = Instant::now();
    let first = ClaimRequest { lease_ttl: SHORT, ..request(&slot_of("job"), "a", 1) };
    let (_, before) = until_granted(&store, &first).await;
    assert!(began.elapsed() >= SHORT, "{:?}", began.elapsed());
    assert!(!before.is_empty());
    // A second slot does not wait, and neither does a shorter lease.
    let shorter = ClaimRequest { lease_ttl: SHORT / 2, ..request(&slot_of("other"), "a", 2) };
    assert_eq!(grant(&store, &shorter).await.attempt, 1);
}

#[tokio::test]
async fn a_running_lease_is_set_again_at_the_master_that_lost_it() {
    let servers = masters(3);
    let store = open(&servers).await;
    let held = request(&slot_of("job"), "a", 1);
    let lease = grant(&store, &held).await;
    servers[0].command(&["FLUSHALL"]);
    assert_eq!(store.renew(&lease).await.unwrap(), cronward::store::Renewal::Renewed);
    assert_eq!(having(&[&servers[0]], &lease.slot, "running"), 1);
    // It says so, and it does not count before it is old enough.
    servers[1].pause();
    let patient = open_within(&servers, Duration::from_secs(8)).await;
    assert!(patient.renew(&lease).await.is_err());
    servers[1].unpause();
    assert_eq!(store.renew(&lease).await.unwrap(), cronward::store::Renewal::Renewed);
}

#[tokio::test]
async fn a_run_is_not_overtaken_by_one_before_it_that_a_clock_ahead_has_timed() {
    let servers = masters(3);
    let store = open(&servers).await;
    let first = grant(&store, &request(&slot_of("job"), "a", 1)).await;
    store.fail(&first, &ended(&first, Outcome::Failure), Duration::ZERO).await.unwrap();
    // As two clocks would have told that are an hour ahead and have been set right since.
    let log = format!("{}:log", mark_of(&first.slot));
    let ahead = first.claimed_at + TimeDelta::hours(1);
    for server in &servers[..2] {
        let record = server.text(&["HGET", &log, "1"]).unwrap();
        let claimed = |at: DateTime<Utc>| format!("\"claimed_ms\":{}", at.timestamp_millis());
        let record = record.replace(&claimed(first.claimed_at), &claimed(ahead));
        assert!(record.contains(&claimed(ahead)), "{record}");
        server.command(&["HSET", &log, "1", &record]);
    }
    let second = grant(&store, &request(&first.slot, "b", 2)).await;
    assert_eq!((second.attempt, second.claimed_at.timestamp_millis()), (2, ahead.timestamp_millis()));
    let settled = store.complete(&second, &ended(&second, Outcome::Success), DONE).await.unwrap();
    assert_eq!(settled, cronward::store::Settlement::Recorded);
}
