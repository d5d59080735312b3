//! `/metrics`, as Prometheus scrapes it: no store is asked.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

use crate::web::detail::ProblemDetail;
use crate::web::problem::Problem;
use crate::web::site::Site;

pub(super) async fn metrics(State(site): State<Arc<Site>>) -> Result<impl IntoResponse, Problem> {
    let mut text = String::new();
    let own = site.requests.write(&site.sources.namespace, site.streams.count(), &mut text);
    own.and_then(|()| site.sources.expositions.iter().try_for_each(|figures| figures.write(&mut text)))
        .map_err(|_| Problem::internal(ProblemDetail::FiguresUnwritten))?;
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text))
}
