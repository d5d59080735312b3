//! What an error looks like: `application/problem+json` (RFC 9457), or a short page for whoever reads HTML. Its `type` is a word, which
//! programs may rely on.

use axum::body::Body;
use axum::http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::error::{Applied, ErrorKind, StoreError};
use crate::web::detail::ProblemDetail;

/// When the store may be there again, in seconds: a node looks each ten.
const STORE_LATER: u64 = 10;

/// Why a request was not answered as it wished. Holds nothing that the request itself said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    status: StatusCode,
    word: &'static str,
    /// Boxed: what it is of is larger than most answers.
    detail: Box<ProblemDetail>,
    retry_after: Option<u64>,
    /// What else it has for programs.
    member: Option<(&'static str, Value)>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, word: &'static str, detail: impl Into<ProblemDetail>) -> Self {
        Self { status, word, detail: Box::new(detail.into()), retry_after: None, member: None }
    }

    /// With the number of seconds after which it may be tried again.
    pub(super) fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// With something more for programs.
    pub(super) fn with(self, name: &'static str, value: Value) -> Self {
        Self { member: Some((name, value)), ..self }
    }

    /// Whether the token is wrong, or there is none: a login may help.
    pub(super) fn is_unauthorized(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED && !matches!(*self.detail, ProblemDetail::NoProxyUser)
    }

    pub(super) const fn status(&self) -> StatusCode {
        self.status
    }

    /// Whether the slot is in another state than it was when the request was made.
    pub(super) fn is_stale(&self) -> bool {
        matches!(*self.detail, ProblemDetail::NotAsExpected { .. })
    }

    /// Whether things are not as the request takes them to be.
    pub(super) fn is_conflict(&self) -> bool {
        self.status == StatusCode::CONFLICT
    }

    /// Whether something in the request is not as it has to be.
    pub(super) fn is_bad_request(&self) -> bool {
        self.status == StatusCode::BAD_REQUEST
    }

    /// What is wrong.
    pub(super) fn detail(&self) -> &ProblemDetail {
        &self.detail
    }

    /// Something in the request is not as it has to be.
    pub(super) fn bad_request(detail: impl Into<ProblemDetail>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request", detail)
    }

    /// Things are not as the request takes them to be.
    pub(super) fn conflict(detail: ProblemDetail) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", detail)
    }

    /// There is no such thing.
    pub(super) fn unknown(detail: impl Into<ProblemDetail>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", detail)
    }

    pub(super) fn not_found() -> Self {
        Self::unknown(ProblemDetail::NotFound)
    }

    /// `maybe`: an action may have been done.
    pub(super) fn store_away(maybe: bool) -> Self {
        let detail = ProblemDetail::StoreAway { maybe };
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "store-away", detail).retry_after(STORE_LATER)
    }

    /// Waiting is no cure.
    pub(super) fn store_refuses() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "store-refuses", ProblemDetail::StoreRefusesReads)
    }

    /// What a store that answered has said of itself, or of what it holds; none where it refuses whoever asks, or did not answer. Errors
    /// name the store without its secrets.
    pub(super) fn of_answer(error: &StoreError) -> Option<Self> {
        let (told, maybe) = (error.to_string(), error.applied == Applied::Maybe);
        match error.kind {
            ErrorKind::Corrupt => {
                let detail = ProblemDetail::StoreCorrupt { error: told };
                Some(Self::new(StatusCode::INTERNAL_SERVER_ERROR, "store-corrupt", detail))
            }
            ErrorKind::Overloaded | ErrorKind::ReadOnly | ErrorKind::Content => {
                let detail = ProblemDetail::StoreUnusable { error: told, maybe };
                Some(Self::new(StatusCode::SERVICE_UNAVAILABLE, "store-away", detail).retry_after(STORE_LATER))
            }
            _ => None,
        }
    }

    /// Nobody can fix it from outside.
    pub(super) fn internal(detail: ProblemDetail) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    pub(super) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", ProblemDetail::NoToken)
    }

    /// Whoever the proxy sends no login helps: a proxy's word goes before a cookie.
    pub(super) fn no_proxy_user() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", ProblemDetail::NoProxyUser)
    }

    /// Users come from a proxy alone, and this is not its address.
    pub(super) fn not_the_proxy() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", ProblemDetail::NotTheProxy)
    }

    pub(super) fn forbidden(detail: ProblemDetail) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    fn json(&self) -> String {
        let title = self.status.canonical_reason().unwrap_or("Error");
        let detail = self.detail.to_string();
        let mut told = json!({ "type": self.word, "title": title, "status": self.status.as_u16(), "detail": detail });
        if let (Some((name, value)), Some(members)) = (&self.member, told.as_object_mut()) {
            members.insert((*name).to_owned(), value.clone());
        }
        told.to_string()
    }
}

/// It is written when it is known what the request wants to read.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"cronward\""));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// Whether a request would rather have a page.
pub(super) fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| kind.trim().starts_with("text/html"))
}

/// The answer with its problem written out, if it is one: as the page that `page` makes of its status and its detail, else as JSON.
pub(super) fn written(
    mut response: Response,
    page: impl FnOnce(StatusCode, &ProblemDetail) -> Option<String>,
) -> Response {
    let Some(problem) = response.extensions_mut().remove::<Problem>() else { return response };
    let (kind, text) = match page(problem.status, &problem.detail) {
        Some(page) => ("text/html; charset=utf-8", page),
        None => ("application/problem+json", problem.json()),
    };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(axum::http::header::CONTENT_LENGTH, text.len().into());
    *response.body_mut() = Body::from(text);
    response
}
