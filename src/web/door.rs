//! What every request passes, whatever it asks for: its size, its host, its path, its time; and what every answer has.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;

use crate::web::asking::Peer;
use crate::web::detail::ProblemDetail;
use crate::web::gzip;
use crate::web::headers::secure;
use crate::web::pages::PageRequest;
use crate::web::problem::{Problem, wants_page, written};
use crate::web::routes::{Matched, router};
use crate::web::site::Site;

/// Bytes of an address.
const LONGEST_URL: usize = 2_048;
/// Bytes of a body.
const LARGEST_BODY: usize = 16 * 1_024;
/// From the end of its head until a request has to be answered.
const LONGEST: Duration = Duration::from_secs(10);

/// The route of what never came to one.
const NOWHERE: &str = "none";

/// A site with its doorkeeper.
pub(super) struct Door {
    site: Arc<Site>,
    routes: TowerToHyperService<Router>,
}

/// The two ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) peer: SocketAddr,
    pub(super) local: IpAddr,
}

impl Door {
    pub(super) fn of(site: Arc<Site>) -> Self {
        let routes = TowerToHyperService::new(router(&site));
        Self { site, routes }
    }

    /// Answers a request.
    pub(super) async fn answer<B>(&self, ends: Ends, request: Request<B>) -> Response
    where
        B: HttpBody<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let uri = below(&self.site.http.base_path, request.uri()).unwrap_or_default();
        let reads_pages =
            wants_page(request.headers()).then(|| PageRequest::of(&self.site, &uri, request.headers(), None));
        let small = gzip::is_read(request.headers());
        let answered = tokio::time::timeout(LONGEST, self.pass(ends, request)).await;
        let late = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "timeout", ProblemDetail::Late);
        let mut response = match answered {
            Ok(Ok(response)) => response,
            Ok(Err(problem)) => problem.into_response(),
            Err(_) => late().into_response(),
        };
        let route = response.extensions_mut().remove::<Matched>().map_or(NOWHERE, |matched| matched.0);
        self.site.requests.count(route, response.status().as_u16());
        let told = written(response, |status, detail| reads_pages.as_ref()?.problem(status, detail));
        response = gzip::packed(told, small).await;
        secure(response.headers_mut(), self.site.http.is_behind_tls());
        response
    }

    async fn pass<B>(&self, ends: Ends, request: Request<B>) -> Result<Response, Problem>
    where
        B: HttpBody<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut head, body) = request.into_parts();
        let length = head.uri.path_and_query().map_or(0, |path| path.as_str().len());
        if length > LONGEST_URL {
            return Err(Problem::new(StatusCode::URI_TOO_LONG, "too-long", ProblemDetail::LongAddress));
        }
        if !self.site.hosts.knows(&head.uri, &head.headers, ends.local) {
            let detail = ProblemDetail::UnknownHost;
            return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "unknown-host", detail));
        }
        head.uri = below(&self.site.http.base_path, &head.uri).ok_or_else(Problem::not_found)?;
        let body = whole(body).await?;
        self.site.gate.clean(ends.peer.ip(), &mut head.headers);
        head.extensions.insert(Peer(ends.peer.ip()));
        let answer = self.routes.call(Request::from_parts(head, Body::from(body))).await;
        answer.map_err(|never| match never {})
    }
}

/// The address as it is below the base; none when it is elsewhere.
fn below(base: &str, uri: &Uri) -> Option<Uri> {
    let path = match base {
        "/" => uri.path(),
        _ => uri.path().strip_prefix(base)?,
    };
    let path = if path.is_empty() { "/" } else { path };
    if !path.starts_with('/') {
        return None;
    }
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{path}{query}").parse().ok()
}

/// The body, within its limit.
async fn whole<B>(body: B) -> Result<Bytes, Problem>
where
    B: HttpBody<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let too_large = || Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", ProblemDetail::LargeBody);
    // What is announced need not be read to be refused.
    if body.size_hint().lower() > LARGEST_BODY as u64 {
        return Err(too_large());
    }
    match Limited::new(body, LARGEST_BODY).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => Err(Problem::bad_request(ProblemDetail::BrokenBody)),
    }
}
