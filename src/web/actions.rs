//! The requests that change something: of programs with JSON, of pages with forms. Each is judged by `operations`, which does it; each is
//! logged, done or refused.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use crate::admin::actions::{ActionTexts, ENGLISH, Verb};
use crate::admin::lookup::SlotRefError;
use crate::job::JobName;
use crate::web::asking::Asking;
use crate::web::detail::ProblemDetail;
use crate::web::operations::{Acted, Actor, Operations};
use crate::web::pages::{self, PageRequest, Typed};
use crate::web::parts::AddressParts;
use crate::web::problem::Problem;
use crate::web::prospect::{ActionTarget, WantedAction};
use crate::web::refusal::ActionRefusal;
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
            return Err(Problem::bad_request(ProblemDetail::NoObject));
        }
        serde_json::from_slice(body).map_err(|error| {
            // Line and column, and of what was written at most a name that is unknown.
            Problem::bad_request(ProblemDetail::Body(crate::text::message(&error.to_string(), 200)))
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

/// `POST /api/v1/store/examine`: what `cronward doctor` finds.
pub(super) async fn of_store(
    State(site): State<Arc<Site>>,
    Extension(asking): Extension<Asking>,
) -> Result<Response, Problem> {
    let examiner = site.examiner.as_ref().ok_or_else(Problem::not_found)?;
    let (peer, user) = (asking.peer.0, &*asking.bearer.name);
    tracing::info!(%peer, user, "an operator asked over HTTP for the store to be examined");
    let found = examiner.examine().await?;
    // Words alone: nothing in it can fail to be written.
    let text = serde_json::to_string(&found).unwrap_or_default();
    Ok((StatusCode::OK, [(CONTENT_TYPE, "application/json")], text).into_response())
}

/// A slot by the parts of its address.
type SlotPath = AddressParts<(String, String, String)>;
/// A job by the part of its address.
type JobPath = AddressParts<String>;

/// `POST /api/v1/slots/{job}/{slot}/{action}`.
pub(super) async fn of_slot(
    State(site): State<Arc<Site>>,
    Extension(asking): Extension<Asking>,
    path: SlotPath,
    body: Bytes,
) -> Result<Response, Problem> {
    let said = ActionBody::parse(&body)?;
    let wanted = wanted_of_slot(path, &said)?;
    let acted = act(&site, &asking, wanted, &said, &ENGLISH).await.map_err(|refusal| refusal.problem)?;
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
    let acted = act(&site, &asking, wanted, &said, &ENGLISH).await.map_err(|refusal| refusal.problem)?;
    Ok(written(acted))
}

/// `POST /jobs/{job}/{slot}/{action}` with a form.
pub(super) async fn slot_form(
    ask: PageRequest,
    State(site): State<Arc<Site>>,
    Extension(asking): Extension<Asking>,
    path: SlotPath,
    body: Bytes,
) -> Result<Response, Problem> {
    let (said, token, confirm) = ActionBody::of_form(&body);
    csrf::check_form(&asking.bearer, &token)?;
    let wanted = wanted_of_slot(path, &said)?;
    if let ActionTarget::Slot(slot) = &wanted.target
        && wanted.verb.needs_name()
        && confirm.trim() != slot.job.as_str()
    {
        let look = operations(&site)?.look(&wanted, ask.actions()).await?;
        let refusal = ActionRefusal::after(look, Problem::bad_request(ProblemDetail::NotConfirmed));
        return once_more(&ask, wanted.verb, refusal, &said);
    }
    let verb = wanted.verb;
    match act(&site, &asking, wanted, &said, ask.actions()).await {
        Ok(acted) => done(&site, verb, &acted),
        Err(refusal) => once_more(&ask, verb, refusal, &said),
    }
}

/// `POST /jobs/{job}/pause` with a form, and the others of a job.
pub(super) async fn job_form(
    ask: PageRequest,
    Extension(asking): Extension<Asking>,
    path: JobPath,
    uri: Uri,
    body: Bytes,
) -> Result<Response, Problem> {
    let (said, token, _) = ActionBody::of_form(&body);
    csrf::check_form(&asking.bearer, &token)?;
    let wanted = wanted_of_job(path, &uri, &said)?;
    let verb = wanted.verb;
    match act(&ask.site, &asking, wanted, &said, ask.actions()).await {
        Ok(acted) => done(&ask.site, verb, &acted),
        Err(refusal) => once_more(&ask, verb, refusal, &said),
    }
}

/// The form with what was typed, where who asked can mend it there.
fn once_more(ask: &PageRequest, verb: Verb, refusal: ActionRefusal, said: &ActionBody) -> Result<Response, Problem> {
    let ActionRefusal { problem, look } = refusal;
    match look.filter(|_| problem.is_conflict() || problem.is_bad_request()) {
        None => Err(problem),
        Some(look) => {
            let (reason, until) = (&*said.reason, said.until.as_deref().unwrap_or_default());
            let (status, changed) = (problem.status(), problem.is_stale());
            let typed = Typed { reason, until, objection: problem.detail(), status, changed };
            pages::again(ask, verb, &look, &typed)
        }
    }
}

fn wanted_of_slot(path: SlotPath, said: &ActionBody) -> Result<WantedAction, Problem> {
    let AddressParts((job, slot, action)) = path;
    let verb = Verb::named(&action).filter(|verb| !verb.is_of_job()).ok_or_else(Problem::not_found)?;
    let named = format!("{job}@{slot}").parse();
    let target = ActionTarget::Slot(named.map_err(|error: SlotRefError| Problem::unknown(error))?);
    Ok(WantedAction { verb, target, past: said.past, until: None })
}

fn wanted_of_job(path: JobPath, uri: &Uri, said: &ActionBody) -> Result<WantedAction, Problem> {
    let AddressParts(job) = path;
    let word = uri.path().rsplit('/').next().unwrap_or_default();
    let verb = Verb::named(word).ok_or_else(Problem::not_found)?;
    let target = if verb.is_of_job() {
        ActionTarget::Job(JobName::new(&job).map_err(Problem::unknown)?)
    } else {
        // Its current slot.
        ActionTarget::Slot(job.parse().map_err(|error: SlotRefError| Problem::unknown(error))?)
    };
    Ok(WantedAction { verb, target, past: said.past, until: said.until.clone() })
}

/// Does it, and logs what came of it.
async fn act(
    site: &Site,
    asking: &Asking,
    wanted: WantedAction,
    said: &ActionBody,
    t: &ActionTexts,
) -> Result<Acted, ActionRefusal> {
    let operations = operations(site).map_err(ActionRefusal::unseen)?;
    let (peer, user, verb) = (asking.peer.0, &*asking.bearer.name, wanted.verb.as_str());
    let at = site.sources.clock.now().wall;
    let actor = Actor { name: user, peer, reason: &said.reason, at };
    let acted = operations.act(&wanted, said.expect.as_deref(), actor, t).await;
    match &acted {
        Ok(Acted { job, slot, changed, .. }) => {
            let target = slot.as_ref().map_or_else(|| job.to_string(), ToString::to_string);
            tracing::info!(%peer, user, verb, target, changed, "an operator asked for it over HTTP");
        }
        Err(refusal) => tracing::warn!(%peer, user, verb, why = %refusal.problem.detail(), "an action was refused"),
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
    // Of what a node goes on with the store may know nothing yet: the page has to be told when it was asked for.
    let at = if acted.goes_on { format!("&at={}", site.sources.clock.now().wall.timestamp()) } else { String::new() };
    login::sent_to(&site.address(&format!("/jobs/{}{slot}?did={did}{at}", acted.job)))
}
