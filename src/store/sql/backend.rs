//! The databases as kinds of stores. Each keeps a slot in the same tables.

#[cfg(any(feature = "postgres", feature = "mysql"))]
use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;

#[cfg(any(feature = "postgres", feature = "mysql"))]
use super::server::{Dialect, ServerStore, check};
#[cfg(feature = "sqlite")]
use super::sqlite;
use crate::clock::Clock;
use crate::job::Namespace;
use crate::slot::Slot;
use crate::store::backend::{Backend, KeptPart, Opened};
use crate::store::{Capability, Migration, OpenError, StoreOptions};

/// The database, and what finds a slot's rows there.
fn rows(location: &str, tables: KeptPart, namespace: &Namespace, slot: &Slot) -> Vec<(String, KeptPart)> {
    let row = format!("namespace = '{namespace}' AND job = '{}' AND slot = '{}'", slot.job(), slot.key());
    vec![(location.to_owned(), tables), (row, KeptPart::Rows)]
}

/// SQLite.
#[cfg(feature = "sqlite")]
pub(in crate::store) const SQLITE: &dyn Backend = &SqliteBackend;

/// PostgreSQL.
#[cfg(feature = "postgres")]
pub(in crate::store) const POSTGRES: &dyn Backend = &ServerBackend(PhantomData::<super::postgres::Postgres>);

/// MySQL and MariaDB.
#[cfg(feature = "mysql")]
pub(in crate::store) const MYSQL: &dyn Backend = &ServerBackend(PhantomData::<super::mysql::MySql>);

#[cfg(feature = "sqlite")]
struct SqliteBackend;

#[cfg(feature = "sqlite")]
#[async_trait]
impl Backend for SqliteBackend {
    fn capability(&self) -> Capability {
        sqlite::CAPABILITY
    }

    fn check(&self, url: &str) -> Result<(), OpenError> {
        sqlite::check(url)
    }

    fn form(&self, _url: &str) -> String {
        "write sqlite:/path/to/file".to_owned()
    }

    async fn open(&self, url: &str, options: StoreOptions, _: Arc<dyn Clock>) -> Result<Arc<dyn Opened>, OpenError> {
        Ok(Arc::new(sqlite::SqliteStore::open(url, options).await?))
    }

    async fn migrate(&self, url: &str) -> Result<Option<Migration>, OpenError> {
        sqlite::SqliteStore::migrate(url).await.map(Some)
    }

    fn where_kept(&self, location: &str, namespace: &Namespace, slot: &Slot) -> Vec<(String, KeptPart)> {
        rows(location, KeptPart::Tables, namespace, slot)
    }
}

/// A database server.
#[cfg(any(feature = "postgres", feature = "mysql"))]
struct ServerBackend<D>(PhantomData<D>);

#[cfg(any(feature = "postgres", feature = "mysql"))]
#[async_trait]
impl<D: Dialect> Backend for ServerBackend<D> {
    fn capability(&self) -> Capability {
        D::CAPABILITY
    }

    fn check(&self, url: &str) -> Result<(), OpenError> {
        check::<D>(url)
    }

    fn form(&self, _url: &str) -> String {
        D::FORM.to_owned()
    }

    async fn open(&self, url: &str, options: StoreOptions, _: Arc<dyn Clock>) -> Result<Arc<dyn Opened>, OpenError> {
        Ok(Arc::new(ServerStore::<D>::open(url, options)?))
    }

    async fn migrate(&self, url: &str) -> Result<Option<Migration>, OpenError> {
        ServerStore::<D>::migrate(url).await.map(Some)
    }

    fn where_kept(&self, location: &str, namespace: &Namespace, slot: &Slot) -> Vec<(String, KeptPart)> {
        rows(location, KeptPart::PrefixedTables, namespace, slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_named_with_its_row() {
        let slot = Slot::parse("billing", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
        let kept = rows("sqlite:/var/lib/cronward.sqlite", KeptPart::Tables, &Namespace::new("prod").unwrap(), &slot);
        let names: Vec<&str> = kept.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            ["sqlite:/var/lib/cronward.sqlite", "namespace = 'prod' AND job = 'billing' AND slot = '2026-11-21T14Z'"]
        );
    }
}
