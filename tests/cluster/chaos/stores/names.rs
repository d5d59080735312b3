//! The stores under chaos by name: the harness runs a trial at length for each and writes `chaos-NAME.json`, and the program
//! behind `make report` asks for each of these files. Knows nothing else, so that both can have it.

pub(crate) const REDIS: &str = "redis";
pub(crate) const SQLITE: &str = "sqlite";
pub(crate) const REDIS_SENTINEL: &str = "redis-sentinel";
pub(crate) const REDIS_CLUSTER: &str = "redis-cluster";
pub(crate) const REDLOCK: &str = "redlock";
pub(crate) const POSTGRES: &str = "postgres";
pub(crate) const MARIADB: &str = "mariadb";
pub(crate) const ETCD: &str = "etcd";
pub(crate) const ZOOKEEPER: &str = "zookeeper";

/// All of them.
pub(crate) const EVERY: [&str; 9] =
    [REDIS, SQLITE, REDIS_SENTINEL, REDIS_CLUSTER, REDLOCK, POSTGRES, MARIADB, ETCD, ZOOKEEPER];
