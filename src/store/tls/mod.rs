//! TLS to a store's server: the files that a url names, the server certificates that are trusted, and the advice for each failure.

mod advice;
#[cfg(any(feature = "redis", feature = "etcd"))]
mod files;
#[cfg(any(feature = "redis", feature = "etcd"))]
mod trust;

pub(super) use advice::{TlsFault, TlsWords};
#[cfg(any(feature = "redis", feature = "etcd"))]
pub(super) use files::{TlsContents, TlsPaths};
#[cfg(any(feature = "redis", feature = "etcd"))]
pub(super) use trust::trusting;
