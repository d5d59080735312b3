//! `/api/v1`, what the board does not keep: slots, why, outputs, locks. Each is read from the store, a few at once, and what was answered
//! is kept for a second (docs/json.md has the forms).

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde::Deserialize;

use crate::admin::attempts::{self, Listed};
use crate::admin::command_line::CommandLine;
use crate::admin::lookup::{self, SlotRef, SlotRefError};
use crate::admin::{AdminError, AdminSession, KnownJob, ticks, why};
use crate::clock::earlier;
use crate::observe::view::{LatestView, LockView, SlotView};
use crate::resource::LockRecord;
use crate::slot::{Slot, SlotKey, SlotState};
use crate::store::StoreError;
use crate::web::answers::{tagged, written};
use crate::web::api::{job_name, queried};
use crate::web::detail::ProblemDetail;
use crate::web::parts::AddressParts;
use crate::web::problem::Problem;
use crate::web::site::Site;

/// Slots of a page where nothing is said, and the most.
const PAGE: usize = 60;
const LARGEST_PAGE: usize = 500;
/// Scheduled times where nothing is said, and the most.
const TICKS: usize = 10;
const MOST_TICKS: usize = 1_000;
/// How far back a slot is looked for: the longest gap of a yearly job, with room.
const HORIZON: Duration = Duration::from_secs(5 * 366 * 86_400);
/// How far back attempts are listed where nothing is said, and the most.
const SINCE: Duration = Duration::from_secs(86_400);
const LONGEST_SINCE: Duration = Duration::from_secs(31 * 86_400);
/// Slots that a list of attempts is looked for in: 24 calls.
const MOST: usize = 2_400;

#[derive(Debug, Deserialize)]
pub(super) struct SlotsQuery {
    before: Option<String>,
    limit: Option<usize>,
}

#[derive(Debug, Deserialize)]
pub(super) struct LogsQuery {
    attempt: Option<u32>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AttemptsQuery {
    job: Option<String>,
    since: Option<String>,
    state: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct NextQuery {
    job: Option<String>,
    count: Option<usize>,
    from: Option<DateTime<Utc>>,
}

type SlotPath = AddressParts<(String, String)>;

fn slot_ref(path: SlotPath) -> Result<SlotRef, Problem> {
    let AddressParts((job, slot)) = path;
    let text = format!("{job}@{slot}");
    text.parse().map_err(|error: SlotRefError| Problem::unknown(error))
}

fn store_error(error: StoreError) -> Problem {
    AdminError::from(error).into()
}

/// `/jobs/{job}/slots`: newest first.
pub(super) async fn of_job(
    State(site): State<Arc<Site>>,
    AddressParts(job): AddressParts<String>,
    query: Result<Query<SlotsQuery>, QueryRejection>,
    asked: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (name, query) = (job_name(&job)?, queried(query)?);
    let limit = query.limit.unwrap_or(PAGE);
    if limit == 0 || limit > LARGEST_PAGE {
        return Err(Problem::bad_request(ProblemDetail::LimitRange));
    }
    let before: Option<SlotKey> = query.before.map(|key| key.parse()).transpose().map_err(unreadable("before"))?;
    let mut next = None;
    let read = async {
        let look = site.reads.begin(&site.sources.store).await?;
        let job = look.session.catalog.find(&name)?;
        let slots = newest(job, before, limit, look.session.now)?;
        let records = look.session.inspect(&slots).await?;
        let (now, most) = (look.session.now, job.entry.max_attempts);
        let views: Vec<SlotView> = records.iter().map(|record| SlotView::of(record, now, most)).collect();
        written(&views)
    };
    let json = site.answers.get(asked.to_string(), read).await?;
    // The last of a full page is where the next begins.
    let views: Vec<LastKey> = serde_json::from_slice(&json).unwrap_or_default();
    if let Some(last) = views.last().filter(|_| views.len() == limit) {
        next = Some(site.address(&format!("/api/v1/jobs/{name}/slots?before={}&limit={limit}", last.slot)));
    }
    Ok(tagged(json, &headers, next))
}

#[derive(Debug, Deserialize)]
struct LastKey {
    slot: String,
}

/// The current slot and those before it, or those before another.
fn newest(job: &KnownJob, before: Option<SlotKey>, limit: usize, now: DateTime<Utc>) -> Result<Vec<Slot>, Problem> {
    if let Some(key) = before {
        let none = || Problem::bad_request(ProblemDetail::NoSlotBefore);
        let slot = job.timetable.slot_at(key.start()).ok_or_else(none)?;
        return Ok(job.timetable.older(&slot, HORIZON, limit));
    }
    let Some(current) = job.current(now).into_iter().next() else { return Ok(Vec::new()) };
    let older = job.timetable.older(&current, HORIZON, limit - 1);
    Ok(std::iter::once(current).chain(older).collect())
}

fn unreadable<E: std::fmt::Display>(name: &'static str) -> impl FnOnce(E) -> Problem {
    move |error| Problem::bad_request(ProblemDetail::Unreadable(name, error.to_string()))
}

/// `/slots/{job}/{slot}`: as `cronward show --json`.
pub(super) async fn slot(
    State(site): State<Arc<Site>>,
    path: SlotPath,
    asked: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let wanted = slot_ref(path)?;
    let read = async {
        let look = site.reads.begin(&site.sources.store).await?;
        let session = &*look.session;
        let (job, mut record) = lookup::find(session, &wanted).await?;
        session.read_outputs(&mut record).await?;
        let latest = session.store.latest(std::slice::from_ref(record.slot.job())).await.map_err(store_error)?;
        let latest = LatestView::of(&latest.into_iter().next().unwrap_or_default());
        let view = SlotView::of(&record, session.now, job.entry.max_attempts);
        written(&SlotView { latest: Some(latest), ..view })
    };
    Ok(tagged(site.answers.get(asked.to_string(), read).await?, &headers, None))
}

/// `/slots/{job}/{slot}/why`: as `cronward why --json`.
pub(super) async fn why(
    State(site): State<Arc<Site>>,
    path: SlotPath,
    asked: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let wanted = slot_ref(path)?;
    let read = async {
        let look = site.reads.begin(&site.sources.store).await?;
        let facts = why::facts(&look.session, &wanted, CommandLine::default()).await?;
        written(&why::view(&facts))
    };
    Ok(tagged(site.answers.get(asked.to_string(), read).await?, &headers, None))
}

/// `/slots/{job}/{slot}/logs`: what is kept of the output of an attempt, as text, of the newest where none is named.
pub(super) async fn logs(
    State(site): State<Arc<Site>>,
    path: SlotPath,
    query: Result<Query<LogsQuery>, QueryRejection>,
    asked: Uri,
) -> Result<Response, Problem> {
    let (wanted, query) = (slot_ref(path)?, queried(query)?);
    let read = async {
        let look = site.reads.begin(&site.sources.store).await?;
        let (_, mut record) = lookup::find(&look.session, &wanted).await?;
        let attempt = query.attempt.or(record.runs.last().map(|run| run.attempt));
        let slot = record.slot.clone();
        let none = || Problem::unknown(ProblemDetail::NoAttempt(slot.clone()));
        let run = record.runs.iter_mut().find(|run| Some(run.attempt) == attempt).ok_or_else(none)?;
        look.session.read_output(&slot, run).await?;
        Ok(run.output.take().map(|output| output.text).unwrap_or_default().into())
    };
    let text = site.answers.get(asked.to_string(), read).await?;
    let mut response = ([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response();
    let nothing = HeaderValue::from_static("sandbox; default-src 'none'");
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, nothing);
    Ok(response)
}

/// `/attempts`: as `cronward attempts --json`, without outputs.
pub(super) async fn attempts(
    State(site): State<Arc<Site>>,
    query: Result<Query<AttemptsQuery>, QueryRejection>,
    asked: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let wanted = wanted(queried(query)?)?;
    let read = async {
        let look = site.reads.begin(&site.sources.store).await?;
        let listed = listed(&look.session, &wanted).await?;
        let now = look.session.now;
        let view = |listed: &Listed| SlotView::of(&listed.record, now, listed.max_attempts);
        written(&listed.iter().map(view).collect::<Vec<_>>())
    };
    Ok(tagged(site.answers.get(asked.to_string(), read).await?, &headers, None))
}

fn wanted(query: AttemptsQuery) -> Result<attempts::Wanted, Problem> {
    let words = query.state.as_deref().unwrap_or_default().split(',').filter(|word| !word.is_empty() && *word != "all");
    let state = |word: &str| serde_json::from_value::<SlotState>(word.into()).map_err(|_| word.to_owned());
    let states = words.map(state).collect::<Result<Vec<_>, _>>();
    let states = states.map_err(|word| Problem::bad_request(ProblemDetail::State(word)))?;
    let since = query.since.as_deref().map(crate::config::parse_duration).transpose().map_err(unreadable("since"))?;
    let since = since.unwrap_or(SINCE);
    if since > LONGEST_SINCE {
        return Err(Problem::bad_request(ProblemDetail::LongSince));
    }
    let jobs = query.job.as_deref().map(job_name).into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(attempts::Wanted { jobs, since, all: query.state.as_deref() == Some("all"), states })
}

/// A list that would be looked for in too many slots is refused: the store would be read for minutes.
async fn listed(session: &AdminSession, wanted: &attempts::Wanted) -> Result<Vec<Listed>, Problem> {
    let from = earlier(session.now, wanted.since);
    let jobs = session.catalog.iter().filter(|job| wanted.jobs.is_empty() || wanted.jobs.contains(&job.entry.name));
    let count = jobs.flat_map(|job| job.timetable.slots(from, session.now)).take(MOST + 1).count();
    if count > MOST {
        return Err(Problem::bad_request(ProblemDetail::ManySlots));
    }
    let (listed, mut unreadable) = attempts::collect(session, wanted).await?;
    // A list in JSON has no place for what is left out.
    unreadable.pop().map_or(Ok(listed), |error| Err(store_error(error)))
}

/// `/next`: as `cronward next --json`.
pub(super) async fn next(
    State(site): State<Arc<Site>>,
    query: Result<Query<NextQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = queried(query)?;
    let count = query.count.unwrap_or(TICKS);
    if count == 0 || count > MOST_TICKS {
        return Err(Problem::bad_request(ProblemDetail::CountRange));
    }
    let name = query.job.as_deref().map(job_name).transpose()?;
    let look = site.reads.begin(&site.sources.store).await?;
    let jobs: Vec<&KnownJob> = match &name {
        Some(name) => vec![look.session.catalog.find(name)?],
        None => look.session.catalog.iter().filter(|job| job.entry.enabled && !job.orphaned).collect(),
    };
    let views = ticks::soonest(&jobs, query.from.unwrap_or(look.session.now), count);
    Ok(tagged(written(&views)?, &headers, None))
}

/// `/locks`: as `cronward locks --json`.
pub(super) async fn locks(State(site): State<Arc<Site>>, asked: Uri, headers: HeaderMap) -> Result<Response, Problem> {
    let read = async {
        let look = site.reads.begin(&site.sources.store).await?;
        let none = || Problem::unknown(ProblemDetail::NoLocks);
        let kept = Arc::clone(&look.session.store).lock_store().ok_or_else(none)?;
        let (now, records) = kept.locks(&[]).await.map_err(store_error)?;
        let in_use: Vec<LockRecord> = records.into_iter().filter(|record| !record.entries.is_empty()).collect();
        written(&LockView::all(&in_use, now))
    };
    Ok(tagged(site.answers.get(asked.to_string(), read).await?, &headers, None))
}
