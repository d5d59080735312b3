//! The stores under test. One line each.

mod chaos;
mod memory;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use cronward::store::conformance::Setup;

/// Starts what the store needs. An error fails every trial of the setup.
pub(crate) type Start = fn() -> Pin<Box<dyn Future<Output = Result<Arc<dyn Setup>, String>>>>;

/// Every setup by name.
pub(crate) fn all() -> Vec<(&'static str, Start)> {
    vec![
        ("memory", || Box::pin(memory::start())),
        ("chaos(memory)", || Box::pin(chaos::start())),
        #[cfg(feature = "redis")]
        ("redis", || Box::pin(redis::over_tcp())),
        #[cfg(feature = "redis")]
        ("redis(unix)", || Box::pin(redis::over_unix_socket())),
        #[cfg(feature = "redis")]
        ("redis(tls, user)", || Box::pin(redis::over_tls_as_a_user())),
        #[cfg(feature = "sqlite")]
        ("sqlite", || Box::pin(sqlite::start())),
    ]
}
