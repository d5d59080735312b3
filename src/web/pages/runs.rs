//! Attempts as pages show them: in a line each, and as bars on the lanes of their nodes.

use chrono::{DateTime, Utc};

use crate::observe::view::{RunView, SlotView};
use crate::slot::Outcome;
use crate::web::pages::moment::Teller;
use crate::web::pages::output;
use crate::web::pages::state::Shown;

/// One attempt.
pub(super) struct RunLine {
    pub(super) attempt: u32,
    pub(super) glyph: &'static str,
    pub(super) title: String,
    pub(super) facts: String,
    pub(super) message: Option<String>,
    pub(super) output: Option<String>,
    /// That output is there of which nothing was kept.
    pub(super) lost: Option<String>,
    pub(super) cut: Option<String>,
    pub(super) dropped: Option<String>,
}

/// The attempts of one node.
pub(super) struct NodeLane {
    pub(super) node: String,
    pub(super) title: String,
    pub(super) bars: Vec<Bar>,
}

/// One attempt as a bar, in thousandths of the time that is shown.
pub(super) struct Bar {
    pub(super) state: &'static str,
    pub(super) x: u32,
    pub(super) width: u32,
    pub(super) title: String,
}

/// The narrowest bar that is seen.
const NARROWEST: u32 = 6;

/// With all of its output, or its end.
pub(super) fn line(slot: &SlotView, run: &RunView, whole: bool, tell: &Teller) -> RunLine {
    let t = &tell.t.slot;
    let text = run.output_tail.as_deref().filter(|text| !text.is_empty());
    let (shown, cut) = match text {
        None => (None, false),
        Some(text) if whole => (Some(output::whole(text)), false),
        Some(text) => {
            let (shown, cut) = output::excerpt(text);
            (Some(shown), cut)
        }
    };
    let dropped = run.output_dropped_bytes;
    RunLine {
        attempt: run.attempt,
        glyph: glyph(run.outcome),
        title: format!("{} · {} · {}", (t.attempt)(run.attempt), run.node, ending(run, tell)),
        facts: facts(slot, run, tell),
        message: run.message.as_deref().map(|message| crate::text::message(message, 2_000)),
        lost: (text.is_none() && dropped > 0).then(|| (t.dropped)(dropped, run.output_loss)),
        dropped: (text.is_some() && dropped > 0).then(|| (t.dropped)(dropped, run.output_loss)),
        cut: cut.then(|| (t.cut)(&format!("{} KiB", output::EXCERPT / 1_024))),
        output: shown,
    }
}

/// How it ended, in a word or two.
pub(super) fn ending(run: &RunView, tell: &Teller) -> String {
    let words = &tell.t.words;
    match (run.outcome, run.exit_code, run.signal) {
        (None, _, _) => (words.outcome)("running"),
        (Some(Outcome::Failure), Some(code), _) => (tell.t.needs.exit)(code),
        (Some(outcome @ Outcome::Killed), _, Some(signal)) => format!("{} {signal}", (words.outcome)(outcome.as_str())),
        (Some(outcome), _, _) => (words.outcome)(outcome.as_str()),
    }
}

fn facts(slot: &SlotView, run: &RunView, tell: &Teller) -> String {
    let t = tell.t;
    let to = run.ended.filter(|_| run.ended_after.is_none()).map_or_else(String::new, |ended| tell.exact(ended));
    let from = tell.exact(run.started);
    let mut facts = vec![if to.is_empty() { from } else { (t.slot.from_to)(&from, &to) }];
    let between = run.ended_after.zip(run.ended);
    facts.extend(between.map(|(after, by)| (t.slot.ended_between)(&tell.exact(after), &tell.exact(by))));
    facts.extend(run.duration_s.map(|seconds| tell.fine_span(seconds)));
    facts.push(format!("{}: {}", t.slot.trigger, (t.words.outcome)(trigger(run))));
    facts.push(format!("{}: {}", t.slot.fence, run.fence.0));
    if slot.max_attempts > 1 {
        facts.push(format!("{}/{}", run.attempt, slot.max_attempts.saturating_add(slot.forgiven)));
    }
    facts.join(" · ")
}

fn trigger(run: &RunView) -> &'static str {
    run.trigger.as_str()
}

/// The colour and the glyph of an end.
pub(super) fn glyph(outcome: Option<Outcome>) -> &'static str {
    let shown = match outcome {
        None => Shown::Running,
        Some(Outcome::Success) => Shown::Done,
        Some(Outcome::GivenBack) => Shown::Skipped,
        Some(Outcome::Crashed | Outcome::LostLease) => Shown::Missed,
        Some(Outcome::Failure | Outcome::Timeout | Outcome::Killed) => Shown::Failed,
    };
    shown.key()
}

/// How long the run took that settled a slot.
pub(super) fn took(slot: &SlotView) -> Option<f64> {
    slot.runs.iter().rev().find(|run| run.outcome != Some(Outcome::GivenBack)).and_then(|run| run.duration_s)
}

/// The nodes in the order in which they began, each with its attempts.
pub(super) fn lanes(slot: &SlotView, tell: &Teller) -> Vec<NodeLane> {
    let Some(from) = slot.runs.iter().map(|run| run.started).min() else { return Vec::new() };
    let last = |run: &RunView| run.ended.unwrap_or(if run.outcome.is_none() { tell.now } else { run.started });
    let Some(to) = slot.runs.iter().map(last).max() else { return Vec::new() };
    let mut lanes: Vec<NodeLane> = Vec::new();
    for run in &slot.runs {
        let title = format!("{}: {}, {}", run.attempt, ending(run, tell), facts(slot, run, tell));
        let (start, end) = (place(run.started, from, to), place(last(run).max(run.started), from, to));
        let width = end.saturating_sub(start).max(NARROWEST);
        let bar = Bar {
            state: glyph(run.outcome),
            x: start.min(1_000 - NARROWEST),
            width: width.min(1_000),
            title: title.clone(),
        };
        match lanes.iter_mut().find(|lane| lane.node == run.node.as_str()) {
            Some(lane) => {
                lane.bars.push(bar);
                lane.title = format!("{}; {title}", lane.title);
            }
            None => lanes.push(NodeLane {
                node: run.node.to_string(),
                title: format!("{} {title}", run.node),
                bars: vec![bar],
            }),
        }
    }
    lanes
}

/// Where an instant stands between two others, in thousandths.
fn place(at: DateTime<Utc>, from: DateTime<Utc>, to: DateTime<Utc>) -> u32 {
    let whole = to.signed_duration_since(from).num_milliseconds().max(1);
    let part = at.signed_duration_since(from).num_milliseconds().clamp(0, whole);
    u32::try_from(part.saturating_mul(1_000) / whole).unwrap_or(1_000)
}
