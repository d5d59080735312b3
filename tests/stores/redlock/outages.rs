//! Masters that are killed, and one that hangs.

use super::*;

const DONE: Duration = Duration::from_secs(7_200);

#[tokio::test]
async fn with_one_and_with_two_of_five_masters_gone_it_goes_on() {
    let mut servers = masters(5);
    let store = open(&servers).await;
    let held = request(&slot_of("held"), "a", 1);
    let lease = grant(&store, &held).await;
    for gone in 0..2_u128 {
        servers[usize::try_from(gone).unwrap()].kill();
        assert_eq!(store.renew(&lease).await.unwrap().clone(), cronward::store::Renewal::Renewed);
        let claim = request(&slot_of(&format!("job-{gone}")), "b", 10 + gone);
        let next = grant(&store, &claim).await;
        assert_eq!(next.attempt, 1);
        store.complete(&next, &ended(&next, Outcome::Success), DONE).await.unwrap();
        assert!(matches!(store.claim(&request(&next.slot, "c", 20 + gone)).await.unwrap(), Claim::Done(_)));
    }
    let (_, records) = store.inspect(std::slice::from_ref(&held.slot)).await.unwrap();
    assert!(matches!(records[0].mark, cronward::slot::Mark::Leased { .. }));
}

#[tokio::test]
async fn with_three_of_five_gone_nothing_is_granted_and_no_lease_is_given_up() {
    let mut servers = masters(5);
    let store = open(&servers).await;
    let held = request(&slot_of("held"), "a", 1);
    let lease = grant(&store, &held).await;
    servers[..3].iter_mut().for_each(RedisServer::kill);
    let alive: Vec<&RedisServer> = servers[3..].iter().collect();
    for token in 10..13 {
        let claim = request(&slot_of("other"), "b", token);
        let error = store.claim(&claim).await.unwrap_err();
        assert_eq!(error.applied, cronward::store::Applied::No, "{error}");
        assert!(error.to_string().contains("2 of 5 masters answered"), "{error}");
        assert_eq!(having(&alive, &claim.slot, "running"), 0, "what was reserved is taken back");
    }
    for _ in 0..3 {
        let error = store.renew(&lease).await.unwrap_err();
        assert_eq!(error.applied, cronward::store::Applied::Maybe, "{error}");
    }
    assert_eq!(having(&alive, &held.slot, "running"), 2, "a renewal that failed unlocks nothing");
    assert!(store.complete(&lease, &ended(&lease, Outcome::Success), DONE).await.is_err());
    assert!(store.inspect(&[]).await.is_err());
    // What two know is enough to stop the next claim once the others are back, empty or not.
    servers[0].start_again();
    servers[0].make_old();
    let (_, before) = until_settled(&store, &request(&held.slot, "b", 30)).await;
    assert!(before.iter().all(Result::is_err), "{before:?}");
    assert_eq!(having(&servers[..1].iter().collect::<Vec<_>>(), &held.slot, "done"), 1, "success was brought there");
}

/// Claims until the store answers; that must be `Done`.
async fn until_settled(store: &RedlockStore, request: &ClaimRequest) -> (Duration, Vec<Result<Claim, StoreError>>) {
    let (began, mut before) = (Instant::now(), Vec::new());
    while began.elapsed() < LIMIT {
        match store.claim(request).await {
            Ok(Claim::Done(_)) => return (began.elapsed(), before),
            Ok(other) => panic!("{other:?} although success was told to two"),
            other => before.push(other),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no answer within {LIMIT:?}: {:?}", before.last());
}

#[tokio::test]
async fn one_master_that_hangs_does_not_make_a_claim_long() {
    let servers = masters(3);
    let op_timeout = Duration::from_secs(40);
    let store = open_within(&servers, op_timeout).await;
    grant(&store, &request(&slot_of("before"), "a", 1)).await;
    servers[1].pause();
    for (job, token) in [("one", 2), ("two", 3), ("three", 4)] {
        let claim = request(&slot_of(job), "a", token);
        let began = Instant::now();
        let lease = grant(&store, &claim).await;
        // Two rounds of a majority and a little grace; the one that hangs would have taken a quarter in each.
        assert!(began.elapsed() < op_timeout / 4, "{job} took {:?}", began.elapsed());
        store.complete(&lease, &ended(&lease, Outcome::Success), DONE).await.unwrap();
    }
    servers[1].unpause();
}

#[tokio::test]
async fn two_masters_that_hang_are_an_error_in_time() {
    let servers = masters(3);
    let op_timeout = Duration::from_secs(16);
    let store = open_within(&servers, op_timeout).await;
    grant(&store, &request(&slot_of("before"), "a", 1)).await;
    servers[1].pause();
    servers[2].pause();
    let began = Instant::now();
    let error = store.claim(&request(&slot_of("job"), "a", 2)).await.unwrap_err();
    assert!(began.elapsed() < op_timeout, "{:?}", began.elapsed());
    assert!(error.to_string().contains("1 of 3 masters answered"), "{error}");
    servers[1].unpause();
    servers[2].unpause();
    let (_, before) = until_granted(&store, &request(&slot_of("job"), "a", 2)).await;
    assert!(before.iter().all(|answer| !matches!(answer, Ok(Claim::Held { by, .. }) if by.attempt > 0)), "{before:?}");
}
