//! `/jobs/J`: when it runs, what it has come to lately and how long it took, whose it is.

use askama::Template;
use chrono::{DateTime, Utc};

use crate::admin::actions::Verb;
use crate::admin::words::zone_name;
use crate::board::{BoardRow, Snapshot};
use crate::job::{JobSpec, Program};
use crate::observe::view::{JobView, PauseView, TickView};
use crate::schedule::Timetable;
use crate::store::Pause;
use crate::web::pages::chart::{self, Chart};
use crate::web::pages::frame::Frame;
use crate::web::pages::moment::{Apart, Moment, Teller};
use crate::web::pages::now;
use crate::web::pages::runs::took;
use crate::web::pages::slot::is_told;
use crate::web::pages::state::{JudgedSlot, Shown};
use crate::web::pages::texts::Texts;
use crate::zone::Zone;

/// The page.
#[derive(Template)]
#[template(path = "job.html")]
pub(super) struct JobPage {
    pub(super) frame: Frame,
    job: String,
    glyph: &'static str,
    sentence: String,
    description: Option<String>,
    did: Option<String>,
    notes: Vec<String>,
    acts: Vec<(String, String)>,
    facts: Vec<(&'static str, String)>,
    runbook: Option<String>,
    recent: String,
    durations: String,
    chart: Option<Chart>,
    slots: Vec<SlotLine>,
    older: Option<String>,
    ticks: Vec<TickLine>,
}

/// A slot of it.
struct SlotLine {
    key: String,
    local: Option<String>,
    glyph: &'static str,
    state: String,
    took: String,
    nodes: String,
}

/// A scheduled time to come.
struct TickLine {
    at: Moment,
    apart: Apart,
    notes: Vec<String>,
}

/// What the page is made of besides the board's row.
pub(super) struct JobMaterial<'a> {
    pub(super) row: &'a BoardRow,
    pub(super) timetable: &'a Timetable,
    /// Newest first.
    pub(super) slots: Vec<JudgedSlot>,
    /// Why those that are not among them cannot be read.
    pub(super) unreadable: Vec<String>,
    pub(super) ticks: Vec<TickView>,
    pub(super) hour: Option<DateTime<Utc>>,
    pub(super) older: Option<String>,
    pub(super) did: Option<String>,
    pub(super) acts: bool,
}

/// What was done, after an action, as far as the job's last pause shows it: an address can be kept, and anybody can write one.
pub(super) fn recorded(word: &str, pause: Option<&Pause>, now: DateTime<Utc>, t: &Texts) -> Option<String> {
    let done = match Verb::named(word) {
        Some(Verb::Pause) => pause.filter(|pause| pause.ended.is_none()).map(|pause| pause.since),
        Some(Verb::Resume) => pause.and_then(|pause| Some(pause.ended.as_ref()?.at)),
        _ => return (word == "nothing").then(|| t.slot.did_nothing.to_owned()),
    };
    done.filter(|at| is_told(*at, now)).map(|_| (t.slot.did)(&(t.words.verb)(word)))
}

impl JobPage {
    pub(super) fn of(mut frame: Frame, shown: &Snapshot, material: JobMaterial<'_>, tell: &Teller) -> Self {
        let JobMaterial { row, timetable, slots, unreadable, ticks, hour, older, did, acts } = material;
        let (t, view, spec) = (tell.t, &row.view, row.spec.as_deref());
        frame.offer(&view.timezone);
        let job = view.job.to_string();
        let (glyph, sentence) = now::of(row, tell);
        let verb = if view.paused.is_some() { "resume" } else { "pause" };
        let act = |verb: &str| (format!("/jobs/{job}/{verb}"), (t.act.label)(verb).to_owned());
        let took = slots.iter().filter_map(|slot| took(&slot.view));
        let durations = chart::percentiles(took.collect());
        let timeout = spec.and_then(|spec| spec.policy.timeout);
        Self {
            glyph: glyph.unwrap_or(Shown::NotDue.key()),
            sentence,
            description: spec.and_then(|spec| spec.description.clone()),
            did,
            notes: notes(shown, row, &unreadable, t),
            acts: if acts { vec![act("trigger"), act(verb)] } else { Vec::new() },
            facts: facts(row, timetable, tell),
            runbook: spec.and_then(|spec| spec.runbook.clone()),
            recent: match hour {
                Some(hour) => (t.job.recent_hour)(&tell.exact(hour)),
                None => (t.job.recent)(slots.len()),
            },
            durations: durations.map_or_else(
                || t.job.no_durations.to_owned(),
                |(p50, p95)| (t.job.durations)(&tell.fine_span(p50), &tell.fine_span(p95)),
            ),
            chart: chart::of(&slots, durations, timeout, tell),
            slots: slots.iter().map(|slot| line(slot, tell)).collect(),
            older,
            ticks: ticks.into_iter().map(|tick| coming(tick, view.paused.as_ref(), tell)).collect(),
            frame,
            job,
        }
    }
}

/// A scheduled time, with a note where the job is still paused then.
fn coming(tick: TickView, pause: Option<&PauseView>, tell: &Teller) -> TickLine {
    let mut notes = tick.notes;
    if pause.is_some_and(|pause| pause.until.is_none_or(|end| end > tick.tick)) {
        notes.push(tell.t.needs.paused.to_owned());
    }
    TickLine { at: tell.coming(tick.tick), apart: tell.apart(tick.tick), notes }
}

/// Whose pause keeps the job, since when, until when, and the reason.
fn pause_fact(pause: &PauseView, tell: &Teller) -> (&'static str, String) {
    let t = tell.t;
    let by = (t.job.paused_by)(&pause.who, &pause.host, &tell.exact(pause.since));
    let why = (!pause.why.is_empty()).then(|| pause.why.clone());
    let until = pause.until.map(|until| (t.needs.paused_until)(&tell.coming(until).text));
    (t.job.paused, [Some(by), why, until].into_iter().flatten().collect::<Vec<_>>().join(" · "))
}

fn line(slot: &JudgedSlot, tell: &Teller) -> SlotLine {
    let (shown, slot) = (slot.shown(), &slot.view);
    let word = (tell.t.words.state)(shown);
    let many = shown.shows(slot.attempts);
    let mut nodes: Vec<&str> = slot.runs.iter().map(|run| run.node.as_str()).collect();
    nodes.dedup();
    SlotLine {
        key: slot.slot.clone(),
        local: (tell.zone != Zone::UTC).then(|| tell.exact(slot.start)),
        glyph: shown.key(),
        state: if many { (tell.t.home.cell_attempts)(word, slot.attempts) } else { word.to_owned() },
        took: took(slot).map_or_else(|| tell.t.words.none.to_owned(), |seconds| tell.fine_span(seconds)),
        nodes: if nodes.is_empty() { tell.t.words.none.to_owned() } else { nodes.join(", ") },
    }
}

fn notes(shown: &Snapshot, row: &BoardRow, unreadable: &[String], t: &Texts) -> Vec<String> {
    let differs: Vec<&str> =
        shown.nodes.iter().filter(|node| node.differs.contains(&row.view.job)).map(|node| node.node.as_str()).collect();
    let differs = (!differs.is_empty()).then(|| (t.job.differs)(&differs.join(", ")));
    let registry = row.spec.is_none().then(|| t.job.from_registry.to_owned());
    let unreadable = unreadable.iter().map(|error| (t.needs.unreadable)(1, error));
    unreadable.chain(differs).chain(registry).collect()
}

fn facts(row: &BoardRow, timetable: &Timetable, tell: &Teller) -> Vec<(&'static str, String)> {
    let (t, view) = (&tell.t.job, &row.view);
    let mut facts = vec![
        (t.schedule, format!("{} · {}", view.schedule, (t.in_words)(timetable.schedule()))),
        (t.zone, zone_name(timetable.schedule().zone())),
        (t.slot_spans, view.period.clone()),
    ];
    facts.extend(view.paused.iter().map(|pause| pause_fact(pause, tell)));
    facts.extend(row.spec.iter().flat_map(|spec| of_spec(spec, tell)));
    facts.push((t.origin, (t.where_)(view.origin).to_owned()));
    facts.extend(latest(view, tell));
    facts
}

fn of_spec(spec: &JobSpec, tell: &Teller) -> Vec<(&'static str, String)> {
    let t = &tell.t.job;
    let mut facts: Vec<(&'static str, String)> = spec.owner.iter().map(|owner| (t.owner, owner.clone())).collect();
    if !spec.tags.is_empty() {
        facts.push((t.tags, spec.tags.join(", ")));
    }
    facts.push((t.attempts, spec.policy.max_attempts.to_string()));
    facts.push((t.timeout, spec.policy.timeout.map_or_else(|| t.no_timeout.to_owned(), |span| tell.span(span))));
    if !spec.only_on.is_empty() {
        let labels: Vec<String> = spec.only_on.iter().map(|(key, value)| format!("{key}={value}")).collect();
        facts.push((t.only_on, labels.join(", ")));
    }
    // Its first word alone: arguments may hold what is not for everybody who looks.
    if let Program::Direct(words) = &spec.command.program
        && let Some(program) = words.first()
    {
        facts.push((t.defined, format!("jobs.toml, [jobs.{}], {program}", spec.name)));
    } else {
        facts.push((t.defined, format!("jobs.toml, [jobs.{}]", spec.name)));
    }
    facts
}

fn latest(view: &JobView, tell: &Teller) -> Vec<(&'static str, String)> {
    let t = &tell.t.job;
    let success = view.latest.success.as_ref().map_or_else(|| t.never.to_owned(), |done| tell.exact(done.at));
    let failing = view
        .failing()
        .map(|(since, slots)| (t.failing_since, format!("{since} ({})", (tell.t.needs.failed_slots)(slots))));
    [(t.last_success, success)].into_iter().chain(failing).collect()
}
