//! The forms of the actions: what will happen, how it is taken back, the same as a command, and why it is wanted. They change nothing;
//! where they are sent to is another route.

use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use crate::admin::actions::{Undo, Verb};
use crate::admin::lookup::SlotRefError;
use crate::job::JobName;
use crate::web::detail::ProblemDetail;
use crate::web::pages::plain::ActPage;
use crate::web::pages::request::PageRequest;
use crate::web::pages::slot::sentence;
use crate::web::pages::state::{JudgedSlot, Shown};
use crate::web::parts::AddressParts;
use crate::web::problem::Problem;
use crate::web::prospect::{ActionTarget, Doer, Prospect, WantedAction};

/// What somebody typed that was not taken.
pub(in crate::web) struct Typed<'a> {
    pub(in crate::web) reason: &'a str,
    pub(in crate::web) until: &'a str,
    /// Why it was not taken.
    pub(in crate::web) objection: &'a ProblemDetail,
    /// What it is answered with.
    pub(in crate::web) status: StatusCode,
    /// The slot was in another state than the form had said.
    pub(in crate::web) changed: bool,
}

/// `/jobs/{job}/{slot}/{action}`.
pub(in crate::web) async fn of_slot(
    ask: PageRequest,
    AddressParts((job, slot, action)): AddressParts<(String, String, String)>,
) -> Result<Response, Problem> {
    let verb = Verb::named(&action).filter(|verb| !verb.is_of_job()).ok_or_else(Problem::not_found)?;
    let named = format!("{job}@{slot}").parse();
    let target = ActionTarget::Slot(named.map_err(|error: SlotRefError| Problem::unknown(error))?);
    form(&ask, verb, target).await
}

/// `/jobs/{job}/pause`, and the others of a job.
pub(in crate::web) async fn of_job(
    ask: PageRequest,
    AddressParts(job): AddressParts<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    let word = uri.path().rsplit('/').next().unwrap_or_default();
    let verb = Verb::named(word).ok_or_else(Problem::not_found)?;
    let target = if verb.is_of_job() {
        ActionTarget::Job(JobName::new(&job).map_err(Problem::unknown)?)
    } else {
        ActionTarget::Slot(job.parse().map_err(|error: SlotRefError| Problem::unknown(error))?)
    };
    form(&ask, verb, target).await
}

async fn form(ask: &PageRequest, verb: Verb, target: ActionTarget) -> Result<Response, Problem> {
    let operations = ask.site.sources.operations.as_deref().ok_or_else(Problem::not_found)?;
    let look = operations.look(&WantedAction { verb, target, past: true, until: None }, ask.actions()).await?;
    ask.page(&page(ask, verb, &look, None))
}

/// The form once more, with what was typed and why that was not taken.
pub(in crate::web) fn again(
    ask: &PageRequest,
    verb: Verb,
    look: &Prospect,
    typed: &Typed<'_>,
) -> Result<Response, Problem> {
    let mut response = ask.page(&page(ask, verb, look, Some(typed)))?;
    *response.status_mut() = typed.status;
    Ok(response.into_response())
}

fn page(ask: &PageRequest, verb: Verb, look: &Prospect, typed: Option<&Typed<'_>>) -> ActPage {
    let (t, word) = (ask.reader.t, verb.as_str());
    let shown = ask.site.sources.board.look(0);
    let tell = ask.tell(&shown);
    let judged =
        look.slot_view().map(|view| JudgedSlot { view, idle: look.idle, no_start: look.no_start, paused: look.paused });
    let slot = look.record.as_ref().map(|record| record.slot.key().to_string());
    let path = slot.as_ref().map_or_else(|| format!("/jobs/{}", look.job), |key| format!("/jobs/{}/{key}", look.job));
    let what = slot.map_or_else(|| look.job.to_string(), |key| format!("{}@{key}", look.job));
    let change = &look.proposal.change;
    let needless = look.proposal.is_needless() && matches!(look.doer, Doer::Store);
    // What was typed is shown once more, with what has become of it.
    let refused = || look.refused.as_ref().map(|why| (t.said)(why.detail()));
    let off = || (!shown.takes_changes()).then(|| t.act.off_away.to_owned());
    let refused = if typed.is_none() { off().or_else(refused) } else { None };
    let needless = needless.then(|| format!("{} {}", t.act.needless, change.needless));
    let blocked = refused.map(|why| format!("{} {why}", t.act.refused)).or(needless);
    let (undo, undo_words) = match &change.undo {
        Undo::By(command) => (Some(command.clone()), None),
        Undo::Not(why) => (None, Some(why.clone())),
    };
    let is_over = look.record.as_ref().is_some_and(|record| record.slot.end() <= look.now);
    ActPage {
        frame: ask.frame(&shown, "hours", (t.act.heading)(word, &what)),
        heading: (t.act.heading)(word, &what),
        glyph: judged.as_ref().map_or(Shown::NotDue, JudgedSlot::shown).key(),
        sentence: judged.as_ref().map(|slot| sentence(slot, &tell)),
        changed: typed.is_some_and(|typed| typed.changed),
        objection: typed.map(|typed| (t.said)(typed.objection)),
        action: format!("{path}/{word}"),
        command: blocked.is_none().then(|| look.proposal.command.clone()),
        blocked,
        effect: change.effect.clone(),
        undo,
        undo_words,
        token: ask.setting.who.as_ref().and_then(|who| who.form_token.clone()),
        expect: look.state().map(str::to_owned),
        past: is_over,
        has_until: verb == Verb::Pause,
        until: typed.map(|typed| typed.until.to_owned()).unwrap_or_default(),
        confirm: verb.needs_name().then(|| (t.act.confirm)(look.job.as_str())),
        required: look.needs_reason,
        reason: typed.map(|typed| typed.reason.to_owned()).unwrap_or_default(),
        audited: (t.act.audited)(ask.setting.who.as_ref().map(|who| who.name.as_str()).unwrap_or_default()),
        submit: (t.act.label)(word).trim_end_matches('…').to_owned(),
        back: path,
    }
}
