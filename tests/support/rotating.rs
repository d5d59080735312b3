//! A store whose url is written anew while it is used.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    missing_docs,
    reason = "a test says what it expects"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use cronward::clock::SystemClock;
use cronward::store::layer::{Credentials, Rotation};
use cronward::store::{OpenError, Store, StoreOptions};

/// Where the url is written.
pub type Written = Arc<Mutex<String>>;

#[derive(Debug)]
struct Note(Written);

async fn opened(url: &str, options: StoreOptions) -> Result<Arc<dyn Store>, OpenError> {
    cronward::store::open(url, options).await
}

fn options() -> StoreOptions {
    StoreOptions::default().with_op_timeout(Duration::from_secs(30))
}

#[async_trait]
impl Credentials for Note {
    async fn read(&self) -> Result<Option<String>, String> {
        Ok(Some(self.0.lock().unwrap().clone()))
    }

    async fn open(&self, url: &str) -> Result<Arc<dyn Store>, OpenError> {
        opened(url, options().as_it_is()).await
    }
}

/// The store at `url`, for as long as nothing else is written.
pub async fn rotating(url: &str) -> (Arc<dyn Store>, Written) {
    let written = Arc::new(Mutex::new(url.to_owned()));
    let note = Note(Arc::clone(&written));
    let store = opened(url, options()).await.unwrap();
    (Rotation::of(store, url, Box::new(note), Arc::new(SystemClock)).store(), written)
}
