//! How late a slot was begun for the first time (L1): once its tick has fired, a node that is there and in touch with its
//! store for a lease, a look and a second has to begin it.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::clock::{between, later};
use crate::job::NodeName;
use crate::verify::explain::{seconds, time};
use crate::verify::history::{History, name};
use crate::verify::instance::{FIRST_LOOK, Instance};
use crate::verify::obstacle::What;
use crate::verify::report::Finding;
use crate::verify::story::Story;
use crate::verify::tenure::Tenure;

/// On top of a lease and a look, for those who wait to notice.
const NOTICING: Duration = Duration::from_secs(1);

/// Answers after which a node waits for something else than a lease of this slot, or leaves the slot alone.
const WAITS: &[&str] = &["paused", "blocked", "done", "exhausted", "backoff"];

/// The end of a disturbance is not part of it.
const EDGE: TimeDelta = TimeDelta::milliseconds(1);

/// The slot's first run began though a node could have begun it long before.
pub(super) fn late(history: &History, story: &Story) -> Option<Finding> {
    let first = story.runs.iter().min_by_key(|run| run.ordered)?;
    let poll = story.grants.iter().map(|grant| grant.poll).max().unwrap_or_default();
    let bound = story.lease_ttl() + poll + NOTICING + history.allowance;
    // Most slots end here: nothing is gathered for them.
    if first.ordered <= later(story.slot.start(), bound) || is_excused(history, story, first.ordered) {
        return None;
    }
    let plans = history.tenures.iter().filter(|tenure| tenure.is_of(story.slot.job()));
    let (since, node) = plans.filter_map(|tenure| able(history, story, tenure, (first.ordered, bound))).min()?;
    let took = seconds(between(since, first.ordered));
    let message = format!(
        "{} began {took} after {}, from when on {node} could have; the bound is {}",
        first.words(),
        time(since),
        seconds(bound)
    );
    Some(Finding { rule: "late-first-start", slot: name(&story.slot), message, lines: first.lines.clone() })
}

/// The answers were to wait for something else, the store failed, or somebody without a journal here held the slot.
fn is_excused(history: &History, story: &Story, begun: DateTime<Utc>) -> bool {
    let told_to_wait = WAITS.iter().any(|answer| story.before_any_run.contains(*answer));
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
    tenure: &Tenure,
    (begun, bound): (DateTime<Utc>, Duration),
) -> Option<(DateTime<Utc>, &'a NodeName)> {
    let instance = history.instances.get(tenure.instance).filter(|instance| !instance.clock_was_off())?;
    let fired = tenure.fires(&story.slot)?;
    let earliest = fired.max(tenure.from + FIRST_LOOK);
    // What a node did after it was last heard of is not known.
    let latest = begun.min(tenure.may_start_until(fired)).min(instance.last);
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

fn is_well(history: &History, instance: &Instance, (from, to): (DateTime<Utc>, DateTime<Utc>)) -> bool {
    instance.serves(from, to, history.horizon) && !instance.lacks_lines(from, to)
}

/// A fault was near, or a node died that may have held the slot without a word.
fn is_struck(history: &History, (from, to): (DateTime<Utc>, DateTime<Utc>), aftermath: Duration) -> bool {
    let died = |instance: &Instance| instance.died.is_some_and(|died| died <= to && later(died, aftermath) >= from);
    history.faults.iter().any(|fault| fault.strikes(from, to, aftermath)) || history.instances.iter().any(died)
}
