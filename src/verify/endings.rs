//! What is told of the end of a run, and what the store has of it: done rests on a success (I7), a success is recorded (I3),
//! and who lives tells how its runs ended.

use chrono::{DateTime, Utc};

use crate::clock::later;
use crate::slot::Verdict;
use crate::verify::chance::Service;
use crate::verify::explain::time;
use crate::verify::fault::Fault;
use crate::verify::history::{History, LATENESS};
use crate::verify::report::{Finding, finding};
use crate::verify::run::{Grant, Run};
use crate::verify::story::Story;

impl History {
    /// Whether the store did not know at an instant how a run had ended, and its node had had no time to tell it.
    pub(super) fn is_unsettled_at(&self, story: &Story, run: &Run, at: DateTime<Utc>) -> bool {
        let Some(index) = run.instance.filter(|_| run.settled.is_none()) else { return false };
        let in_touch = |end| self.longest_service(story, Service::Telling(index), (end, at));
        run.end.is_none_or(|end| in_touch(end) < self.aftermath(story))
    }

    /// Whether the node of a run lived on, or left as it should, and never said how the run ended. One that still runs is
    /// spoken of at each renewal.
    pub(super) fn owes_an_end(&self, story: &Story, run: &Run) -> bool {
        let Some((index, instance)) = run.instance.and_then(|index| Some((index, self.instances.get(index)?))) else {
            return false;
        };
        if run.outcome.is_some() || instance.died.is_some() || instance.lacks_lines(run.start, self.horizon) {
            return false;
        }
        let spoke = story.last_word_of(index).unwrap_or(run.start);
        let fell_silent = run.guarded && run.trouble.is_empty() && later(spoke, self.aftermath(story)) < instance.last;
        instance.stopped || fell_silent
    }
}

/// A run began, and its node lived on without a word of its end.
pub(super) fn run_without_end(history: &History, story: &Story) -> Vec<Finding> {
    let owing = story.runs.iter().filter(|run| history.owes_an_end(story, run));
    owing
        .map(|run| finding("run-without-end", story, format!("nobody told how {} ended", run.words()), &run.lines))
        .collect()
}

/// I7. A run whose end nobody could tell may have succeeded; and so may one of which not even the start was told.
pub(super) fn done_without_success(history: &History, story: &Story) -> Vec<Finding> {
    let mut found = settled_unseen(history, story);
    let may_have = |run: &Run| run.outcome.is_none() || run.succeeded();
    let unseen = story.runs.is_empty() && story.done_by.as_ref().is_some_and(|by| !history.knows(by));
    let said = |fault: &Fault| fault.kind == "mark_done";
    let told = story.done_at.unwrap_or(history.horizon);
    let excused = || {
        // Of a journal that does not begin with its node's start.
        !story.settled_unseen.is_empty()
            || history.lines_are_missing(story.slot.start(), told)
            || story.grants.iter().any(|grant| may_have_begun(history, story, grant))
            || history.blame(story, (story.slot.start(), history.horizon), said).is_some()
    };
    if story.done && found.is_empty() && !unseen && !story.runs.iter().any(may_have) && !excused() {
        let message = format!("it is done, and none of its {} runs succeeded", story.runs.len());
        found.push(finding("done-without-success", story, message, &story.lines));
    }
    found
}

/// A success was recorded by a node that never told of the run.
fn settled_unseen(history: &History, story: &Story) -> Vec<Finding> {
    let whole = |index: usize, at| history.instances.get(index).is_some_and(|instance| instance.is_whole_until(at));
    let unseen = story.settled_unseen.iter().filter(|(index, at, _)| whole(*index, *at));
    unseen
        .map(|(_, at, line)| {
            let message = format!("a success was recorded at {}, and no run of it was told", time(*at));
            finding("done-without-success", story, message, [line])
        })
        .collect()
}

/// A grant of which no run was told: its node died, or lost lines, before it can have told.
fn may_have_begun(history: &History, story: &Story, grant: &Grant) -> bool {
    let begun = story.runs.iter().any(|run| run.instance == Some(grant.instance) && run.attempt == grant.attempt);
    let Some(instance) = history.instances.get(grant.instance).filter(|_| !begun) else { return false };
    let near = (grant.at, later(grant.at, history.aftermath(story)));
    instance.lacks_lines(near.0, near.1) || instance.died.is_some_and(|died| died <= near.1)
}

/// I3: what succeeded is recorded as done, unless its node died first or the store was away too long, which is told.
pub(super) fn success_without_done(history: &History, story: &Story) -> Vec<Finding> {
    story.runs.iter().filter(|run| run.succeeded()).filter_map(|run| undone(history, story, run)).collect()
}

fn undone(history: &History, story: &Story, run: &Run) -> Option<Finding> {
    let span = (run.start, history.horizon.max(story.slot.end()));
    let blamed = || history.blame(story, span, Fault::loses_data).is_some();
    if run.settled.is_none() {
        let given_up = run.trouble.contains(&"settlement given up");
        let open =
            !history.is_over(story) || history.death_of(story, run).is_some() || leaves_early(history, story, run);
        let message = || format!("{} succeeded, and that was never recorded", run.words());
        let excused = open || given_up || history.lines_are_missing_after(run) || blamed();
        return (!excused).then(|| finding("success-without-done", story, message(), &run.lines));
    }
    // Two answers can overtake each other on their way: who stood still through its lease asks for the verdict of its own slot and
    // settles it in the same moment.
    let settled = run.settled.map(|settled| later(settled, LATENESS + history.allowance));
    let after = |(at, verdict, _): &&(_, Verdict, String)| settled < Some(*at) && *verdict != Verdict::Done;
    let (_, verdict, line) = story.verdicts.iter().find(after).filter(|_| !blamed())?;
    let message = format!("{} was recorded as done, and then the slot as {}", run.words(), verdict.as_str());
    Some(finding("success-without-done", story, message, run.lines.iter().chain([line])))
}

/// The run's node said that it was leaving, and its words end before it had time to tell the store. Who leaves as it should
/// says what it has given up.
fn leaves_early(history: &History, story: &Story, run: &Run) -> bool {
    let instance = run.instance.and_then(|index| history.instances.get(index));
    instance.is_some_and(|node| node.left.is_some() && !node.stopped && history.is_unsettled_at(story, run, node.last))
}
