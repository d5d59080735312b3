//! Several processes and many connections at once.

use std::collections::BTreeMap;

use cronward::slot::Outcome;
use cronward::store::{Applied, Claim, ErrorKind, Settlement, Store};

use crate::sqlite::bench::{DONE, audit, ended, grant, open, place, raw, request, slot, sql};
use crate::sqlite::child::{Running, command};

/// Slots that each process of a race asks for.
pub(crate) const SLOTS: usize = 25;
const PROCESSES: usize = 8;

#[test]
fn of_processes_that_make_the_file_and_claim_together_one_wins_each_slot() {
    let place = place();
    let mut children: Vec<Running> =
        (0..PROCESSES).map(|_| Running::start(command("claim", &place.path, &[]))).collect();
    for child in &mut children {
        assert_eq!(child.line().as_deref(), Some("ready"));
    }
    children.iter_mut().for_each(Running::go);
    let mut wins = BTreeMap::new();
    let mut answers = 0;
    for said in children.into_iter().flat_map(Running::rest) {
        answers += 1;
        if let Some(won) = said.strip_prefix("won ") {
            *wins.entry(won.to_owned()).or_insert(0) += 1;
        }
    }
    assert_eq!(answers, PROCESSES * SLOTS);
    let each_once: BTreeMap<_, _> = (0..SLOTS).map(|index| (format!("{index} 1"), 1)).collect();
    assert_eq!(wins, each_once);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_connections_one_wins() {
    let place = place();
    let slot = slot("a");
    let mut stores = Vec::new();
    for _ in 0..64 {
        stores.push(open(&place.path).await);
    }
    let claims = stores.iter().map(|store| {
        let request = request(&slot, "a");
        async move { store.claim(&request).await.unwrap() }
    });
    let answers = futures_util::future::join_all(claims).await;
    let won = answers.iter().filter(|answer| matches!(answer, Claim::Claimed { attempt: 1, .. })).count();
    let held = answers.iter().filter(|answer| matches!(answer, Claim::Held { .. })).count();
    assert_eq!((won, held), (1, 63));
}

/// Calls that wait for the lock together share one transaction. Each is told its own, as if it had been alone.
#[tokio::test]
async fn calls_that_share_a_transaction_are_steps_of_their_own() {
    let place = place();
    let store = open(&place.path).await;
    let lease = grant(&store, &slot("done")).await;
    grant(&store, &slot("odd")).await;
    let mut other = raw(&place.path).await;
    sql(&mut other, "UPDATE slots SET attempts = -1 WHERE job = 'odd'").await;
    sql(&mut other, "BEGIN IMMEDIATE").await;
    let run = ended(&lease, Outcome::Success);
    let (first, second, again) = (request(&slot("a"), "a"), request(&slot("a"), "b"), request(&slot("done"), "b"));
    let odd = request(&slot("odd"), "a");
    let calls = async {
        tokio::join!(
            store.claim(&first),
            store.complete(&lease, &run, DONE),
            store.claim(&odd),
            store.claim(&second),
            store.claim(&again),
        )
    };
    // They wait while the other has the lock, and all are there when it is free.
    let (_, (first, done, odd, second, again)) = tokio::join!(sql(&mut other, "ROLLBACK"), calls);
    assert!(matches!(first, Ok(Claim::Claimed { attempt: 1, .. })), "{first:?}");
    assert!(matches!(done, Ok(Settlement::Recorded)), "{done:?}");
    assert_eq!(odd.unwrap_err().kind, ErrorKind::Corrupt);
    assert!(matches!(second, Ok(Claim::Held { .. })), "{second:?}");
    assert!(matches!(again, Ok(Claim::Done(_))), "{again:?}");
    // One transaction has one time.
    let (_, records) = store.inspect(&[slot("a"), slot("done")]).await.unwrap();
    assert_eq!(Some(records[0].runs[0].claimed_at), records[1].verdict.as_ref().map(|verdict| verdict.at));
}

/// One call makes the disk fail; the others of its transaction are done all the same.
#[tokio::test]
async fn a_call_that_fails_does_not_take_those_of_its_transaction_with_it() {
    let place = place();
    let store = open(&place.path).await;
    grant(&store, &slot("bad")).await;
    let mut other = raw(&place.path).await;
    sql(
        &mut other,
        "CREATE TRIGGER bad BEFORE UPDATE ON slots WHEN old.job = 'bad' BEGIN SELECT raise(FAIL, 'told to'); END",
    )
    .await;
    sql(&mut other, "BEGIN IMMEDIATE").await;
    let (one, bad, two) = (request(&slot("one"), "a"), slot("bad"), request(&slot("two"), "a"));
    let unlock = audit("unlock");
    let calls = async { tokio::join!(store.claim(&one), store.unlock(&bad, &unlock), store.claim(&two)) };
    let (_, (one, bad, two)) = tokio::join!(sql(&mut other, "ROLLBACK"), calls);
    assert!(matches!(one, Ok(Claim::Claimed { attempt: 1, .. })), "{one:?}");
    assert_eq!(bad.unwrap_err().applied, Applied::No);
    assert!(matches!(two, Ok(Claim::Claimed { attempt: 1, .. })), "{two:?}");
}
