//! `cronward doctor` before a file: one that is well, one that is none, one whose tables refuse.

use sqlx::Executor as _;

use crate::patient::{Told, doctor};
use crate::sqlite::bench::{open, place, raw, url};

/// What is not well; that the disk is nearly full is true where it is.
fn names(told: &Told) -> Vec<&str> {
    told.names().into_iter().filter(|name| *name != "disk warning").collect()
}

#[tokio::test]
async fn a_file_is_well_and_nothing_is_left_in_it() {
    let place = place();
    drop(open(&place.path).await);
    let told = doctor(&url(&place.path)).await;
    assert_eq!(names(&told), [""; 0], "{:?}", told.bad);
    assert_eq!(told.found("rights"), ["all 29 operations are allowed: each was tried"]);
    let mut file = raw(&place.path).await;
    for table in ["slots", "latest", "outputs", "pauses", "jobs", "nodes", "notes", "locks", "messages"] {
        let count = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        let left: i64 = sqlx::query_scalar(count).fetch_one(&mut file).await.unwrap();
        assert_eq!(left, 0, "{table}");
    }
}

#[tokio::test]
async fn a_file_that_is_no_store_and_one_that_refuses_to_be_written_are_faults() {
    let place = place();
    std::fs::write(&place.path, "not a database, and long enough to be looked at").unwrap();
    let told = doctor(&url(&place.path)).await;
    assert_eq!((names(&told), told.code), (vec!["reachable error"], 2), "{:?}", told.bad);

    std::fs::remove_file(&place.path).unwrap();
    drop(open(&place.path).await);
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON slots BEGIN SELECT RAISE(ABORT, 'no'); END";
    raw(&place.path).await.execute(refuse).await.unwrap();
    let told = doctor(&url(&place.path)).await;
    assert!(told.found_of("rights error").starts_with("claim: "), "{:?}", told.bad);
    assert_eq!(told.code, 2);
}
