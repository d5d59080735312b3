//! Answers in JSON: with a tag, so that who has one already is told so, and kept for a second where the store was read for them, so that
//! many who ask the same are one who asks the store.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH, LINK};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::clock::{Clock, Mono};
use crate::web::detail::ProblemDetail;
use crate::web::problem::Problem;

/// How old an answer may be.
const FRESH: Duration = Duration::from_secs(1);
/// Answers that are kept. Of more the oldest is forgotten.
const KEPT: usize = 64;
/// Bytes of an answer that is kept.
const LARGEST: usize = 256 * 1_024;

/// What was answered.
type CachedAnswer = Result<Bytes, Problem>;

/// One answer, and who waits for it.
type CacheEntry = Arc<tokio::sync::Mutex<Option<(Mono, CachedAnswer)>>>;

/// Answers, as they were read last.
#[derive(Debug)]
pub(super) struct Answers {
    clock: Arc<dyn Clock>,
    kept: Mutex<VecDeque<(String, CacheEntry)>>,
}

impl Answers {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, kept: Mutex::default() }
    }

    /// What was answered to the same within the last second, that the store was away included; else what is read now. Whoever comes
    /// meanwhile waits for that.
    pub(super) async fn get(&self, asked: String, read: impl Future<Output = CachedAnswer>) -> CachedAnswer {
        let place = self.place(asked);
        let mut kept = place.lock().await;
        if let Some((at, answer)) = &*kept
            && self.clock.now().mono.since(*at) < FRESH
        {
            return answer.clone();
        }
        let answer = read.await;
        let fits = answer.as_ref().map_or(0, Bytes::len) <= LARGEST;
        *kept = fits.then(|| (self.clock.now().mono, answer.clone()));
        answer
    }

    fn place(&self, asked: String) -> CacheEntry {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, place)) = kept.iter().find(|(known, _)| *known == asked) {
            return Arc::clone(place);
        }
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        let place = CacheEntry::default();
        kept.push_back((asked, Arc::clone(&place)));
        place
    }
}

/// The JSON of something.
pub(super) fn written(view: &impl Serialize) -> CachedAnswer {
    let broken = |_| Problem::internal(ProblemDetail::AnswerUnwritten);
    serde_json::to_vec(view).map(Bytes::from).map_err(broken)
}

/// JSON as an answer. `next` is the address of the next page.
pub(super) fn tagged(json: Bytes, asked: &HeaderMap, next: Option<String>) -> Response {
    let digest = Sha256::digest(&json);
    let tag: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{tag}\"");
    let known = asked.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let is_known = known.flat_map(|value| value.split(',')).any(|value| {
        let value = value.trim();
        value == "*" || value.trim_start_matches("W/") == tag
    });
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(CONTENT_TYPE, "application/json")], json).into_response()
    };
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(ETAG, tag);
    }
    if let Some(next) = next.and_then(|next| HeaderValue::try_from(format!("<{next}>; rel=\"next\"")).ok()) {
        headers.insert(LINK, next);
    }
    response
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::clock::ManualClock;

    #[tokio::test]
    async fn many_who_ask_the_same_within_a_second_are_one_who_asks_the_store() {
        let clock = ManualClock::at("2026-11-21T15:00:00Z".parse().unwrap());
        let (answers, asked) = (Answers::new(Arc::new(clock.clone())), AtomicUsize::new(0));
        let ask = |what: &str| {
            let read = async {
                tokio::task::yield_now().await;
                let count = asked.fetch_add(1, Ordering::Relaxed);
                if count == 1 { Err(Problem::store_away(false)) } else { Ok(Bytes::from_static(b"0")) }
            };
            answers.get(what.to_owned(), read)
        };
        let all = futures_util::future::join_all((0..50).map(|_| ask("a"))).await;
        assert!(all.iter().all(|answer| answer.is_ok()));
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        clock.advance(Duration::from_secs(1));
        assert!(ask("a").await.is_err() && ask("a").await.is_err(), "nor is a store that is away asked by each");
        assert_eq!(asked.load(Ordering::Relaxed), 2);
        for place in 0..500 {
            ask(&place.to_string()).await.unwrap();
        }
        assert_eq!(answers.kept.lock().unwrap().len(), KEPT);
    }
}
