//! Why what an operator asked for could not be told.

use crate::store::StoreError;

/// Why what an operator asked for could not be told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdminError {
    /// There is no such job or slot; with what there is.
    #[error("{0}")]
    Unknown(String),
    /// A job of the file cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// A time that was named has passed; with what the store's clock shows.
    #[error("{0}")]
    Passed(String),
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store answered what no store may answer.
    #[error("{0}")]
    Internal(String),
}
