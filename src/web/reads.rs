//! What a page shows of one slot or one job and the board does not keep: read from the store when somebody opens it, a few at once, so
//! that viewers cannot flood the store.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

use crate::admin::{AdminError, AdminSession};
use crate::board::Board;
use crate::clock::{Clock, Mono};
use crate::store::Store;
use crate::web::detail::ProblemDetail;
use crate::web::problem::Problem;

/// Such looks at once; the next one waits, and a request waits for ten seconds at the most.
const SEATS: usize = 4;
/// How old what is known of the jobs may be.
const FRESH: Duration = Duration::from_secs(1);

/// The store, for whoever has a seat.
#[derive(Debug)]
pub(super) struct Reads {
    seats: Semaphore,
    clock: Arc<dyn Clock>,
    board: Arc<Board>,
    known: Mutex<Option<(Mono, Arc<AdminSession>)>>,
}

/// A look into the store, and its seat.
pub(super) struct BoundedRead<'a> {
    pub(super) session: Arc<AdminSession>,
    _seat: SemaphorePermit<'a>,
}

impl Reads {
    pub(super) fn new(clock: Arc<dyn Clock>, board: Arc<Board>) -> Self {
        Self { seats: Semaphore::new(SEATS), clock, board, known: Mutex::new(None) }
    }

    /// Asks for the time and for the jobs, unless that was done within the last second.
    pub(super) async fn begin(&self, store: &Arc<dyn Store>) -> Result<BoundedRead<'_>, Problem> {
        let seat = self.seats.acquire().await.map_err(|_| Problem::not_found())?;
        let mut known = self.known.lock().await;
        let is_fresh = |at: Mono| self.clock.now().mono.since(at) < FRESH;
        if let Some((_, session)) = known.as_ref().filter(|(at, _)| is_fresh(*at)) {
            return Ok(BoundedRead { session: Arc::clone(session), _seat: seat });
        }
        let specs = self.board.specs();
        let session =
            AdminSession::planned(Arc::clone(store), self.board.retention(), &specs, "cronward jobs".to_owned())
                .await?;
        let session = Arc::new(session);
        *known = Some((self.clock.now().mono, Arc::clone(&session)));
        Ok(BoundedRead { session, _seat: seat })
    }
}

impl From<AdminError> for Problem {
    fn from(error: AdminError) -> Self {
        match error {
            AdminError::Unknown(what) => Self::unknown(what),
            AdminError::Store(error) => {
                tracing::debug!(%error, "the store was not read for a request");
                let refused = || error.is_refusal().then(Self::store_refuses);
                Self::of_answer(&error).or_else(refused).unwrap_or_else(|| Self::store_away(false))
            }
            AdminError::PauseEnd(end) => Self::bad_request(end),
            AdminError::ManySlots(_) => Self::bad_request(ProblemDetail::ManySlots),
            AdminError::Unusable(what) | AdminError::Internal(what) => Self::internal(ProblemDetail::Internal(what)),
        }
    }
}
