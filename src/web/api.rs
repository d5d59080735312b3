//! `/api/v1`: what the listings print with `--json` (docs/json.md).

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

use crate::web::listings::Away;
use crate::web::problem::Problem;
use crate::web::site::Site;

/// When the store may be there again: a node looks each ten seconds.
const LATER: u64 = 10;

pub(super) async fn jobs(State(site): State<Arc<Site>>) -> Result<impl IntoResponse, Problem> {
    listing(site.jobs.get(site.sources.listings.jobs()).await)
}

pub(super) async fn nodes(State(site): State<Arc<Site>>) -> Result<impl IntoResponse, Problem> {
    listing(site.nodes.get(site.sources.listings.nodes()).await)
}

fn listing(read: Result<Bytes, Away>) -> Result<impl IntoResponse, Problem> {
    let detail = "the store does not answer; the node goes on asking it";
    let json =
        read.map_err(|Away| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store-away", detail).retry_after(LATER))?;
    Ok(([(CONTENT_TYPE, "application/json")], json))
}
