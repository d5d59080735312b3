//! `/jobs/J/S` and `/jobs/J/S/runs/N`: what became of one slot, why, and what may be done.

use std::time::Duration;

use askama::Template;
use chrono::{DateTime, Utc};

use crate::admin::IdleReason;
use crate::admin::actions::Verb;
use crate::admin::command_line::quoted;
use crate::admin::why::{self, Facts};
use crate::admin::words::harmless;
use crate::clock::later;
use crate::job::JobSpec;
use crate::observe::view::{AuditView, DecisionView, SlotView};
use crate::slot::SlotState;
use crate::store::KeptPart;
use crate::web::pages::frame::Frame;
use crate::web::pages::moment::{Apart, Moment, Teller};
use crate::web::pages::runs::{self, NodeLane, RunLine};
use crate::web::pages::state::{JudgedSlot, Shown};
use crate::web::pages::texts::Texts;

/// The page of a slot.
#[derive(Template)]
#[template(path = "slot.html")]
pub(super) struct SlotPage {
    pub(super) frame: Frame,
    job: String,
    key: String,
    previous: Option<String>,
    following: Option<String>,
    glyph: &'static str,
    sentence: String,
    apart: Option<Apart>,
    span: String,
    about: Vec<String>,
    runbook: Option<String>,
    did: Option<String>,
    acts: Vec<(String, String)>,
    acts_off: Option<&'static str>,
    /// What the store holds that cronward did not write.
    unreadable: Vec<String>,
    why: String,
    fix: Option<String>,
    lanes: Vec<NodeLane>,
    lanes_of: String,
    runs: Vec<RunLine>,
    has_log: bool,
    decisions: Vec<(Moment, String, String)>,
    audit: Vec<(Moment, String, String, String)>,
    keys: Vec<String>,
    kept: Vec<(String, &'static str)>,
}

/// What a page of a slot is made of.
pub(super) struct SlotMaterial<'a> {
    pub(super) facts: &'a Facts,
    pub(super) slot: JudgedSlot,
    pub(super) spec: Option<&'a JobSpec>,
    pub(super) previous: Option<String>,
    pub(super) following: Option<String>,
    /// What was done, as the address says, and when this node was asked for it.
    pub(super) did: Option<(String, Option<DateTime<Utc>>)>,
    /// What may be done: the verb and whether the slot is past.
    pub(super) acts: Vec<&'static str>,
    pub(super) acts_off: bool,
    /// The store's names of what it keeps of the slot, and what that is.
    pub(super) kept: Vec<(String, KeptPart)>,
    /// The words of the command by which one asks the store itself, with its own client.
    pub(super) client_command: Vec<String>,
}

impl SlotPage {
    pub(super) fn of(mut frame: Frame, material: SlotMaterial<'_>, tell: &Teller) -> Self {
        let SlotMaterial { facts, slot, spec, previous, following, did, acts, acts_off, kept, client_command } =
            material;
        frame.offer(&facts.job.timezone);
        let view = &slot.view;
        let (job, key, t) = (view.job.to_string(), view.slot.clone(), tell.t);
        let told = why::explain_in(facts, &t.reasons);
        let act = |verb: &'static str| (format!("/jobs/{job}/{key}/{verb}"), (t.act.label)(verb).to_owned());
        Self {
            glyph: slot.shown().key(),
            sentence: sentence(&slot, tell),
            apart: settled(view).filter(|_| slot.idle.is_none()).map(|at| tell.apart(at)),
            span: (t.slot.from_to)(&tell.exact(view.start), &tell.exact(view.end)),
            about: spec
                .and_then(|spec| spec.owner.clone())
                .into_iter()
                .map(|owner| format!("{}: {owner}", t.job.owner))
                .collect(),
            runbook: spec.and_then(|spec| spec.runbook.clone()),
            did: did.and_then(|(verb, asked)| recorded(&verb, asked, view, facts.now, t)),
            acts: acts.into_iter().map(act).collect(),
            unreadable: facts.unreadable.iter().map(|error| (t.needs.unreadable)(1, &harmless(error))).collect(),
            acts_off: acts_off.then_some(t.act.off_away),
            why: harmless(&told.sentence).into_owned(),
            fix: told.fix,
            lanes: runs::lanes(view, tell),
            lanes_of: (t.slot.timeline_of)(view.runs.len()),
            runs: view.runs.iter().rev().map(|run| runs::line(view, run, false, tell)).collect(),
            has_log: !facts.pages.is_empty(),
            decisions: why::timeline(facts).iter().map(|entry| decision(entry, tell)).collect(),
            audit: view
                .audit
                .iter()
                .map(|entry| {
                    let who = format!("{} ({})", harmless(&entry.who), harmless(&entry.host));
                    (tell.moment(entry.at), (t.words.verb)(&entry.verb), who, harmless(&entry.why).into_owned())
                })
                .collect(),
            keys: ["show", "why", "logs"]
                .map(|verb| facts.store.command(format_args!("{verb} {job}@{key}")))
                .into_iter()
                .chain((!client_command.is_empty()).then(|| line_of(&client_command)))
                .collect(),
            kept: kept.into_iter().map(|(name, part)| (name, (t.slot.kept_part)(part))).collect(),
            frame,
            job,
            key,
            previous,
            following,
        }
    }
}

/// As a shell takes it.
fn line_of(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn decision(entry: &DecisionView, tell: &Teller) -> (Moment, String, String) {
    let node = entry.node.as_ref().map(ToString::to_string).unwrap_or_default();
    (tell.moment(entry.at), node, harmless(&entry.text).into_owned())
}

/// When it came to what it is.
fn settled(view: &SlotView) -> Option<DateTime<Utc>> {
    match view.state {
        SlotState::Done => view.done.as_ref().map(|done| done.at).or_else(|| view.verdict.as_ref().map(|told| told.at)),
        SlotState::Failed => {
            view.runs.last().and_then(|run| run.ended).or_else(|| view.verdict.as_ref().map(|told| told.at))
        }
        SlotState::Missed => Some(view.end),
        SlotState::Running => view.runs.last().map(|run| run.started),
        SlotState::Retrying => view.runs.last().and_then(|run| run.ended),
        SlotState::Pending | SlotState::Skipped => None,
    }
}

/// Whether an action is so new that the page of its slot or job says what was done.
pub(super) fn is_told(at: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    later(at, Duration::from_secs(600)) > now
}

/// What was done, after an action, as far as that is seen: an address can be kept, and anybody can write one. `asked`: when this node was
/// asked for it, by the address.
fn recorded(
    word: &str,
    asked: Option<DateTime<Utc>>,
    view: &SlotView,
    now: DateTime<Utc>,
    t: &Texts,
) -> Option<String> {
    let verb = match Verb::named(word) {
        None => return (word == "nothing").then(|| t.slot.did_nothing.to_owned()),
        Some(verb) => verb,
    };
    let is_new = |audit: &&AuditView| is_told(audit.at, now);
    let is_of = |audited: &str| match verb {
        Verb::MarkDone => audited == "mark_done",
        // By a reset while nodes run the slot by themselves.
        Verb::Retry => matches!(audited, "trigger" | "reset"),
        verb => audited == verb.as_str(),
    };
    if view.audit.iter().filter(is_new).any(|audit| is_of(&audit.verb)) {
        return Some((t.slot.did)(&(t.words.verb)(word)));
    }
    // The node goes on with it: what it was asked for is recorded with its lease.
    let is_asked = matches!(verb, Verb::Trigger | Verb::Retry) && asked.is_some_and(|asked| is_told(asked, now));
    is_asked.then(|| t.slot.asked.to_owned())
}

/// The state in a sentence.
pub(super) fn sentence(slot: &JudgedSlot, tell: &Teller) -> String {
    let (t, view) = (&tell.t.slot, &slot.view);
    if let Some(reason) = slot.idle {
        return idle(reason, tell);
    }
    match view.state {
        SlotState::Done => match (&view.done, &view.verdict) {
            (Some(done), _) if done.attempt > 0 => (t.done)(done.node.as_str(), done.attempt),
            (Some(done), _) => (t.done_by_hand)(done.node.as_str()),
            (None, Some(told)) => match view.runs.last() {
                Some(run) => (t.done)(run.node.as_str(), run.attempt),
                None => (t.done_by_hand)(told.by.as_str()),
            },
            (None, None) => (tell.t.words.state)(Shown::Done).to_owned(),
        },
        SlotState::Running => {
            let holder = view.lease.as_ref().map(|lease| (lease.node.to_string(), lease.attempt));
            let (node, attempt) = holder.unwrap_or_default();
            (t.running)(&node, attempt, view.max_attempts.saturating_add(view.forgiven))
        }
        SlotState::Retrying => {
            let used = (t.retrying)(view.attempts, view.max_attempts);
            let between = if tell.t.tag == "en" { ", " } else { "，" };
            if let Some(why) = kept(slot, tell) {
                return format!("{}{between}{}", (t.waiting)(view.attempts, view.max_attempts), (t.not_started)(why));
            }
            let next = view
                .retry_in_s
                .map(|seconds| (t.retry_at)(&tell.span(Duration::from_secs_f64(seconds.clamp(1.0, 1e9).ceil()))));
            let next = next.unwrap_or_else(|| tell.t.needs.retry_soon.to_owned());
            format!("{used}{between}{next}")
        }
        SlotState::Failed => (t.failed)(view.attempts, view.max_attempts),
        SlotState::Missed if view.attempts > 0 => (tell.t.needs.missed_after)(view.attempts, view.max_attempts),
        SlotState::Missed => t.missed.to_owned(),
        SlotState::Skipped => t.skipped.to_owned(),
        SlotState::Pending if view.start > tell.now => {
            (t.not_begun)(&tell.span(crate::clock::between(tell.now, view.start)))
        }
        SlotState::Pending => match kept(slot, tell) {
            Some(why) => (t.pending_but)(why),
            None => t.pending.to_owned(),
        },
    }
}

/// Why no node starts it by itself.
fn kept(slot: &JudgedSlot, tell: &Teller) -> Option<&'static str> {
    slot.no_start.map(tell.t.actions.no_start).or(slot.paused.then_some(tell.t.needs.paused))
}

/// Why it is neither due nor missed.
fn idle(reason: IdleReason, tell: &Teller) -> String {
    let t = &tell.t.slot;
    match reason {
        IdleReason::NoTick => t.no_tick.to_owned(),
        IdleReason::NotDue(tick) => (t.not_due)(&tell.exact(tick), &tell.span(crate::clock::between(tell.now, tick))),
        IdleReason::NotOwed(since) => (t.not_owed)(&tell.exact(since)),
        IdleReason::NotKnown => t.not_known.to_owned(),
        IdleReason::Forgotten => t.forgotten.to_owned(),
        IdleReason::Disabled => t.disabled.to_owned(),
    }
}

/// The page of one attempt's output.
#[derive(Template)]
#[template(path = "run.html")]
pub(super) struct RunPage {
    pub(super) frame: Frame,
    job: String,
    key: String,
    run: RunLine,
}

impl RunPage {
    /// None where there is no such attempt.
    pub(super) fn of(frame: Frame, view: &SlotView, attempt: u32, tell: &Teller) -> Option<Self> {
        let run = view.runs.iter().find(|run| run.attempt == attempt)?;
        let line = runs::line(view, run, true, tell);
        Some(Self { frame, job: view.job.to_string(), key: view.slot.clone(), run: line })
    }
}
