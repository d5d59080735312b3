//! Why a command was not started. Words only.

use std::fmt::Display;

use crate::slot::ExitStatus;

/// The exit code of a command that was not found, as shells have it.
pub(super) const NOT_FOUND: i32 = 127;

/// The exit code of a command that was found, or never looked for, and could not be started.
pub(super) const CANNOT_RUN: i32 = 126;

/// Why a command was not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// [`NOT_FOUND`] or [`CANNOT_RUN`].
    pub(super) code: i32,
    /// One line that names the thing.
    pub(super) message: String,
}

impl Refusal {
    /// The command was found, or never looked for.
    pub(super) fn cannot_run(why: impl Display) -> Self {
        Self { code: CANNOT_RUN, message: why.to_string() }
    }

    /// The program was not found.
    pub(super) fn not_found(why: impl Display) -> Self {
        Self { code: NOT_FOUND, message: why.to_string() }
    }
}

impl From<Refusal> for ExitStatus {
    fn from(refusal: Refusal) -> Self {
        Self::NotStarted { code: refusal.code, message: refusal.message }
    }
}
