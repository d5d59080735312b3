//! Why a command failed: one line that names the thing and the way out, and the exit code that goes with it.
//!
//! The numbers are those of `sysexits.h`, of `timeout(1)` and of the shell; they are part of the interface and never change their
//! meaning.

use std::io;

use crate::admin::AdminError;
use crate::store::{ErrorKind, OpenError, StoreError};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// What was asked for cannot be.
    #[error("{0}")]
    Usage(String),
    /// The file, or what it says, cannot be used.
    #[error("{0}")]
    Configuration(String),
    /// The file has errors, and they were shown; this is their summary.
    #[error("{0}; nothing was done")]
    File(String),
    /// The file has errors, and the result says so: nothing is left to tell.
    #[error("the configuration has errors")]
    Shown,
    /// Something is wrong in what was verified, and the result says so: nothing is left to tell.
    #[error("something is unexplained or violated")]
    Found,
    /// Something about the store can cost a slot, and the result says so: nothing is left to tell.
    #[error("the store can cost a slot")]
    Faults,
    /// A daemon that was asked is not well, or does not answer.
    #[cfg(feature = "http")]
    #[error("{0}")]
    Unwell(String),
    /// A receiver did not take a message.
    #[cfg(feature = "notify")]
    #[error("{0}")]
    Unheard(String),
    /// The command that was run has told whatever there is to tell: its exit code is passed on.
    #[error("exit code {0}")]
    Child(u8),
    /// A node holds what was to be changed.
    #[error("{0}")]
    Held(String),
    /// The store could not answer.
    #[error("{}{}", .0, way_out(.0.kind, &.0.message))]
    Store(StoreError),
    /// The store could not answer when a part was done: which, and the error that kept it from the rest.
    #[error("{}: {}{}", .0, .1, way_out(.1.kind, &.1.message))]
    Partly(String, StoreError),
    /// The result could not be written.
    #[error("cannot write the result: {0}")]
    Output(#[from] io::Error),
    /// The machine refused something that a command cannot do without.
    #[error("{0}")]
    Internal(String),
}

impl Failure {
    /// The exit code that says the same to a script.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::Usage,
            Self::Found => ExitCode::Found,
            #[cfg(feature = "http")]
            Self::Unwell(_) => ExitCode::Found,
            #[cfg(feature = "notify")]
            Self::Unheard(_) => ExitCode::Found,
            Self::Faults => ExitCode::Faults,
            Self::Configuration(_) | Self::File(_) | Self::Shown => ExitCode::Configuration,
            Self::Child(_) => ExitCode::Internal,
            Self::Held(_) => ExitCode::TryAgain,
            Self::Store(error) | Self::Partly(_, error) if error.is_transient() => ExitCode::TryAgain,
            Self::Store(_) | Self::Partly(..) => ExitCode::StoreRefuses,
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::Success,
            Self::Output(_) | Self::Internal(_) => ExitCode::Internal,
        }
    }

    /// A url that cannot be used is the fault of whoever wrote it: the command line, or the file.
    pub(crate) fn opening(error: OpenError, from_command_line: bool) -> Self {
        match error {
            OpenError::Store(error) => Self::Store(error),
            refused @ OpenError::LockKey { .. } => Self::Usage(format!("--key: {refused}")),
            url if from_command_line => Self::Usage(url.to_string()),
            url => Self::Configuration(url.to_string()),
        }
    }
}

impl From<AdminError> for Failure {
    fn from(error: AdminError) -> Self {
        match error {
            AdminError::Unknown(what) => Self::Usage(what.to_string()),
            AdminError::PauseEnd(end) => Self::Usage(format!("--until {end}")),
            AdminError::ManySlots(most) => Self::Usage(format!(
                "more than {most} slots lie in that time: name a job with --job, or a shorter time with --since"
            )),
            AdminError::Unusable(what) => Self::Configuration(what),
            AdminError::Store(error) => Self::Store(error),
            AdminError::Internal(what) => Self::Internal(what),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// What to do about a store that could not answer, unless its own message says it.
pub(crate) fn way_out(kind: ErrorKind, message: &str) -> String {
    let told = if kind.is_transient() { &[';'][..] } else { &[';', ':'] };
    if message.contains(told) { String::new() } else { format!("; {}", advice(kind)) }
}

/// What to do about a store that fails like this.
const fn advice(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Unavailable => "check that the store is running and reachable, then try again",
        ErrorKind::Timeout => "try again, or raise [store] op_timeout",
        ErrorKind::Overloaded => "free memory, connections or disk space of the store, then try again",
        ErrorKind::Denied => "check the user, the password and the user's rights",
        ErrorKind::ReadOnly => "name a store that accepts writes",
        ErrorKind::Corrupt => "another program writes there: give cronward its own store or namespace",
        ErrorKind::Content => "shorten the text, or raise the store's limit",
        ErrorKind::Unsupported | ErrorKind::Unknown => {
            "correct the store's url, or name a server of a supported kind and version"
        }
    }
}

/// How a command ended, for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// Done. Also when the reader of stdout went away (`cronward jobs | head -1`).
    Success = 0,
    /// `verify`: something is unexplained or violated; `doctor`: there are warnings; `import`: a line cannot be read. The result
    /// says what, as with `grep` and `diff`. `lock`: the locks are not free, as with `flock`. `healthcheck`: the daemon is not
    /// well, or does not answer. `notify`: the receiver did not take the message.
    Found = 1,
    /// `doctor`: something can cost a slot as things stand; warnings alone are `Found`.
    Faults = 2,
    /// The command line cannot be used as it is written; nothing was done.
    Usage = 64,
    /// The store was reached and refuses: password, permission, read-only, what is there is not cronward's.
    StoreRefuses = 69,
    /// A bug, or the machine failed it (stdout on a full disk).
    Internal = 70,
    /// `exec`, `trigger`, `lock`: the command succeeded, and its output could not be written (a full disk).
    OutputLost = crate::slot::OUTPUT_LOST,
    /// The store cannot be reached, or not in time: try again.
    TryAgain = 75,
    /// `exec`, `lock`: the lease or a lock was lost and the command was killed.
    LeaseLost = 76,
    /// The file is missing, or says something that cannot be used.
    Configuration = 78,
    /// `exec`: the command ran out of its time.
    Timeout = 124,
    /// `exec`, `lock`: the command was found and cannot be run.
    CannotRun = 126,
    /// `exec`, `lock`: the command was not found.
    NotFound = 127,
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::store::{Applied, Op};

    fn store_error(kind: ErrorKind) -> Failure {
        StoreError::new(kind, Applied::No, Op::Inspect, "redis://h:6379", "connection refused").into()
    }

    #[test]
    fn a_store_that_is_away_asks_to_try_again_and_one_that_refuses_does_not() {
        for kind in [ErrorKind::Unavailable, ErrorKind::Timeout, ErrorKind::Overloaded] {
            assert_eq!(store_error(kind).exit_code(), ExitCode::TryAgain, "{kind:?}");
        }
        for kind in [ErrorKind::Denied, ErrorKind::ReadOnly, ErrorKind::Corrupt, ErrorKind::Unsupported] {
            assert_eq!(store_error(kind).exit_code(), ExitCode::StoreRefuses, "{kind:?}");
        }
    }

    #[test]
    fn a_store_error_is_one_line_with_what_where_and_the_way_out() {
        assert_eq!(
            store_error(ErrorKind::Unavailable).to_string(),
            "redis://h:6379: inspect: connection refused; check that the store is running and reachable, then try again"
        );
    }

    #[test]
    fn a_store_that_says_what_to_do_has_the_last_word() {
        let message = "no SQLite database: choose another path";
        let error = StoreError::new(ErrorKind::Corrupt, Applied::No, Op::Open, "sqlite:/x", message);
        assert_eq!(Failure::from(error).to_string(), "sqlite:/x: open: no SQLite database: choose another path");
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        let gone = Failure::Output(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(gone.exit_code(), ExitCode::Success);
        let full = Failure::Output(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(full.exit_code(), ExitCode::Internal);
    }

    #[test]
    fn a_bad_url_is_the_fault_of_whoever_wrote_it() {
        let error = || OpenError::Url { url: "x://".to_owned(), message: "no".to_owned() };
        assert_eq!(Failure::opening(error(), true).exit_code(), ExitCode::Usage);
        assert_eq!(Failure::opening(error(), false).exit_code(), ExitCode::Configuration);
    }
}
