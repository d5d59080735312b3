//! The documented grants of a database server, one by one: a user who has all but one is told what is missing, by `doctor` or
//! by the operation that needs it. A grant that nobody misses does not belong into the documents.

use std::time::Duration;

use cronward::store::{Applied, ErrorKind};
use futures_util::StreamExt;

use super::database::{Database, failed, granted, open, request, slot};
use super::dialect::{self, OUTLASTED};
use super::locks::locks_at;
use crate::lock_words::asking;
use crate::patient::doctor;

/// Users who are looked at side by side: most of the time is spent waiting for hints that do not come.
const AT_ONCE: usize = 4;

/// A right on a table.
#[derive(Debug)]
struct Right {
    privilege: String,
    table: String,
}

/// Each that these statements give.
fn rights(grants: &[String]) -> Vec<Right> {
    let mut rights = Vec::new();
    for grant in grants {
        let Some((privileges, rest)) = grant.strip_prefix("GRANT ").and_then(|rest| rest.split_once(" ON ")) else {
            continue;
        };
        let tables = rest.split_once(" TO ").expect("a grant to somebody").0;
        for table in tables.split(", ") {
            for privilege in privileges.split(", ") {
                rights.push(Right { privilege: privilege.to_owned(), table: table.to_owned() });
            }
        }
    }
    rights
}

#[tokio::test]
async fn each_documented_grant_is_missed_by_a_user_who_lacks_it() {
    let database = Database::new().await;
    database.store().await;
    let grants = dialect::documented_grants();
    let rights = rights(&grants);
    assert!(rights.len() > 20, "{rights:?}");
    let user = |index: usize| database.user(&format!("without_{index}"));
    // One after the other: who may do what with a table is one row, which two statements cannot change at once.
    for (index, Right { privilege, table }) in rights.iter().enumerate() {
        for grant in &grants {
            database.sql(&dialect::granted_to(&user(index), grant)).await;
        }
        database.sql(&format!("REVOKE {privilege} ON {table} FROM {}", user(index))).await;
    }
    let looks = rights.iter().enumerate().map(async |(index, right)| {
        let table = &right.table;
        let url = database.url_of(&user(index));
        let told = doctor(&url).await;
        let is_told = told.bad.iter().any(|(_, finding)| finding["found"].as_str().unwrap().contains(table.as_str()));
        let is_missed = is_told
            || is_missed_by_what_replaces_the_old(&database, &url, table, index).await
            || is_missed_by_locks(&url, table, index).await;
        (!is_missed).then_some(right)
    });
    let unneeded: Vec<_> = futures_util::stream::iter(looks).buffer_unordered(AT_ONCE).collect().await;
    let unneeded: Vec<_> = unneeded.into_iter().flatten().collect();
    assert!(unneeded.is_empty(), "nobody misses: {unneeded:?}");
}

/// What doctor does not try either: a lock that nobody had used, and one that somebody holds.
async fn is_missed_by_locks(url: &str, table: &str, index: usize) -> bool {
    let store = locks_at(url).await;
    let request = asking(u128::try_from(index).unwrap() + 1, &[&format!("lock-{index}")]);
    let mut errors = Vec::new();
    for _ in 0..2 {
        errors.extend(store.acquire(&request).await.err());
    }
    for error in &errors {
        assert_eq!((error.kind, error.applied), (ErrorKind::Denied, Applied::No), "{error}");
        assert!(error.message.contains("docs/stores.md"), "{error}");
    }
    errors.iter().any(|error| error.message.contains(table))
}

/// What doctor does not try, for it never writes to what is old: records that have outlasted the retention make room for new ones.
async fn is_missed_by_what_replaces_the_old(database: &Database, url: &str, table: &str, index: usize) -> bool {
    let slot = slot(&format!("old-{index}"));
    let owner = open(&database.url());
    let lease = granted(&*owner, &request(&slot, 1)).await;
    owner.fail(&lease, &failed(&lease), Duration::ZERO).await.unwrap();
    database.sql(&format!("{OUTLASTED} WHERE job = 'old-{index}'")).await;
    let Err(error) = open(url).claim(&request(&slot, 2)).await else { return false };
    assert_eq!((error.kind, error.applied), (ErrorKind::Denied, Applied::No), "{error}");
    assert!(error.message.contains("docs/stores.md"), "{error}");
    error.message.contains(table)
}
