//! The words of the protocol made short, and a way to the file behind the store's back. Checks nothing itself.

use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use cronward::job::{JobName, NodeName};
use cronward::slot::{Audit, Lease, Outcome, RunRecord, Slot, Token};
use cronward::store::sql::SqliteStore;
use cronward::store::{Claim, ClaimRequest, ErrorKind, OpenError, Store, StoreError, StoreOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions};

pub(crate) const TTL: Duration = Duration::from_secs(60);
pub(crate) const DONE: Duration = Duration::from_secs(7_200);

/// A file in a directory of its own.
pub(crate) struct Place {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

pub(crate) fn place() -> Place {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cronward.sqlite");
    Place { directory, path }
}

pub(crate) fn url(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

/// Patient: the machine that runs the tests may be busy.
pub(crate) fn options() -> StoreOptions {
    StoreOptions::default().with_op_timeout(Duration::from_secs(20))
}

pub(crate) async fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(&url(path), options()).await.unwrap()
}

pub(crate) async fn open_error(path: &Path) -> StoreError {
    match SqliteStore::open(&url(path), options()).await {
        Err(OpenError::Store(error)) => error,
        other => panic!("expected a store's error, got {other:?}"),
    }
}

/// One line, of this kind, with the path and the way out.
pub(crate) fn assert_clear(error: &StoreError, kind: ErrorKind, path: &Path, way_out: &str) {
    let told = error.to_string();
    assert_eq!(error.kind, kind, "{told}");
    assert!(told.contains(&path.display().to_string()), "names the path: {told}");
    assert!(told.contains(way_out), "says {way_out:?}: {told}");
    assert!(!told.contains('\n'), "one line: {told}");
}

/// A connection that shares nothing with the store.
pub(crate) async fn raw(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).connect().await.unwrap()
}

pub(crate) async fn sql(conn: &mut SqliteConnection, text: &str) {
    sqlx::raw_sql(AssertSqlSafe(text)).execute(conn).await.unwrap();
}

pub(crate) async fn fetch<T>(conn: &mut SqliteConnection, text: &str) -> T
where
    T: Send + Unpin + sqlx::Type<sqlx::Sqlite> + for<'r> sqlx::Decode<'r, sqlx::Sqlite>,
{
    sqlx::query_scalar(AssertSqlSafe(text)).fetch_one(conn).await.unwrap()
}

pub(crate) fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(Utc::now().timestamp(), 0).unwrap()
}

/// A slot of `job` that has begun and has a day to go, the same for every process of a test.
pub(crate) fn slot(job: &str) -> Slot {
    let start = now().date_naive().and_hms_opt(0, 0, 0).unwrap().and_utc() - TimeDelta::days(1);
    Slot::new(JobName::new(job).unwrap(), start, start + TimeDelta::days(3)).unwrap()
}

pub(crate) fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

pub(crate) fn token() -> Token {
    let mut bits = [0_u8; 16];
    getrandom::fill(&mut bits).unwrap();
    Token::from_bits(u128::from_le_bytes(bits))
}

pub(crate) fn request(slot: &Slot, by: &str) -> ClaimRequest {
    ClaimRequest::new(slot.clone(), token(), node(by), TTL, 3)
}

pub(crate) async fn grant(store: &SqliteStore, slot: &Slot) -> Lease {
    let request = request(slot, "a");
    match store.claim(&request).await.unwrap() {
        Claim::Claimed { attempt, at, .. } => request.granted(attempt, at),
        other => panic!("expected a grant, got {other:?}"),
    }
}

pub(crate) fn ended(lease: &Lease, outcome: Outcome) -> RunRecord {
    RunRecord { duration_ms: Some(1), ..RunRecord::ended(lease, outcome) }
}

pub(crate) fn audit(verb: &str) -> Audit {
    let text = str::to_owned;
    Audit { verb: text(verb), who: text("alice"), host: text("ops-1"), why: text("test"), at: DateTime::UNIX_EPOCH }
}
