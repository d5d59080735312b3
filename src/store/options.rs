//! What a store is opened with, besides its url.

use std::time::Duration;

use crate::job::{LockKey, Namespace};

/// What a store is opened with, besides its url.
///
/// It is made by [`StoreOptions::default`], and changed by its fields or by what begins with `with_`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreOptions {
    /// Whose keys these are (invariant I9).
    pub namespace: Namespace,
    /// How long records are kept.
    pub retention: Duration,
    /// The longest wait for one answer. Adapters bound their connections by it; `layer::Timeout` bounds every call.
    pub op_timeout: Duration,
    /// The key of a foreign program that locks with `SET key value NX EX`: it is held with every lease. Redis only, and not
    /// in a cluster; other stores refuse to be opened with one.
    pub lock_key: Option<LockKey>,
    /// Whether a store that is a file is made where there is none. Whoever only looks would make an empty one of a path that is
    /// mistyped, and then find nothing wrong.
    pub create: bool,
    /// Whether the tables of a database server are made where there are none.
    pub migrate: bool,
}

impl StoreOptions {
    /// In this namespace.
    #[must_use]
    pub fn with_namespace(self, namespace: Namespace) -> Self {
        Self { namespace, ..self }
    }

    /// With records that are kept for so long.
    #[must_use]
    pub fn with_retention(self, retention: Duration) -> Self {
        Self { retention, ..self }
    }

    /// With answers that are waited for so long.
    #[must_use]
    pub fn with_op_timeout(self, op_timeout: Duration) -> Self {
        Self { op_timeout, ..self }
    }

    /// With the key of a foreign program held beside each lease; Redis only.
    #[must_use]
    pub fn with_lock_key(self, key: LockKey) -> Self {
        Self { lock_key: Some(key), ..self }
    }

    /// For a connection that takes over from another one: it makes nothing and changes nothing by being opened.
    #[must_use]
    pub fn as_it_is(self) -> Self {
        Self { create: false, migrate: false, ..self }
    }
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            namespace: Namespace::default(),
            retention: Duration::from_secs(7 * 86_400),
            op_timeout: Duration::from_millis(500),
            lock_key: None,
            create: true,
            migrate: true,
        }
    }
}
