//! What of the daemon's environment a command may see, and what it is told of its run: in variables, and by placeholders in the
//! words of a list command. Pure: reads no environment itself.
//!
//! Placeholders are `{slot} {slot_start} {slot_end} {scheduled_at} {attempt} {fence} {job}`; `{{` and `}}` stand for the braces
//! themselves. They are never used in shell strings: a shell has the environment, and text that is pasted into a shell line is a
//! hole.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use chrono::{DateTime, SecondsFormat, Utc};

use crate::slot::RunContext;
use crate::text::message;

/// Names that are the daemon's own affair.
///
/// The first are systemd's doors into the daemon: a command that notified, fed the watchdog, took over sockets or read
/// credentials would do so in the daemon's name. The others describe the daemon's unit, and programs judge by them: a
/// logger that finds `JOURNAL_STREAM` believes that its stderr is the journal, while it is a pipe; `INVOCATION_ID` would
/// file the runs of months under one start of the daemon. `CRONWARD_RUN_ID` is what a run has instead.
const DAEMONS_OWN: [&str; 11] = [
    "NOTIFY_SOCKET",
    "CREDENTIALS_DIRECTORY",
    "FDSTORE",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "MAINPID",
    "MANAGERPID",
    "MEMORY_PRESSURE_WATCH",
    "MEMORY_PRESSURE_WRITE",
    "PIDFILE",
    "SYSTEMD_EXEC_PID",
];

/// Beginnings of such names. `CRONWARD_` holds the daemon's settings, its store's url and tokens among them.
const DAEMONS_OWN_PREFIXES: [&str; 3] = ["CRONWARD_", "LISTEN_", "WATCHDOG_"];

/// What the entry of the account decides that a command runs as.
pub(super) const ACCOUNT: [&str; 4] = ["HOME", "LOGNAME", "SHELL", "USER"];

/// A shorter secret may be part of a value by chance: a password `sql` must not take `mysql` away.
const TELLING: usize = 8;

/// The inherited environment of commands: the daemon's without what is the daemon's own.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// From the daemon's environment, such as `std::env::vars_os()`.
    pub fn inherited(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self(variables.into_iter().filter(|(name, _)| is_name(name) && !is_daemons_own(name)).collect())
    }

    /// Without the variables whose value is `secret`, or holds it where it is long enough not to be there by chance: the
    /// store's url and password may have come in under any name. An empty secret hides nothing.
    pub fn hide(&mut self, secret: &str) {
        let telling = secret.len() >= TELLING;
        let found = |value: &OsStr| {
            !secret.is_empty() && (value == secret || telling && contains(value.as_bytes(), secret.as_bytes()))
        };
        self.0.retain(|_, value| !found(value));
    }

    /// Without what the entry of the account sets.
    pub(super) fn without_account(mut self) -> Self {
        self.0.retain(|name, _| !ACCOUNT.iter().any(|own| name == own));
        self
    }

    /// Nothing but what the entry of the account sets.
    pub(super) fn only_account(mut self) -> Self {
        self.0.retain(|name, _| ACCOUNT.iter().any(|own| name == own));
        self
    }

    /// Sets variables; later wins.
    pub(super) fn extend<K: Into<OsString>, V: Into<OsString>>(&mut self, variables: impl IntoIterator<Item = (K, V)>) {
        self.0.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
    }

    /// All of it, sorted by name.
    pub(super) fn into_variables(self) -> Vec<(OsString, OsString)> {
        self.0.into_iter().collect()
    }
}

impl fmt::Debug for Environment {
    /// The names only: values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Whether a variable can be handed on: some environments hold entries without a name.
fn is_name(name: &OsStr) -> bool {
    !name.is_empty() && !name.as_bytes().contains(&b'=')
}

fn is_daemons_own(name: &OsStr) -> bool {
    DAEMONS_OWN.iter().any(|own| name == *own)
        || DAEMONS_OWN_PREFIXES.iter().any(|prefix| name.as_bytes().starts_with(prefix.as_bytes()))
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

/// An instant as commands are told it: RFC 3339 in UTC with `Z`, a fraction of a second only where there is one.
pub fn rfc3339(instant: DateTime<Utc>) -> String {
    instant.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// The names of what a run may be told, but for its locks: what is started within one, and is none itself, hands them on.
pub const OF_A_RUN: [&str; 15] = [
    "CRONWARD_JOB",
    "CRONWARD_SLOT",
    "CRONWARD_SLOT_START",
    "CRONWARD_SLOT_END",
    "CRONWARD_SCHEDULED_AT",
    "CRONWARD_ATTEMPT",
    "CRONWARD_MAX_ATTEMPTS",
    "CRONWARD_FENCE",
    "CRONWARD_RUN_ID",
    "CRONWARD_NODE",
    "CRONWARD_TRIGGER",
    "CRONWARD_LEASE_HELD",
    "CRONWARD_FENCE_REVISION",
    "CRONWARD_LEASE_TOKEN",
    "CRONWARD_DEADLINE",
];

/// The `CRONWARD_*` variables of a run.
pub(super) fn variables(run: &RunContext) -> Vec<(&'static str, String)> {
    let mut variables = vec![
        ("CRONWARD_JOB", run.slot.job().to_string()),
        ("CRONWARD_SLOT", run.slot.key().to_string()),
        ("CRONWARD_SLOT_START", rfc3339(run.slot.start())),
        ("CRONWARD_SLOT_END", rfc3339(run.slot.end())),
        ("CRONWARD_SCHEDULED_AT", rfc3339(run.scheduled_at)),
        ("CRONWARD_ATTEMPT", run.attempt.to_string()),
        ("CRONWARD_MAX_ATTEMPTS", run.max_attempts.to_string()),
        ("CRONWARD_FENCE", run.fence.to_string()),
        ("CRONWARD_RUN_ID", run.run_id.clone()),
        ("CRONWARD_NODE", run.node.to_string()),
        ("CRONWARD_TRIGGER", run.trigger.as_str().to_owned()),
        ("CRONWARD_LEASE_HELD", run.lease_held.to_string()),
    ];
    variables.extend(run.fence_revision.map(|revision| ("CRONWARD_FENCE_REVISION", revision.to_string())));
    variables.extend(run.token.map(|token| ("CRONWARD_LEASE_TOKEN", token.to_string())));
    variables.extend(run.deadline.map(|deadline| ("CRONWARD_DEADLINE", rfc3339(deadline))));
    if let Some(locks) = &run.locks {
        variables.push(("CRONWARD_LOCKS", locks.names.clone()));
        variables.push(("CRONWARD_LOCK_FENCE", locks.fence.to_string()));
        variables.push(("CRONWARD_LOCK_OWNER", locks.owner.to_string()));
    }
    variables
}

/// A text whose placeholders cannot be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceholderError {
    /// Nothing has that name.
    #[error(
        "unknown placeholder {{{0}}}; known are {{slot}}, {{slot_start}}, {{slot_end}}, {{scheduled_at}}, {{attempt}}, \
         {{fence}} and {{job}}; write {{{{ for a brace"
    )]
    Unknown(String),
    /// A `{` without its `}`.
    #[error("a '{{' without its '}}'; write {{{{ for a brace")]
    Unclosed,
    /// A `}` without its `{`.
    #[error("a '}}' without its '{{'; write }}}} for a brace")]
    Unopened,
}

/// One thing that a placeholder can stand for.
#[derive(Clone, Copy)]
enum Placeholder {
    Slot,
    SlotStart,
    SlotEnd,
    ScheduledAt,
    Attempt,
    Fence,
    Job,
}

impl Placeholder {
    fn parse(name: &str) -> Result<Self, PlaceholderError> {
        Ok(match name {
            "slot" => Self::Slot,
            "slot_start" => Self::SlotStart,
            "slot_end" => Self::SlotEnd,
            "scheduled_at" => Self::ScheduledAt,
            "attempt" => Self::Attempt,
            "fence" => Self::Fence,
            "job" => Self::Job,
            _ => return Err(PlaceholderError::Unknown(message(name, 40))),
        })
    }

    fn value(self, run: &RunContext) -> String {
        match self {
            Self::Slot => run.slot.key().to_string(),
            Self::SlotStart => rfc3339(run.slot.start()),
            Self::SlotEnd => rfc3339(run.slot.end()),
            Self::ScheduledAt => rfc3339(run.scheduled_at),
            Self::Attempt => run.attempt.to_string(),
            Self::Fence => run.fence.to_string(),
            Self::Job => run.slot.job().to_string(),
        }
    }
}

/// Whether every placeholder of the text is known: what `check` asks of each word of a list command.
pub fn check_placeholders(text: &str) -> Result<(), PlaceholderError> {
    expand(text, |_| String::new()).map(drop)
}

/// The text with its placeholders filled in.
pub fn fill_placeholders(text: &str, run: &RunContext) -> Result<String, PlaceholderError> {
    expand(text, |placeholder| placeholder.value(run))
}

fn expand(text: &str, value: impl Fn(Placeholder) -> String) -> Result<String, PlaceholderError> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        filled.push_str(before);
        rest = if let Some(after) = from.strip_prefix("{{") {
            filled.push('{');
            after
        } else if let Some(after) = from.strip_prefix("}}") {
            filled.push('}');
            after
        } else {
            let inner = from.strip_prefix('{').ok_or(PlaceholderError::Unopened)?;
            let (name, after) = inner.split_once('}').ok_or(PlaceholderError::Unclosed)?;
            filled.push_str(&value(Placeholder::parse(name)?));
            after
        };
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::job::NodeName;
    use crate::slot::{Fence, Slot, Token, Trigger};

    /// A run for the tests of this layer.
    pub(in crate::exec) fn run() -> RunContext {
        RunContext {
            slot: Slot::parse("push", "2026-11-21T14Z", "2026-11-21T15Z").unwrap(),
            scheduled_at: "2026-11-21T14:05:00Z".parse().unwrap(),
            attempt: 2,
            max_attempts: 3,
            fence: Fence(1_795_269_600_002),
            fence_revision: Some(41),
            run_id: "r-1".to_owned(),
            node: NodeName::new("a").unwrap(),
            trigger: Trigger::Retry,
            deadline: Some("2026-11-21T14:35:00.25Z".parse().unwrap()),
            token: Some(Token::from_bits(7)),
            lease_held: true,
            locks: None,
        }
    }

    fn inherited(variables: &[(&str, &str)]) -> Environment {
        Environment::inherited(variables.iter().map(|(name, value)| (name.into(), value.into())))
    }

    fn names(environment: Environment) -> Vec<String> {
        environment.into_variables().into_iter().map(|(name, _)| name.into_string().unwrap()).collect()
    }

    #[test]
    fn what_is_the_daemons_own_is_not_inherited() {
        let own = ["CRONWARD_STORE", "CRONWARD_STORE_URL", "CRONWARD_X", "LISTEN_FDS", "LISTEN_PID", "WATCHDOG_USEC"];
        let variables: Vec<_> = own.iter().chain(&DAEMONS_OWN).map(|name| (*name, "x")).collect();
        assert_eq!(names(inherited(&variables)), Vec::<String>::new());
    }

    #[test]
    fn everything_else_is_inherited() {
        let variables = [("HOME", "/root"), ("PATH", "/bin"), ("STATE_DIRECTORY", "/var"), ("XCRONWARD_A", "")];
        assert_eq!(names(inherited(&variables)), ["HOME", "PATH", "STATE_DIRECTORY", "XCRONWARD_A"]);
        assert_eq!(names(inherited(&variables).without_account()), ["PATH", "STATE_DIRECTORY", "XCRONWARD_A"]);
    }

    #[test]
    fn a_secret_is_hidden_under_whatever_name_it_came_in() {
        let variables = [("REDIS_URL", "redis://:pw@h"), ("NOTE", "see redis://:pw@h/1"), ("PATH", "/bin")];
        let without = |secret| {
            let mut environment = inherited(&variables);
            environment.hide(secret);
            names(environment)
        };
        assert_eq!(without("redis://:pw@h"), ["PATH"]);
        assert_eq!(without("").len(), 3);
        assert_eq!(without("pw").len(), 3, "part of a value by chance");
    }

    #[test]
    fn an_environment_is_printed_without_its_values() {
        assert_eq!(format!("{:?}", inherited(&[("TOKEN", "secret")])), r#"{"TOKEN"}"#);
    }

    #[test]
    fn a_run_is_told_in_the_documented_variables() {
        let told: Vec<_> = variables(&run()).into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        let wanted = [
            "CRONWARD_JOB=push",
            "CRONWARD_SLOT=2026-11-21T14Z",
            "CRONWARD_SLOT_START=2026-11-21T14:00:00Z",
            "CRONWARD_SLOT_END=2026-11-21T15:00:00Z",
            "CRONWARD_SCHEDULED_AT=2026-11-21T14:05:00Z",
            "CRONWARD_ATTEMPT=2",
            "CRONWARD_MAX_ATTEMPTS=3",
            "CRONWARD_FENCE=1795269600002",
            "CRONWARD_RUN_ID=r-1",
            "CRONWARD_NODE=a",
            "CRONWARD_TRIGGER=retry",
            "CRONWARD_LEASE_HELD=true",
            "CRONWARD_FENCE_REVISION=41",
            "CRONWARD_LEASE_TOKEN=00000000000000000000000000000007",
            "CRONWARD_DEADLINE=2026-11-21T14:35:00.250Z",
        ];
        assert_eq!(told, wanted);
        assert_eq!(variables(&run()).into_iter().map(|(name, _)| name).collect::<Vec<_>>(), OF_A_RUN);
    }

    #[test]
    fn a_run_that_holds_locks_is_told_of_them() {
        let owner = crate::resource::OwnerId::of_text("push@2026-11-21T14Z");
        let locks = crate::slot::RunLocks { names: "db gpu".to_owned(), fence: Fence(7), owner };
        let told = variables(&RunContext { locks: Some(locks), ..run() });
        let of_locks = [
            ("CRONWARD_LOCKS", "db gpu".to_owned()),
            ("CRONWARD_LOCK_FENCE", "7".to_owned()),
            ("CRONWARD_LOCK_OWNER", owner.to_string()),
        ];
        assert_eq!(told[OF_A_RUN.len()..], of_locks);
    }

    #[test]
    fn a_run_is_told_no_deadline_and_no_revision_where_there_is_none() {
        let run = RunContext { deadline: None, fence_revision: None, lease_held: false, ..run() };
        let told = variables(&run);
        assert!(told.iter().all(|(name, _)| !["CRONWARD_DEADLINE", "CRONWARD_FENCE_REVISION"].contains(name)));
        assert!(told.contains(&("CRONWARD_LEASE_HELD", "false".to_owned())));
    }

    #[test]
    fn every_placeholder_is_filled_in() {
        for (text, filled) in [
            ("--hour={slot}", "--hour=2026-11-21T14Z"),
            ("{slot_start}/{slot_end}", "2026-11-21T14:00:00Z/2026-11-21T15:00:00Z"),
            ("{scheduled_at}", "2026-11-21T14:05:00Z"),
            ("{job}-{attempt}", "push-2"),
            ("{fence}", "1795269600002"),
            ("", ""),
            ("none at all", "none at all"),
        ] {
            assert_eq!(check_placeholders(text), Ok(()));
            assert_eq!(fill_placeholders(text, &run()).unwrap(), filled);
        }
    }

    #[test]
    fn doubled_braces_are_braces() {
        assert_eq!(fill_placeholders("{{slot}} {{{slot}}} }}{{", &run()).unwrap(), "{slot} {2026-11-21T14Z} }{");
    }

    #[test]
    fn a_value_is_not_filled_in_again() {
        assert_eq!(fill_placeholders("{{{job}}}", &run()).unwrap(), "{push}");
    }

    #[test]
    fn an_unknown_placeholder_or_a_lone_brace_is_refused_with_the_way_out() {
        for (text, part) in [
            ("{hour}", "unknown placeholder {hour}; known are {slot}"),
            ("{}", "unknown placeholder {}"),
            ("{Slot}", "write {{ for a brace"),
            ("{\"a\":1}", "unknown placeholder"),
            ("{slot", "a '{' without its '}'"),
            ("slot}", "write }} for a brace"),
        ] {
            let error = check_placeholders(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
            assert_eq!(fill_placeholders(text, &run()).unwrap_err().to_string(), error);
        }
    }
}
