//! Why a slot was not done just once: the reasons that the protocol knows, each resting on a line or on a fault.

use chrono::{DateTime, Utc};

use crate::clock::{between, later};
use crate::slot::{Outcome, Verdict};
use crate::verify::availability::{Obstacle, Service, What};
use crate::verify::history::{History, LATENESS};
use crate::verify::inputs::InjectedFault;
use crate::verify::node_run::NodeRun;
use crate::verify::run::{CLOCKS, JournalRun};
use crate::verify::story::Story;

/// A reason.
pub(super) enum Reason<'a> {
    /// Somebody told of it.
    Told(String),
    Fault(&'a InjectedFault),
}

impl Reason<'_> {
    /// For people.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Told(words) => words.clone(),
            Self::Fault(fault) => fault.words(),
        }
    }

    /// Nothing else explains it than that the store forgot.
    pub(super) fn is_loss_of_data(&self) -> bool {
        matches!(self, Self::Fault(fault) if fault.loses_data())
    }
}

/// Why `b` was started though `a` had been, and the two did not overlap.
pub(super) fn again<'a>(history: &'a History, story: &Story, a: &JournalRun, b: &JournalRun) -> Option<Reason<'a>> {
    if a.failed() {
        let outcome = a.outcome.map_or("failure", Outcome::as_str);
        return Some(Reason::Told(format!("{} ended with {outcome}", a.words())));
    }
    if let Some(died) = history.death_of(story, a).filter(|died| *died <= later(b.start, CLOCKS)) {
        return Some(Reason::Told(format!("{} died at {} under {}", a.node, time(died), a.words())));
    }
    if let Some(done) = done_before(a, b) {
        return history.taken_back(story, (done, b.start)).map(Reason::Fault);
    }
    if let Some(trouble) = trouble(a, b) {
        return Some(Reason::Told(trouble));
    }
    // Who is granted the slot while another holds it, or has done it, need not be ailing: the other one is, or the store.
    let ailing = [&a.node];
    let nodes = if b.attempt > a.attempt { &ailing[..] } else { &[&a.node, &b.node] };
    history.blame_on(story, nodes, (a.start, b.start), InjectedFault::allows_repeat).map(Reason::Fault)
}

/// When the store had acknowledged that `a` did the work, if that was before it granted `b`. Done is absorbing (I3): no
/// trouble with a node or a link explains `b` then. One without a guard asked nobody.
fn done_before(a: &JournalRun, b: &JournalRun) -> Option<DateTime<Utc>> {
    let done = a.settled.filter(|_| a.succeeded() && b.guarded)?;
    let granted = b.grant.as_ref().map_or(b.ordered, |grant| grant.at);
    (later(done, CLOCKS) < granted).then_some(done)
}

/// Why `a` and `b` ran at the same time. Nothing excuses an overlap in silence, and where the job asks for the older run
/// to be killed only a node that could not act does.
pub(super) fn overlap<'a>(history: &'a History, story: &Story, a: &JournalRun, b: &JournalRun) -> Option<Reason<'a>> {
    let fault = |fits: &dyn Fn(&InjectedFault) -> bool| history.blame(story, (a.start, b.start), fits);
    if a.is_killed_when_lost() && a.guarded && b.guarded {
        let stood_still = a.instance.and_then(|index| history.instances.get(index)).is_some_and(|instance| {
            instance.gaps.iter().any(|gap| *gap >= a.start && *gap <= later(b.start, history.aftermath(story)))
        });
        if stood_still {
            return Some(Reason::Told(format!("{} stood still under {}", a.node, a.words())));
        }
        return fault(&|fault| fault.allows_overlap_with_a_kill(&a.node)).map(Reason::Fault);
    }
    trouble(a, b).map(Reason::Told).or_else(|| fault(&InjectedFault::allows_overlap).map(Reason::Fault))
}

/// What the nodes of two runs told of trouble.
fn trouble(a: &JournalRun, b: &JournalRun) -> Option<String> {
    let told = |run: &JournalRun| run.trouble.first().map(|trouble| format!("{}: {trouble}", run.words()));
    told(a).or_else(|| told(b))
}

/// Why nobody did the slot.
pub(super) fn lost(history: &History, story: &Story) -> Option<String> {
    match story.verdict() {
        Some(Verdict::Skipped) => Some("the job was paused, and that is recorded".to_owned()),
        Some(Verdict::Failed) => failed(history, story),
        Some(Verdict::Missed) => missed(history, story).map(|why| format!("recorded as missed: {why}")),
        Some(Verdict::Done) | None => all_were_made(history, story).or_else(|| kept_from_it(history, story)),
    }
}

/// There was no attempt left, whoever was there to record it: that is a rule of its own.
fn all_were_made(history: &History, story: &Story) -> Option<String> {
    let (made, (fewest, most)) = (story.attempts_made(), history.attempts_allowed(story)?);
    let (doubtful, untold) = (story.refunds_in_doubt(), attempts_untold(history, story));
    let unanswered = claims_unanswered(story);
    let said = if made >= fewest {
        format!("all {fewest} attempts were made")
    } else if made + doubtful >= fewest {
        format!("all {fewest} attempts were made, and those that were given back came too late")
    } else if made + doubtful + untold >= fewest {
        format!("{made} of {fewest} attempts were told, and nodes died that can have had the others")
    } else if made + doubtful + untold + unanswered >= fewest {
        format!("{made} of {fewest} attempts were told, and claims without an answer can have been granted the others")
    } else {
        return None;
    };
    // By another node's file there were more: it must have been kept from them. Where attempts are untold, the store's word to
    // that very node says that they were used up by its file too.
    let service = if made + doubtful < fewest { Service::ClaimingMore } else { Service::Claiming };
    if made + doubtful + untold + unanswered >= most {
        Some(said)
    } else {
        kept_from(history, story, service).map(|why| format!("{said}; {why}"))
    }
}

/// An attempt that the store counted and no journal told of took a fault.
fn failed(history: &History, story: &Story) -> Option<String> {
    if let Some(made) = all_were_made(history, story) {
        return Some(format!("{made}, and it is recorded as failed"));
    }
    let was_failed =
        |first: DateTime<Utc>| story.verdicts.iter().any(|(at, verdict, _)| *verdict == Verdict::Failed && *at < first);
    if story.first_of_past().is_some_and(|first| !was_failed(first)) {
        return Some("a person asked for a run of it when it was over, and it is recorded as failed".to_owned());
    }
    if let Some(fault) = refunds_forgotten(history, story) {
        return Some(format!("attempts that were given back count again: {}", fault.words()));
    }
    let (start, end) = (story.slot.start(), story.slot.end());
    // What was counted was granted to somebody who was told of it, who had no answer, or who did not live to tell.
    let unanswered = |it: &Obstacle| it.what == What::StoreFailed && it.strikes((start, end), Default::default());
    if story.grants.is_empty() && !story.obstacles.iter().any(unanswered) {
        let why = (attempts_untold(history, story) > 0).then(|| kept_from_it(history, story))?;
        return why.map(|why| format!("a node died that can have had an attempt, and it is recorded as failed; {why}"));
    }
    if history.lines_are_missing(start, later(end, history.aftermath(story))) {
        return Some("lines of a journal are missing".to_owned());
    }
    history.blame(story, (start, end), InjectedFault::allows_loss).map(InjectedFault::words)
}

/// What made the store go back to where attempts still counted that had been given back since, before it was asked for the verdict.
fn refunds_forgotten<'a>(history: &'a History, story: &Story) -> Option<&'a InjectedFault> {
    let (told, _, _) = story.verdicts.last()?;
    let (fewest, _) = history.attempts_allowed(story)?;
    let from = story.first_refunded()?;
    let goes_back = |fault: &InjectedFault| fault.goes_back() && fault.strikes(from, *told, LATENESS);
    let all = story.attempts_made() + story.refunded.len() >= fewest;
    all.then(|| history.blame(story, (from, *told), goes_back))?
}

/// Attempts that no journal can tell of, at the most: of nodes that died right after they were granted one, or had asked for
/// it.
fn attempts_untold(history: &History, story: &Story) -> usize {
    let (start, end) = (story.slot.start(), story.slot.end());
    let can_have_had_one = |(index, instance): (usize, &NodeRun)| {
        let Some(died) = instance.died.filter(|at| start <= later(*at, LATENESS) && *at <= end) else { return false };
        // Of an attempt that it told of it had none beside.
        let of = |run: &&JournalRun| run.instance == Some(index) && run.start <= died;
        let open = story.runs.iter().filter(of).any(|run| run.settled.is_none_or(|settled| settled > died));
        let before = died - LATENESS;
        // It asked at once: so it can only be that nobody had the time for it before.
        let ended = story.runs.iter().filter_map(|run| run.end.filter(|end| *end <= died)).max();
        let idle = (ended.unwrap_or(start), before);
        !open && was_seen_to_hold(story, instance, died)
            || !open
                && history.can_claim_at(story, index, died)
                && (idle.1 <= idle.0
                    || history.longest_service(story, Service::Claiming, idle) < history.aftermath(story))
    };
    history.instances.iter().enumerate().filter(|instance| can_have_had_one(*instance)).count()
}

/// Attempts that the store may have granted to nodes whose claim went without an answer, at the most.
fn claims_unanswered(story: &Story) -> usize {
    let lease = story.lease_ttl();
    story.obstacles.iter().filter(|it| it.hides_a_grant(story.slot.end(), lease)).count()
}

/// Others were told that a node holds the slot, about when it died, and it told of no run then.
fn was_seen_to_hold(story: &Story, instance: &NodeRun, died: DateTime<Utc>) -> bool {
    let seen = |at: DateTime<Utc>| died <= later(at, LATENESS) && at <= later(died, story.lease_ttl());
    let told = |at| {
        story.runs.iter().any(|run| {
            run.node == instance.node && run.guarded && run.start <= at && died <= later(run.start, LATENESS)
        })
    };
    let mut held = story.obstacles.iter().filter(|it| matches!(&it.what, What::Held(by) if *by == instance.node));
    held.any(|it| seen(it.from) && !told(it.from))
}

fn missed(history: &History, story: &Story) -> Option<String> {
    if let Some(fault) = forgotten(history, story) {
        return Some(format!("all attempts were made, and the store lost count of them: {}", fault.words()));
    }
    // Who closed it had counted fewer than were made: it is forgotten, or there were more by some file.
    let (fewest, most) = history.attempts_allowed(story).unwrap_or((usize::MAX, usize::MAX));
    let made = story.attempts_made().saturating_sub(story.refunds_untold());
    if made >= most {
        return None;
    }
    let why = kept_from_it(history, story)?;
    Some(if made >= fewest {
        format!("all {fewest} attempts of one file were made, of {most} of another; {why}")
    } else {
        why
    })
}

/// Nobody had the time for it: after the last run, and up to the end of the slot, no node could have claimed it for as long
/// as a disturbance may last. What kept them is told as far as it is known; that something was there is not enough.
fn kept_from_it(history: &History, story: &Story) -> Option<String> {
    kept_from(history, story, Service::Claiming)
}

/// The same, of the nodes that the service is one for.
fn kept_from(history: &History, story: &Story, service: Service) -> Option<String> {
    if let Some(node) = &story.shed_by {
        return Some(format!("{node} was overloaded: it had no room for the slot until its end"));
    }
    let (last, needed) = (story.runs.last(), history.aftermath(story));
    let mut ends = story.runs.iter().map(|run| history.end_of(story, run).or_else(|| unknown_end(history, story, run)));
    let from = ends.try_fold(story.slot.start(), |latest, end| Some(latest.max(end?)))?;
    let to = story.start_deadline_passed.map_or(story.slot.end(), |passed| passed.min(story.slot.end()));
    if history.longest_service(story, service, (from, to)) >= needed {
        return None;
    }
    if story.start_deadline_passed.is_some() {
        return Some("its start deadline had passed".to_owned());
    }
    if let Some(run) = last.filter(|_| later(from, needed) >= to) {
        return Some(format!("{} was over too late for another", run.words()));
    }
    let lasts = (story.lease_ttl(), needed);
    let mut near = story.obstacles.iter().filter(|obstacle| obstacle.strikes((from, to), lasts));
    let obstacle = near.find_map(|obstacle| obstacle.words(history));
    let fault = || history.blame_anybody(story, (from, to), InjectedFault::keeps_from_work).map(InjectedFault::words);
    let nobody = || format!("no node was there and in touch with its store for {}", seconds(needed));
    Some(queued(history, story, (from, to)).or(obstacle).or_else(fault).unwrap_or_else(nobody))
}

/// Which attempt waited for its locks the longest, with nothing started.
fn queued(history: &History, story: &Story, span: (DateTime<Utc>, DateTime<Utc>)) -> Option<String> {
    let longest = story.locks.longest(span)?;
    let node = history.instances.get(longest.instance).map(|instance| &instance.node)?;
    let (from, until) = (time(longest.from), time(longest.until()));
    Some(format!("attempt {} on {node} waited from {from} to {until} for {}", longest.attempt, longest.waits_for()))
}

/// A run may have gone on to the slot's end where nobody was left to say when it ended.
fn unknown_end(history: &History, story: &Story, run: &JournalRun) -> Option<DateTime<Utc>> {
    (!history.owes_an_end(story, run)).then(|| run.start.max(story.slot.end()))
}

/// What made the store forget that all attempts were made, before it was asked for the verdict.
fn forgotten<'a>(history: &'a History, story: &Story) -> Option<&'a InjectedFault> {
    let (told, _, _) = story.verdicts.last()?;
    let (fewest, _) = history.attempts_allowed(story)?;
    let all = story.attempts_made() + attempts_untold(history, story) + claims_unanswered(story) >= fewest;
    all.then(|| history.taken_back(story, (story.slot.start(), *told)))?
}

/// An instant for people.
pub(super) fn time(at: DateTime<Utc>) -> String {
    at.format("%H:%M:%S%.3fZ").to_string()
}

/// A span for people.
pub(super) fn seconds(span: std::time::Duration) -> String {
    format!("{:.3}s", span.as_secs_f64())
}

/// How long two runs went on at the same time, if that can be said to be more than clocks differ by. Of an end that its node did not
/// see, as it stood still, the earliest instant counts: that the two may have overlapped is not said.
pub(super) fn common(history: &History, story: &Story, a: &JournalRun, b: &JournalRun) -> Option<String> {
    let measured = a.end_is_measured && b.measured;
    let doubt = if measured { std::time::Duration::ZERO } else { CLOCKS };
    let over = |run: &JournalRun| run.over().or_else(|| history.end_of(story, run));
    let ran_until = |run: &JournalRun| run.surely_ran_until().or_else(|| history.end_of(story, run));
    let Some(end) = ran_until(a) else { return Some("for an unknown time".to_owned()) };
    let both = end.min(ran_until(b).unwrap_or(end));
    let common = between(b.start, both);
    if common > doubt {
        return Some(format!("for {}", seconds(common)));
    }
    // An older run that had no end of its own was met by the next one, alive; unless that met another one.
    let alive = |run: &&JournalRun| run.start < b.start && over(run).is_none_or(|end| end > b.start);
    let met_that = || story.runs.iter().filter(alive).all(|run| std::ptr::eq(run, a) || std::ptr::eq(run, b));
    (b.met_another && a.end.is_none() && met_that()).then(|| "as the later one found".to_owned())
}
