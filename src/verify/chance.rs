//! For how long some node could have taken a slot, and had nothing that kept it from it: what was not done all the same is
//! nobody's fault but the guard's.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::clock::{between, later};
use crate::job::NodeName;
use crate::verify::fault::Fault;
use crate::verify::history::{History, LATENESS};
use crate::verify::instance::{Instance, Span};
use crate::verify::story::Story;
use crate::verify::tenure::Tenure;

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
    fired: Vec<(&'a Tenure, DateTime<Utc>)>,
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
            let own = question.fired.iter().filter(|(tenure, _)| tenure.instance == index && tenure.plan.ours);
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
        let plans = self.tenures.iter().filter(|tenure| tenure.table.job() == story.slot.job());
        // A clock that is off is put right only when it is far off.
        let late = |tenure: &Tenure| self.instances.get(tenure.instance).map_or(Duration::ZERO, Instance::may_be_late);
        let fires = |tenure: &'a Tenure| {
            let at = tenure.fires(&story.slot).unwrap_or_else(|| story.slot.start());
            (tenure, later(at, late(tenure)))
        };
        let fired: Vec<_> = plans.map(fires).collect();
        let (start, end) = (story.slot.start(), story.slot.end());
        let near = |tenure: &Tenure| tenure.from <= end && start <= tenure.to;
        let files = || fired.iter().filter(|(tenure, _)| near(tenure)).map(|(tenure, _)| tenure.plan.max_attempts);
        let files_differ = files().min() != files().max();
        Question { history: self, story, service, everybody, fired, files_differ }
    }

    /// Whether an instance had the job, its tick had come and it was in touch with its store, an instant before it died.
    pub(super) fn can_claim_at(&self, story: &Story, instance: usize, died: DateTime<Utc>) -> bool {
        let question = self.ask(story, Service::Claiming);
        let Some(node) = self.instances.get(instance) else { return false };
        let mut own = question.fired.iter().filter(|(tenure, _)| tenure.instance == instance);
        let plans = own.any(|(tenure, fired)| {
            tenure.plan.ours
                && tenure.from <= died
                && died <= later(tenure.to, LATENESS)
                && *fired <= later(died, LATENESS)
        });
        // One that died as it began had no time to say that it had reached its store.
        let in_touch = node.in_touch((died - LATENESS, died)) || died <= later(node.first, LATENESS);
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
    fn is_asked(&self, index: usize, instance: &Instance, (from, to): Span) -> bool {
        let claims = match self.service {
            Service::Telling(only) => return index == only,
            Service::Claiming | Service::ClaimingMore => true,
            Service::Closing => false,
        };
        let used_up = |since: DateTime<Utc>, at: DateTime<Utc>| {
            self.service == Service::ClaimingMore && self.story.was_told_used_up(index, (since, at))
        };
        // Nobody claims a slot before its tick; nor, where files differ, one whose attempts are used up by the node's own.
        let may_claim = |tenure: &Tenure, fired: DateTime<Utc>, at: DateTime<Utc>| {
            let most = tenure.plan.max_attempts;
            tenure.plan.ours && fired <= at && !(self.files_differ && self.story.used_at(at) >= most)
        };
        let plans_at = |at: DateTime<Utc>| {
            let mut own = self.fired.iter().filter(|(tenure, _)| tenure.instance == index);
            own.any(|(tenure, fired)| {
                let does = if claims { may_claim(tenure, *fired, at) } else { tenure.closes(&self.story.slot) };
                tenure.from <= at && at <= tenure.to && does && !used_up(tenure.from, at)
            })
        };
        let planless = instance.keeps_its_plan_to_itself() && !used_up(instance.first, to);
        planless || (plans_at(from) && plans_at(to))
    }

    fn serves(&self, index: usize, instance: &Instance, span: Span) -> bool {
        let (history, story) = (self.history, self.story);
        let strikes = |fault: &Fault| {
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
            && !(self.service.is_claiming() && (history.is_kept(story, index, span) || self.is_granted(span)))
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
            cuts.extend(instance.failing.iter().flat_map(|(first, last)| [*first, *last]));
            cuts.extend([instance.first, instance.until(history.horizon)]);
        }
        let lease = story.lease_ttl();
        cuts.extend(self.fired.iter().map(|(_, fired)| *fired));
        cuts.extend(history.tenures.iter().flat_map(|tenure| [tenure.from, tenure.to]));
        cuts.extend(history.faults.iter().flat_map(|fault| [Some(fault.at), fault.until]).flatten());
        cuts.extend(story.obstacles.iter().flat_map(|it| [Some(it.from), it.over(lease)]).flatten());
        cuts.extend(story.told_used_up());
        cuts.extend(story.grants.iter().flat_map(|grant| [grant.at, later(grant.at, grant.lease_ttl)]));
        cuts.retain(|cut| (from..=to).contains(cut));
        cuts.sort();
        cuts.dedup();
        cuts
    }
}
