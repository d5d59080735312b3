//! The databases as kinds of stores. Each keeps a slot in the same tables.

use std::sync::Arc;

use async_trait::async_trait;

use crate::clock::Clock;
use crate::job::Namespace;
use crate::slot::Slot;
use crate::store::backend::Backend;
use crate::store::{Capability, Finding, Migration, OpenError, Store, StoreOptions, Trial};

/// The database, and what finds a slot's rows there.
fn rows(location: &str, namespace: &Namespace, slot: &Slot) -> Vec<(String, &'static str)> {
    let row = format!("namespace = '{namespace}' AND job = '{}' AND slot = '{}'", slot.job(), slot.key());
    vec![(location.to_owned(), "the tables slots, outputs and notes"), (row, "the rows")]
}

/// SQLite.
#[cfg(feature = "sqlite")]
pub(in crate::store) struct SqliteBackend;

#[cfg(feature = "sqlite")]
#[async_trait]
impl Backend for SqliteBackend {
    fn capability(&self) -> Capability {
        super::sqlite::CAPABILITY
    }

    fn check(&self, url: &str) -> Result<(), OpenError> {
        super::sqlite::check(url)
    }

    fn form(&self, _url: &str) -> String {
        "write sqlite:/path/to/file".to_owned()
    }

    async fn open(
        &self,
        url: &str,
        options: StoreOptions,
        _clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Store>, OpenError> {
        Ok(Arc::new(super::SqliteStore::open(url, options).await?))
    }

    async fn open_locks(
        &self,
        url: &str,
        options: StoreOptions,
        _clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn crate::store::LockStore>, OpenError> {
        Ok(Arc::new(super::SqliteStore::open(url, options).await?))
    }

    async fn examine(
        &self,
        url: &str,
        options: StoreOptions,
        _clock: Arc<dyn Clock>,
    ) -> Result<Vec<Finding>, OpenError> {
        Ok(super::SqliteStore::open(url, options).await?.examine().await)
    }

    async fn forget(
        &self,
        url: &str,
        options: StoreOptions,
        _clock: Arc<dyn Clock>,
        trial: &Trial,
    ) -> Result<(), OpenError> {
        Ok(super::SqliteStore::open(url, options).await?.forget(trial).await?)
    }

    async fn migrate(&self, url: &str) -> Result<Option<Migration>, OpenError> {
        super::SqliteStore::migrate(url).await.map(Some)
    }

    fn where_kept(&self, location: &str, namespace: &Namespace, slot: &Slot) -> Vec<(String, &'static str)> {
        rows(location, namespace, slot)
    }
}

/// PostgreSQL.
#[cfg(feature = "postgres")]
pub(in crate::store) struct PostgresBackend;

#[cfg(feature = "postgres")]
#[async_trait]
impl Backend for PostgresBackend {
    fn capability(&self) -> Capability {
        super::postgres::CAPABILITY
    }

    fn check(&self, url: &str) -> Result<(), OpenError> {
        super::postgres::check(url)
    }

    fn form(&self, _url: &str) -> String {
        super::postgres::FORM.to_owned()
    }

    async fn open(
        &self,
        url: &str,
        options: StoreOptions,
        _clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Store>, OpenError> {
        super::postgres::open(url, options)
    }

    async fn examine(
        &self,
        url: &str,
        options: StoreOptions,
        _clock: Arc<dyn Clock>,
    ) -> Result<Vec<Finding>, OpenError> {
        super::postgres::examine(url, &options).await
    }

    async fn forget(
        &self,
        url: &str,
        options: StoreOptions,
        _clock: Arc<dyn Clock>,
        trial: &Trial,
    ) -> Result<(), OpenError> {
        super::postgres::forget(url, options, trial).await
    }

    async fn migrate(&self, url: &str) -> Result<Option<Migration>, OpenError> {
        super::postgres::migrate(url).await.map(Some)
    }

    fn where_kept(&self, location: &str, namespace: &Namespace, slot: &Slot) -> Vec<(String, &'static str)> {
        rows(location, namespace, slot)
    }
}

/// MySQL and MariaDB.
#[cfg(feature = "mysql")]
pub(in crate::store) struct MysqlBackend;

#[cfg(feature = "mysql")]
#[async_trait]
impl Backend for MysqlBackend {
    fn capability(&self) -> Capability {
        super::mysql::CAPABILITY
    }

    fn check(&self, url: &str) -> Result<(), OpenError> {
        super::mysql::check(url)
    }

    fn form(&self, _url: &str) -> String {
        super::mysql::FORM.to_owned()
    }

    async fn open(
        &self,
        url: &str,
        options: StoreOptions,
        _clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Store>, OpenError> {
        super::mysql::open(url, options)
    }

    async fn examine(
        &self,
        url: &str,
        options: StoreOptions,
        _clock: Arc<dyn Clock>,
    ) -> Result<Vec<Finding>, OpenError> {
        super::mysql::examine(url, &options).await
    }

    async fn forget(
        &self,
        url: &str,
        options: StoreOptions,
        _clock: Arc<dyn Clock>,
        trial: &Trial,
    ) -> Result<(), OpenError> {
        super::mysql::forget(url, options, trial).await
    }

    async fn migrate(&self, url: &str) -> Result<Option<Migration>, OpenError> {
        super::mysql::migrate(url).await.map(Some)
    }

    fn where_kept(&self, location: &str, namespace: &Namespace, slot: &Slot) -> Vec<(String, &'static str)> {
        rows(location, namespace, slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_named_with_its_row() {
        let slot = Slot::parse("billing", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
        let kept = rows("sqlite:/var/lib/cronward.sqlite", &Namespace::new("prod").unwrap(), &slot);
        let names: Vec<&str> = kept.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            ["sqlite:/var/lib/cronward.sqlite", "namespace = 'prod' AND job = 'billing' AND slot = '2026-11-21T14Z'"]
        );
    }
}
