//! What a job is: its name, its schedule as written, its limits and policies. Words only: no parsing of files, no I/O.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use crate::clock::between;
use crate::slot::{Period, Slot};

/// The rule that job names and namespaces follow, as it is told to people.
pub const NAME_RULE: &str =
    "1 to 52 characters: a-z, 0-9, '.', '_' and '-', beginning and ending with a letter or a digit";

/// The rule that node names follow, as it is told to people.
pub const NODE_NAME_RULE: &str =
    "1 to 64 characters: A-Z, a-z, 0-9, '.', '_' and '-', beginning and ending with a letter or a digit";

/// A name that breaks its rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} {name:?} is not allowed: {rule}")]
pub struct NameError {
    what: &'static str,
    name: String,
    rule: &'static str,
}

impl NameError {
    fn new(what: &'static str, name: &str, rule: &'static str) -> Self {
        // A hostile name may be long; an error stays one readable line.
        let shown = name.chars().take(80).collect();
        Self { what, name: shown, rule }
    }
}

fn follows_rule(name: &str, longest: usize, allowed: fn(u8) -> bool) -> bool {
    let bytes = name.as_bytes();
    let edge = |byte: &u8| byte.is_ascii_alphanumeric() && allowed(*byte);
    bytes.len() <= longest
        && bytes.first().is_some_and(edge)
        && bytes.last().is_some_and(edge)
        && bytes.iter().all(|byte| allowed(*byte))
}

const fn lower(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-')
}

const fn mixed(byte: u8) -> bool {
    lower(byte) || byte.is_ascii_uppercase()
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $what:literal, $longest:literal, $allowed:path, $rule:path) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the name against its rule.
            pub fn new(name: &str) -> Result<Self, NameError> {
                if follows_rule(name, $longest, $allowed) {
                    Ok(Self(Arc::from(name)))
                } else {
                    Err(NameError::new($what, name, $rule))
                }
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                Self::new(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.as_ref().to_owned()
            }
        }
    };
}

name_type!(
    /// A job's name. It can break no key, shell line, path or metric label: see [`NAME_RULE`].
    JobName, "job name", 52, lower, NAME_RULE
);
name_type!(
    /// Separates clusters that share one store (invariant I9). Same rule as job names.
    Namespace, "namespace", 52, lower, NAME_RULE
);
name_type!(
    /// A node's name, as people know it; usually the host's. See [`NODE_NAME_RULE`].
    NodeName, "node name", 64, mixed, NODE_NAME_RULE
);

impl NodeName {
    /// The nearest node name to a text: what is not allowed becomes `-`, and it is cut to length. For people's names in
    /// records; never for a node's own name.
    pub fn nearest(text: &str) -> Self {
        let allowed: String =
            text.chars().take(64).map(|c| if u8::try_from(c).is_ok_and(mixed) { c } else { '-' }).collect();
        let trimmed = allowed.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        Self(Arc::from(if trimmed.is_empty() { "unknown" } else { trimmed }))
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self(Arc::from("default"))
    }
}

/// How long to wait before a failed slot is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Wait after the first failure; after each when `backoff` is fixed.
    pub delay: Duration,
    /// How the wait grows.
    pub backoff: Backoff,
    /// The longest wait.
    pub max_delay: Duration,
}

/// How the wait between attempts grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// The same wait each time.
    Fixed,
    /// Doubled after each failure, up to the longest wait.
    Exponential,
}

/// What a node does with a running command whose lease is lost or in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLost {
    /// Lets it finish: a repeated run is better than none.
    Continue,
    /// Kills its group before another node can start.
    Kill,
}

/// What a node does at a tick when the store cannot be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnStoreError {
    /// Starts nothing (invariant I8) and goes on asking while the slot lasts.
    Skip,
    /// Runs once without a guard, loudly, after the store has been away for one `lease_ttl`.
    Run,
}

/// This slot's run against an older slot's run of the same job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Concurrency {
    /// Waits within the slot until the older run is over.
    Forbid,
    /// Runs beside it.
    Allow,
    /// The node of the older run kills it.
    Replace,
}

/// The limits and policies of a job: all that the guard needs to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// TTL of a lease; renewed at a third of it.
    pub lease_ttl: Duration,
    /// TTL of the done marker, from completion on. See [`Policy::done_ttl_for`].
    pub done_ttl: Duration,
    /// Attempts in all, over all nodes; 1 to [`MAX_ATTEMPTS_LIMIT`].
    pub max_attempts: u32,
    /// The wait between attempts.
    pub retry: RetryPolicy,
    /// Per attempt; none means that the run may last for ever.
    pub timeout: Option<Duration>,
    /// From TERM to KILL.
    pub kill_after: Duration,
    /// When the lease is lost.
    pub on_lost: OnLost,
    /// When the store is away at the tick.
    pub on_store_error: OnStoreError,
    /// Against an older slot's run.
    pub concurrency: Concurrency,
    /// Not started later than this after the tick; none means while the slot lasts.
    pub start_deadline: Option<Duration>,
}

/// The largest `max_attempts`: the fence keeps three decimal digits for the attempt.
pub const MAX_ATTEMPTS_LIMIT: u32 = 999;

/// What the clocks of nodes and store may differ by before a done marker could end within its slot.
pub const CLOCK_SKEW: Duration = Duration::from_secs(60);

impl Policy {
    /// The done marker's TTL for this slot: `done_ttl`, but never so short that the marker could end before the slot.
    pub fn done_ttl_for(&self, slot: &Slot) -> Duration {
        self.done_ttl.max(between(slot.start(), slot.end()).saturating_add(CLOCK_SKEW))
    }
}

impl Default for Policy {
    /// The defaults of `jobs.toml`.
    fn default() -> Self {
        Self {
            lease_ttl: Duration::from_secs(60),
            done_ttl: Duration::from_secs(2 * 3_600),
            max_attempts: 3,
            retry: RetryPolicy {
                delay: Duration::from_secs(10),
                backoff: Backoff::Fixed,
                max_delay: Duration::from_secs(300),
            },
            timeout: Some(Duration::from_secs(30 * 60)),
            kill_after: Duration::from_secs(10),
            on_lost: OnLost::Continue,
            on_store_error: OnStoreError::Skip,
            concurrency: Concurrency::Forbid,
            start_deadline: None,
        }
    }
}

/// What is started for each attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// The program, directly or by the shell.
    pub program: Program,
    /// Set for the command on top of the inherited environment; later wins. Values are not placeholders.
    pub env: BTreeMap<String, String>,
    /// `KEY=value` lines, read before each attempt.
    pub env_file: Option<PathBuf>,
    /// The working directory; the daemon's when none.
    pub cwd: Option<PathBuf>,
    /// The user to run as; needs a daemon that runs as root.
    pub user: Option<String>,
    /// The group to run as; the user's primary group when none.
    pub group: Option<String>,
    /// Exit codes that count as success.
    pub success_codes: Vec<i32>,
    /// Bytes of output kept, the last ones.
    pub output_limit: usize,
}

/// How the command is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// `command = ["/bin/x", "--hour", "{slot}"]`: no shell; placeholders are filled in.
    Direct(Vec<String>),
    /// `command = "x | y"`: `/bin/sh -c`, with the environment and no placeholders.
    Shell(String),
}

/// Bytes of output kept of an attempt when the job says nothing.
pub const DEFAULT_OUTPUT_LIMIT: usize = 64 * 1024;

impl CommandSpec {
    /// A command with the defaults of `jobs.toml`.
    pub fn new(program: Program) -> Self {
        Self {
            program,
            env: BTreeMap::new(),
            env_file: None,
            cwd: None,
            user: None,
            group: None,
            success_codes: vec![0],
            output_limit: DEFAULT_OUTPUT_LIMIT,
        }
    }
}

/// A declared unit of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSpec {
    /// Its name, unique within the namespace.
    pub name: JobName,
    /// For people.
    pub description: Option<String>,
    /// Who is asked about it.
    pub owner: Option<String>,
    /// Where it is written what to do when it fails.
    pub runbook: Option<String>,
    /// For people.
    pub tags: Vec<String>,
    /// The cron expression as written; `schedule` compiles it.
    pub schedule: String,
    /// The zone in which the expression, hours and days are read.
    pub timezone: Tz,
    /// What one slot spans.
    pub period: Period,
    /// Limits and policies.
    pub policy: Policy,
    /// What is started.
    pub command: CommandSpec,
    /// False: planned by nobody.
    pub enabled: bool,
    /// Upper bound of the fixed delay after each tick.
    pub jitter: Duration,
    /// Only nodes that carry all of these labels claim it.
    pub only_on: BTreeMap<String, String>,
    /// Told when the last success is older than this.
    pub alert_after: Option<Duration>,
    /// Names of the channels to tell.
    pub notify: Vec<String>,
}

impl JobSpec {
    /// A job with the defaults of `jobs.toml`.
    pub fn new(name: JobName, schedule: impl Into<String>, program: Program) -> Self {
        Self {
            name,
            description: None,
            owner: None,
            runbook: None,
            tags: Vec::new(),
            schedule: schedule.into(),
            timezone: Tz::UTC,
            period: Period::Hour,
            policy: Policy::default(),
            command: CommandSpec::new(program),
            enabled: true,
            jitter: Duration::ZERO,
            only_on: BTreeMap::new(),
            alert_after: None,
            notify: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_within_the_rule_are_taken() {
        for name in ["a", "0", "hourly-push", "a.b_c-d", &"x".repeat(52)] {
            assert_eq!(JobName::new(name).unwrap().as_str(), name);
        }
        assert_eq!(NodeName::new("Web-01.example.COM").unwrap().as_str(), "Web-01.example.COM");
    }

    #[test]
    fn the_nearest_node_name_is_always_allowed() {
        for (text, name) in [("alice", "alice"), ("", "unknown"), ("--", "unknown"), ("a b\n", "a-b"), ("ä:x", "x")] {
            assert_eq!(NodeName::nearest(text), NodeName::new(name).unwrap(), "{text:?}");
        }
    }

    #[test]
    fn names_that_could_break_a_key_a_shell_or_a_path_are_refused() {
        let hostile = ["", "-a", "a-", ".", "..", "a b", "a:b", "{a}", "a@b", "A", "ä", "a\n", "a/b", "$(x)", "a\0"];
        for name in hostile.into_iter().chain([&*"x".repeat(53)]) {
            let error = JobName::new(name).unwrap_err().to_string();
            assert!(error.contains("1 to 52 characters"), "{error}");
        }
    }

    #[test]
    fn a_done_marker_outlives_its_slot_whatever_done_ttl_says() {
        let policy = Policy { done_ttl: Duration::from_secs(1), ..Policy::default() };
        let slot = Slot::parse("daily", "2026-11-21T00Z", "2026-11-22T00Z").unwrap();
        assert_eq!(policy.done_ttl_for(&slot), Duration::from_secs(86_400) + CLOCK_SKEW);
    }
}
