//! Why a slot was not done just once: the reasons that the protocol knows, each resting on a line or on a fault.

use chrono::{DateTime, Utc};

use crate::clock::{between, later};
use crate::slot::{Outcome, Verdict};
use crate::verify::fault::Fault;
use crate::verify::history::History;
use crate::verify::run::Run;
use crate::verify::story::Story;

/// Why `b` was started though `a` had been, and the two did not overlap.
pub(super) fn again(history: &History, story: &Story, a: &Run, b: &Run) -> Option<String> {
    if a.failed() {
        let outcome = a.outcome.map_or("failure", Outcome::as_str);
        return Some(format!("{} ended with {outcome}", a.words()));
    }
    if let Some(died) = history.death_of(a) {
        return Some(format!("{} died at {} under {}", a.node, time(died), a.words()));
    }
    if let Some(done) = done_before(a, b) {
        return history.taken_back(story, (done, b.start)).map(Fault::words);
    }
    if let Some(trouble) = trouble(a, b) {
        return Some(trouble);
    }
    let fault = history.blame(story, (a.start, b.start), |_| true)?;
    Some(fault.words())
}

/// When the store had acknowledged that `a` did the work, if that was before it granted `b`. Done is absorbing (I3): no
/// trouble with a node or a link explains `b` then. One without a guard asked nobody.
fn done_before(a: &Run, b: &Run) -> Option<DateTime<Utc>> {
    let done = a.settled.filter(|_| a.succeeded() && b.guarded)?;
    let granted = b.grant.as_ref().map_or(b.ordered, |grant| grant.at);
    (later(done, CLOCKS) < granted).then_some(done)
}

/// Why `a` and `b` ran at the same time. Nothing excuses an overlap in silence, and where the job asks for the older run
/// to be killed only a node that could not act does.
pub(super) fn overlap(history: &History, story: &Story, a: &Run, b: &Run) -> Option<String> {
    let fault = || history.blame(story, (a.start, b.start), Fault::allows_overlap);
    if a.is_killed_when_lost() && a.guarded && b.guarded {
        let stood_still = a.instance.and_then(|index| history.instances.get(index)).is_some_and(|instance| {
            instance.gaps.iter().any(|gap| *gap >= a.start && *gap <= later(b.start, history.aftermath(story)))
        });
        if stood_still {
            return Some(format!("{} stood still under {}", a.node, a.words()));
        }
        return fault().map(Fault::words);
    }
    trouble(a, b).or_else(|| fault().map(Fault::words))
}

/// What the nodes of two runs told of trouble.
fn trouble(a: &Run, b: &Run) -> Option<String> {
    let told = |run: &Run| run.trouble.first().map(|trouble| format!("{}: {trouble}", run.words()));
    told(a).or_else(|| told(b))
}

/// Why nobody did the slot.
pub(super) fn lost(history: &History, story: &Story) -> Option<String> {
    match story.verdict() {
        Some(Verdict::Skipped) => Some("the job was paused, and that is recorded".to_owned()),
        Some(Verdict::Failed) => failed(history, story),
        Some(Verdict::Missed) => missed(history, story).map(|why| format!("recorded as missed: {why}")),
        Some(Verdict::Done) | None => {
            history.blame(story, (story.slot.start(), story.slot.end()), |_| true).map(Fault::words)
        }
    }
}

fn failed(history: &History, story: &Story) -> Option<String> {
    let (made, most) = (story.attempts_made(), usize::try_from(story.max_attempts()?).ok()?);
    if made >= most {
        return Some(format!("all {most} attempts were made, and it is recorded as failed"));
    }
    let lines_are_missing = history.lines_are_missing().then(|| "lines of a journal are missing".to_owned());
    lines_are_missing
        .or_else(|| history.blame(story, (story.slot.start(), story.slot.end()), |_| true).map(Fault::words))
}

fn missed(history: &History, story: &Story) -> Option<String> {
    let (start, end) = (story.slot.start(), story.slot.end());
    if story.start_deadline_passed {
        return Some("its start deadline had passed".to_owned());
    }
    if let Some(answer) = ["paused", "blocked"].into_iter().find(|answer| story.answers.contains(*answer)) {
        return Some(format!("claims were answered {answer}"));
    }
    if let Some(fault) = forgotten(history, story) {
        return Some(format!("all attempts were made, and the store lost count of them: {}", fault.words()));
    }
    if let Some(why) = too_late_for_another(history, story, end) {
        return Some(why);
    }
    if story.store_failed {
        return Some("the store failed".to_owned());
    }
    if let Some(fault) = history.blame(story, (start, end), |_| true) {
        return Some(fault.words());
    }
    let (served, needed) = (history.longest_service(start, end), history.aftermath(story));
    (served < needed).then(|| format!("no node was there and in touch with its store for {}", seconds(needed)))
}

/// What made the store forget that all attempts were made, before it was asked for the verdict.
fn forgotten<'a>(history: &'a History, story: &Story) -> Option<&'a Fault> {
    let (told, _, _) = story.verdicts.last()?;
    let most = usize::try_from(story.max_attempts()?).ok()?;
    let all = story.attempts_made() >= most;
    all.then(|| history.taken_back(story, (story.slot.start(), *told)))?
}

/// Its last run ended, or its lease lapsed, when nobody had time to try again.
fn too_late_for_another(history: &History, story: &Story, end: DateTime<Utc>) -> Option<String> {
    let last = story.runs.last()?;
    let ended = history.end_of(last);
    let enough = history.aftermath(story);
    let late = ended.is_none_or(|ended| later(ended, enough) >= end);
    late.then(|| format!("{} was over too late for another", last.words()))
}

/// An instant for people.
pub(super) fn time(at: DateTime<Utc>) -> String {
    at.format("%H:%M:%S%.3fZ").to_string()
}

/// A span for people.
pub(super) fn seconds(span: std::time::Duration) -> String {
    format!("{:.3}s", span.as_secs_f64())
}

/// How long two runs went on at the same time, if that can be said to be more than clocks differ by.
pub(super) fn common(history: &History, a: &Run, b: &Run) -> Option<String> {
    let measured = a.measured && b.measured;
    let doubt = if measured { std::time::Duration::ZERO } else { CLOCKS };
    let Some(end) = history.end_of(a) else { return Some("for an unknown time".to_owned()) };
    let both = end.min(history.end_of(b).unwrap_or(end));
    let common = between(b.start, both);
    if common > doubt {
        return Some(format!("for {}", seconds(common)));
    }
    // An older run that had no end of its own was met by the next one, alive.
    (b.met_another && a.end.is_none()).then(|| "as the later one found".to_owned())
}

/// What clocks that are set right to the store's may still differ by.
const CLOCKS: std::time::Duration = std::time::Duration::from_millis(100);
