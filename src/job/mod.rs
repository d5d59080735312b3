//! What a job is: its name, its schedule as written, its limits and policies. Words only: no parsing of files, no I/O.

pub mod hash;
mod name;
mod spec;

pub use name::{JobName, LockKey, LockKeyError, LockName, NAME_RULE, NODE_NAME_RULE, NameError, Namespace, NodeName};
pub use spec::{
    Backoff, CLOCK_SKEW, Concurrency, MAX_ATTEMPTS_LIMIT, OnLost, OnStoreError, Policy, RetryPolicy, SHORTEST_LEASE_TTL,
};
pub use spec::{CommandSpec, DEFAULT_OUTPUT_LIMIT, JobSpec, KillMode, Program};
