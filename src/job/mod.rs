//! What a job is: its name, its schedule as written, its limits and policies. Words only: no parsing of files, no I/O.

#[doc(hidden)]
pub mod hash;
mod name;
mod selection;
mod spec;

pub use name::{JobName, LockKey, LockKeyError, LockName, NAME_RULE, NODE_NAME_RULE, NameError, Namespace, NodeName};
#[doc(hidden)]
pub use selection::JobSelection;
#[doc(hidden)]
pub use spec::{Backoff, CLOCK_SKEW, MAX_ATTEMPTS_LIMIT, OnStoreError, Policy, RetryPolicy, SHORTEST_LEASE_TTL};
#[doc(hidden)]
pub use spec::{CommandSpec, DEFAULT_OUTPUT_LIMIT, JobSpec, KillMode, Program};
pub use spec::{Concurrency, OnLost};
