//! The one table of what there is and who may ask for it. What is not in it is refused, should a handler ever be reached all the same.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};

use crate::config::Role;
use crate::web::asking::{Asking, Peer};
use crate::web::detail::ProblemDetail;
use crate::web::problem::{Problem, wants_page};
use crate::web::site::Site;
use crate::web::tokens::{Bearer, Way};
use crate::web::{actions, api, csrf, figures, health, login, pages, slots, stream};

/// Who may ask for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Whoever reaches the port.
    Nothing,
    /// Whoever has this role.
    Role(Role),
    /// Viewers, unless the file opens the figures to all.
    Figures,
}

/// One path, and who may ask for it.
pub(super) struct Route {
    pub(super) path: &'static str,
    pub(super) need: Need,
    handler: fn() -> MethodRouter<Arc<Site>>,
}

/// Who may look, and who may act.
const VIEWER: Need = Need::Role(Role::Viewer);
const OPERATOR: Need = Need::Role(Role::Operator);

/// What can be read: every path below `base_path`, with GET.
pub(super) const TABLE: [Route; 33] = [
    Route { path: "/healthz", need: Need::Nothing, handler: || get(health::alive) },
    Route { path: "/readyz", need: Need::Nothing, handler: || get(health::ready) },
    Route { path: "/metrics", need: Need::Figures, handler: || get(figures::metrics) },
    Route { path: "/api/v1/jobs", need: VIEWER, handler: || get(api::jobs) },
    Route { path: "/api/v1/jobs/{job}", need: VIEWER, handler: || get(api::job) },
    Route { path: "/api/v1/jobs/{job}/slots", need: VIEWER, handler: || get(slots::of_job) },
    Route { path: "/api/v1/slots/{job}/{slot}", need: VIEWER, handler: || get(slots::slot) },
    Route { path: "/api/v1/slots/{job}/{slot}/why", need: VIEWER, handler: || get(slots::why) },
    Route { path: "/api/v1/slots/{job}/{slot}/logs", need: VIEWER, handler: || get(slots::logs) },
    Route { path: "/api/v1/attempts", need: VIEWER, handler: || get(slots::attempts) },
    Route { path: "/api/v1/nodes", need: VIEWER, handler: || get(api::nodes) },
    Route { path: "/api/v1/store", need: VIEWER, handler: || get(api::store) },
    Route { path: "/api/v1/next", need: VIEWER, handler: || get(slots::next) },
    Route { path: "/api/v1/locks", need: VIEWER, handler: || get(slots::locks) },
    Route { path: "/api/v1/events", need: VIEWER, handler: || get(stream::events) },
    Route { path: "/api/v1/openapi.json", need: VIEWER, handler: || get(api::description) },
    Route { path: "/", need: VIEWER, handler: || get(pages::home) },
    Route { path: "/jobs/{job}", need: VIEWER, handler: || get(pages::job) },
    Route { path: "/jobs/{job}/{slot}", need: VIEWER, handler: || get(pages::slot) },
    Route { path: "/jobs/{job}/{slot}/runs/{attempt}", need: VIEWER, handler: || get(pages::run) },
    // The forms of what is written below.
    Route { path: "/jobs/{job}/{slot}/{action}", need: OPERATOR, handler: || get(pages::slot_form) },
    Route { path: "/jobs/{job}/trigger", need: OPERATOR, handler: || get(pages::job_form) },
    Route { path: "/jobs/{job}/pause", need: OPERATOR, handler: || get(pages::job_form) },
    Route { path: "/jobs/{job}/resume", need: OPERATOR, handler: || get(pages::job_form) },
    Route { path: "/go", need: VIEWER, handler: || get(pages::go) },
    Route { path: "/nodes", need: VIEWER, handler: || get(pages::nodes) },
    Route { path: "/store", need: VIEWER, handler: || get(pages::store) },
    Route { path: "/locks", need: VIEWER, handler: || get(pages::locks) },
    Route { path: "/activity", need: VIEWER, handler: || get(pages::activity) },
    Route { path: "/help", need: Need::Nothing, handler: || get(pages::help) },
    // Whoever is not let in sees these.
    Route { path: "/login", need: Need::Nothing, handler: || get(pages::login) },
    Route { path: "/assets/{name}", need: Need::Nothing, handler: || get(pages::asset) },
    Route { path: "/favicon.ico", need: Need::Nothing, handler: || get(pages::icon) },
];

/// What changes something, with POST. Where a role is needed, the file has to allow it, too; and each is refused to pages of other sites.
pub(super) const WRITES: [Route; 12] = [
    Route { path: "/login", need: Need::Nothing, handler: || post(login::enter) },
    Route { path: "/logout", need: Need::Nothing, handler: || post(login::leave) },
    Route { path: "/api/v1/slots/{job}/{slot}/{action}", need: OPERATOR, handler: || post(actions::of_slot) },
    Route { path: "/api/v1/jobs/{job}/trigger", need: OPERATOR, handler: || post(actions::of_job) },
    Route { path: "/api/v1/jobs/{job}/pause", need: OPERATOR, handler: || post(actions::of_job) },
    Route { path: "/api/v1/jobs/{job}/resume", need: OPERATOR, handler: || post(actions::of_job) },
    Route { path: "/api/v1/store/examine", need: OPERATOR, handler: || post(actions::of_store) },
    Route { path: "/store", need: OPERATOR, handler: || post(pages::examine) },
    Route { path: "/jobs/{job}/{slot}/{action}", need: OPERATOR, handler: || post(actions::slot_form) },
    Route { path: "/jobs/{job}/trigger", need: OPERATOR, handler: || post(actions::job_form) },
    Route { path: "/jobs/{job}/pause", need: OPERATOR, handler: || post(actions::job_form) },
    Route { path: "/jobs/{job}/resume", need: OPERATOR, handler: || post(actions::job_form) },
];

/// The route that an answer came from, for the figures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matched(pub(super) &'static str);

/// The table as a router.
pub(super) fn router(site: &Arc<Site>) -> Router {
    let all = TABLE.iter().chain(&WRITES);
    let routes = all.fold(Router::new(), |router, route| router.route(route.path, (route.handler)()));
    guarded(routes, site)
}

/// Routes behind the table: each is looked up there before its handler is asked.
pub(super) fn guarded(routes: Router<Arc<Site>>, site: &Arc<Site>) -> Router {
    let no_method =
        || async { Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", ProblemDetail::WrongMethod) };
    routes
        .method_not_allowed_fallback(no_method)
        .route_layer(from_fn_with_state(Arc::clone(site), admit))
        .fallback(|| async { Problem::not_found() })
        .with_state(Arc::clone(site))
}

/// Lets a request in that may come in, with who asks.
async fn admit(State(site): State<Arc<Site>>, matched: MatchedPath, mut request: Request, next: Next) -> Response {
    let found = of(request.method(), matched.as_str());
    let permitted = match found {
        None => Err(Problem::forbidden(ProblemDetail::ForNobody)),
        Some((route, writes)) => permit(&site, route, writes, &request),
    };
    let mut response = match permitted {
        Ok(bearer) => {
            if let (Some(bearer), Some(peer)) = (bearer, request.extensions().get::<Peer>().copied()) {
                request.extensions_mut().insert(bearer.clone());
                request.extensions_mut().insert(Asking { bearer, peer });
            }
            next.run(request).await
        }
        Err(problem) => refused(&site, &request, problem),
    };
    if let Some((route, _)) = found {
        response.extensions_mut().insert(Matched(route.path));
    }
    response
}

const fn reads(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// The row of a request, and whether that is a write. What is asked with another method than the path has is refused by the router;
/// before that, whoever asks has to be somebody who may ask with the right one.
fn of(method: &Method, path: &str) -> Option<(&'static Route, bool)> {
    let at = |table: &'static [Route]| table.iter().find(|route| route.path == path);
    let (read, write) = (at(&TABLE), at(&WRITES));
    if reads(method) {
        return read.or(write).map(|route| (route, false));
    }
    write.map(|route| (route, true)).or(read.map(|route| (route, false)))
}

/// Who asks, if that is somebody who may.
fn permit(site: &Site, route: &Route, writes: bool, request: &Request) -> Result<Option<Bearer>, Problem> {
    let wanted = match route.need {
        Need::Nothing => None,
        Need::Figures if site.http.metrics_open => None,
        Need::Figures => Some(Role::Viewer),
        Need::Role(role) => Some(role),
    };
    // Without an address nobody is believed anything.
    let peer = request.extensions().get::<Peer>().ok_or_else(Problem::unauthorized)?.0;
    let bearer = match wanted {
        None => None,
        Some(role) => Some(with_role(site, route, role, request, peer)?),
    };
    if writes {
        meant(site, route, request, bearer.as_ref()).inspect_err(|problem| {
            let user = bearer.as_ref().map_or("", |bearer| bearer.name.as_str());
            tracing::warn!(%peer, user, route = route.path, why = %problem.detail(), "a write was refused");
        })?;
    }
    Ok(bearer)
}

fn with_role(site: &Site, route: &Route, role: Role, request: &Request, peer: IpAddr) -> Result<Bearer, Problem> {
    let bearer = site.gate.bearer(peer, request.headers(), site.sources.clock.now())?;
    if bearer.role >= role {
        return Ok(bearer);
    }
    let (user, needed) = (&*bearer.name, role.as_str());
    tracing::warn!(%peer, user, needed, route = route.path, "a request was refused");
    Err(Problem::forbidden(match bearer.way {
        Way::Anybody => ProblemDetail::TokenForActions,
        Way::Token | Way::Proxy | Way::Login { .. } => ProblemDetail::SmallRole,
    }))
}

/// Whether a write may be done here, and was meant.
fn meant(site: &Site, route: &Route, request: &Request, bearer: Option<&Bearer>) -> Result<(), Problem> {
    if site.http.read_only && route.need != Need::Nothing {
        return Err(Problem::new(StatusCode::FORBIDDEN, "read-only", ProblemDetail::ReadOnly));
    }
    csrf::check(request.uri().path(), request.headers(), site.http.public_url.as_deref(), bearer)
}

/// A page is sent to the login, once there is such a page; programs are told what to send.
fn refused(site: &Site, request: &Request, problem: Problem) -> Response {
    let has_page = TABLE.iter().any(|route| route.path == "/login");
    let is_page = reads(request.method()) && wants_page(request.headers());
    let may_help = problem.is_unauthorized() && site.gate.has_login() && !request.headers().contains_key(AUTHORIZATION);
    if has_page && is_page && may_help {
        return login::detour(site, request.uri()).unwrap_or_else(IntoResponse::into_response);
    }
    problem.into_response()
}
