//! The requests that change something: of programs with JSON, of pages with forms. Each is judged by `operations`, which does it; each is
//! logged, done or refused.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use crate::admin::actions::Verb;
use crate::job::JobName;
use crate::web::asking::Asking;
use crate::web::look::{Target, Wanted};
use crate::web::operations::{Acted, Actor, Operations};
use crate::web::problem::Problem;
use crate::web::refusal::Refusal;
use crate::web::site::Site;
use crate::web::{csrf, form, login};

/// What a program sends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ActionBody {
    pub(super) reason: String,
    pub(super) past: bool,
    pub(super) expect: Option<String>,
    pub(super) until: Option<String>,
}

impl ActionBody {
    /// Of a body. An empty one says nothing.
    pub(super) fn parse(body: &[u8]) -> Result<Self, Problem> {
        if body.is_empty() {
            return Ok(Self::default());
        }
        // A list would be read as the fields in their order.
        if !body.trim_ascii_start().starts_with(b"{") {
            return Err(Problem::bad_request("the body is not as it has to be: write an object"));
        }
        serde_json::from_slice(body).map_err(|error| {
            // Line and column, and of what was written at most a name that is unknown.
            Problem::bad_request(format!(
                "the body is not as it has to be: {}",
                crate::text::message(&error.to_string(), 200)
            ))
        })
    }

    /// Of a form, with the token of its login and the name that was typed.
    fn of_form(body: &[u8]) -> (Self, String, String) {
        let [reason, past, expect, until, token, confirm] =
            form::fields(body, ["reason", "past", "expect", "until", "token", "confirm"]);
        let some = |text: String| Some(text).filter(|text| !text.trim().is_empty());
        let said = Self { reason, past: past == "true", expect: some(expect), until: some(until) };
        (said, token, confirm)
    }
}

/// A slot by the parts of its address.
type SlotPath = Result<Path<(String, String, String)>, PathRejection>;
/// A job by the part of its address.
type JobPath = Result<Path<String>, PathRejection>;

/// `POST /api/v1/slots/{job}/{slot}/{action}`.
pub(super) async fn of_slot(
    State(site): State<Arc<Site>>,
    Extension(asking): Extension<Asking>,
    path: SlotPath,
    body: Bytes,
) -> Result<Response, Problem> {
    let said = ActionBody::parse(&body)?;
    let acted = act(&site, &asking, wanted_of_slot(path, &said)?, &said).await.map_err(|refusal| refusal.problem)?;
    Ok(written(acted))
}

/// `POST /api/v1/jobs/{job}/pause`, and the others of a job.
pub(super) async fn of_job(
    State(site): State<Arc<Site>>,
    Extension(asking): Extension<Asking>,
    path: JobPath,
    uri: Uri,
    body: Bytes,
) -> Result<Response, Problem> {
    let said = ActionBody::parse(&body)?;
    let wanted = wanted_of_job(path, &uri, &said)?;
    let acted = act(&site, &asking, wanted, &said).await.map_err(|refusal| refusal.problem)?;
    Ok(written(acted))
}

/// `POST /jobs/{job}/{slot}/{action}` with a form.
pub(super) async fn slot_form(
    State(site): State<Arc<Site>>,
    Extension(asking): Extension<Asking>,
    path: SlotPath,
    body: Bytes,
) -> Result<Response, Problem> {
    let (said, token, confirm) = ActionBody::of_form(&body);
    csrf::check_form(&asking.bearer, &token)?;
    let wanted = wanted_of_slot(path, &said)?;
    if let Target::Slot(slot) = &wanted.target
        && wanted.verb.needs_name()
        && confirm.trim() != slot.job.as_str()
    {
        return Err(Problem::bad_request("type the job's name to confirm"));
    }
    let verb = wanted.verb;
    let acted = act(&site, &asking, wanted, &said).await.map_err(|refusal| refusal.problem)?;
    done(&site, verb, &acted)
}

/// `POST /jobs/{job}/pause` with a form, and the others of a job.
pub(super) async fn job_form(
    State(site): State<Arc<Site>>,
    Extension(asking): Extension<Asking>,
    path: JobPath,
    uri: Uri,
    body: Bytes,
) -> Result<Response, Problem> {
    let (said, token, _) = ActionBody::of_form(&body);
    csrf::check_form(&asking.bearer, &token)?;
    let wanted = wanted_of_job(path, &uri, &said)?;
    let verb = wanted.verb;
    let acted = act(&site, &asking, wanted, &said).await.map_err(|refusal| refusal.problem)?;
    done(&site, verb, &acted)
}

fn wanted_of_slot(path: SlotPath, said: &ActionBody) -> Result<Wanted, Problem> {
    let Path((job, slot, action)) = path.map_err(|_| Problem::not_found())?;
    let verb = Verb::named(&action).filter(|verb| !verb.is_of_job()).ok_or_else(Problem::not_found)?;
    let named = format!("{job}@{slot}").parse();
    let target = Target::Slot(named.map_err(|error| Problem::new(StatusCode::NOT_FOUND, "not-found", error))?);
    Ok(Wanted { verb, target, past: said.past, until: None })
}

fn wanted_of_job(path: JobPath, uri: &Uri, said: &ActionBody) -> Result<Wanted, Problem> {
    let Path(job) = path.map_err(|_| Problem::not_found())?;
    let word = uri.path().rsplit('/').next().unwrap_or_default();
    let verb = Verb::named(word).ok_or_else(Problem::not_found)?;
    let unknown = |error: String| Problem::new(StatusCode::NOT_FOUND, "not-found", error);
    let target = if verb.is_of_job() {
        Target::Job(JobName::new(&job).map_err(|error| unknown(error.to_string()))?)
    } else {
        // Its current slot.
        Target::Slot(job.parse().map_err(unknown)?)
    };
    Ok(Wanted { verb, target, past: said.past, until: said.until.clone() })
}

/// Does it, and logs what came of it.
async fn act(site: &Site, asking: &Asking, wanted: Wanted, said: &ActionBody) -> Result<Acted, Refusal> {
    let operations = operations(site).map_err(Refusal::unseen)?;
    let (peer, user, verb) = (asking.peer.0, &*asking.bearer.name, wanted.verb.as_str());
    let at = site.sources.clock.now().wall;
    let actor = Actor { name: user, peer, reason: &said.reason, at };
    let acted = operations.act(&wanted, said.expect.as_deref(), actor).await;
    match &acted {
        Ok(Acted { job, slot, changed, .. }) => {
            let target = slot.as_ref().map_or_else(|| job.to_string(), ToString::to_string);
            tracing::info!(%peer, user, verb, target, changed, "an operator asked for it over HTTP");
        }
        Err(refusal) => tracing::warn!(%peer, user, verb, why = refusal.problem.detail(), "an action was refused"),
    }
    acted
}

fn operations(site: &Site) -> Result<&Operations, Problem> {
    site.sources.operations.as_deref().ok_or_else(Problem::not_found)
}

/// The change, for programs. What a node has begun and goes on with is accepted, and not yet done.
fn written(acted: Acted) -> Response {
    let status = if acted.goes_on { StatusCode::ACCEPTED } else { StatusCode::OK };
    (status, [(CONTENT_TYPE, "application/json")], acted.view.to_string()).into_response()
}

/// On to the slot or the job, which says what was done.
fn done(site: &Site, verb: Verb, acted: &Acted) -> Result<Response, Problem> {
    let slot = acted.slot.as_ref().map(|slot| format!("/{}", slot.key())).unwrap_or_default();
    let did = if acted.changed { verb.as_str() } else { "nothing" };
    login::sent_to(&site.below_base(&format!("/jobs/{}{slot}?did={did}", acted.job)))
}
