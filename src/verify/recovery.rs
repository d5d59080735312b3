//! How late a slot was begun: for the first time (L1), once its tick has fired, and again, after an attempt that failed or was lost.
//!
//! A node that is there and in touch with its store has a lease, a look and a second to begin it for the first time; after a crash a
//! lease and a second; after a failure that was reported the retry's delay and 100 ms. An attempt that waits for its locks has begun when
//! it was granted: from then on the queue decides.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::clock::{between, later};
use crate::job::NodeName;
use crate::machine::own_handicap;
use crate::reply::ClaimAnswer;
use crate::slot::Outcome;
use crate::verify::availability::What;
use crate::verify::explain::{seconds, time};
use crate::verify::history::{History, name};
use crate::verify::node_run::{Assignment, FIRST_LOOK, NodeRun};
use crate::verify::report::{Finding, Report};
use crate::verify::run::{CLOCKS, Grant, JournalRun};
use crate::verify::slot_locks::QueuedAttempt;
use crate::verify::story::Story;

/// On top of a lease and a look, for those who wait to notice.
const NOTICING: Duration = Duration::from_secs(1);

/// Answers after which a node waits for something else than a lease of this slot, or leaves the slot alone.
const WAITS: [ClaimAnswer; 5] =
    [ClaimAnswer::Paused, ClaimAnswer::Blocked, ClaimAnswer::Done, ClaimAnswer::Exhausted, ClaimAnswer::Backoff];

/// The end of a disturbance is not part of it.
const EDGE: TimeDelta = TimeDelta::milliseconds(1);

/// How an attempt began: its command, or its wait for locks.
struct Beginning {
    words: String,
    at: DateTime<Utc>,
    granted: Option<DateTime<Utc>>,
    lines: Vec<String>,
}

impl Beginning {
    fn of_a_run(run: &JournalRun) -> Self {
        let granted = run.grant.as_ref().map(|grant| grant.at);
        Self { words: run.words(), at: run.ordered, granted, lines: run.lines.clone() }
    }

    fn of_a_wait(history: &History, queued: &QueuedAttempt) -> Self {
        let node = history.instances.get(queued.instance).map_or("", |instance| instance.node.as_str());
        let words = format!("the wait for locks of attempt {} on {node}", queued.attempt);
        Self { words, at: queued.from, granted: Some(queued.from), lines: vec![queued.source.clone()] }
    }
}

/// The slot was first begun though a node could have begun it long before.
pub(super) fn late(history: &History, story: &Story) -> Option<Finding> {
    let run = story.runs.iter().min_by_key(|run| run.ordered)?;
    let queued = story.locks.first_after(None).filter(|queued| queued.from < run.ordered);
    let begun = queued.map_or(run.ordered, |queued| queued.from);
    let poll = story.grants.iter().map(|grant| grant.poll).max().unwrap_or_default();
    let bound = story.lease_ttl() + poll + NOTICING + history.allowance;
    // Most slots end here: nothing is gathered for them.
    if begun <= later(story.slot.start(), bound) || is_first_excused(history, story, begun) {
        return None;
    }
    let first = queued.map_or_else(|| Beginning::of_a_run(run), |queued| Beginning::of_a_wait(history, queued));
    let plans = history.assignments.iter().filter(|assignment| assignment.is_of(story.slot.job()));
    let (since, node) = plans.filter_map(|assignment| able(history, story, assignment, (begun, bound))).min()?;
    let took = seconds(between(since, begun));
    let message = format!(
        "{} began {took} after {}, from when on {node} could have; the bound is {}",
        first.words,
        time(since),
        seconds(bound)
    );
    Some(Finding { rule: "late-first-start", slot: name(&story.slot), message, lines: first.lines })
}

/// The answers were to wait for something else, the store failed, or somebody without a journal here held the slot.
fn is_first_excused(history: &History, story: &Story, begun: DateTime<Utc>) -> bool {
    let told_to_wait = WAITS.iter().any(|answer| story.before_any_run.contains(answer));
    let failed = story.obstacles.iter().any(|it| it.what == What::StoreFailed && it.from <= begun);
    let unknown = |node: &NodeName| !history.knows(node);
    told_to_wait
        || failed
        || story.start_deadline_passed.is_some()
        || story.shed_by.is_some()
        || story.held_before_any_run.iter().any(unknown)
}

/// Since when a node could have begun the slot, if that was for the whole bound before `begun`.
fn able<'a>(
    history: &'a History,
    story: &Story,
    assignment: &Assignment,
    (begun, bound): (DateTime<Utc>, Duration),
) -> Option<(DateTime<Utc>, &'a NodeName)> {
    let instance = history.instances.get(assignment.instance).filter(|instance| !instance.clock_was_off())?;
    let fired = assignment.owes(&story.slot)?;
    let earliest = fired.max(assignment.from + FIRST_LOOK);
    // What a node did after it was last heard of is not known.
    let latest = begun.min(assignment.may_start_until(fired)).min(instance.last);
    let aftermath = history.aftermath(story);
    let back = instance.away.iter().filter_map(|(_, back)| Some((*back)? + FIRST_LOOK + EDGE));
    let over = history.faults.iter().map(|fault| later(fault.until.unwrap_or(fault.at), aftermath) + EDGE);
    let deaths = history.instances.iter().filter_map(|other| Some(later(other.died?, aftermath) + EDGE));
    let mut instants: Vec<_> = back.chain(over).chain(deaths).chain([earliest]).filter(|at| *at >= earliest).collect();
    instants.sort();
    let well = |from: &DateTime<Utc>| {
        let to = later(*from, bound);
        to < latest
            && is_well(history, instance, (*from - FIRST_LOOK, to))
            && !is_struck(history, (*from, to), aftermath)
    };
    instants.into_iter().find(well).map(|since| (since, &instance.node))
}

fn is_well(history: &History, instance: &NodeRun, (from, to): (DateTime<Utc>, DateTime<Utc>)) -> bool {
    instance.serves(from, to, history.horizon) && !instance.lacks_lines(from, to)
}

/// A fault was near, or a node died that may have held the slot without a word.
fn is_struck(history: &History, (from, to): (DateTime<Utc>, DateTime<Utc>), aftermath: Duration) -> bool {
    let died = |instance: &NodeRun| instance.died.is_some_and(|died| died <= to && later(died, aftermath) >= from);
    history.faults.iter().any(|fault| fault.strikes(from, to, aftermath)) || history.instances.iter().any(died)
}

/// On top of a lease, for those who wait to notice that it lapsed.
const AFTER_A_CRASH: Duration = Duration::from_secs(1);
/// On top of the retry's delay.
const AFTER_A_FAILURE: Duration = Duration::from_millis(100);

/// Why and since when somebody else has to begin, and how soon.
struct Due {
    what: &'static str,
    since: DateTime<Utc>,
    bound: Duration,
}

/// Measures every recovery of a slot, and holds it to its bound where nothing excuses it.
pub(super) fn measure(history: &History, story: &Story, report: &mut Report) {
    for (index, run) in story.runs.iter().enumerate().filter(|(_, run)| run.guarded) {
        let Some(due) = due(history, story, run) else { continue };
        let next = next(history, story, run, story.runs.get(index + 1));
        let until = next.as_ref().map_or(later(due.since, due.bound), |next| next.at);
        if is_excused(history, story, run, &due, (next.as_ref(), until)) {
            continue;
        }
        let took = next.as_ref().map(|next| between(due.since, next.at));
        if let Some(took) = took {
            let recovery = &mut report.recovery;
            let latency = if due.what == "crash" { &mut recovery.crash } else { &mut recovery.failure };
            latency.add(name(&story.slot), took, due.bound);
        }
        if took.is_none() && !is_owed(story, run, until) {
            continue;
        }
        if took.is_none_or(|took| took > due.bound) {
            report.violations.push(finding(story, run, &due, next.as_ref()));
        }
    }
}

/// The attempt that was granted next: runs that follow each other closely may be told in another order, by clocks that differ. Without
/// one, the run that `follows`.
fn next(history: &History, story: &Story, run: &JournalRun, follows: Option<&JournalRun>) -> Option<Beginning> {
    let granted = |run: &JournalRun| run.grant.as_ref().map(|grant| grant.at);
    let later = story.runs.iter().filter(|other| granted(other) > granted(run));
    let next = later.min_by_key(|other| granted(other)).or(follows).map(Beginning::of_a_run);
    // By the store's clock, as grants are.
    let queued = granted(run).and_then(|granted| story.locks.first_after(Some(granted)));
    let queued = queued.map(|queued| Beginning::of_a_wait(history, queued));
    [next, queued].into_iter().flatten().min_by_key(|beginning| beginning.at)
}

fn due(history: &History, story: &Story, run: &JournalRun) -> Option<Due> {
    let grant = run.grant.as_ref()?;
    if let Some(died) = history.death_of(story, run) {
        let known = run.instance.and_then(|index| history.instances.get(index)).is_some_and(|node| node.death_is_known);
        // A node that was last heard of at one renewal may have died just after the next one.
        let unheard = if known { Duration::ZERO } else { grant.lease_ttl / 3 };
        // It recorded the failure, and died before it wrote that into its journal.
        let retry = if run.retry_was_waited_for { grant.retry_delay + grant.poll } else { Duration::ZERO };
        let bound = grant.lease_ttl + unheard + retry + AFTER_A_CRASH + history.allowance;
        return Some(Due { what: "crash", since: died.max(run.start), bound });
    }
    let reported = matches!(run.outcome, Some(Outcome::Failure | Outcome::Timeout | Outcome::Killed));
    let trouble = !run.trouble.is_empty();
    let since = run.settled.filter(|_| reported && !trouble)?;
    let bound = grant.retry_delay + grant.poll + AFTER_A_FAILURE + history.allowance;
    Some(Due { what: "failure", since, bound })
}

/// Nobody was there to begin, something else went wrong too, or the answers were to wait for something else.
fn is_excused(
    history: &History,
    story: &Story,
    run: &JournalRun,
    due: &Due,
    (next, to): (Option<&Beginning>, DateTime<Utc>),
) -> bool {
    let from = due.since;
    let own_death = |target: &str, at: DateTime<Utc>| target == run.node.as_str() && at <= later(from, AFTER_A_CRASH);
    let other = history.faults.iter().any(|fault| {
        fault.strikes(from, to, history.aftermath(story)) && !(fault.is_death() && own_death(&fault.target, fault.at))
    });
    let lasts = (story.lease_ttl(), history.aftermath(story));
    let kept = story.obstacles.iter().any(|it| !matches!(it.what, What::Held(_)) && it.strikes((from, to), lasts));
    // The grant of the next one uses an attempt up, and the question is who could have had it.
    let until = next.and_then(|next| next.granted).map_or(to, |granted| to.min(granted - TimeDelta::milliseconds(1)));
    let nobody = !history.somebody_could_claim(
        story,
        (from, until),
        due.bound,
        &who_waits_longer(history, story, run, (due, to)),
    );
    other || kept || nobody || story.start_deadline_passed.is_some() || story.shed_by.is_some()
}

/// The run's own node; and those that still wait at the end of the span, for longer than the others do, because a run of
/// their own had failed before.
fn who_waits_longer(
    history: &History,
    story: &Story,
    run: &JournalRun,
    (due, to): (&Due, DateTime<Utc>),
) -> Vec<usize> {
    let waits_until = |other: &JournalRun| {
        let grant = other.grant.as_ref().filter(|_| other.failed())?;
        let poll = Some(grant.poll).filter(|poll| !poll.is_zero());
        let wait = grant.retry_delay + own_handicap(grant.retry_delay, poll);
        // As far as clocks that differ a little can say.
        let settled = other.settled.filter(|settled| *settled <= later(due.since, CLOCKS))?;
        Some(later(settled, wait + AFTER_A_FAILURE + history.allowance))
    };
    let longer = |other: &&JournalRun| waits_until(other).is_some_and(|until| to <= until);
    story.runs.iter().filter(longer).chain([run]).filter_map(|run| run.instance).collect()
}

/// Whether there had to be another attempt: the slot lasted, attempts were left, and nobody had done it.
fn is_owed(story: &Story, run: &JournalRun, until: DateTime<Utc>) -> bool {
    let left = |grant: &Grant| grant.used < grant.max_attempts;
    until < story.slot.end() && run.grant.as_ref().is_some_and(left) && !story.done
}

fn finding(story: &Story, run: &JournalRun, due: &Due, next: Option<&Beginning>) -> Finding {
    let (what, since, bound) = (due.what, time(due.since), seconds(due.bound));
    let after = format!("after the {what} of {} at {since}", run.words());
    let message = match next {
        Some(next) => {
            format!("{} began {} {after}; the bound is {bound}", next.words, seconds(between(due.since, next.at)))
        }
        None => format!("nobody began {after}; the bound is {bound}"),
    };
    let lines = run.lines.iter().chain(next.into_iter().flat_map(|next| &next.lines)).cloned().collect();
    Finding { rule: "late-recovery", slot: name(&story.slot), message, lines }
}
