//! The store in memory as a kind of store: opened empty, and gone with its process.

use std::sync::Arc;

use async_trait::async_trait;

use crate::clock::Clock;
use crate::job::Namespace;
use crate::slot::Slot;
use crate::store::backend::Backend;
use crate::store::memory::MemoryStore;
use crate::store::memory::store::CAPABILITY;
use crate::store::{Capability, OpenError, Store, StoreOptions};

/// The store in memory.
pub(in crate::store) struct MemoryBackend;

#[async_trait]
impl Backend for MemoryBackend {
    fn capability(&self) -> Capability {
        CAPABILITY
    }

    async fn open(
        &self,
        _url: &str,
        options: StoreOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Store>, OpenError> {
        Ok(Arc::new(MemoryStore::new(options, clock)))
    }

    fn where_kept(&self, _location: &str, _namespace: &Namespace, _slot: &Slot) -> Vec<(String, &'static str)> {
        Vec::new()
    }
}
