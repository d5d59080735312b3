//! What a file says, with every default filled in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use chrono::DateTime;

use crate::config::http::HttpConfig;
use crate::config::sink::Sinks;
use crate::config::value::nearest;
use crate::job::{JobName, JobSpec, Namespace, NodeName, hash};
use crate::store::{EMBEDDED, JobEntry, StoreOptions};

/// A file, read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `[node]`.
    pub node: NodeConfig,
    /// `[store]`.
    pub store: StoreConfig,
    /// `[http]`; none where the file has no such section.
    pub http: Option<HttpConfig>,
    /// `[notify.*]`.
    pub notify: Sinks,
    /// `[jobs.*]`, with `[defaults]` applied.
    pub jobs: BTreeMap<JobName, JobSpec>,
}

impl Config {
    /// The jobs as the registry takes them.
    pub fn entries(&self) -> Vec<JobEntry> {
        // The store says when it first met the name.
        self.jobs.values().map(|spec| JobEntry::of(spec, DateTime::UNIX_EPOCH).unseen()).collect()
    }

    /// A hash of all jobs, 16 hexadecimal digits. The same on every node whose jobs are the same after variables and
    /// defaults, whatever the file looks like; only for comparing, not for security. See [`crate::job::hash`].
    pub fn hash(&self) -> String {
        hash::of_jobs(self.jobs.values())
    }

    /// The sink whose name is nearest to one that is not there.
    pub fn nearest_sink(&self, name: &str) -> Option<&str> {
        nearest(name, self.notify.keys().map(String::as_str))
    }

    /// A hash of each job, so that a difference can be named.
    pub fn job_hashes(&self) -> BTreeMap<JobName, String> {
        self.jobs.iter().map(|(name, spec)| (name.clone(), hash::of_job(spec))).collect()
    }
}

/// `[node]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// The node's name; the host's when the file says nothing.
    pub name: NodeName,
    /// For `only_on`.
    pub labels: BTreeMap<String, String>,
    /// How long running commands may go on at shutdown.
    pub drain: Duration,
    /// The file that every event is appended to; none without one.
    pub journal: Option<PathBuf>,
    /// Runs at once, at the most.
    pub max_running: usize,
}

/// `[store]`.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreConfig {
    /// The url, from `url` or read from `url_file`. Holds secrets: never printed.
    pub url: String,
    /// `url_file`; none where the url stands in the file itself.
    pub url_file: Option<PathBuf>,
    /// Whose keys.
    pub namespace: Namespace,
    /// The longest wait for one answer.
    pub op_timeout: Duration,
    /// How long records are kept.
    pub retention: Duration,
}

impl StoreConfig {
    /// What a store is opened with, besides the url.
    pub fn options(&self) -> StoreOptions {
        StoreOptions {
            namespace: self.namespace.clone(),
            retention: self.retention,
            op_timeout: self.op_timeout,
            lock_key: None,
            create: true,
            migrate: true,
        }
    }
}

impl Default for StoreConfig {
    /// The embedded store, with the store's own defaults.
    fn default() -> Self {
        let StoreOptions { namespace, retention, op_timeout, .. } = StoreOptions::default();
        Self { url: EMBEDDED.to_owned(), url_file: None, namespace, op_timeout, retention }
    }
}

impl std::fmt::Debug for StoreConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreConfig")
            .field("url", &crate::store::redact(&self.url))
            .field("url_file", &self.url_file)
            .field("namespace", &self.namespace)
            .field("op_timeout", &self.op_timeout)
            .field("retention", &self.retention)
            .finish()
    }
}
