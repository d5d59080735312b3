//! What may never be, whatever faults there were; a rule says by itself which faults it bears.
//! What is told of the end of a run, and what the store has of it, is among them: done rests on a success (I7), a success is recorded
//! (I3), and who lives tells how its runs ended.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};

use crate::clock::later;
use crate::job::JobName;
use crate::slot::{Slot, Verdict};
use crate::verify::availability::Service;
use crate::verify::explain::time;
use crate::verify::history::{History, LATENESS, TO_CLOSE};
use crate::verify::inputs::InjectedFault;
use crate::verify::lock_rules;
use crate::verify::node_run::NodeRun;
use crate::verify::recovery;
use crate::verify::report::{Finding, finding};
use crate::verify::run::{GIVEN_UP, Grant, JournalRun};
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
        run_without_end,
        no_verdict,
        two_verdicts,
        same_attempt_twice,
        unknown_run,
        lock_rules::run_without_locks,
    ];
    rules.iter().flat_map(|rule| rule(history, story)).chain(recovery::late(history, story)).collect()
}

/// Every rule that concerns more than one slot.
pub(super) fn of_all(history: &History) -> Vec<Finding> {
    let of_locks = lock_rules::of_all(history);
    fences(history).into_iter().chain(strays(history)).chain(unjudged(history)).chain(of_locks).collect()
}

/// What is not judged is not silent.
fn unjudged(history: &History) -> Option<Finding> {
    let most = history.unjudged?;
    let message =
        format!("more than {most} slots were planned, and only so many are judged: give journals of a shorter time");
    Some(Finding { rule: "too-many-slots", slot: "(all)".to_owned(), message, lines: Vec::new() })
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
        } else if grant.at >= end && !grant.past {
            found.push(finding("late-start", story, format!("{words}, when the slot was over"), lines));
        }
    }
    for run in story.runs.iter().filter(|run| !run.grant.as_ref().is_some_and(|grant| grant.past)) {
        let words = format!("{} began at {}", run.words(), time(run.start));
        let excused = |fault: &InjectedFault| !fault.is_death();
        // Who runs without a guard has no other clock than its own.
        let own = run.instance.filter(|_| !run.guarded).and_then(|index| history.instances.get(index));
        let by_own = own.map_or(run.start, |instance| run.ordered + instance.ahead_at(run.ordered));
        if run.start.max(by_own) + CLOCKS < start {
            found.push(finding("early-start", story, format!("{words}, before the slot's start"), &run.lines));
        } else if run.start.min(by_own).min(by_a_clock_that_was_set(history, run))
            >= later(end + TO_START, history.allowance)
            && history.blame(story, (start, run.start), excused).is_none()
        {
            found.push(finding("late-start", story, format!("{words}, when the slot was over"), &run.lines));
        }
    }
    found
}

/// When a run began at the earliest, where its node's clock was set while it ran, as the node told: its lines are set right by one
/// difference, and there was another one. Between its grant, by the store's clock, and its start lies what its lines say.
fn by_a_clock_that_was_set(history: &History, run: &JournalRun) -> DateTime<Utc> {
    let own = run.instance.filter(|_| !run.measured).and_then(|index| history.instances.get(index));
    let least = run.grant.as_ref().and_then(|grant| {
        let told = history.heard.get(grant.line)?;
        Some(grant.at + (run.ordered - told.at))
    });
    let Some((own, least)) = own.zip(least) else { return run.start };
    let earliest = own.leads().map(|lead| (run.start - lead).max(least)).min();
    earliest.map_or(run.start, |earliest| earliest.min(run.start))
}

/// I5.
fn too_many_attempts(history: &History, story: &Story) -> Vec<Finding> {
    let Some(most) = story.max_attempts() else { return Vec::new() };
    let made = story.attempts_made();
    let forgiven = |fault: &InjectedFault| fault.loses_data() || fault.kind == "reset";
    let span = (story.slot.start(), story.slot.end());
    let counted_wrongly = story.grants.iter().any(|grant| grant.used > grant.max_attempts);
    // What never ran, or was given back without an answer, may have been refunded: the store's own count is looked at as well.
    let owed = story.attempts_run().saturating_sub(story.attempts_of_past());
    let too_many = owed > usize::try_from(most).unwrap_or(usize::MAX);
    if !(too_many || counted_wrongly) || history.blame(story, span, forgiven).is_some() {
        return Vec::new();
    }
    let message = format!("{made} attempts were granted and {most} is the maximum");
    vec![finding("too-many-attempts", story, message, story.grants.iter().flat_map(|grant| line_of(history, grant)))]
}

/// L2. Somebody has to have been there, and in touch, for long enough: right after the end, or at any time thereafter.
fn no_verdict(history: &History, story: &Story) -> Vec<Finding> {
    if story.verdict().is_some()
        || !history.is_over(story)
        || !(is_owed_at_once(history, story) || is_owed_later(history, story))
    {
        return Vec::new();
    }
    let end = time(story.slot.end());
    vec![finding("no-verdict", story, format!("it ended at {end} without a verdict"), &story.lines)]
}

fn is_owed_at_once(history: &History, story: &Story) -> bool {
    let end = history.closable(story);
    let by = later(end, history.aftermath(story));
    history.somebody_serves(story, Service::Closing, (end, by))
        && !history.lines_are_missing(end, later(by, TO_CLOSE))
        && history.blame(story, (story.slot.start(), by), |_| true).is_none()
}

/// Whatever disturbed the end of the slot, the nodes go on asking until they have the verdict. What nobody can mend: the
/// store forgot that there was something to close, or who had closed it left or died without telling.
fn is_owed_later(history: &History, story: &Story) -> bool {
    let (start, end) = (story.slot.start(), history.closable(story));
    let long = history.aftermath(story) + TO_CLOSE;
    let Some(by) = history.has_served(story, Service::Closing, (end, history.horizon), long) else { return false };
    let gone = |instance: &NodeRun| {
        // Who leaves goes on closing until it is gone.
        let last = [instance.left, instance.died, instance.stopped.then_some(instance.last)];
        last.into_iter().flatten().any(|last| (story.slot.end()..=by).contains(&last))
    };
    let forgets = |fault: &InjectedFault| fault.loses_data() || fault.is_death() || fault.kind == "reset";
    !history.instances.iter().any(gone)
        && !history.lines_are_missing(end, by)
        && history.blame_anybody(story, (start, by), forgets).is_none()
}

/// A late success may turn `missed` into `done`, and a run of the past that a person asked for may follow a reset, which takes the verdict;
/// nothing else changes it.
fn two_verdicts(history: &History, story: &Story) -> Vec<Finding> {
    let told: BTreeSet<&str> =
        story.verdicts.iter().filter(|(_, verdict, _)| *verdict != Verdict::Done).map(|(_, v, _)| v.as_str()).collect();
    let forgets = |fault: &InjectedFault| fault.loses_data() || fault.kind == "reset";
    let before = |at: DateTime<Utc>| story.first_of_past().is_none_or(|first| at < first);
    let parted = [true, false].map(|is_before| {
        let told =
            story.verdicts.iter().filter(|(at, verdict, _)| *verdict != Verdict::Done && before(*at) == is_before);
        told.map(|(_, verdict, _)| verdict.as_str()).collect::<BTreeSet<_>>().len()
    });
    if parted.into_iter().all(|told| told < 2)
        || history.blame(story, (story.slot.start(), history.horizon), forgets).is_some()
    {
        return Vec::new();
    }
    let message = format!("it was told as {}", told.into_iter().collect::<Vec<_>>().join(" and as "));
    vec![finding("two-verdicts", story, message, story.verdicts.iter().map(|(_, _, line)| line))]
}

/// I2. A store that lost what it knew may grant a number again.
fn same_attempt_twice(history: &History, story: &Story) -> Vec<Finding> {
    let mut found = Vec::new();
    let guarded: Vec<&JournalRun> = story.runs.iter().filter(|run| run.guarded).collect();
    for (index, later) in guarded.iter().enumerate() {
        let Some(earlier) = guarded.iter().take(index).find(|run| run.attempt == later.attempt) else { continue };
        if history.blame(story, (earlier.start, later.start), InjectedFault::loses_data).is_some() {
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

fn may_be_untold(history: &History, run: &JournalRun) -> bool {
    let mut own = history.instances.iter().filter(|instance| instance.node == run.node).peekable();
    let around = |died| run.start <= died + TO_START && died <= run.start + TO_START;
    let lost = |instance: &NodeRun| instance.lacks_lines(run.start - TO_START, run.start + TO_START);
    own.peek().is_none() || own.any(|instance| lost(instance) || instance.died.is_some_and(around))
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

/// A grant with its fence.
type FencedGrant<'a> = (&'a Grant, u64, &'a Story);

/// I2 over all slots of a job: by the store's clock, a later grant has the larger fence.
fn fences(history: &History) -> Vec<Finding> {
    // The fence of a slot that is over is smaller than that of the slots since: a grant of the past stands beside those of its slot alone.
    let mut grants: BTreeMap<(&JobName, Option<&Slot>), Vec<FencedGrant<'_>>> = BTreeMap::new();
    for story in history.stories.values() {
        let job = story.slot.job();
        for grant in &story.grants {
            let told = (grant, fence(story, grant), story);
            if story.grants.iter().any(|grant| grant.past) {
                grants.entry((job, Some(&story.slot))).or_default().push(told);
            }
            if !grant.past {
                grants.entry((job, None)).or_default().push(told);
            }
        }
    }
    let mut found = Vec::new();
    for mut own in grants.into_values() {
        own.sort_by_key(|(grant, fence, _)| (grant.at, *fence));
        for pair in own.windows(2) {
            let [(before, old, _), (grant, new, story)] = pair else { continue };
            let forgets = |fault: &InjectedFault| fault.loses_data();
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
    let own = |run: &&JournalRun| run.instance == Some(grant.instance) && run.attempt == grant.attempt;
    story.runs.iter().find(own).map_or(story.slot.fence(grant.attempt).0, |run| run.fence)
}

fn line_of<'a>(history: &'a History, grant: &Grant) -> impl Iterator<Item = &'a String> + use<'a> {
    history.heard.get(grant.line).map(|heard| &heard.told.source).into_iter()
}

impl History {
    /// Whether the store did not know at an instant how a run had ended, and its node had had no time to tell it.
    pub(super) fn is_unsettled_at(&self, story: &Story, run: &JournalRun, at: DateTime<Utc>) -> bool {
        let Some(index) = run.instance.filter(|_| run.settled.is_none()) else { return false };
        let in_touch = |end| self.longest_service(story, Service::Telling(index), (end, at));
        run.end.is_none_or(|end| in_touch(end) < self.aftermath(story))
    }

    /// Whether the node of a run lived on, or left as it should, and never said how the run ended. One that still runs is
    /// spoken of at each renewal.
    pub(super) fn owes_an_end(&self, story: &Story, run: &JournalRun) -> bool {
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
fn run_without_end(history: &History, story: &Story) -> Vec<Finding> {
    let owing = story.runs.iter().filter(|run| history.owes_an_end(story, run));
    owing
        .map(|run| finding("run-without-end", story, format!("nobody told how {} ended", run.words()), &run.lines))
        .collect()
}

/// I7. A run whose end nobody could tell may have succeeded; and so may one of which not even the start was told.
fn done_without_success(history: &History, story: &Story) -> Vec<Finding> {
    let mut found = settled_unseen(history, story);
    let may_have = |run: &JournalRun| run.outcome.is_none() || run.succeeded();
    let unseen = story.runs.is_empty() && story.done_by.as_ref().is_some_and(|by| !history.knows(by));
    let said = |fault: &InjectedFault| fault.kind == "mark_done";
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
fn success_without_done(history: &History, story: &Story) -> Vec<Finding> {
    story.runs.iter().filter(|run| run.succeeded()).filter_map(|run| undone(history, story, run)).collect()
}

fn undone(history: &History, story: &Story, run: &JournalRun) -> Option<Finding> {
    let span = (run.start, history.horizon.max(story.slot.end()));
    let blamed = || history.blame(story, span, InjectedFault::loses_data).is_some();
    if run.settled.is_none() {
        let given_up = run.trouble.contains(&GIVEN_UP);
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
fn leaves_early(history: &History, story: &Story, run: &JournalRun) -> bool {
    let instance = run.instance.and_then(|index| history.instances.get(index));
    instance.is_some_and(|node| node.left.is_some() && !node.stopped && history.is_unsettled_at(story, run, node.last))
}
