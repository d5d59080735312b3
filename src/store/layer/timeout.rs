//! A bound on every call: a store that stalls answers with an error instead. It never retries.

use std::time::Duration;

use async_trait::async_trait;

use crate::store::layer::{Call, Layer, Reply};
use crate::store::{Applied, ErrorKind, Op, StoreError};

/// Gives up on each call after a time. What was sent may still be carried out: [`Applied::Maybe`], except for reads.
///
/// `Layered::new(store, Timeout::after(options.op_timeout))`.
#[derive(Clone, Copy, Debug)]
pub struct Timeout {
    limit: Duration,
}

impl Timeout {
    /// A bound of `limit` per call; usually [`crate::store::StoreOptions::op_timeout`].
    pub const fn after(limit: Duration) -> Self {
        Self { limit }
    }
}

#[async_trait]
impl Layer for Timeout {
    async fn around<'a, T: Send + 'a>(&'a self, op: Op, location: &'a str, call: Call<'a, T>) -> Reply<T> {
        match tokio::time::timeout(self.limit, call()).await {
            Ok(reply) => reply,
            Err(_) => {
                let applied = if op.is_read() { Applied::No } else { Applied::Maybe };
                let message = format!("no answer within {:?}", self.limit);
                Err(StoreError::new(ErrorKind::Timeout, applied, op, location, message))
            }
        }
    }
}
