//! A process that is killed while it writes.

use cronward::slot::Mark;
use cronward::store::Store;

use crate::sqlite::bench::{fetch, grant, open, place, raw, slot};
use crate::sqlite::child::{Running, command};

const KILLS: usize = 6;

#[tokio::test]
async fn what_was_answered_before_a_kill_is_there_and_the_file_is_whole() {
    let place = place();
    let mut answered = Vec::new();
    for kill in 0..KILLS {
        let mut child = Running::start(command("work", &place.path, &[]));
        for _ in 0..10 + kill {
            answered.push(child.line().unwrap());
        }
        // In the middle of whatever it does by now. What it has said since then was answered as well.
        child.process.kill().unwrap();
        answered.extend(std::iter::from_fn(|| child.line()));
    }
    let store = open(&place.path).await;
    let slots: Vec<_> = answered.iter().map(|job| slot(job)).collect();
    let (_, records) = store.inspect(&slots).await.unwrap();
    for record in records {
        assert!(matches!(record.mark, Mark::Done(_)), "{record:?}");
        assert_eq!(record.runs.len(), 1);
    }
    let whole: String = fetch(&mut raw(&place.path).await, "PRAGMA integrity_check").await;
    assert_eq!(whole, "ok");
    grant(&store, &slot("after")).await;
}

#[tokio::test]
async fn a_killed_process_keeps_nobody_from_writing() {
    let place = place();
    let mut child = Running::start(command("work", &place.path, &[]));
    child.line().unwrap();
    let store = open(&place.path).await;
    grant(&store, &slot("beside")).await;
    child.process.kill().unwrap();
    child.process.wait().unwrap();
    grant(&store, &slot("after")).await;
}
