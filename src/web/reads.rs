//! What a page shows of one slot or one job and the board does not keep: read from the store when somebody opens it, a few at once, so
//! that viewers cannot flood the store.

use std::sync::Arc;

use axum::http::StatusCode;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::admin::{AdminError, AdminSession};
use crate::store::Store;
use crate::web::problem::Problem;

/// Such looks at once; the next one waits, and a request waits for ten seconds at the most.
const SEATS: usize = 4;
/// When the store may be there again, in seconds.
const LATER: u64 = 10;

/// The store, for whoever has a seat.
#[derive(Debug)]
pub(super) struct Reads {
    seats: Semaphore,
}

/// A look into the store, and its seat.
pub(super) struct Look<'a> {
    pub(super) session: AdminSession,
    _seat: SemaphorePermit<'a>,
}

impl Reads {
    pub(super) fn new() -> Self {
        Self { seats: Semaphore::new(SEATS) }
    }

    /// Asks for the time and for the jobs.
    pub(super) async fn begin(&self, store: &Arc<dyn Store>) -> Result<Look<'_>, Problem> {
        let seat = self.seats.acquire().await.map_err(|_| Problem::not_found())?;
        let session = AdminSession::begin(Arc::clone(store), None, "cronward jobs".to_owned()).await?;
        Ok(Look { session, _seat: seat })
    }
}

impl From<AdminError> for Problem {
    fn from(error: AdminError) -> Self {
        match error {
            AdminError::Unknown(what) => Self::new(StatusCode::NOT_FOUND, "not-found", what),
            AdminError::Store(error) => {
                tracing::debug!(%error, "a page was not read");
                let detail = "the store does not answer; the node goes on asking it";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "store-away", detail).retry_after(LATER)
            }
            AdminError::Passed(what) => Self::new(StatusCode::CONFLICT, "conflict", what),
            AdminError::Unusable(what) | AdminError::Internal(what) => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", what)
            }
        }
    }
}
