//! The runs of jobs that share locks, laid on the timetable: whether each may still begin in its slot, if all those before it take their
//! whole timeout. One attempt each, and every one in the order of its ticks, as locks are held.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::clock::later;
use crate::config::context::Context;
use crate::config::draft::Draft;
use crate::config::notation::format_duration;
use crate::job::{Concurrency, LockName};
use crate::resource::Demand;

/// So far the timetable is looked at: a week, and a day more for those who begin late.
const AHEAD: TimeDelta = TimeDelta::days(8);
/// Slots of one job that are looked at.
const MOST_OF_A_JOB: usize = 400;
/// Slots that are looked at in all.
const MOST: usize = 20_000;
/// Findings of one kind about one lock; the jobs beyond are told in one more, however many they are.
pub(super) const MOST_TOLD: usize = 3;
/// Jobs that are named in one line.
const MOST_NAMED: usize = 4;

/// A run that asks for locks.
#[derive(Clone, Debug)]
struct PlannedUse<'a> {
    /// Whose it is: its place among the jobs.
    job: usize,
    /// When it asks.
    at: DateTime<Utc>,
    /// It has to begin before that.
    begins_by: DateTime<Utc>,
    /// Why.
    bound: Bound,
    /// How long it holds them at the most.
    lasts: Duration,
    /// It is stopped by then.
    ends_by: Option<DateTime<Utc>>,
    demands: Vec<&'a Demand>,
}

/// What ends the wait for locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Slot,
    StartDeadline,
    LockWait,
}

/// A run that cannot begin in time where all before it take as long as they may.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MissedUse<'a> {
    job: usize,
    at: DateTime<Utc>,
    /// When it could begin.
    starts: DateTime<Utc>,
    begins_by: DateTime<Utc>,
    bound: Bound,
    /// Of the locks that it waits for, the one that is free last.
    lock: &'a LockName,
    /// The jobs before it in that queue, each once.
    before: Vec<usize>,
}

/// A run in a queue.
struct InQueue {
    job: usize,
    weight: u32,
    of: u32,
    until: DateTime<Utc>,
}

/// Each run that does not fit, in their order. Runs are given in the order in which they ask.
fn fit<'a>(uses: &[PlannedUse<'a>]) -> Vec<MissedUse<'a>> {
    let mut queues: BTreeMap<&LockName, Vec<InQueue>> = BTreeMap::new();
    let mut missed = Vec::new();
    for one in uses {
        let mut starts = one.at;
        let mut last = None;
        for demand in &one.demands {
            let queue = queues.entry(demand.lock()).or_default();
            queue.retain(|other| other.until > one.at);
            let free = free(queue, demand, one.at);
            if free > starts {
                (starts, last) = (free, Some(demand.lock()));
            }
        }
        let fits = starts < one.begins_by;
        if let Some(lock) = last.filter(|_| !fits) {
            let PlannedUse { job, at, begins_by, bound, .. } = *one;
            let mut before: Vec<usize> = Vec::new();
            for other in queues.get(lock).into_iter().flatten() {
                if !before.contains(&other.job) {
                    before.push(other.job);
                }
            }
            missed.push(MissedUse { job, at, starts, begins_by, bound, lock, before });
        }
        let over = if fits { later(starts, one.lasts) } else { one.begins_by };
        let until = one.ends_by.map_or(over, |ends_by| over.min(ends_by));
        for demand in &one.demands {
            let entry = InQueue { job: one.job, weight: demand.weight(), of: demand.of(), until };
            queues.entry(demand.lock()).or_default().push(entry);
        }
    }
    missed
}

/// When the demand would hold: it and all before it that are still there weigh no more than the smallest limit among them.
fn free(queue: &[InQueue], demand: &Demand, at: DateTime<Utc>) -> DateTime<Utc> {
    let (mut weight, mut least) = (u64::from(demand.weight()), demand.of());
    let mut by_end: Vec<&InQueue> = queue.iter().collect();
    by_end.sort_by_key(|other| std::cmp::Reverse(other.until));
    // From the last one to go: the first with whom it does not fit has to be gone.
    for other in by_end {
        weight += u64::from(other.weight);
        least = least.min(other.of);
        if weight > u64::from(least) {
            return other.until;
        }
    }
    at
}

/// Tells of each job that may not begin in its slot, the first time.
pub(super) fn check(ctx: &Context<'_>, drafts: &[&Draft]) {
    let each = MOST_OF_A_JOB.min(MOST / drafts.len().max(1));
    let now = ctx.env.now();
    let until = now.checked_add_signed(AHEAD).unwrap_or(now);
    let mut uses: Vec<PlannedUse<'_>> =
        drafts.iter().enumerate().flat_map(|(job, draft)| planned(job, draft, (now, until), each)).collect();
    uses.sort_by_key(|one| (one.at, drafts.get(one.job).map(|draft| &draft.spec.name)));
    let mut told = vec![false; drafts.len()];
    let mut of_lock: BTreeMap<&LockName, Vec<&Draft>> = BTreeMap::new();
    let hint = "shorten the timeouts, move a schedule, or give it a longer slot (one attempt each was counted)";
    for missed in fit(&uses) {
        let (Some(draft), Some(told)) = (drafts.get(missed.job), told.get_mut(missed.job)) else { continue };
        // Of a job that holds itself up its timeout and its slot are told.
        if *told || missed.before == [missed.job] && draft.spec.policy.concurrency == Concurrency::Forbid {
            continue;
        }
        *told = true;
        let of_lock = of_lock.entry(missed.lock).or_default();
        of_lock.push(draft);
        if of_lock.len() <= MOST_TOLD {
            ctx.warn("locks-do-not-fit", draft.place_or_name("locks"), words(drafts, draft, &missed), hint);
        }
    }
    for (lock, missed) in of_lock {
        let rest = missed.get(MOST_TOLD..).unwrap_or_default();
        if let Some(first) = rest.first() {
            let plural = if rest.len() == 1 { "job that names" } else { "jobs that name" };
            let message = format!(
                "{} more {plural} {lock} may not begin before the end of the slot either: {}",
                rest.len(),
                some_of(rest)
            );
            ctx.warn("locks-do-not-fit", first.place_or_name("locks"), message, hint);
        }
    }
}

/// The names of some jobs, and how many more there are.
pub(super) fn some_of(drafts: &[&Draft]) -> String {
    let more = drafts.len().saturating_sub(MOST_NAMED);
    let names = drafts.iter().take(MOST_NAMED).map(|draft| draft.spec.name.to_string());
    listed(names.chain((more > 0).then(|| format!("{more} more"))).collect())
}

/// The runs of a job within a span; none of one that may last for ever.
fn planned<'a>(
    job: usize,
    draft: &'a Draft,
    (from, to): (DateTime<Utc>, DateTime<Utc>),
    most: usize,
) -> Vec<PlannedUse<'a>> {
    let policy = &draft.spec.policy;
    let (Some(timetable), Some(timeout)) = (&draft.timetable, policy.timeout) else { return Vec::new() };
    let demands: Vec<&Demand> = policy.locks.iter().flatten().collect();
    let slots = timetable.slots(from, to).take(most);
    let mut uses: Vec<PlannedUse<'_>> = slots
        .map(|(slot, tick)| {
            let at = timetable.fire_at(tick, &slot);
            let bounds = [
                (Some(slot.end()), Bound::Slot),
                (policy.start_deadline.map(|deadline| later(tick, deadline)), Bound::StartDeadline),
                (policy.lock_wait.map(|wait| later(at, wait)), Bound::LockWait),
            ];
            let least = bounds.into_iter().filter_map(|(by, bound)| Some((by?, bound))).min_by_key(|(by, _)| *by);
            let (begins_by, bound) = least.unwrap_or((slot.end(), Bound::Slot));
            PlannedUse { job, at, begins_by, bound, lasts: timeout, ends_by: None, demands: demands.clone() }
        })
        .collect();
    if policy.concurrency == Concurrency::Replace {
        // The next one's tick has it stopped.
        let mut next = None;
        for one in uses.iter_mut().rev() {
            one.ends_by = next.replace(one.at);
        }
    }
    uses
}

fn words(drafts: &[&Draft], draft: &Draft, missed: &MissedUse<'_>) -> String {
    let MissedUse { at, starts, begins_by, bound, lock, .. } = missed;
    let others = missed.before.iter().filter(|job| **job != missed.job).filter_map(|job| drafts.get(*job));
    let named: Vec<&Draft> = others.copied().collect();
    let more = Some(named.len().saturating_sub(MOST_NAMED)).filter(|more| *more > 0);
    let shown = |word: &dyn Fn(&Draft) -> String, rest: String| {
        let first = named.iter().take(MOST_NAMED).map(|draft| word(draft));
        listed(first.chain(more.map(|_| rest)).chain([word(draft)]).collect())
    };
    let name = &draft.spec.name;
    let names = shown(&|draft| draft.spec.name.to_string(), format!("{} more", more.unwrap_or_default()));
    let timeouts = shown(&timeout, "others".to_owned());
    let (share, plural) = if named.is_empty() { ("asks for", "a timeout") } else { ("share", "timeouts") };
    let ends = match bound {
        Bound::Slot => "its slot ends",
        Bound::StartDeadline => "its start_deadline passes",
        Bound::LockWait => "its lock_wait is over",
    };
    let day = at.format("%Y-%m-%d");
    let to_the_second = [at, starts, begins_by].into_iter().any(|instant| instant.timestamp() % 60 != 0);
    let clock = |instant: &DateTime<Utc>| {
        let form = match (instant.date_naive() == at.date_naive(), to_the_second) {
            (true, false) => "%H:%M",
            (true, true) => "%H:%M:%S",
            (false, false) => "%Y-%m-%d %H:%M",
            (false, true) => "%Y-%m-%d %H:%M:%S",
        };
        instant.format(form)
    };
    let (asks, starts, begins_by) = (clock(at), clock(starts), clock(begins_by));
    format!(
        "at {day} {asks} UTC {names} {share} {lock}: with {plural} of {timeouts} {name} starts at {starts}, and {ends} at {begins_by}"
    )
}

fn timeout(draft: &Draft) -> String {
    draft.spec.policy.timeout.map(format_duration).unwrap_or_default()
}

fn listed(mut words: Vec<String>) -> String {
    let last = words.pop().unwrap_or_default();
    if words.is_empty() { last } else { format!("{} and {last}", words.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minute)
    }

    /// Of a job: when it asks, by when it has to begin, how long it lasts, and for what.
    type Row = (usize, i64, i64, u64, &'static str);

    fn missed(rows: &[Row]) -> Vec<(usize, i64, Vec<usize>)> {
        let demands: Vec<Vec<Demand>> =
            rows.iter().map(|row| row.4.split(' ').map(|demand| demand.parse().unwrap()).collect()).collect();
        let uses: Vec<PlannedUse<'_>> = rows
            .iter()
            .zip(&demands)
            .map(|((job, asks, by, lasts, _), demands)| PlannedUse {
                job: *job,
                at: at(*asks),
                begins_by: at(*by),
                bound: Bound::Slot,
                lasts: Duration::from_secs(lasts * 60),
                ends_by: None,
                demands: demands.iter().collect(),
            })
            .collect();
        let minute = |instant: DateTime<Utc>| (instant - DateTime::UNIX_EPOCH).num_minutes();
        fit(&uses).into_iter().map(|miss| (miss.job, minute(miss.starts), miss.before)).collect()
    }

    #[test]
    fn runs_that_share_a_lock_follow_each_other_and_the_one_that_begins_too_late_is_missed() {
        let three = |last: i64| [(0, 0, 60, 30, "db"), (1, 0, 60, 40, "db"), (2, 0, last, 30, "db")];
        assert_eq!(missed(&three(60)), [(2, 70, vec![0, 1])]);
        assert_eq!(missed(&three(70)), [(2, 70, vec![0, 1])], "it has to begin before that");
        assert_eq!(missed(&three(71)), []);
    }

    #[test]
    fn what_is_held_together_does_not_wait_and_the_smallest_limit_counts() {
        let two = |a, b| missed(&[(0, 0, 60, 90, a), (1, 10, 60, 90, b)]);
        for (a, b) in [("db:shared", "db:shared"), ("db:1/2", "db:1/2"), ("db:1/3", "db:2/3"), ("a", "b")] {
            assert_eq!(two(a, b), [], "{a} and {b}");
        }
        for (a, b) in [("db", "db:shared"), ("db:shared", "db"), ("db:2/3", "db:2/3"), ("db:2/4", "db:1/2")] {
            assert_eq!(two(a, b), [(1, 90, vec![0])], "{a} and {b}");
        }
    }

    #[test]
    fn who_waits_stands_before_who_asks_later() {
        // The second waits for the whole pool, and the third could have had a part of it.
        let rows = [(0, 0, 60, 50, "db:1/4"), (1, 1, 60, 50, "db:4/4"), (2, 2, 60, 50, "db:1/4")];
        assert_eq!(missed(&rows), [(2, 100, vec![0, 1])]);
    }

    #[test]
    fn who_has_left_in_vain_is_in_nobodys_way() {
        let rows = [(0, 0, 60, 90, "db"), (1, 10, 60, 90, "db"), (2, 70, 120, 10, "db")];
        assert_eq!(missed(&rows), [(1, 90, vec![0])]);
    }

    #[test]
    fn of_several_locks_the_one_that_is_free_last_counts() {
        let rows = [(0, 0, 60, 20, "a"), (1, 0, 60, 70, "b"), (2, 5, 60, 10, "a b c")];
        assert_eq!(missed(&rows), [(2, 70, vec![1])]);
        let early = [(0, 0, 60, 20, "a"), (1, 0, 60, 50, "b"), (2, 5, 60, 20, "a b"), (3, 6, 65, 5, "a")];
        assert_eq!(missed(&early), [(3, 70, vec![0, 2])], "nobody overtakes in one of them");
    }

    #[test]
    fn a_job_that_holds_itself_up_is_its_own_cause() {
        assert_eq!(missed(&[(0, 0, 10, 25, "db"), (0, 10, 20, 25, "db")]), [(0, 25, vec![0])]);
        assert_eq!(missed(&[(0, 0, 10, 15, "db:1/2"), (0, 10, 20, 15, "db:1/2")]), []);
    }

    #[test]
    fn one_that_is_replaced_ends_with_its_successors_tick() {
        let demand: Demand = "db".parse().unwrap();
        let one = |job, minute, ends_by: Option<i64>| PlannedUse {
            job,
            at: at(minute),
            begins_by: at(minute + 10),
            bound: Bound::Slot,
            lasts: Duration::from_secs(3_600),
            ends_by: ends_by.map(at),
            demands: vec![&demand],
        };
        assert_eq!(fit(&[one(0, 0, Some(11)), one(1, 5, None)]), []);
        assert_eq!(fit(&[one(0, 0, None), one(1, 5, None)]).len(), 1);
    }
}
