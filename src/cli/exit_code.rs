//! The exit codes of `cronward`. The numbers are those of `sysexits.h`, of `timeout(1)` and of the shell; they are part
//! of the interface and never change their meaning.

/// How a command ended, for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// Done. Also when the reader of stdout went away (`cronward jobs | head -1`).
    Success = 0,
    /// `verify`: something is unexplained or violated; `doctor`: there are warnings; `import`: a line cannot be read. The result
    /// says what. As `grep` and `diff` do.
    Found = 1,
    /// `doctor`: something can cost a slot as things stand; warnings alone are `Found`.
    Faults = 2,
    /// The command line cannot be used as it is written; nothing was done.
    Usage = 64,
    /// The store was reached and refuses: password, permission, read-only, what is there is not cronward's.
    StoreRefuses = 69,
    /// A bug, or the machine failed it (stdout on a full disk).
    Internal = 70,
    /// `exec`, `trigger`: the command succeeded, and its output could not be written (a full disk).
    OutputLost = crate::slot::OUTPUT_LOST,
    /// The store cannot be reached, or not in time: try again.
    TryAgain = 75,
    /// `exec`: the lease was lost and the command was killed.
    LeaseLost = 76,
    /// The file is missing, or says something that cannot be used.
    Configuration = 78,
    /// `exec`: the command ran out of its time.
    Timeout = 124,
    /// `exec`: the command was found and cannot be run.
    CannotRun = 126,
    /// `exec`: the command was not found.
    NotFound = 127,
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}
