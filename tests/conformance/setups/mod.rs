//! The stores under test. One line each.

mod chaos;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "mysql")]
mod mariadb;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "redis-redlock")]
mod redlock;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "zookeeper")]
mod zookeeper;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql", feature = "etcd", feature = "zookeeper"))]
use cronward::slot::Token;
use cronward::store::conformance::Setup;

/// Starts what the store needs. An error fails every trial of the setup.
pub(crate) type Start = fn() -> Pin<Box<dyn Future<Output = Result<Arc<dyn Setup>, String>>>>;

/// Those that keep locks, besides.
pub(crate) const KEEP_LOCKS: [&str; 13] = [
    "memory",
    "sqlite",
    "redis",
    "redis(unix)",
    "redis(tls, user)",
    "sentinel",
    "cluster",
    "postgres",
    "postgres(least privilege)",
    "mariadb",
    "mariadb(least privilege)",
    "etcd",
    "zookeeper",
];

/// What befalls the document of a lock behind the store's back.
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql", feature = "etcd", feature = "zookeeper"))]
#[derive(Clone, Copy, Debug)]
enum Edit {
    /// The request's entry has lapsed, or everybody's where none is named: long enough ago for a store whose idea of the time lags behind.
    Lapse(Option<Token>),
    /// So many more entries like the last, each of a request of its own.
    Crowd(usize),
}

#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql", feature = "etcd", feature = "zookeeper"))]
impl Edit {
    fn of(self, document: &[u8]) -> Result<String, String> {
        let mut document: serde_json::Value = serde_json::from_slice(document).map_err(|error| error.to_string())?;
        let Some(entries) = document.get_mut("entries").and_then(|entries| entries.as_array_mut()) else {
            return Ok(document.to_string());
        };
        match self {
            Self::Lapse(token) => {
                let token = token.map(|token| token.to_string());
                for entry in entries {
                    if token.is_none() || entry["token"].as_str() == token.as_deref() {
                        entry["until_ms"] = 1.into();
                    }
                }
            }
            Self::Crowd(more) => {
                let last = entries.last().cloned().ok_or("nobody stands in the lock")?;
                let place = last["place"].as_u64().ok_or("an entry without a place")?;
                for number in (1_u64..).take(more) {
                    let mut entry = last.clone();
                    entry["token"] = Token::from_bits(u128::MAX - u128::from(number)).to_string().into();
                    (entry["place"], entry["fence"]) = ((place + number).into(), (place + number).into());
                    entries.push(entry);
                }
                document["last"] = (place + u64::try_from(more).unwrap_or(u64::MAX)).into();
            }
        }
        Ok(document.to_string())
    }
}

/// Every setup by name.
pub(crate) fn all() -> Vec<(&'static str, Start)> {
    vec![
        ("memory", || Box::pin(memory::start())),
        ("chaos(memory)", || Box::pin(chaos::start())),
        #[cfg(feature = "redis")]
        ("redis", || Box::pin(redis::over_tcp())),
        #[cfg(feature = "redis")]
        ("redis(unix)", || Box::pin(redis::over_unix_socket())),
        #[cfg(feature = "redis")]
        ("redis(tls, user)", || Box::pin(redis::over_tls_as_a_user())),
        #[cfg(feature = "redis-sentinel")]
        ("sentinel", || Box::pin(redis::behind_sentinels())),
        #[cfg(feature = "redis-cluster")]
        ("cluster", || Box::pin(redis::in_a_cluster())),
        #[cfg(feature = "redis-redlock")]
        ("redlock-3", || Box::pin(redlock::over(3))),
        #[cfg(feature = "redis-redlock")]
        ("redlock-5", || Box::pin(redlock::over(5))),
        #[cfg(feature = "sqlite")]
        ("sqlite", || Box::pin(sqlite::start())),
        #[cfg(feature = "postgres")]
        ("postgres", || Box::pin(postgres::as_owner())),
        #[cfg(feature = "postgres")]
        ("postgres(least privilege)", || Box::pin(postgres::with_least_privilege())),
        #[cfg(feature = "mysql")]
        ("mariadb", || Box::pin(mariadb::as_owner())),
        #[cfg(feature = "mysql")]
        ("mariadb(least privilege)", || Box::pin(mariadb::with_least_privilege())),
        #[cfg(feature = "etcd")]
        ("etcd", || Box::pin(etcd::start())),
        #[cfg(feature = "zookeeper")]
        ("zookeeper", || Box::pin(zookeeper::start())),
    ]
}
