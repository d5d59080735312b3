//! What was found when a store was looked at: how bad it is, what can happen to a slot, and the line to change. Words only.

use serde::{Deserialize, Serialize};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// As it should be.
    Ok,
    /// A slot can suffer when something else goes wrong too.
    Warning,
    /// A slot can be lost, or run twice, as things stand.
    Fault,
}

impl Severity {
    /// The word used on screens and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Fault => "fault",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What was looked at: a word for programs.
    pub check: String,
    /// How bad it is.
    pub severity: Severity,
    /// What was found, on one line.
    pub found: String,
    /// What can happen to a slot; none where all is well.
    pub effect: Option<String>,
    /// The line to change, or what to do; none where all is well.
    pub fix: Option<String>,
}

impl Finding {
    /// All is well.
    pub fn ok(check: &str, found: impl Into<String>) -> Self {
        Self { check: check.to_owned(), severity: Severity::Ok, found: found.into(), effect: None, fix: None }
    }

    /// A slot can suffer when something else goes wrong too.
    pub fn warning(check: &str, found: impl Into<String>, effect: &str, fix: impl Into<String>) -> Self {
        let (effect, fix) = (Some(effect.to_owned()), Some(fix.into()));
        Self { severity: Severity::Warning, effect, fix, ..Self::ok(check, found) }
    }

    /// A slot can be lost, or run twice, as things stand.
    pub fn fault(check: &str, found: impl Into<String>, effect: &str, fix: impl Into<String>) -> Self {
        Self { severity: Severity::Fault, ..Self::warning(check, found, effect, fix) }
    }
}
