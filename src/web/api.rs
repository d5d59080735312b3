//! `/api/v1`, what the board knows: jobs, nodes, the store. No request here asks the store (docs/json.md has the forms).

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::board::{Concern, Filter, Snapshot, StoreStanding};
use crate::job::JobName;
use crate::observe::view::JobView;
use crate::web::answers::{tagged, written};
use crate::web::detail::ProblemDetail;
use crate::web::openapi;
use crate::web::parts::AddressParts;
use crate::web::problem::Problem;
use crate::web::site::Site;

/// Jobs of a page where nothing is said, which is the most, too.
const PAGE: usize = 500;

/// What `/api/v1/jobs` takes.
#[derive(Debug, Default, Deserialize)]
pub(super) struct JobsQuery {
    q: Option<String>,
    page: Option<usize>,
    per_page: Option<usize>,
}

/// How the store and the cluster are.
#[derive(Debug, Serialize)]
pub(super) struct StoreView<'a> {
    #[serde(flatten)]
    pub(super) store: &'a StoreStanding,
    /// The store's clock.
    pub(super) now: DateTime<Utc>,
    /// When the current slots were read last.
    pub(super) read: Option<DateTime<Utc>>,
    pub(super) jobs: usize,
    pub(super) concerns: &'a [Concern],
}

/// What a query says, or what is wrong with it.
pub(super) fn queried<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, Problem> {
    query.map(|Query(query)| query).map_err(|error| Problem::bad_request(ProblemDetail::Query(error.body_text())))
}

/// A job's name, from an address.
pub(super) fn job_name(text: &str) -> Result<JobName, Problem> {
    JobName::new(text).map_err(Problem::unknown)
}

/// What is known, unless the store is away: who wants to see what was known then opens the page.
async fn known(site: &Site) -> Result<Arc<Snapshot>, Problem> {
    let shown = site.sources.board.read(0).await;
    if shown.is_read() && shown.store.away_since.is_none() {
        return Ok(shown);
    }
    Err(if shown.store.refuses { Problem::store_refuses() } else { Problem::store_away(false) })
}

pub(super) async fn jobs(
    State(site): State<Arc<Site>>,
    query: Result<Query<JobsQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = queried(query)?;
    let filter = Filter::parse(query.q.as_deref().unwrap_or_default());
    let filter = filter.map_err(|error| Problem::bad_request(ProblemDetail::Filter(error)))?;
    let (page, size) = (query.page.unwrap_or(1), query.per_page.unwrap_or(PAGE));
    if page == 0 || size == 0 || size > PAGE {
        return Err(Problem::bad_request(ProblemDetail::PageRange));
    }
    let shown = known(&site).await?;
    let wanted: Vec<&JobView> = shown.rows.iter().filter(|row| filter.wants(row)).map(|row| &row.view).collect();
    let begin = page.saturating_sub(1).saturating_mul(size);
    let views: Vec<&JobView> = wanted.iter().skip(begin).take(size).copied().collect();
    let next = (begin.saturating_add(size) < wanted.len()).then(|| {
        let mut address = url::form_urlencoded::Serializer::new(String::new());
        address.extend_pairs(query.q.as_deref().map(|q| ("q", q)));
        address.append_pair("page", &page.saturating_add(1).to_string()).append_pair("per_page", &size.to_string());
        site.address(&format!("/api/v1/jobs?{}", address.finish()))
    });
    Ok(tagged(written(&views)?, &headers, next))
}

pub(super) async fn job(
    State(site): State<Arc<Site>>,
    AddressParts(job): AddressParts<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let name = job_name(&job)?;
    let shown = known(&site).await?;
    let missing = || Problem::unknown(ProblemDetail::NoJob(name.clone()));
    let row = shown.row(name.as_str()).ok_or_else(missing)?;
    Ok(tagged(written(&row.view)?, &headers, None))
}

pub(super) async fn nodes(State(site): State<Arc<Site>>, headers: HeaderMap) -> Result<Response, Problem> {
    Ok(tagged(written(&*known(&site).await?.nodes)?, &headers, None))
}

/// The one answer that there is while the store is away: it says so.
pub(super) async fn store(State(site): State<Arc<Site>>) -> Result<Response, Problem> {
    let shown = site.sources.board.read(0).await;
    let (now, read) = (shown.store_time, shown.read_at);
    let view = StoreView { store: &shown.store, now, read, jobs: shown.rows.len(), concerns: &shown.concerns };
    Ok(([(CONTENT_TYPE, "application/json")], written(&view)?).into_response())
}

pub(super) async fn description(State(site): State<Arc<Site>>, headers: HeaderMap) -> Result<Response, Problem> {
    Ok(tagged(written(&openapi::document(&site.address("")))?, &headers, None))
}
