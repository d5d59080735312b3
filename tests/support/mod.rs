//! Real servers for tests and benchmarks, and what stands between them and a client. Each crate takes what it needs.

#[cfg(feature = "etcd")]
pub(crate) mod etcd_server;
#[cfg(feature = "mysql")]
pub(crate) mod mariadb_server;
pub(crate) mod ports;
#[cfg(feature = "postgres")]
pub(crate) mod postgres_server;
pub(crate) mod proxy;
#[cfg(any(feature = "redis-sentinel", feature = "redis-cluster"))]
pub(crate) mod redis_group;
#[cfg(feature = "redis")]
pub(crate) mod redis_server;
pub(crate) mod server_process;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) mod sql_server;
pub(crate) mod tls_files;
#[cfg(feature = "zookeeper")]
pub(crate) mod zookeeper_server;
