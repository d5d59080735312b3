//! The store, tried as `cronward doctor` tries it: one trial at a time, however many ask.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Mutex;

use crate::observe::view::DoctorView;
use crate::web::detail::ProblemDetail;
use crate::web::problem::Problem;

/// Tries the store. It writes trial records and removes them.
#[async_trait]
pub trait Examination: fmt::Debug + Send + Sync {
    /// What was found.
    ///
    /// # Errors
    /// The url cannot be used: why, without its secrets.
    async fn examine(&self) -> Result<DoctorView, String>;
}

/// One that is asked for by one operator at a time.
#[derive(Debug)]
pub(super) struct Examiner {
    examination: Arc<dyn Examination>,
    turn: Mutex<()>,
}

impl Examiner {
    pub(super) fn new(examination: Arc<dyn Examination>) -> Self {
        Self { examination, turn: Mutex::new(()) }
    }

    /// What is found now.
    pub(super) async fn examine(&self) -> Result<DoctorView, Problem> {
        let Ok(_turn) = self.turn.try_lock() else {
            return Err(Problem::conflict(ProblemDetail::Examining));
        };
        self.examination.examine().await.map_err(|error| {
            tracing::warn!(error, "the store was not examined");
            Problem::internal(ProblemDetail::Internal(error))
        })
    }
}
