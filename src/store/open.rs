//! From a url to a store: the one file that names every adapter.

use std::sync::Arc;

use crate::clock::Clock;
use crate::store::layer::{Layered, Timeout};
use crate::store::{Store, StoreError, StoreOptions};

/// The schemes that are known, with the cargo feature each needs.
pub const SCHEMES: &[(&str, &str)] =
    &[("sqlite", "sqlite"), ("redis", "redis"), ("rediss", "redis"), ("redis+unix", "redis"), ("memory", "")];

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
        #[cfg(feature = "redis")]
        "redis" | "rediss" | "redis+unix" => Ok(Arc::new(crate::store::redis::RedisStore::open(url, options).await?)),
        _ => Err(unknown(url, scheme)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secrets_of_a_url_are_the_url_and_its_password_and_none_where_there_is_no_password() {
        assert_eq!(secrets("redis://user:hunter2@h"), ["hunter2", "redis://user:hunter2@h"]);
        assert!(secrets("redis://:a%2Fb@h").contains(&"a/b".to_owned()));
        assert!(secrets("redis+unix:///s?user=a&pass=hunter2").contains(&"hunter2".to_owned()));
        for url in ["sqlite", "sqlite:///var/a@b.db", "redis://h:6379/0", "memory:", "rediss://h?ca=/etc/ca.pem"] {
            assert_eq!(secrets(url), [""; 0], "{url}");
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
    }
}
