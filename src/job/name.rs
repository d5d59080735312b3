//! The names that users give: of jobs, namespaces and nodes, and of the key of a foreign program. A value of these types has
//! passed its rule. Words only.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

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

    /// The name, cut where it is long.
    pub fn name(&self) -> &str {
        &self.name
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
    /// The name of a lock that jobs and programs share. Same rule as job names.
    LockName, "lock name", 52, lower, NAME_RULE
);
name_type!(
    /// A node's name, as people know it; usually the host's. See [`NODE_NAME_RULE`].
    NodeName, "node name", 64, mixed, NODE_NAME_RULE
);

impl NodeName {
    /// The nearest node name to a text: what is not allowed becomes `-`, and it is cut to length. For people's names in
    /// records, and for a host's where it names the node; never for a name that somebody chose for a node.
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

/// The name of a key of a foreign program. It is sent as an argument and never becomes part of a script.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LockKey(String);

/// A text that is no such key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a key to hold: 1 to 512 characters, none of cronward's own (cronward:…)")]
pub struct LockKeyError(String);

impl FromStr for LockKey {
    type Err = LockKeyError;

    fn from_str(text: &str) -> Result<Self, LockKeyError> {
        if text.is_empty() || text.len() > 512 || text.starts_with("cronward:") {
            return Err(LockKeyError(text.chars().take(60).collect()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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
}
