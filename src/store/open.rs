//! From a url to a store: the one file that names every adapter.

use std::sync::Arc;

use crate::clock::Clock;
use crate::store::layer::{Layered, Timeout};
use crate::store::url::without_secrets;
use crate::store::{
    Capability, Finding, Migration, OpenError, SCHEMES, Station, Store, StoreOptions, Trial, redact, shown_scheme,
};

/// Opens the store at `url`. No connection is made where that can wait: a store that is away is found out by its first
/// operation. `sqlite` alone is the embedded default: a file in `$STATE_DIRECTORY`, else in `$XDG_STATE_HOME/cronward`.
///
/// Adapters bound each call by `op_timeout` themselves and can say best what happened; a call that does not come back
/// even after twice that time is given up here, so that nobody ever waits for ever.
pub async fn open(url: &str, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, OpenError> {
    let limit = options.op_timeout.saturating_mul(2);
    let store = adapter(url, options, clock).await.map_err(|error| untold(url, error))?;
    Ok(Arc::new(Layered::new(store, Timeout::after(limit))))
}

async fn adapter(url: &str, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, OpenError> {
    let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
    if options.lock_key.is_some() && !scheme.starts_with("redis") {
        let other = capability(url).map(|capability| capability.name).ok_or_else(|| unknown(url, scheme))?;
        return Err(OpenError::LockKey { store: other });
    }
    match scheme {
        "memory" => Ok(Arc::new(crate::store::memory::MemoryStore::new(options, clock))),
        #[cfg(feature = "sqlite")]
        "sqlite" => Ok(Arc::new(crate::store::sql::SqliteStore::open(url, options).await?)),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => crate::store::sql::postgres::open(url, options),
        #[cfg(feature = "mysql")]
        "mysql" | "mariadb" => crate::store::sql::mysql::open(url, options),
        #[cfg(feature = "redis")]
        "redis" | "rediss" | "redis+unix" => Ok(Arc::new(crate::store::redis::RedisStore::open(url, options).await?)),
        #[cfg(feature = "etcd")]
        "etcd" | "etcds" => Ok(Arc::new(crate::store::etcd::EtcdStore::open(url, options, clock).await?)),
        #[cfg(feature = "zookeeper")]
        "zookeeper" => Ok(Arc::new(crate::store::zookeeper::ZookeeperStore::open(url, options, clock).await?)),
        #[cfg(feature = "redis-sentinel")]
        "redis+sentinel" | "rediss+sentinel" => {
            Ok(Arc::new(crate::store::redis::RedisStore::open(url, options).await?))
        }
        #[cfg(feature = "redis-cluster")]
        "redis+cluster" | "rediss+cluster" => Ok(Arc::new(crate::store::redis::RedisStore::open(url, options).await?)),
        #[cfg(feature = "redis-redlock")]
        "redlock" | "redlocks" => Ok(Arc::new(crate::store::redis::RedlockStore::open(url, options, clock).await?)),
        _ => Err(unknown(url, scheme)),
    }
}

/// Looks at what is particular to the store at `url`: how it keeps what it has acknowledged, and what can make it lose that.
/// Changes nothing. Empty for a store of which there is nothing to say, or that cannot be reached.
///
/// # Errors
/// As [`open()`].
pub async fn examine(url: &str, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Vec<Finding>, OpenError> {
    examined(url, options, clock).await.map_err(|error| untold(url, error))
}

async fn examined(url: &str, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Vec<Finding>, OpenError> {
    let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
    let _ = (&options, &clock);
    match scheme {
        #[cfg(feature = "sqlite")]
        "sqlite" => Ok(crate::store::sql::SqliteStore::open(url, options).await?.examine().await),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => crate::store::sql::postgres::examine(url, &options).await,
        #[cfg(feature = "mysql")]
        "mysql" | "mariadb" => crate::store::sql::mysql::examine(url, &options).await,
        #[cfg(feature = "redis-redlock")]
        "redlock" | "redlocks" => {
            Ok(crate::store::redis::RedlockStore::open(url, options, clock).await?.examine().await)
        }
        #[cfg(feature = "redis")]
        redis if redis.starts_with("redis") => {
            Ok(crate::store::redis::RedisStore::open(url, options).await?.examine().await)
        }
        #[cfg(feature = "etcd")]
        "etcd" | "etcds" => Ok(crate::store::etcd::EtcdStore::open(url, options, clock).await?.examine().await),
        #[cfg(feature = "zookeeper")]
        "zookeeper" => Ok(crate::store::zookeeper::ZookeeperStore::open(url, options, clock).await?.examine().await),
        _ => Ok(Vec::new()),
    }
}

/// The servers of the store at `url`, where there are several with rights of their own; empty where there is one, or where they
/// share their users.
///
/// # Errors
/// As [`open()`].
pub async fn stations(url: &str, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Vec<Station>, OpenError> {
    stationed(url, options, clock).await.map_err(|error| untold(url, error))
}

#[allow(clippy::unused_async, reason = "which store has several servers depends on the features")]
async fn stationed(url: &str, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Vec<Station>, OpenError> {
    let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
    let _ = (&options, &clock);
    match scheme {
        #[cfg(feature = "redis-redlock")]
        "redlock" | "redlocks" => Ok(crate::store::redis::RedlockStore::open(url, options, clock).await?.stations()),
        #[cfg(feature = "redis-cluster")]
        "redis+cluster" | "rediss+cluster" => {
            Ok(crate::store::redis::RedisStore::open(url, options).await?.stations().await)
        }
        _ => Ok(Vec::new()),
    }
}

/// Removes what a trial wrote at the store at `url`, and nothing else. A store in memory ends with its process.
///
/// # Errors
/// As [`open()`]; [`OpenError::Store`] also when the store refuses.
pub async fn forget(url: &str, options: StoreOptions, clock: Arc<dyn Clock>, trial: &Trial) -> Result<(), OpenError> {
    let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
    let _ = (&options, &clock, trial);
    match scheme {
        #[cfg(feature = "sqlite")]
        "sqlite" => crate::store::sql::SqliteStore::open(url, options).await?.forget(trial).await?,
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => crate::store::sql::postgres::forget(url, options, trial).await?,
        #[cfg(feature = "mysql")]
        "mysql" | "mariadb" => crate::store::sql::mysql::forget(url, options, trial).await?,
        #[cfg(feature = "redis-redlock")]
        "redlock" | "redlocks" => {
            crate::store::redis::RedlockStore::open(url, options, clock).await?.forget(trial).await?;
        }
        #[cfg(feature = "redis")]
        redis if redis.starts_with("redis") => {
            crate::store::redis::RedisStore::open(url, options).await?.forget(trial).await?;
        }
        #[cfg(feature = "etcd")]
        "etcd" | "etcds" => crate::store::etcd::EtcdStore::open(url, options, clock).await?.forget(trial).await?,
        #[cfg(feature = "zookeeper")]
        "zookeeper" => {
            crate::store::zookeeper::ZookeeperStore::open(url, options, clock).await?.forget(trial).await?;
        }
        _ => {}
    }
    Ok(())
}

/// Makes the tables of the store at `url`, or brings them up to date; none for a store that has none to be made.
///
/// # Errors
/// [`OpenError::Url`] when the url cannot be used; [`OpenError::Store`] when the store cannot be reached, or refuses.
pub async fn migrate(url: &str) -> Result<Option<Migration>, OpenError> {
    migrated(url).await.map_err(|error| untold(url, error))
}

#[allow(clippy::unused_async, reason = "which store has tables to wait for depends on the features")]
async fn migrated(url: &str) -> Result<Option<Migration>, OpenError> {
    let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
    match scheme {
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => crate::store::sql::postgres::migrate(url).await.map(Some),
        #[cfg(feature = "mysql")]
        "mysql" | "mariadb" => crate::store::sql::mysql::migrate(url).await.map(Some),
        #[cfg(feature = "sqlite")]
        "sqlite" => crate::store::sql::SqliteStore::migrate(url).await.map(Some),
        // The others have no tables.
        _ => capability(url).map(|_| None).ok_or_else(|| unknown(url, scheme)),
    }
}

/// What the store at `url` can do, as far as its url tells; none for one that this build has not. Connects to nothing.
pub fn capability(url: &str) -> Option<Capability> {
    let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
    match scheme {
        "memory" => Some(crate::store::memory::CAPABILITY),
        #[cfg(feature = "sqlite")]
        "sqlite" => Some(crate::store::sql::SQLITE),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => Some(crate::store::sql::postgres::CAPABILITY),
        #[cfg(feature = "mysql")]
        "mysql" | "mariadb" => Some(crate::store::sql::mysql::CAPABILITY),
        #[cfg(feature = "redis")]
        "redis" | "rediss" | "redis+unix" => Some(crate::store::redis::CAPABILITY),
        #[cfg(feature = "redis-sentinel")]
        "redis+sentinel" | "rediss+sentinel" => {
            Some(Capability { name: "redis-sentinel", ..crate::store::redis::CAPABILITY })
        }
        #[cfg(feature = "redis-cluster")]
        "redis+cluster" | "rediss+cluster" => {
            Some(Capability { name: "redis-cluster", ..crate::store::redis::CAPABILITY })
        }
        #[cfg(feature = "redis-redlock")]
        "redlock" | "redlocks" => Some(crate::store::redis::REDLOCK),
        #[cfg(feature = "etcd")]
        "etcd" | "etcds" => Some(crate::store::etcd::CAPABILITY),
        #[cfg(feature = "zookeeper")]
        "zookeeper" => Some(crate::store::zookeeper::CAPABILITY),
        _ => None,
    }
}

fn unknown(url: &str, scheme: &str) -> OpenError {
    let message = match SCHEMES.iter().find(|(known, _)| *known == scheme) {
        Some((_, feature)) => format!("this build has no {scheme}: build with the cargo feature {feature:?}"),
        None => {
            let known: Vec<&str> = SCHEMES.iter().map(|(known, _)| *known).collect();
            let known = known.join(", ");
            match shown_scheme(url) {
                Some(scheme) => format!("{scheme:?} is not a known scheme; known are {known}"),
                None => format!("it has no scheme; known are {known}"),
            }
        }
    };
    OpenError::Url { url: redact(url), message }
}

/// A url may be written in such a way that an adapter takes a part of its password for something that it may quote.
fn untold(url: &str, error: OpenError) -> OpenError {
    match error {
        OpenError::Url { url: shown, message } => OpenError::Url { url: shown, message: without_secrets(url, message) },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_store_lacks_is_one_line_and_a_database_that_pushes_lacks_nothing() {
        let lacks = |url| capability(url).and_then(|capability| capability.lacks());
        assert_eq!(
            lacks("memory:").as_deref(),
            Some("store memory: it ends with its process; it may lose what it has acknowledged")
        );
        assert_eq!(lacks("unknown://h"), None);
        #[cfg(feature = "redis-redlock")]
        assert_eq!(
            lacks("redlock://a,b,c").as_deref(),
            Some(
                "store redlock: a lease holds as far as the clocks of most of its servers run at one rate; it may lose \
                 what it has acknowledged"
            )
        );
        #[cfg(feature = "mysql")]
        assert_eq!(
            lacks("mysql://h/d").as_deref(),
            Some("store mysql: it tells of no release, so who waits looks again every 500ms")
        );
        #[cfg(feature = "postgres")]
        assert_eq!(lacks("postgres://h/d"), None);
    }
}
