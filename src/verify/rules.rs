//! What may never be, whatever faults there were; a rule says by itself which faults it bears.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;

use crate::clock::later;
use crate::job::JobName;
use crate::slot::Verdict;
use crate::verify::explain::time;
use crate::verify::fault::Fault;
use crate::verify::history::{History, name};
use crate::verify::report::Finding;
use crate::verify::run::{Grant, Run};
use crate::verify::story::Story;

/// From a grant to the start of its command, on a busy machine; and what clocks may differ by.
const TO_START: TimeDelta = TimeDelta::seconds(1);
/// What clocks that are set right may still differ by.
const CLOCKS: TimeDelta = TimeDelta::milliseconds(100);

/// Every rule that a slot breaks.
pub(super) fn of_slot(history: &History, story: &Story) -> Vec<Finding> {
    let rules = [
        out_of_bounds,
        too_many_attempts,
        done_without_success,
        success_without_done,
        no_verdict,
        two_verdicts,
        same_attempt_twice,
        unknown_run,
    ];
    rules.iter().flat_map(|rule| rule(history, story)).collect()
}

/// Every rule that concerns more than one slot.
pub(super) fn of_all(history: &History) -> Vec<Finding> {
    fences(history).into_iter().chain(strays(history)).chain(unjudged(history)).collect()
}

/// What is not judged is not silent.
fn unjudged(history: &History) -> Option<Finding> {
    let most = history.unjudged?;
    let message =
        format!("more than {most} slots were planned, and only so many are judged: give journals of a shorter time");
    Some(Finding { rule: "too-many-slots", slot: "(all)".to_owned(), message, lines: Vec::new() })
}

fn finding<'a>(
    rule: &'static str,
    story: &Story,
    message: String,
    lines: impl IntoIterator<Item = &'a String>,
) -> Finding {
    Finding { rule, slot: name(&story.slot), message, lines: lines.into_iter().cloned().collect() }
}

/// I6: by the store's clock for grants; by the nodes' (set right) or the recorder's for runs.
fn out_of_bounds(history: &History, story: &Story) -> Vec<Finding> {
    let (start, end) = (story.slot.start(), story.slot.end());
    let mut found = Vec::new();
    for grant in &story.grants {
        let lines = line_of(history, grant);
        let words = format!("attempt {} was granted at {}", grant.attempt, time(grant.at));
        if grant.at < start {
            found.push(finding("early-start", story, format!("{words}, before the slot's start"), lines));
        } else if grant.at >= end {
            found.push(finding("late-start", story, format!("{words}, when the slot was over"), lines));
        }
    }
    for run in &story.runs {
        let words = format!("{} began at {}", run.words(), time(run.start));
        let excused = |fault: &Fault| !fault.is_death();
        if run.start + CLOCKS < start {
            found.push(finding("early-start", story, format!("{words}, before the slot's start"), &run.lines));
        } else if run.start >= later(end + TO_START, history.allowance)
            && history.blame(story, (start, run.start), excused).is_none()
        {
            found.push(finding("late-start", story, format!("{words}, when the slot was over"), &run.lines));
        }
    }
    found
}

/// I5.
fn too_many_attempts(history: &History, story: &Story) -> Vec<Finding> {
    let Some(most) = story.max_attempts() else { return Vec::new() };
    let made = story.attempts_made();
    let forgiven = |fault: &Fault| fault.loses_data() || fault.kind == "reset";
    let span = (story.slot.start(), story.slot.end());
    let counted_wrongly = story.grants.iter().any(|grant| grant.used > grant.max_attempts);
    let too_many = made > usize::try_from(most).unwrap_or(usize::MAX);
    if !(too_many || counted_wrongly) || history.blame(story, span, forgiven).is_some() {
        return Vec::new();
    }
    let message = format!("{made} attempts were granted and {most} is the maximum");
    vec![finding("too-many-attempts", story, message, story.grants.iter().flat_map(|grant| line_of(history, grant)))]
}

/// I7. A run whose end nobody told may have succeeded.
fn done_without_success(history: &History, story: &Story) -> Vec<Finding> {
    let may_have = |run: &Run| run.outcome.is_none() || run.succeeded();
    let unseen = story.runs.is_empty()
        && story.done_by.as_ref().is_some_and(|by| !history.instances.iter().any(|instance| instance.node == *by));
    let lost_grant = story.grants.iter().any(|grant| !story.runs.iter().any(|run| run.attempt == grant.attempt));
    let said = |fault: &Fault| fault.kind == "mark_done";
    let excused = history.lines_are_missing()
        || story.runs.iter().any(may_have)
        || unseen
        || lost_grant
        || history.blame(story, (story.slot.start(), history.horizon), said).is_some();
    if !story.done || excused {
        return Vec::new();
    }
    let message = format!("it is done, and none of its {} runs succeeded", story.runs.len());
    vec![finding("done-without-success", story, message, &story.lines)]
}

/// I3: what succeeded is recorded as done, unless its node died first or the store was away too long, which is told.
fn success_without_done(history: &History, story: &Story) -> Vec<Finding> {
    let mut found = Vec::new();
    for run in story.runs.iter().filter(|run| run.succeeded()) {
        let given_up = run.trouble.contains(&"settlement given up");
        let span = (run.start, history.horizon.max(story.slot.end()));
        let blamed = || history.blame(story, span, Fault::loses_data).is_some() || history.lines_are_missing();
        if run.settled.is_none() {
            let open = !history.is_over(story) || history.death_of(run).is_some() || leaves_early(history, run);
            if !open && !given_up && !blamed() {
                let message = format!("{} succeeded, and that was never recorded", run.words());
                found.push(finding("success-without-done", story, message, &run.lines));
            }
            continue;
        }
        let after = |(at, verdict, _): &&(_, Verdict, String)| run.settled < Some(*at) && *verdict != Verdict::Done;
        if let Some((_, verdict, line)) = story.verdicts.iter().find(after)
            && !blamed()
        {
            let message = format!("{} was recorded as done, and then the slot as {}", run.words(), verdict.as_str());
            found.push(finding("success-without-done", story, message, run.lines.iter().chain([line])));
        }
    }
    found
}

/// The run's node said that it was leaving, and its words end there.
fn leaves_early(history: &History, run: &Run) -> bool {
    run.instance.and_then(|index| history.instances.get(index)).is_some_and(|instance| instance.left.is_some())
}

/// L2. Somebody has to have been there, and in touch, for long enough after the end.
fn no_verdict(history: &History, story: &Story) -> Vec<Finding> {
    let (end, by) = (story.slot.end(), crate::clock::later(story.slot.end(), history.aftermath(story)));
    let had_a_chance = history.is_over(story) && history.somebody_serves(end, by, None);
    let blamed = || history.blame(story, (story.slot.start(), by), |_| true).is_some();
    if story.verdict().is_some() || !had_a_chance || history.lines_are_missing() || blamed() {
        return Vec::new();
    }
    vec![finding("no-verdict", story, format!("it ended at {} without a verdict", time(end)), &story.lines)]
}

/// A late success may turn `missed` into `done`; nothing else changes a verdict.
fn two_verdicts(history: &History, story: &Story) -> Vec<Finding> {
    let told: BTreeSet<&str> =
        story.verdicts.iter().filter(|(_, verdict, _)| *verdict != Verdict::Done).map(|(_, v, _)| v.as_str()).collect();
    let forgets = |fault: &Fault| fault.loses_data() || fault.kind == "reset";
    if told.len() < 2 || history.blame(story, (story.slot.start(), history.horizon), forgets).is_some() {
        return Vec::new();
    }
    let message = format!("it was told as {}", told.into_iter().collect::<Vec<_>>().join(" and as "));
    vec![finding("two-verdicts", story, message, story.verdicts.iter().map(|(_, _, line)| line))]
}

/// I2. A store that lost what it knew may grant a number again.
fn same_attempt_twice(history: &History, story: &Story) -> Vec<Finding> {
    let mut found = Vec::new();
    let guarded: Vec<&Run> = story.runs.iter().filter(|run| run.guarded).collect();
    for (index, later) in guarded.iter().enumerate() {
        let Some(earlier) = guarded.iter().take(index).find(|run| run.attempt == later.attempt) else { continue };
        if history.blame(story, (earlier.start, later.start), Fault::loses_data).is_some() {
            continue;
        }
        let restored = earlier.trouble.contains(&"lease restored") || later.trouble.contains(&"lease restored");
        if !restored {
            let message = format!("{} and {} have the same number", earlier.words(), later.words());
            found.push(finding("same-attempt-twice", story, message, earlier.lines.iter().chain(&later.lines)));
        }
    }
    found
}

/// A run that the job recorded and no journal told of. Its node may have died before the line was written.
fn unknown_run(history: &History, story: &Story) -> Vec<Finding> {
    let unknown = story.runs.iter().filter(|run| run.instance.is_none() && !may_be_untold(history, run));
    unknown
        .map(|run| finding("untold-run", story, format!("no journal tells of {}", run.words()), &run.lines))
        .collect()
}

fn may_be_untold(history: &History, run: &Run) -> bool {
    let mut own = history.instances.iter().filter(|instance| instance.node == run.node).peekable();
    let around = |died| run.start <= died + TO_START && died <= run.start + TO_START;
    own.peek().is_none() || own.any(|instance| instance.dropped || instance.died.is_some_and(around))
}

fn strays(history: &History) -> Vec<Finding> {
    let known = |run: &&super::RecordedRun| history.instances.iter().any(|instance| instance.node == run.node);
    let strays = history.strays.iter().filter(known);
    strays
        .map(|run| Finding {
            rule: "untold-run",
            slot: format!("{}@{}", run.job, run.slot),
            message: format!("no journal tells of attempt {} on {}, nor of its slot", run.attempt, run.node),
            lines: vec![run.source.clone()],
        })
        .collect()
}

/// I2 over all slots of a job: by the store's clock, a later grant has the larger fence.
fn fences(history: &History) -> Vec<Finding> {
    let mut grants: BTreeMap<&JobName, Vec<(&Grant, u64, &Story)>> = BTreeMap::new();
    for story in history.stories.values() {
        let own = grants.entry(story.slot.job()).or_default();
        own.extend(story.grants.iter().map(|grant| (grant, fence(story, grant), story)));
    }
    let mut found = Vec::new();
    for mut own in grants.into_values() {
        own.sort_by_key(|(grant, fence, _)| (grant.at, *fence));
        for pair in own.windows(2) {
            let [(before, old, _), (grant, new, story)] = pair else { continue };
            let forgets = |fault: &Fault| fault.loses_data();
            if new >= old && (new > old || before.token == grant.token) {
                continue;
            }
            if history.blame(story, (before.at.min(grant.at), grant.at), forgets).is_none() {
                let lines = line_of(history, before).chain(line_of(history, grant));
                let message = format!("the fence went from {old} to {new}");
                found.push(finding("fence-back", story, message, lines));
            }
        }
    }
    found
}

/// The fence that the run was told; by its rule where no run began.
fn fence(story: &Story, grant: &Grant) -> u64 {
    let own = |run: &&Run| run.instance == Some(grant.instance) && run.attempt == grant.attempt;
    story.runs.iter().find(own).map_or(story.slot.fence(grant.attempt).0, |run| run.fence)
}

fn line_of<'a>(history: &'a History, grant: &Grant) -> impl Iterator<Item = &'a String> + use<'a> {
    history.heard.get(grant.line).map(|heard| &heard.told.source).into_iter()
}
