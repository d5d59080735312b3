//! The one table of what there is and who may ask for it. What is not in it is refused, should a handler ever be reached all the same.

use std::sync::Arc;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};

use crate::config::Role;
use crate::web::problem::Problem;
use crate::web::site::Site;
use crate::web::{api, figures, health, slots, stream};

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

/// Every path below `base_path`.
pub(super) const TABLE: [Route; 16] = [
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
];

/// Who may look.
const VIEWER: Need = Need::Role(Role::Viewer);

/// The route that an answer came from, for the figures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matched(pub(super) &'static str);

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) std::net::IpAddr);

/// The table as a router.
pub(super) fn router(site: &Arc<Site>) -> Router {
    let routes = TABLE.iter().fold(Router::new(), |router, route| router.route(route.path, (route.handler)()));
    guarded(routes, site)
}

/// Routes behind the table: each is looked up there before its handler is asked.
fn guarded(routes: Router<Arc<Site>>, site: &Arc<Site>) -> Router {
    let no_method =
        || async { Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "this cannot be done with it") };
    routes
        .method_not_allowed_fallback(no_method)
        .route_layer(from_fn_with_state(Arc::clone(site), admit))
        .fallback(|| async { Problem::not_found() })
        .with_state(Arc::clone(site))
}

/// Lets a request in that may come in.
async fn admit(State(site): State<Arc<Site>>, matched: MatchedPath, request: Request, next: Next) -> Response {
    let route = TABLE.iter().find(|route| route.path == matched.as_str());
    let refused = match route {
        None => Err(Problem::forbidden("nobody may ask for this")),
        Some(route) => permit(&site, route, &request),
    };
    let mut response = match refused {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    if let Some(route) = route {
        response.extensions_mut().insert(Matched(route.path));
    }
    response
}

fn permit(site: &Site, route: &Route, request: &Request) -> Result<(), Problem> {
    let wanted = match route.need {
        Need::Nothing => return Ok(()),
        Need::Figures if site.http.metrics_open => return Ok(()),
        Need::Figures => Role::Viewer,
        Need::Role(role) => role,
    };
    // Without an address nobody is believed anything.
    let peer = request.extensions().get::<Peer>().ok_or_else(Problem::unauthorized)?.0;
    let bearer = site.gate.bearer(peer, request.headers(), site.sources.clock.now())?;
    if bearer.role < wanted {
        let (user, needed) = (&*bearer.name, wanted.as_str());
        tracing::warn!(%peer, user, needed, route = route.path, "a request was refused");
        return Err(Problem::forbidden("your role may not do this"));
    }
    Ok(())
}
