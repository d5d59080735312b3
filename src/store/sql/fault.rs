//! What goes wrong below the trait. It knows neither the operation nor whether it was applied; what an error of the
//! database means is the dialect's to say.

use std::fmt;

use crate::slot::Slot;
use crate::store::{Applied, ErrorKind, Op, StoreError};

/// What an error of a database means: its kind, and what to do about it.
pub(super) type Meaning = fn(&sqlx::Error) -> (ErrorKind, String);

/// Trouble below the trait.
#[derive(Debug)]
pub(super) enum SqlFault {
    /// The database or its driver.
    Sql(sqlx::Error),
    /// A row that cronward did not write.
    Row(String),
    /// Anything that the adapter itself found.
    Known {
        /// What kind of trouble.
        kind: ErrorKind,
        /// What it is, with the way out.
        message: String,
        /// The system's own error.
        source: Option<std::io::Error>,
    },
}

impl SqlFault {
    pub(super) const fn known(kind: ErrorKind, message: String) -> Self {
        Self::Known { kind, message, source: None }
    }

    /// A row of a slot that cannot be read.
    pub(super) fn row(slot: &Slot, why: impl fmt::Display) -> Self {
        Self::Row(format!("slot {slot}: {why}"))
    }

    /// The same in words, for the others whom it concerns: those of one transaction.
    #[cfg(feature = "sqlite")]
    pub(super) fn retold(&self, meaning: Meaning) -> Self {
        let (kind, message) = self.told(meaning);
        Self::known(kind, message)
    }

    /// The one error of every store.
    pub(super) fn into_error(self, op: Op, applied: Applied, location: &str, meaning: Meaning) -> StoreError {
        let (kind, message) = self.told(meaning);
        let error = StoreError::new(kind, applied, op, location, message);
        match self {
            Self::Sql(source) => error.caused_by(source),
            Self::Known { source: Some(source), .. } => error.caused_by(source),
            Self::Known { .. } | Self::Row(_) => error,
        }
    }

    /// Its kind and its words.
    pub(super) fn told(&self, meaning: Meaning) -> (ErrorKind, String) {
        match self {
            Self::Known { kind, message, .. } => (*kind, message.clone()),
            Self::Row(why) => (ErrorKind::Corrupt, format!("{why}; cronward did not write that")),
            Self::Sql(error) => meaning(error),
        }
    }
}

impl fmt::Display for SqlFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known { message, .. } => f.write_str(message),
            Self::Row(why) => f.write_str(why),
            Self::Sql(error) => error.fmt(f),
        }
    }
}

impl From<sqlx::Error> for SqlFault {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}
