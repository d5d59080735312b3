//! Logging in and out with a form: a token for a cookie, and back. Whoever was sent to the form is sent on to where they came from, which is
//! a path of this port and no other address.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use crate::web::asking::Peer;
use crate::web::form;
use crate::web::problem::Problem;
use crate::web::site::Site;

/// `POST /login`: `token`, and `next` to go on to.
pub(super) async fn enter(
    State(site): State<Arc<Site>>,
    Extension(Peer(peer)): Extension<Peer>,
    body: Bytes,
) -> Result<Response, Problem> {
    let [token, next] = form::fields(&body, ["token", "next"]);
    let next = own_path(&site.http.base_path, &next);
    match site.gate.log_in(peer, &token, site.sources.clock.now()) {
        Ok(cookie) => {
            let home = || site.address("/");
            with_cookie(&next.unwrap_or_else(home), &cookie)
        }
        Err(problem) if problem.is_unauthorized() => {
            let next = next.map(|next| format!("&{}", query("next", &next))).unwrap_or_default();
            sent_to(&site.address(&format!("/login?wrong=1{next}")))
        }
        Err(problem) => Err(problem),
    }
}

/// `POST /logout`. A copy of the cookie goes on until its end: to end it at once, replace the token.
pub(super) async fn leave(State(site): State<Arc<Site>>) -> Result<Response, Problem> {
    with_cookie(&site.address("/login"), &site.gate.log_out())
}

/// Where a page that needs a login sends whoever has none.
pub(super) fn detour(site: &Site, uri: &Uri) -> Result<Response, Problem> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    sent_to(&site.address(&format!("/login?{}", query("next", &site.address(path)))))
}

/// 303 to a path of this port.
pub(super) fn sent_to(path: &str) -> Result<Response, Problem> {
    // What is in a path of ours can stand in a header.
    let location = HeaderValue::try_from(path).map_err(|_| Problem::not_found())?;
    Ok((StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response())
}

fn with_cookie(path: &str, cookie: &str) -> Result<Response, Problem> {
    let mut response = sent_to(path)?;
    let cookie = HeaderValue::try_from(cookie).map_err(|_| Problem::not_found())?;
    response.headers_mut().append(SET_COOKIE, cookie);
    Ok(response)
}

fn query(name: &str, value: &str) -> String {
    url::form_urlencoded::Serializer::new(String::new()).append_pair(name, value).finish()
}

/// A path below the base, and nothing that a browser could take for an address elsewhere: `//host`, `/\host`, `https:…`, and what it drops
/// from within them.
pub(super) fn own_path(base: &str, next: &str) -> Option<String> {
    let plain = next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let rest = if base == "/" { Some(next) } else { next.strip_prefix(base) };
    let below = rest.is_some_and(|rest| base != "/" && rest.is_empty() || rest.starts_with(['/', '?']));
    let is_path = next.starts_with('/') && !next.starts_with("//") && plain && below;
    is_path.then(|| next.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_a_path_of_this_port_and_never_an_address_elsewhere() {
        for (base, own) in [
            ("/", "/"),
            ("/", "/jobs/billing/2026-11-21T14:30Z?did=reset&zone=UTC"),
            ("/ops/cron", "/ops/cron/jobs/a"),
            ("/ops/cron", "/ops/cron"),
            ("/ops/cron", "/ops/cron?q=x"),
        ] {
            assert_eq!(own_path(base, own).as_deref(), Some(own));
        }
        for (base, other) in [
            ("/", ""),
            ("/", "//evil.example"),
            ("/", "/\\evil.example"),
            ("/", "\\\\evil.example"),
            ("/", "https://evil.example"),
            ("/", "javascript:alert(1)"),
            ("/", "/\t/evil.example"),
            ("/", "/\n/evil.example"),
            ("/", "/ü"),
            ("/", "jobs"),
            ("/", "?next"),
            ("/ops/cron", "/"),
            ("/ops/cron", "/ops/cronx"),
            ("/ops/cron", "/ops/cron@evil.example"),
            ("/ops/cron", "//ops/cron/"),
        ] {
            assert_eq!(own_path(base, other), None, "{other}");
        }
    }
}
