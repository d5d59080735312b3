//! Whether a write was meant by whoever sent it. A page of another site can make a browser send requests here with the login's cookie, and
//! cannot read the answer: it must not be able to change anything.
//!
//! The browser says where a request comes from (`Sec-Fetch-Site`, else `Origin`); what says nothing of that is believed only with a token in
//! its header, which no browser sends by itself. The HTTP interface also wants what no form of another site can send: its content type
//! and a header of its own. Forms carry what only the login's own pages know.

use axum::http::header::{CONTENT_TYPE, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode};
use subtle::ConstantTimeEq;
use url::Url;

use crate::web::detail::ProblemDetail;
use crate::web::gate::single;
use crate::web::problem::Problem;
use crate::web::tokens::{Bearer, Way};

/// The header that each write of the HTTP interface has, and its value.
pub(super) const OWN_HEADER: (&str, &str) = ("x-cronward", "1");

/// Where the browser says that a request comes from.
const SITE: &str = "sec-fetch-site";

/// Whether a write may be taken from there. `path` is below the base.
pub(super) fn check(
    path: &str,
    headers: &HeaderMap,
    public_url: Option<&str>,
    bearer: Option<&Bearer>,
) -> Result<(), Problem> {
    if path.starts_with("/api/") {
        as_a_program(headers)?;
    } else if content_type(headers) != Some("application/x-www-form-urlencoded") {
        return Err(unsupported(ProblemDetail::NoForm));
    }
    match origin(headers, public_url) {
        CameFrom::Here => Ok(()),
        CameFrom::Unknown if bearer.is_some_and(|bearer| bearer.way == Way::Token) => Ok(()),
        CameFrom::Unknown => Err(Problem::forbidden(ProblemDetail::UnknownOrigin)),
        CameFrom::Elsewhere => Err(Problem::forbidden(ProblemDetail::OtherOrigin)),
    }
}

/// Whether a form was made for this login.
pub(super) fn check_form(bearer: &Bearer, sent: &str) -> Result<(), Problem> {
    match bearer.form_token() {
        Some(own) if !bool::from(own.as_bytes().ct_eq(sent.as_bytes())) => {
            Err(Problem::forbidden(ProblemDetail::OtherLogin))
        }
        Some(_) | None => Ok(()),
    }
}

fn as_a_program(headers: &HeaderMap) -> Result<(), Problem> {
    if content_type(headers) != Some("application/json") {
        return Err(unsupported(ProblemDetail::NoJson));
    }
    let (name, value) = OWN_HEADER;
    if single(headers, name) != Some(value) {
        return Err(Problem::forbidden(ProblemDetail::NoOwnHeader));
    }
    Ok(())
}

fn unsupported(detail: ProblemDetail) -> Problem {
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", detail)
}

/// The kind of the body without its parameters.
fn content_type(headers: &HeaderMap) -> Option<&str> {
    single(headers, CONTENT_TYPE.as_str()).map(|value| value.split(';').next().unwrap_or_default().trim())
}

/// Where a request comes from.
enum CameFrom {
    Here,
    Elsewhere,
    /// Nothing says so: no browser of today.
    Unknown,
}

fn origin(headers: &HeaderMap, public_url: Option<&str>) -> CameFrom {
    if headers.contains_key(SITE) {
        let is_own = matches!(single(headers, SITE), Some("same-origin" | "none"));
        return if is_own { CameFrom::Here } else { CameFrom::Elsewhere };
    }
    if !headers.contains_key(ORIGIN) {
        return CameFrom::Unknown;
    }
    let is_own = single(headers, ORIGIN.as_str()).is_some_and(|origin| is_ours(origin, headers, public_url));
    if is_own { CameFrom::Here } else { CameFrom::Elsewhere }
}

/// Whether an origin is the one that was asked, whose host is known by now; or the public one.
fn is_ours(origin: &str, headers: &HeaderMap, public_url: Option<&str>) -> bool {
    let public = public_url.and_then(|url| Url::parse(url).ok()).map(|url| url.origin().ascii_serialization());
    if public.is_some_and(|public| public.eq_ignore_ascii_case(origin)) {
        return true;
    }
    let named = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    let named = named.and_then(|authority| authority.parse::<Authority>().ok());
    let host = single(headers, HOST.as_str()).and_then(|host| host.parse::<Authority>().ok());
    matches!((named, host), (Some(named), Some(host)) if named == host)
}
