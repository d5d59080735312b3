//! From a url to a store: the one file that names every adapter.

use std::sync::Arc;

use crate::clock::Clock;
use crate::store::layer::{Layered, Timeout};
use crate::store::{Capability, Store, StoreError, StoreOptions};

/// The schemes that are known, with the cargo feature each needs.
pub const SCHEMES: &[(&str, &str)] = &[
    ("sqlite", "sqlite"),
    ("redis", "redis"),
    ("rediss", "redis"),
    ("redis+unix", "redis"),
    ("postgres", "postgres"),
    ("postgresql", "postgres"),
    ("mysql", "mysql"),
    ("mariadb", "mysql"),
    ("etcd", "etcd"),
    ("etcds", "etcd"),
    ("zookeeper", "zookeeper"),
    ("redis+sentinel", "redis-sentinel"),
    ("rediss+sentinel", "redis-sentinel"),
    ("redis+cluster", "redis-cluster"),
    ("rediss+cluster", "redis-cluster"),
    ("memory", ""),
];

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The url cannot be used as it is written.
    #[error("store url {url:?}: {message}")]
    Url {
        /// The url, without secrets.
        url: String,
        /// What is wrong and what to write.
        message: String,
    },
    /// The store answered, or did not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Opens the store at `url`. No connection is made where that can wait: a store that is away is found out by its first
/// operation. `sqlite` alone is the embedded default: a file in `$STATE_DIRECTORY`, else in `$XDG_STATE_HOME/cronward`.
///
/// Adapters bound each call by `op_timeout` themselves and can say best what happened; a call that does not come back
/// even after twice that time is given up here, so that nobody ever waits for ever.
pub async fn open(url: &str, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, OpenError> {
    let limit = options.op_timeout.saturating_mul(2);
    let store = adapter(url, options, clock).await?;
    Ok(Arc::new(Layered::new(store, Timeout::after(limit))))
}

async fn adapter(url: &str, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, OpenError> {
    let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
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
        _ => Err(unknown(url, scheme)),
    }
}

/// What a migration did: the tables' version before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// 0 when there were no tables.
    pub from: i64,
    /// The same as before when nothing was to do.
    pub to: i64,
}

/// Makes the tables of the store at `url`, or brings them up to date; none for a store that has none to be made.
///
/// # Errors
/// [`OpenError::Url`] when the url cannot be used; [`OpenError::Store`] when the store cannot be reached, or refuses.
pub async fn migrate(url: &str) -> Result<Option<Migration>, OpenError> {
    let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
    match scheme {
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => crate::store::sql::postgres::migrate(url).await.map(Some),
        #[cfg(feature = "mysql")]
        "mysql" | "mariadb" => crate::store::sql::mysql::migrate(url).await.map(Some),
        // The others have no tables, or make their file's own.
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
            format!("{scheme:?} is not a known scheme; known are {}", known.join(", "))
        }
    };
    OpenError::Url { url: redact(url), message }
}

/// The url without its password, for messages.
pub fn redact(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    // A password with a raw `/`, `?` or `#` in it: where it ends cannot be told, so nothing is shown.
    if !authority.is_empty() && !authority.contains('@') && tail.contains('@') {
        return format!("{scheme}://***");
    }
    let shown = match authority.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((name, _)) => format!("{name}:***@{host}"),
            None => format!("***@{host}"),
        },
        None => authority.to_owned(),
    };
    let tail = tail.split(['?', '#']).next().unwrap_or("");
    format!("{scheme}://{shown}{tail}")
}

/// What in a url nobody else may see: the url itself when it carries a password, and the password, as written and
/// decoded. Empty for a url without one.
pub fn secrets(url: &str) -> Vec<String> {
    if redact(url) == url.split(['?', '#']).next().unwrap_or("") && !url.contains("pass") {
        return Vec::new();
    }
    let mut secrets = vec![url.to_owned()];
    if let Ok(parsed) = url::Url::parse(url) {
        let in_query =
            parsed.query_pairs().filter(|(name, _)| name.contains("pass")).map(|(_, value)| value.into_owned());
        secrets.extend(in_query);
        // `redis://password@host` is read as a user by the generic rules, and is a password all the same.
        secrets.extend(parsed.password().or(Some(parsed.username())).map(str::to_owned));
    } else {
        // Several hosts with ports are no url by the generic rules.
        secrets.extend(password_of(url));
    }
    let decoded = secrets.iter().map(|secret| {
        url::form_urlencoded::parse(format!("s={secret}").as_bytes()).next().map(|(_, v)| v.into_owned())
    });
    let decoded: Vec<String> = decoded.flatten().collect();
    secrets.extend(decoded);
    secrets.retain(|secret| !secret.is_empty());
    secrets.sort_unstable();
    secrets.dedup();
    secrets
}

/// The password of a url, found without understanding the rest of it.
fn password_of(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let (user_info, _) = rest.rsplit_once('@')?;
    user_info.split_once(':').map(|(_, password)| password.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secrets_of_a_url_are_the_url_and_its_password_and_none_where_there_is_no_password() {
        assert_eq!(secrets("redis://user:hunter2@h"), ["hunter2", "redis://user:hunter2@h"]);
        assert!(secrets("redis://:a%2Fb@h").contains(&"a/b".to_owned()));
        assert!(secrets("redis+unix:///s?user=a&pass=hunter2").contains(&"hunter2".to_owned()));
        assert!(secrets("etcd://u:hunter2@a:2379,b:2379").contains(&"hunter2".to_owned()));
        for url in ["sqlite", "sqlite:///var/a@b.db", "redis://h:6379/0", "memory:", "rediss://h?ca=/etc/ca.pem"] {
            assert_eq!(secrets(url), [""; 0], "{url}");
        }
    }

    #[test]
    fn what_a_store_lacks_is_one_line_and_a_database_that_pushes_lacks_nothing() {
        let lacks = |url| capability(url).and_then(|capability| capability.lacks());
        assert_eq!(
            lacks("memory:").as_deref(),
            Some("store memory: it ends with its process; it may lose what it has acknowledged")
        );
        assert_eq!(lacks("unknown://h"), None);
        #[cfg(feature = "mysql")]
        assert_eq!(
            lacks("mysql://h/d").as_deref(),
            Some("store mysql: it tells of no release, so who waits looks again every 500ms")
        );
        #[cfg(feature = "postgres")]
        assert_eq!(lacks("postgres://h/d"), None);
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn no_password_of_a_database_is_shown_and_each_is_hidden_from_commands() {
        for url in [
            "postgres://u:hunter2@h:1/d?sslmode=require",
            "mysql://u:hunter2@h/d",
            "postgres:///d?host=/run/p&user=u&password=hunter2",
            "postgresql://u:hun%74er2@h/d",
        ] {
            assert!(!redact(url).contains("ter2"), "{}", redact(url));
            assert!(secrets(url).contains(&"hunter2".to_owned()), "{url}: {:?}", secrets(url));
        }
    }

    #[test]
    fn no_password_is_shown_however_the_url_is_written() {
        for url in [
            "redis://user:hunter2@h:1/2",
            "redis://:hunter2@h",
            "redis://hunter2@h",
            "redis://user:hun/ter2@h",
            "redis://user:hun?ter2@h",
            "redis://user:hun#ter2@h",
            "redis+unix:///s?user=a@b&pass=hunter2",
        ] {
            let shown = redact(url);
            assert!(!shown.contains("ter2") && !shown.contains("hun"), "{shown}");
        }
        assert_eq!(redact("redis://user:hunter2@h:1/2"), "redis://user:***@h:1/2");
        assert_eq!(redact("sqlite:///var/a@b.db"), "sqlite:///var/a@b.db");
        assert_eq!(redact("etcds://u:hunter2@a:1,b:2?ca=/x"), "etcds://u:***@a:1,b:2");
    }
}
