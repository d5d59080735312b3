//! `/api/v1/events`: what changes, for as long as somebody listens (server-sent events). Each stream has a place among a few, says that it
//! lives every 15 s, ends after an hour, so that whoever may not look any more does not, and says goodbye when the node leaves.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::board::Patch;
use crate::clock::Mono;
use crate::drive::timers;
use crate::web::api::queried;
use crate::web::detail::ProblemDetail;
use crate::web::problem::Problem;
use crate::web::site::Site;

/// Between two signs of life.
const SIGN: Duration = Duration::from_secs(15);
/// When there may be a place, in seconds.
const LATER: u64 = 10;
/// The longest that one stream lasts.
const LONGEST: Duration = Duration::from_secs(3_600);

/// One stream, until it is dropped.
struct SseClient {
    site: Arc<Site>,
    patches: Receiver<Arc<Patch>>,
    /// What is still to be told.
    waiting: VecDeque<String>,
    sign_at: Mono,
    end_at: Mono,
    ended: bool,
}

impl Drop for SseClient {
    fn drop(&mut self) {
        self.site.streams.leave();
    }
}

/// What the address may say: the moment from which on, as the page has it.
#[derive(Debug, Deserialize)]
pub(super) struct EventsQuery {
    after: Option<String>,
}

pub(super) async fn events(
    State(site): State<Arc<Site>>,
    query: Result<Query<EventsQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = queried(query)?;
    if !site.streams.take() {
        let detail = ProblemDetail::ManyStreams;
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too-many-streams", detail).retry_after(LATER));
    }
    // What the browser heard last is newer than what the page was made with.
    let heard = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned).or(query.after);
    let listener = SseClient::new(site, heard.as_deref());
    let frames = stream::unfold(listener, |mut listener| async move {
        let frame = listener.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(frame)), listener))
    });
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
        // nginx would keep what is told until there is enough of it.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Body::from_stream(frames)).into_response())
}

impl SseClient {
    fn new(site: Arc<Site>, heard: Option<&str>) -> Self {
        let board = &site.sources.board;
        let (patches, since) = board.watch_after(heard);
        let mut waiting = VecDeque::from(["retry: 3000\n\n".to_owned()]);
        match (heard, since) {
            (Some(_), Some(since)) => waiting.extend(since.iter().map(|patch| told(board.moment(patch.number), patch))),
            (Some(_), None) => waiting.push_back(reset(&board.now())),
            (None, _) => {}
        }
        let now = site.sources.clock.now().mono;
        Self { patches, waiting, sign_at: now + SIGN, end_at: now + LONGEST, ended: false, site }
    }

    /// What is told next; none once the stream is over.
    async fn next(&mut self) -> Option<String> {
        if let Some(frame) = self.waiting.pop_front() {
            return Some(frame);
        }
        if self.ended {
            return None;
        }
        let (clock, board) = (Arc::clone(&self.site.sources.clock), Arc::clone(&self.site.sources.board));
        let due = self.sign_at.min(self.end_at);
        let frame = tokio::select! {
            biased;
            () = self.site.leaving.cancelled() => self.bye(),
            patch = self.patches.recv() => match patch {
                Ok(patch) => told(board.moment(patch.number), &patch),
                Err(RecvError::Lagged(_)) => {
                    // What is waiting is older than what the reader will look at now.
                    self.patches = board.watch();
                    reset(&board.now())
                }
                Err(RecvError::Closed) => self.bye(),
            },
            () = timers::until(&*clock, Some(due)) => {
                if clock.now().mono >= self.end_at { self.bye() } else { ": still here\n\n".to_owned() }
            }
        };
        self.sign_at = clock.now().mono + SIGN;
        Some(frame)
    }

    fn bye(&mut self) -> String {
        self.ended = true;
        "event: bye\ndata: {}\n\n".to_owned()
    }
}

/// Begin anew: look at everything again.
fn reset(moment: &str) -> String {
    format!("id: {moment}\nevent: reset\ndata: {{}}\n\n")
}

fn told(moment: String, patch: &Patch) -> String {
    let mut frame = String::with_capacity(patch.data.len() + 64);
    // Writing to a string cannot fail. JSON on one line has no line end of its own.
    let _ = write!(frame, "id: {moment}\nevent: {}\ndata: {}\n\n", patch.event, patch.data);
    frame
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod stream_tests;
