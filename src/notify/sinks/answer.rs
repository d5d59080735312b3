//! What becomes of a try. Words only.

use std::time::Duration;

/// A try that takes longer has failed.
pub(super) const LONGEST_TRY: Duration = Duration::from_secs(10);

/// What became of a try. No text has a secret in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Receipt {
    /// The receiver took it, and said so.
    Taken(String),
    /// It may take it later.
    Again {
        /// When it wishes to be asked again.
        after: Option<Duration>,
        /// Why.
        error: String,
    },
    /// It takes it never.
    Refused(String),
}

impl Receipt {
    pub(super) fn again(error: impl Into<String>) -> Self {
        Self::Again { after: None, error: error.into() }
    }
}
