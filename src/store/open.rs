//! From a url to a store: the one file that names every adapter, in a table of one row each.

use std::sync::Arc;

use crate::clock::{Clock, SystemClock};
use crate::job::Namespace;
use crate::slot::Slot;
use crate::store::backend::{Backend, KeptPart, Opened};
use crate::store::layer::{Layered, Timeout};
use crate::store::memory::MemoryBackend;
use crate::store::url::{scheme, without_secrets};
use crate::store::{
    Advice, Capability, Finding, LockStore, Migration, OpenError, SCHEMES, Station, Store, StoreOptions, Trial,
    UrlFault, redact, shown_scheme,
};

/// The stores of this build, each with the cargo feature that it needs; [`SCHEMES`] has the schemes of each feature.
const BACKENDS: &[(&str, &dyn Backend)] = &[
    ("", &MemoryBackend),
    #[cfg(feature = "sqlite")]
    ("sqlite", crate::store::sql::SQLITE),
    #[cfg(feature = "postgres")]
    ("postgres", crate::store::sql::POSTGRES),
    #[cfg(feature = "mysql")]
    ("mysql", crate::store::sql::MYSQL),
    #[cfg(feature = "redis")]
    ("redis", &crate::store::redis::ONE_SERVER),
    #[cfg(feature = "redis-sentinel")]
    ("redis-sentinel", &crate::store::redis::SENTINEL),
    #[cfg(feature = "redis-cluster")]
    ("redis-cluster", &crate::store::redis::CLUSTER),
    #[cfg(feature = "redis-redlock")]
    ("redis-redlock", &crate::store::redis::RedlockBackend),
    #[cfg(feature = "etcd")]
    ("etcd", &crate::store::etcd::EtcdBackend),
    #[cfg(feature = "zookeeper")]
    ("zookeeper", &crate::store::zookeeper::ZookeeperBackend),
];

/// The row of a url's scheme; the error says why there is none.
fn backend(url: &str) -> Result<&'static dyn Backend, OpenError> {
    row(url).ok_or_else(|| unknown(url))
}

fn row(url: &str) -> Option<&'static dyn Backend> {
    let feature = feature(url)?;
    BACKENDS.iter().find(|(needs, _)| *needs == feature).map(|(_, backend)| *backend)
}

/// Opens the store at `url`, on the machine's clocks. No connection is made where that can wait: a store that is away is found out by its first
/// operation. [`EMBEDDED`](crate::store::EMBEDDED) alone, without a path, is a url too.
///
/// Adapters bound each call by `op_timeout` themselves and can say best what happened; a call that does not come back
/// even after twice that time is given up here, so that nobody ever waits for ever.
///
/// # Errors
/// [`OpenError::Url`] when the url cannot be used; [`OpenError::LockKey`] when the options ask for a foreign key and the store
/// has no such thing; [`OpenError::Store`] when a store that is opened at once refuses.
pub async fn open(url: &str, options: StoreOptions) -> Result<Arc<dyn Store>, OpenError> {
    open_with_clock(url, options, Arc::new(SystemClock)).await
}

/// [`open()`], on other clocks: for a store that has no clock of its own, and for what is measured on the way to one that has.
///
/// # Errors
/// As [`open()`].
pub async fn open_with_clock(
    url: &str,
    options: StoreOptions,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Store>, OpenError> {
    let limit = options.op_timeout.saturating_mul(2);
    let backend = backend(url)?;
    if options.lock_key.is_some() && !backend.holds_foreign_keys() {
        return Err(OpenError::LockKey { store: backend.capability().name });
    }
    let store = opened(backend, url, options, clock).await?;
    Ok(Arc::new(Layered::new(store, Timeout::after(limit))))
}

/// [`open()`], for the locks that the store keeps ([`Store::lock_store`]).
///
/// # Errors
/// As [`open()`]; [`OpenError::Locks`] where that kind of store keeps none.
pub async fn open_locks(url: &str, options: StoreOptions) -> Result<Arc<dyn LockStore>, OpenError> {
    open_locks_with_clock(url, options, Arc::new(SystemClock)).await
}

/// [`open_locks()`], on other clocks.
///
/// # Errors
/// As [`open_locks()`].
pub async fn open_locks_with_clock(
    url: &str,
    options: StoreOptions,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn LockStore>, OpenError> {
    let Capability { name, locks, .. } = backend(url)?.capability();
    // No file is opened, and nobody asked, for locks that are not there.
    let store = if locks { open_with_clock(url, options, clock).await?.lock_store() } else { None };
    store.ok_or(OpenError::Locks { store: name })
}

async fn opened(
    backend: &dyn Backend,
    url: &str,
    options: StoreOptions,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Opened>, OpenError> {
    backend.open(url, options, clock).await.map_err(|error| untold(url, error))
}

/// Looks at what is particular to the store at `url`: how it keeps what it has acknowledged, and what can make it lose that.
/// Changes nothing. Empty for a store of which there is nothing to say, or that cannot be reached.
///
/// # Errors
/// As [`open()`].
pub async fn examine(url: &str, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Vec<Finding>, OpenError> {
    Ok(opened(backend(url)?, url, options, clock).await?.examine().await)
}

/// The servers of the store at `url`, where there are several with rights of their own; empty where there is one, or where they
/// share their users.
///
/// # Errors
/// As [`open()`].
pub async fn stations(url: &str, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Vec<Station>, OpenError> {
    let backend = backend(url)?;
    // A file is not opened for that.
    if !backend.has_stations() {
        return Ok(Vec::new());
    }
    Ok(opened(backend, url, options, clock).await?.stations().await)
}

/// Removes what a trial wrote at the store at `url`, and nothing else. A store in memory ends with its process.
///
/// # Errors
/// As [`open()`]; [`OpenError::Store`] also when the store refuses.
pub async fn forget(url: &str, options: StoreOptions, clock: Arc<dyn Clock>, trial: &Trial) -> Result<(), OpenError> {
    Ok(opened(backend(url)?, url, options, clock).await?.forget(trial).await?)
}

/// Makes the tables of the store at `url` where there are none; none for a store that has none to be made.
///
/// # Errors
/// [`OpenError::Url`] when the url cannot be used; [`OpenError::Store`] when the store cannot be reached, or refuses.
pub async fn migrate(url: &str) -> Result<Option<Migration>, OpenError> {
    backend(url)?.migrate(url).await.map_err(|error| untold(url, error))
}

/// What the store at `url` can do, as far as its url tells; none for one that this build has not. Connects to nothing.
pub fn capability(url: &str) -> Option<Capability> {
    row(url).map(|backend| backend.capability())
}

/// Whether this build can open a url of a known scheme, as far as that is seen without reading or asking anything; and what
/// whoever chooses this store should know.
///
/// # Errors
/// [`UrlFault`] when it cannot, with the way out.
pub fn check_url(url: &str) -> Result<Option<Advice>, UrlFault> {
    let Some(backend) = row(url) else {
        let what = format!("needs {}, which this build has not", scheme(url));
        return Err(UrlFault {
            what,
            hint: format!("build with the cargo feature {:?}", feature(url).unwrap_or_default()),
        });
    };
    backend.check(url).map_err(|error| UrlFault::of(url, error, backend.form(url)))?;
    Ok(backend.advice())
}

/// Where the store at `url`, which calls itself by `location`, keeps a slot; each name with what it is. For a person with
/// `redis-cli`, `etcdctl` or `sqlite3` at hand: nothing is read.
pub fn where_kept(url: &str, location: &str, namespace: &Namespace, slot: &Slot) -> Vec<(String, KeptPart)> {
    row(url).map_or_else(Vec::new, |backend| backend.where_kept(location, namespace, slot))
}

/// The words of the command by which a person asks that store, with its own client, whether a slot is leased or done; none where one
/// command does not do. A password is not among them.
pub fn client_command(url: &str, location: &str, namespace: &Namespace, slot: &Slot) -> Vec<String> {
    row(url).map_or_else(Vec::new, |backend| backend.client_command(location, namespace, slot))
}

/// The cargo feature that a scheme needs.
fn feature(url: &str) -> Option<&'static str> {
    SCHEMES.iter().find(|(known, _)| *known == scheme(url)).map(|(_, feature)| *feature)
}

fn unknown(url: &str) -> OpenError {
    let message = match feature(url) {
        Some(feature) => format!("this build has no {}: build with the cargo feature {feature:?}", scheme(url)),
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

    /// Urls that are read, of every store; a file that one names is there for none of them.
    const FINE: &[&str] = &[
        "memory:",
        "sqlite",
        "sqlite:/nowhere/a.db",
        "postgres://u:p%2Fw@h:5432/d?sslmode=require&port=5433&migrate=off",
        "postgresql:///d?host=/run/p&user=u%EF%BF%BD",
        "mysql://u:p@h/d?ssl-mode=REQUIRED&ssl-ca=/nowhere/ca.pem",
        "redis://u:p@h:1/2",
        "rediss://h",
        "redis+unix:///s?db=1&user=u&pass=p",
        "redis+sentinel://u:p@a,b:1/m?db=2&sentinel_user=s&sentinel_pass=p&wait=1",
        "redis+cluster://u:p@a,[::1]:2/0",
        "redlock://u:p@a,b:7000,[::1]/2?longest_lease=60s",
        "etcd://u:p@a,b:1,[::1]",
        "zookeeper://u:p@a,b:1/ops",
    ];

    #[test]
    #[cfg(feature = "redis")]
    fn one_redis_server_is_asked_about_a_slot_by_one_command_and_no_other_store() {
        let slot = Slot::parse("push", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
        let words = |url: &str, location: &str| client_command(url, location, &Namespace::default(), &slot);
        let asked = ["redis-cli", "-u", "rediss://h:6379/1", "GET", "cronward:default:{push@2026-11-21T14Z}"];
        assert_eq!(words("rediss://u:hunter2@h/1", "rediss://h:6379/1"), asked);
        for url in ["redis+unix:///s", "redis+sentinel://a,b/m", "redis+cluster://a", "sqlite:/x/a.db", "etcd://a"] {
            assert_eq!(words(url, url), Vec::<String>::new(), "{url}");
        }
    }

    /// Urls that no store takes as they are written.
    const REFUSED: &[&str] = &[
        "sqlite:",
        "sqlite:./x?create=true",
        "sqlite:~/x",
        "sqlite::memory:",
        "sqlite:/x/",
        "postgres://u:hunter2@h/db?bar=2",
        "postgres://u:hunter2@h/d?sslmode=on",
        "postgres://u:hunter2@h/d?port=x",
        "postgres://u:hunter2@h/d?migrate=x",
        "postgres://u:hunter2%FF@h/d",
        "postgres://%FF%EF%BF%BD@h/d",
        "postgres://%2Fs%FF/d",
        "postgres://h/%FF",
        "postgres://h:port/d",
        "postgres:///d?password=x&hunter2",
        "mysql://u:hunter2@h/db?zz=1",
        "mysql://u:hunter2@h",
        "mysql://u:hunter2@h/d?ssl-mode=on",
        "mysql://u:hunter2%FF@h/d",
        "redis://u:hunter2@127.0.0.1:1/0?foo=1",
        "redis://u:hunter2@h/zero",
        "redis://u:hunter2@h#insecure",
        "redis://account@h",
        "redis://0.0.0.0",
        "redis:h",
        "redis+unix:s",
        "redis+unix:///s?db=x&pass=hunter2",
        "rediss://u:hunter2@h?cert=/x",
        "redis+sentinel://a",
        "redis+sentinel://a/m?db=x",
        "redis+sentinel://a/m?wait=x&sentinel_pass=hunter2",
        "redis+sentinel:a/m",
        "redis+cluster://u:hunter2@a/1",
        "rediss+cluster://u:hunter2@a?tls=1",
        "redlock://u:hunter2@a,b",
        "redlock://u:hunter2@a,b,A",
        "redlock://u:hunter2@a,b,c/zero",
        "redlock://a,b,c?longest_lease=long",
        "etcd://u:hunter2@h:1?x=1",
        "etcd://u:hunter2@h/prefix",
        "etcd://u:hun/hunter2@h",
        "etcd://account@h",
        "etcds://u:hunter2@a..b",
        "etcds://u:hunter2@h?cert=/nowhere",
        "zookeeper://u:hunter2@h:1?x=1",
        "zookeeper://u:hunter2@h/a//b",
        "zookeeper://h:port",
    ];

    /// Whether the text of the url is refused: no file of a store is made, and no server is there to be asked.
    async fn is_refused(url: &str) -> bool {
        let options = StoreOptions { create: false, ..StoreOptions::default() };
        matches!(open(url, options).await, Err(OpenError::Url { .. }))
    }

    /// Each url of this build with what a slip of the pen makes of it.
    fn slips(url: &str) -> Vec<String> {
        let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
        let ends = ["?x=1", "&x=1", "#x", "/x/y", ":port", ",", "%FF", " ", "\u{7}"].map(|end| format!("{url}{end}"));
        let starts = ["", "//", "//@", "//:@", "//,", "//..", "//-", "//0.0.0.0", "///", "//h/x", "//%FF/d", "//a@b@c"];
        let starts = starts.map(|start| format!("{scheme}:{start}"));
        let less = [1, 2, 3].map(|cut| format!("{scheme}:{}", rest.get(cut..).unwrap_or("")));
        [ends.as_slice(), &starts, &less].concat()
    }

    #[tokio::test]
    async fn what_is_refused_by_its_text_when_it_is_opened_is_refused_when_the_file_is_checked_and_nothing_else() {
        for url in FINE.iter().filter(|url| row(url).is_some()) {
            assert_eq!(check_url(url).err(), None, "{url}");
        }
        for url in REFUSED.iter().filter(|url| row(url).is_some()) {
            assert!(is_refused(url).await, "{url}");
            let fault = check_url(url).expect_err(url);
            let told = format!("url {} ({})", fault.what, fault.hint);
            assert!(!told.contains("hunter2") && !told.contains("account"), "{told}");
            assert!(fault.hint.starts_with("write ") || fault.hint.contains("percent"), "{told}");
        }
        for url in FINE.iter().chain(REFUSED).flat_map(|url| slips(url)).filter(|url| row(url).is_some()) {
            assert_eq!(check_url(&url).is_err(), is_refused(&url).await, "{url:?}");
        }
    }

    #[tokio::test]
    async fn a_store_without_locks_says_so_and_one_with_them_is_opened() {
        let open = |url| open_locks(url, StoreOptions::default());
        assert!(open("memory:").await.is_ok());
        #[cfg(feature = "redis-redlock")]
        assert!(matches!(open("redlock://a,b,c").await, Err(OpenError::Locks { store: "redlock" })));
        assert!(matches!(open("unknown://h").await, Err(OpenError::Url { .. })));
        // No file is made, and nobody is there to be asked.
        for url in FINE.iter().filter(|url| row(url).is_some()) {
            let options = StoreOptions { create: false, ..StoreOptions::default() };
            let refused = matches!(open_locks(url, options).await, Err(OpenError::Locks { .. }));
            assert_eq!(capability(url).is_some_and(|capability| capability.locks), !refused, "{url}");
        }
    }

    #[test]
    fn what_a_url_names_is_not_read_to_check_it() {
        for url in [
            "rediss://h?ca=/nowhere/ca.pem",
            "rediss+sentinel://h/m?ca=/nowhere/ca.pem",
            "rediss+cluster://h?ca=/nowhere/ca.pem",
            "redlocks://a,b,c?ca=/nowhere/ca.pem",
            "etcds://h?ca=/nowhere/ca.pem&cert=/nowhere/cert.pem&key=/nowhere/key.pem",
        ] {
            assert!(row(url).is_none() || check_url(url).is_ok(), "{url}");
        }
    }

    #[test]
    fn what_a_store_lacks_is_one_line_and_a_database_that_pushes_lacks_nothing() {
        let lacks = |url| capability(url).and_then(|capability| capability.lacks());
        assert_eq!(
            lacks("memory:").as_deref(),
            Some("store memory: single process only, the data ends with it; acknowledged writes may be lost")
        );
        assert_eq!(lacks("unknown://h"), None);
        #[cfg(feature = "redis-redlock")]
        assert_eq!(
            lacks("redlock://a,b,c").as_deref(),
            Some(
                "store redlock: leases rely on the clocks of most servers running at the same rate; acknowledged writes \
                 may be lost"
            )
        );
        #[cfg(feature = "mysql")]
        assert_eq!(
            lacks("mysql://h/d").as_deref(),
            Some("store mysql: waiting nodes poll every 500ms (no push notifications)")
        );
        #[cfg(feature = "postgres")]
        assert_eq!(lacks("postgres://h/d"), None);
    }
}
