//! For how long some node could have taken a slot, and had nothing that kept it from it: what was not done all the same is
//! nobody's fault but the guard's. And what did keep it, by its own words: from the line that tells of it to the next answer of the
//! store.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::clock::{between, later};
use crate::error::{ErrorKind, Op};
use crate::event::Event;
use crate::job::NodeName;
use crate::reply::ClaimAnswer;
use crate::verify::history::{Heard, History, LATENESS};
use crate::verify::inputs::InjectedFault;
use crate::verify::node_run::{Assignment, NodeRun, Span};
use crate::verify::story::Story;

/// The end of a disturbance is not part of it.
const EDGE: TimeDelta = TimeDelta::milliseconds(1);

/// For what a node has to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    /// To claim the slot.
    Claiming,
    /// The same, where attempts can have been made that nobody told of: an instance that was told that none is left need not go on
    /// with the file that it had.
    ClaimingMore,
    /// To close it, which those do too that may not claim it.
    Closing,
    /// To tell the store something: this instance.
    Telling(usize),
}

impl Service {
    const fn is_claiming(self) -> bool {
        matches!(self, Self::Claiming | Self::ClaimingMore)
    }
}

/// What is asked, and of which slot.
struct Question<'a> {
    history: &'a History,
    story: &'a Story,
    service: Service,
    everybody: Vec<&'a NodeName>,
    /// The plans of its job, and when each one's node fires the slot's tick.
    fired: Vec<(&'a Assignment, DateTime<Utc>)>,
    /// They do not have as many attempts.
    files_differ: bool,
}

impl History {
    /// Whether some node served through all of a span.
    pub(super) fn somebody_serves(&self, story: &Story, service: Service, span: Span) -> bool {
        self.ask(story, service).somebody(span)
    }

    /// Whether some node but these could have claimed the slot through all of a span; from its tick on where that came later,
    /// with as long as the bound from there.
    pub(super) fn somebody_could_claim(&self, story: &Story, (from, to): Span, bound: Duration, but: &[usize]) -> bool {
        let question = self.ask(story, Service::Claiming);
        self.instances.iter().enumerate().filter(|(index, _)| !but.contains(index)).any(|(index, instance)| {
            let own =
                question.fired.iter().filter(|(assignment, _)| assignment.instance == index && assignment.plan.ours);
            let begins = own.map(|(_, fired)| *fired).min().map_or(from, |fired| fired.max(from));
            let span = (begins, to);
            (begins == from || later(begins, bound) <= to)
                && question.is_asked(index, instance, span)
                && question.serves(index, instance, span)
        })
    }

    /// The longest time within a span through which some one node served.
    pub(super) fn longest_service(&self, story: &Story, service: Service, span: Span) -> Duration {
        let spans = self.ask(story, service).spans(span);
        spans.into_iter().map(|(from, to)| between(from, to)).max().unwrap_or_default()
    }

    /// When within a span some one node had first served for so long.
    pub(super) fn has_served(
        &self,
        story: &Story,
        service: Service,
        span: Span,
        long: Duration,
    ) -> Option<DateTime<Utc>> {
        let spans = self.ask(story, service).spans(span);
        spans.into_iter().filter(|(from, to)| between(*from, *to) >= long).map(|(from, _)| later(from, long)).min()
    }

    fn ask<'a>(&'a self, story: &'a Story, service: Service) -> Question<'a> {
        let everybody = self.instances.iter().map(|instance| &instance.node).collect();
        let plans = self.assignments.iter().filter(|assignment| assignment.table.job() == story.slot.job());
        // A clock that is off is put right only when it is far off.
        let late = |assignment: &Assignment| {
            self.instances.get(assignment.instance).map_or(Duration::ZERO, NodeRun::may_be_late)
        };
        let fires = |assignment: &'a Assignment| {
            let at = assignment.owes(&story.slot).unwrap_or_else(|| story.slot.start());
            (assignment, later(at, late(assignment)))
        };
        let fired: Vec<_> = plans.map(fires).collect();
        // Whoever closed it may have read its file after the slot's end.
        let closed = story.verdicts.first().map_or(story.slot.end(), |(at, _, _)| story.slot.end().max(*at));
        let files = self.attempts_planned(story, closed);
        let files_differ = files.clone().min() != files.max();
        Question { history: self, story, service, everybody, fired, files_differ }
    }

    /// Whether an instance had the job, its tick had come and it may have asked its store for the slot, an instant before it died.
    pub(super) fn can_claim_at(&self, story: &Story, instance: usize, died: DateTime<Utc>) -> bool {
        let Some(node) = self.instances.get(instance) else { return false };
        let mut own = self.assignments.iter().filter(|assignment| assignment.instance == instance);
        let plans = own.any(|assignment| {
            // One whose clock is behind may have put it right, and be no later than the others.
            let fires = assignment.fires(&story.slot).unwrap_or_else(|| story.slot.start());
            assignment.is_of(story.slot.job())
                && assignment.from <= later(died, LATENESS)
                && died <= later(assignment.to, LATENESS)
                && fires <= later(died, LATENESS)
        });
        // Who has not told yet that it reached its store asks all the same; an answer or an error it would tell.
        let first_claim = || node.never_reached_its_store() && story.last_word_of(instance).is_none();
        // One that died as it began had no time to say that it had reached its store. One that had been out of touch asks as it is back.
        let is_in_touch = |at| node.in_touch((at, at));
        let in_touch = [died - LATENESS, died].into_iter().any(is_in_touch)
            || died <= later(node.first, LATENESS)
            || first_claim();
        (plans || node.keeps_its_plan_to_itself()) && in_touch
    }

    /// Whether something kept an instance from claiming a slot in some part of a span, by its own words.
    fn is_kept(&self, story: &Story, instance: usize, span: Span) -> bool {
        let lease = story.lease_ttl();
        story.obstacles.iter().any(|obstacle| {
            obstacle.instance == instance
                && obstacle.strikes(span, (lease, Duration::ZERO))
                && obstacle.words(self).is_some()
        })
    }
}

impl Question<'_> {
    fn somebody(&self, span: Span) -> bool {
        let mut instances = self.history.instances.iter().enumerate();
        instances.any(|(index, instance)| self.is_asked(index, instance, span) && self.serves(index, instance, span))
    }

    /// Whether the service is one that this instance has to do, by what it told of its plan.
    fn is_asked(&self, index: usize, instance: &NodeRun, (from, to): Span) -> bool {
        let claims = match self.service {
            Service::Telling(only) => return index == only,
            Service::Claiming | Service::ClaimingMore => true,
            Service::Closing => false,
        };
        let used_up = |since: DateTime<Utc>, at: DateTime<Utc>| {
            self.service == Service::ClaimingMore && self.story.was_told_used_up(index, (since, at))
        };
        // Nobody claims a slot before its tick; nor, where files differ, one whose attempts are used up by the node's own.
        let may_claim = |assignment: &Assignment, fired: DateTime<Utc>, at: DateTime<Utc>| {
            let most = assignment.plan.max_attempts;
            assignment.plan.ours && fired <= at && !(self.files_differ && self.story.used_at(at) >= most)
        };
        let plans_at = |at: DateTime<Utc>| {
            let mut own = self.fired.iter().filter(|(assignment, _)| assignment.instance == index);
            own.any(|(assignment, fired)| {
                let does = if claims { may_claim(assignment, *fired, at) } else { assignment.closes(&self.story.slot) };
                assignment.from <= at && at <= assignment.to && does && !used_up(assignment.from, at)
            })
        };
        let planless = instance.keeps_its_plan_to_itself() && !used_up(instance.first, to);
        planless || (plans_at(from) && plans_at(to))
    }

    fn serves(&self, index: usize, instance: &NodeRun, span: Span) -> bool {
        let (history, story) = (self.history, self.story);
        let strikes = |fault: &InjectedFault| {
            fault.keeps_from_work()
                && fault.strikes(span.0, span.1, Duration::ZERO)
                && fault.concerns(&story.slot, &[&instance.node], &self.everybody)
        };
        let is_there = match self.service {
            // Who leaves still tells what it has to tell.
            Service::Telling(_) => {
                let lived = instance.died.map_or(instance.last, |died| died.max(instance.last));
                instance.first <= span.0 && span.1 <= lived && instance.in_touch(span) && !story.fails(index, span)
            }
            Service::Claiming | Service::ClaimingMore => instance.serves(span.0, span.1, history.horizon),
            // What the store answers to that is not told of each slot.
            Service::Closing => instance.serves(span.0, span.1, history.horizon) && instance.is_answered(span),
        };
        is_there
            && !instance.lacks_lines(span.0, span.1)
            && !history.faults.iter().any(strikes)
            && !self.is_kept(index, span)
    }

    /// From claiming: by an answer of the store, by a lease, or by an attempt that waits for its locks under one.
    fn is_kept(&self, index: usize, span: Span) -> bool {
        self.service.is_claiming()
            && (self.history.is_kept(self.story, index, span)
                || self.is_granted(span)
                || self.story.locks.keep(index, span))
    }

    /// A lease that nobody started a run under keeps the others away until it has lapsed.
    fn is_granted(&self, (from, to): Span) -> bool {
        let idle = |attempt| !self.story.runs.iter().any(|run| run.attempt == attempt);
        let mut grants = self.story.grants.iter().filter(|grant| idle(grant.attempt));
        grants.any(|grant| grant.at <= to && later(grant.at, grant.lease_ttl) >= from)
    }

    /// Spans within another one through which some one node served, the longest among them.
    fn spans(&self, span: Span) -> Vec<Span> {
        let cuts = self.cuts(span);
        // Whoever serves a span serves every part of it: the end of the longest one never goes back.
        let (mut spans, mut end) = (Vec::new(), 0);
        for (index, from) in cuts.iter().enumerate() {
            end = end.max(index);
            while let Some(to) = cuts.get(end + 1).filter(|to| self.somebody((*from + EDGE, **to - EDGE))) {
                spans.push((*from, *to));
                end += 1;
            }
        }
        spans
    }

    /// Every instant of a span at which something may begin or end for somebody, in order.
    fn cuts(&self, (from, to): Span) -> Vec<DateTime<Utc>> {
        let (history, story) = (self.history, self.story);
        let mut cuts: Vec<DateTime<Utc>> = vec![from, to];
        for instance in &history.instances {
            let spans = instance.away.iter().map(|(lost, back)| (*lost, *back));
            let spans = spans.chain(instance.dropped.iter().map(|(first, last)| (*first, Some(*last))));
            cuts.extend(spans.flat_map(|(first, last)| [Some(first), last]).flatten());
            if self.service == Service::Closing {
                cuts.extend(instance.failing.iter().flat_map(|(first, last)| [*first, *last]));
            }
            cuts.extend([instance.first, instance.until(history.horizon)]);
        }
        let lease = story.lease_ttl();
        cuts.extend(self.fired.iter().map(|(_, fired)| *fired));
        cuts.extend(self.fired.iter().flat_map(|(assignment, _)| [assignment.from, assignment.to]));
        cuts.extend(history.faults.iter().flat_map(|fault| [Some(fault.at), fault.until]).flatten());
        cuts.extend(story.obstacles.iter().flat_map(|it| [Some(it.from), it.over(lease)]).flatten());
        cuts.extend(story.told_used_up().chain(story.locks.cuts()));
        cuts.extend(story.grants.iter().flat_map(|grant| [grant.at, later(grant.at, grant.lease_ttl)]));
        cuts.retain(|cut| (from..=to).contains(cut));
        cuts.sort();
        cuts.dedup();
        cuts
    }
}

/// What it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The store could not be asked. Told at the first error of a row only.
    StoreFailed,
    /// The job was paused: whoever is told until when does not ask again before.
    Paused,
    /// An older slot of the job was held; who waits looks again when that lease has lapsed.
    Blocked,
    /// The slot was held; the same.
    Held(NodeName),
}

/// What kept one instance from claiming one slot.
#[derive(Debug)]
pub(super) struct Obstacle {
    pub(super) what: What,
    pub(super) instance: usize,
    pub(super) from: DateTime<Utc>,
    /// When the store next answered that instance; none if it never did.
    until: Option<DateTime<Utc>>,
    /// When a claim failed first that may have been granted: no answer came.
    unanswered: Option<DateTime<Utc>>,
}

impl Obstacle {
    /// Ends what a line ends, and adds what it begins.
    pub(super) fn hear(obstacles: &mut Vec<Self>, heard: &Heard) {
        let event = &heard.told.line.event;
        let what = match event {
            Event::StoreFailed { .. } => Some(What::StoreFailed),
            Event::ClaimAnswered { answer: ClaimAnswer::Paused, .. } => Some(What::Paused),
            Event::ClaimAnswered { answer: ClaimAnswer::Blocked, .. } => Some(What::Blocked),
            Event::ClaimAnswered { answer: ClaimAnswer::Held, by: Some(by), .. } => Some(What::Held(by.clone())),
            _ => None,
        };
        let in_silence = |kind: ErrorKind| matches!(kind, ErrorKind::Timeout | ErrorKind::Unavailable);
        let unanswered = match event {
            Event::StoreFailed { op: Op::Claim, kind, .. } if in_silence(*kind) => Some(heard.at),
            _ => None,
        };
        let last = obstacles.iter_mut().rev().find(|last| last.instance == heard.instance);
        if let Some(last) = last.filter(|last| last.until.is_none()) {
            if what.as_ref() == Some(&last.what) && last.what == What::StoreFailed {
                last.unanswered = last.unanswered.or(unanswered);
                return;
            }
            if is_an_answer(event) || what.is_some() {
                last.until = Some(heard.at);
            }
        }
        let new = |what| Self { what, instance: heard.instance, from: heard.at, until: None, unanswered };
        obstacles.extend(what.map(new));
    }

    /// Whether a claim in it may have been granted, and its node have had no chance to tell: within such a lease it asked no more
    /// until the slot was over, for it would have been told that it has the slot.
    pub(super) fn hides_a_grant(&self, slot_end: DateTime<Utc>, lease: Duration) -> bool {
        let unheard = |failed| self.until.is_none_or(|until| until >= slot_end.min(later(failed, lease)));
        self.unanswered.is_some_and(unheard)
    }

    /// For people, unless it is the lease of a node that gives its journal.
    pub(super) fn words(&self, history: &History) -> Option<String> {
        match &self.what {
            What::StoreFailed => Some("the store failed".to_owned()),
            What::Paused => Some("claims were answered paused".to_owned()),
            What::Blocked => Some("claims were answered blocked".to_owned()),
            What::Held(by) if history.knows(by) => None,
            What::Held(by) => Some(format!("{by}, whose journal is not given, held it")),
        }
    }

    /// When it was over at the latest, for slots with such a lease.
    pub(super) fn over(&self, lease: Duration) -> Option<DateTime<Utc>> {
        let looks_again = match self.what {
            What::StoreFailed | What::Paused => None,
            What::Blocked | What::Held(_) => Some(later(self.from, lease)),
        };
        [self.until, looks_again].into_iter().flatten().min()
    }

    /// Whether it, or what follows from it for so long, falls into a span.
    pub(super) fn strikes(
        &self,
        (from, to): (DateTime<Utc>, DateTime<Utc>),
        (lease, aftermath): (Duration, Duration),
    ) -> bool {
        self.from <= to && self.over(lease).is_none_or(|over| later(over, aftermath) >= from)
    }
}

impl Story {
    /// Whether the store could not be asked about the slot by an instance in some part of a span, by its own words.
    pub(super) fn fails(&self, instance: usize, span: Span) -> bool {
        let own = |it: &&Obstacle| it.instance == instance && it.what == What::StoreFailed;
        self.obstacles.iter().filter(own).any(|it| it.strikes(span, Default::default()))
    }
}

/// The store was reached, and said something of the slot.
pub(super) const fn is_an_answer(event: &Event) -> bool {
    matches!(
        event,
        Event::ClaimAnswered { .. }
            | Event::Granted { .. }
            | Event::RenewalAnswered { .. }
            | Event::Settled { .. }
            | Event::Closed { .. }
    )
}
