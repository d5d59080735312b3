//! The node as the cluster sees it: taking over from those before it, heartbeats, registration, purging.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::{CLOCK_OFF, Mono, Now, earlier, no_earlier_than, offset_ms};
use crate::drive::Message;
use crate::job::JobName;
use crate::node::Health;
use crate::node::chores::{self, Chores, Report};
use crate::node::daemon::Node;
use crate::observe::NodeEvent;
use crate::schedule::Closer;
use crate::store::{HEARTBEAT, JobEntry, NodeEntry, NodeReport, SILENCE, StoreError, handover};

/// Between two tries to reach a store that is away.
const RECONNECT: Duration = Duration::from_secs(1);

/// Between two registrations of a plan that has not changed: the registry knows by them which jobs nobody plans any more.
const REFRESH: Duration = Duration::from_secs(3_600);

/// Each so many heartbeats the node looks whether another one goes by its name. Not at the first: whoever was heard of before the
/// node started may be itself.
const NAMESAKE: u64 = 6;

/// How far the node has come in taking over from those before it.
#[derive(Debug)]
enum FirstContact {
    /// The registry of nodes is not read yet; the instant is when to ask (again).
    Unread(Option<Mono>),
    /// It is being read.
    Asked,
    /// It was read: up to when each job's slots are closed. The registry of jobs comes next.
    Read(BTreeMap<JobName, DateTime<Utc>>),
    /// The closer knows where to begin; heartbeats may take the place of the earlier ones.
    Over,
}

/// What the node knows of its own standing.
#[derive(Debug)]
pub(super) struct Presence {
    pub(super) closer: Closer,
    /// When the node began, by its monotonic clock: what ended since then is its to close, whatever its wall clock showed.
    began: Mono,
    pub(super) beats: u64,
    pub(super) draining: bool,
    /// Counts the plans that were in force.
    pub(super) plan: u64,
    /// The plan that the registry knows.
    registered: Option<u64>,
    registering: bool,
    register_at: Option<Mono>,
    /// When the registry is told once more of a plan that it knows.
    refresh_at: Option<Mono>,
    /// The registry refuses the plan, and that was told.
    refused: bool,
    heartbeat_at: Option<Mono>,
    heartbeat_sent: bool,
    /// Heartbeats so far.
    heartbeats: u64,
    /// What another node of this name said, when it was looked for last.
    namesake: Option<Box<NodeReport>>,
    /// The instance of the one that was told of last.
    told_namesake: Option<String>,
    reached: bool,
    seen: Option<Now>,
    lost_since: Option<Mono>,
    clock_offset_ms: i64,
    first_contact: FirstContact,
    /// Questions for a verdict that are on their way.
    pub(super) closing: usize,
    purge_at: Option<Mono>,
    /// Up to when slots were noted that are not this node's to run.
    pub(super) passed_over: Option<DateTime<Utc>>,
}

impl Presence {
    pub(super) fn new(began: Mono) -> Self {
        Self {
            closer: Closer::default(),
            began,
            beats: 0,
            draining: false,
            plan: 0,
            registered: None,
            registering: false,
            register_at: None,
            refresh_at: None,
            refused: false,
            heartbeat_at: None,
            heartbeat_sent: false,
            heartbeats: 0,
            namesake: None,
            told_namesake: None,
            reached: false,
            seen: None,
            lost_since: None,
            clock_offset_ms: 0,
            first_contact: FirstContact::Unread(None),
            closing: 0,
            purge_at: None,
            passed_over: None,
        }
    }

    fn is_registered(&self) -> bool {
        self.registered == Some(self.plan)
    }

    /// The next beat registers the plan, whatever the registry knew of it.
    pub(super) fn register_again(&mut self) {
        self.registered = None;
    }

    /// Another node of this name was looked for. What is to be told, where it is one that was not told of.
    fn meet(&mut self, namesake: Option<Box<NodeReport>>) -> Option<NodeEvent> {
        self.namesake = namesake;
        let NodeReport { instance, started_at, .. } = &**self.namesake.as_ref()?;
        let is_known = self.told_namesake.replace(instance.clone()).as_ref() == Some(instance);
        (!is_known).then(|| NodeEvent::Namesake { instance: instance.clone(), started_at: *started_at })
    }

    /// The next beat asks the store whether it answers.
    pub(super) fn probe(&mut self) {
        self.heartbeat_at = None;
    }

    pub(super) fn show(&self, health: &mut Health, running: usize) {
        *health = Health {
            beats: self.beats,
            store_up: self.reached,
            store_seen: self.seen.map(|now| now.wall),
            clock_offset_ms: self.clock_offset_ms,
            running,
            draining: self.draining,
        };
    }
}

impl Node {
    /// Does what is due at a beat.
    pub(super) fn attend(&mut self, now: Now, chores: &Chores) {
        let due = |at: Option<Mono>| at.is_none_or(|at| at <= now.mono);
        match self.presence.first_contact {
            FirstContact::Unread(at) if due(at) => {
                self.presence.first_contact = FirstContact::Asked;
                return chores.nodes();
            }
            FirstContact::Unread(_) | FirstContact::Asked => return,
            FirstContact::Read(_) | FirstContact::Over => {}
        }
        let stale = !self.presence.is_registered() || self.presence.refresh_at.is_some_and(|at| at <= now.mono);
        if stale && !self.presence.registering && due(self.presence.register_at) {
            self.presence.registering = true;
            chores.register(self.presence.plan, self.plan.registry(now.wall));
        }
        if matches!(self.presence.first_contact, FirstContact::Over) {
            if due(self.presence.heartbeat_at) && !self.presence.heartbeat_sent {
                self.send_heartbeat(now, chores);
            }
            if self.presence.reached {
                self.close_ended(now, chores);
                self.purge_if_due(now, chores);
            }
        }
    }

    fn purge_if_due(&mut self, now: Now, chores: &Chores) {
        let expires = self.ports.store.capability().expires_records;
        if !expires && self.presence.purge_at.is_none_or(|at| at <= now.mono) {
            self.presence.purge_at = Some(now.mono + chores::PURGE);
            chores.purge();
        }
    }

    pub(super) fn send_heartbeat(&mut self, now: Now, chores: &Chores) {
        if !matches!(self.presence.first_contact, FirstContact::Over) {
            // It would take the place of what those before this node have left behind.
            return;
        }
        self.presence.heartbeat_sent = true;
        self.presence.heartbeat_at = Some(now.mono + HEARTBEAT);
        let looks = self.presence.heartbeats % NAMESAKE == 1;
        self.presence.heartbeats += 1;
        self.note_not_selected(now);
        chores.heartbeat(self.own_report(now), looks);
    }

    /// The last heartbeat of a node that leaves because it was told to; none where it has made none.
    pub(super) fn last_report(&self, now: Now) -> Option<NodeReport> {
        let began = matches!(self.presence.first_contact, FirstContact::Over);
        began.then(|| NodeReport { stopped: true, ..self.own_report(now) })
    }

    fn own_report(&self, now: Now) -> NodeReport {
        let mut report = self.plan.report(&self.identity);
        report.clock_offset_ms = self.presence.clock_offset_ms;
        report.running = self.roll.running().map(ToString::to_string).collect();
        report.draining = self.presence.draining;
        report.namesake.clone_from(&self.presence.namesake);
        let behind = self.presence.closer.behind(earlier(now.wall, handover::BEHIND));
        report.behind = behind.map(|(job, start)| (job.clone(), start)).collect();
        report
    }

    /// The answer to a chore.
    pub(super) fn reported(&mut self, now: Now, report: Report, chores: &Chores) {
        if report.is_answer() {
            self.tools.gate.answered();
        }
        match report {
            Report::Nodes { sent, received, reply } => {
                match reply {
                    Ok((store_now, nodes)) => self.nodes_read((sent, received), store_now, &nodes),
                    Err(error) => {
                        self.presence.first_contact = FirstContact::Unread(Some(received.mono + RECONNECT));
                        self.store_lost(sent, &error);
                    }
                }
                self.attend(now, chores);
            }
            Report::Heartbeat { sent, received, reply, namesake } => {
                self.presence.heartbeat_sent = false;
                if let Some(namesake) = namesake {
                    let news = self.presence.meet(namesake);
                    news.iter().for_each(|event| self.ports.observer.node(event));
                }
                match reply {
                    Ok(reply) => {
                        self.store_reached((sent, received), reply.now);
                        chores.note();
                    }
                    Err(error) => {
                        self.presence.heartbeat_at = Some(received.mono + RECONNECT);
                        self.store_lost(sent, &error);
                    }
                }
                self.attend(now, chores);
            }
            Report::Registered { plan, reply } => {
                self.registered(now, plan, reply);
                self.attend(now, chores);
            }
            Report::Closed { slot, reply } => {
                self.presence.closing = self.presence.closing.saturating_sub(1);
                self.closed(now, &slot, reply, chores);
            }
            Report::Purged | Report::Noted => {}
        }
    }

    fn store_lost(&mut self, sent: Now, error: &StoreError) {
        self.presence.reached = false;
        if self.presence.lost_since.is_none() {
            self.presence.lost_since = Some(sent.mono);
            self.ports.observer.node(&NodeEvent::StoreLost { message: error.to_string() });
        }
    }

    fn store_reached(&mut self, (sent, received): (Now, Now), store_now: DateTime<Utc>) {
        let offset = offset_ms(sent, received, store_now);
        if offset.unsigned_abs() > CLOCK_OFF.as_millis().try_into().unwrap_or(u64::MAX)
            && self.presence.clock_offset_ms.abs_diff(offset) > 1_000
        {
            self.ports.observer.node(&NodeEvent::ClockOff { offset_ms: offset });
        }
        self.presence.clock_offset_ms = offset;
        let uncertain = received.mono.since(sent.mono) / 2;
        if self.time.measured(offset, uncertain) {
            self.wall_corrected(uncertain);
        }
        if !self.presence.reached {
            let away = self.presence.lost_since.take().map(|since| received.mono.since(since));
            self.ports.observer.node(&NodeEvent::StoreReached { away });
        }
        self.presence.reached = true;
        self.presence.seen = Some(received);
    }

    /// The wall clock was put right. What was known of slots by the wrong time before the first contact is void: nothing
    /// was closed by it. Later the closer goes on where it was, whatever the clock.
    fn wall_corrected(&mut self, uncertain: Duration) {
        let now = self.ports.clock.now();
        if matches!(self.presence.first_contact, FirstContact::Asked) {
            self.presence.closer = Closer::default();
            let timetables = self.entries.values().map(|entry| entry.timetable.clone()).collect();
            // The first contact may have been long in coming. A slot that may have lasted then is asked about.
            let began = no_earlier_than(self.presence.began, now, uncertain);
            self.presence.closer.set(timetables, began);
        }
        self.presence.closer.hurry();
        self.roll.tell_all(&Message::ClockSet);
    }

    /// The registry of nodes was read: what those before this one had closed.
    fn nodes_read(&mut self, asked: (Now, Now), store_now: DateTime<Utc>, nodes: &[NodeEntry]) {
        self.store_reached(asked, store_now);
        if let Some(gap) = handover::silence(nodes, store_now) {
            self.ports.observer.node(&NodeEvent::ClusterWasDown { gap });
        }
        self.presence.first_contact = FirstContact::Read(handover::closed_until(nodes));
    }

    /// The registry of jobs knows the plan, or will not take it. Either way the node takes over from those before it; a
    /// job's slots from before it was first seen are nobody's.
    fn registered(&mut self, now: Now, plan: u64, reply: Result<Vec<JobEntry>, StoreError>) {
        self.presence.registering = false;
        let first_seen: BTreeMap<JobName, DateTime<Utc>> = match reply {
            Ok(jobs) => {
                self.presence.registered = Some(plan);
                self.presence.refused = false;
                self.presence.register_at = None;
                self.presence.refresh_at = Some(now.mono + REFRESH);
                jobs.into_iter().map(|job| (job.name, job.first_seen)).collect()
            }
            Err(error) => {
                self.presence.register_at = Some(now.mono + RECONNECT);
                if error.is_transient() {
                    // The heartbeat tells of a store that is away; taking over can wait for it.
                    return;
                }
                if !std::mem::replace(&mut self.presence.refused, true) {
                    self.ports.observer.node(&NodeEvent::RegistrationRefused { message: error.to_string() });
                }
                BTreeMap::new()
            }
        };
        if let FirstContact::Read(closed) = std::mem::replace(&mut self.presence.first_contact, FirstContact::Over) {
            for (job, until) in closed {
                // Those alive then may have died before they could close what ended just before.
                let from = earlier(until, SILENCE);
                let from = first_seen.get(&job).map_or(from, |seen| from.max(*seen));
                self.presence.closer.look_back(&job, from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::NodeName;
    use crate::node::{Identity, Plan};

    #[test]
    fn another_node_of_the_same_name_is_told_once_and_the_next_one_again() {
        let mut presence = Presence::new(Mono::default());
        let other = |instance: &str| {
            let name = NodeName::new("a").unwrap();
            let (labels, started_at) = (BTreeMap::new(), DateTime::UNIX_EPOCH);
            let identity = Identity { name, instance: instance.to_owned(), labels, started_at };
            Some(Box::new(Plan::default().report(&identity)))
        };
        let told = |instance: &str| {
            Some(NodeEvent::Namesake { instance: instance.to_owned(), started_at: DateTime::UNIX_EPOCH })
        };
        assert_eq!(presence.meet(None), None);
        assert_eq!(presence.meet(other("b")), told("b"));
        assert_eq!(presence.meet(other("b")), None);
        // It was not heard of for a moment.
        assert_eq!(presence.meet(None), None);
        assert_eq!(presence.meet(other("b")), None);
        assert_eq!(presence.meet(other("c")), told("c"));
    }
}
