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

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use axum::response::IntoResponse;
    use tokio::sync::Semaphore;

    use super::*;

    /// Ends once it has a permit.
    #[derive(Debug)]
    struct Slow(Arc<Semaphore>);

    #[async_trait]
    impl Examination for Slow {
        async fn examine(&self) -> Result<DoctorView, String> {
            self.0.acquire().await.map_err(|error| error.to_string())?.forget();
            Ok(DoctorView::new("memory".to_owned(), "memory", Vec::new()))
        }
    }

    #[tokio::test]
    async fn who_asks_while_the_store_is_examined_is_told_to_come_again_and_the_next_one_is_served() {
        let ends = Arc::new(Semaphore::new(0));
        let examiner = Examiner::new(Arc::new(Slow(Arc::clone(&ends))));
        let mut first = pin!(examiner.examine());
        assert!(matches!(first.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
        let refused = examiner.examine().await.map(drop).map_err(|problem| problem.into_response().status());
        assert_eq!(refused, Err(axum::http::StatusCode::CONFLICT));
        ends.add_permits(2);
        assert!(first.await.is_ok());
        assert!(examiner.examine().await.is_ok());
    }
}
