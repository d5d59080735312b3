//! A node as the cluster sees it, as `node::presence`, `node::handover` and `node::store_time` have it: taking over from those
//! before it, registration, heartbeats, verdicts of ended slots, and a wall clock that is put right by the store's.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::{CLOCK_OFF, Mono, Now, correction_ms, earlier, no_earlier_than, offset_ms};
use crate::job::{JobName, NodeName};
use crate::observe::NodeEvent;
use crate::observe::journal::Fact;
use crate::schedule::Closer;
use crate::sim::bug::Bug;
use crate::sim::daemon::{Asked, Daemon, Desk};
use crate::sim::message::{Answer, Ask, NoAnswer};
use crate::slot::{Slot, Verdict};
use crate::store::{JobEntry, NodeReport, handover};

/// As in `node::presence`.
const RECONNECT: Duration = Duration::from_secs(1);
/// As in `node::chores`.
const CLOSINGS: usize = 64;
/// As in `node::presence`.
#[derive(Debug)]
enum FirstContact {
    Unread(Option<Mono>),
    Asked,
    Read(BTreeMap<JobName, DateTime<Utc>>),
    Over,
}

/// What the node knows of its own standing.
#[derive(Debug)]
pub(super) struct Presence {
    pub(super) closer: Closer,
    began: Mono,
    /// Counts the plans that were in force.
    pub(super) plan: u64,
    registered: Option<u64>,
    registering: bool,
    register_at: Option<Mono>,
    heartbeat_at: Option<Mono>,
    heartbeat_sent: bool,
    reached: bool,
    lost_since: Option<Mono>,
    clock_offset_ms: i64,
    first_contact: FirstContact,
}

impl Presence {
    pub(super) fn new(began: Mono) -> Self {
        Self {
            closer: Closer::default(),
            began,
            plan: 0,
            registered: None,
            registering: false,
            register_at: None,
            heartbeat_at: None,
            heartbeat_sent: false,
            reached: false,
            lost_since: None,
            clock_offset_ms: 0,
            first_contact: FirstContact::Unread(None),
        }
    }

    pub(super) const fn register_again(&mut self) {
        self.registered = None;
    }
}

impl Daemon {
    /// Does what is due at a beat.
    pub(super) fn attend(&mut self, desk: &mut Desk<'_>) {
        let now = desk.now;
        let due = |at: Option<Mono>| at.is_none_or(|at| at <= now.mono);
        match self.presence.first_contact {
            FirstContact::Unread(at) if due(at) => {
                self.presence.first_contact = FirstContact::Asked;
                let sent = desk.uncorrected;
                return self.ask(desk, Asked::Nodes(sent), Ask::Nodes, None);
            }
            FirstContact::Unread(_) | FirstContact::Asked => return,
            FirstContact::Read(_) | FirstContact::Over => {}
        }
        let registered = self.presence.registered == Some(self.presence.plan);
        if !registered && !self.presence.registering && due(self.presence.register_at) {
            self.presence.registering = true;
            let jobs = self.entries.values().map(|entry| JobEntry::of(&entry.spec, now.wall)).collect();
            self.ask(desk, Asked::Register(self.presence.plan), Ask::Register(jobs), None);
        }
        if matches!(self.presence.first_contact, FirstContact::Over) {
            if due(self.presence.heartbeat_at) && !self.presence.heartbeat_sent {
                self.send_heartbeat(desk);
            }
            if self.presence.reached {
                self.close_ended(desk);
            }
        }
    }

    fn close_ended(&mut self, desk: &mut Desk<'_>) {
        for slot in self.presence.closer.due(desk.now.wall, CLOSINGS) {
            let Some(entry) = self.entries.get(slot.job()) else { continue };
            let max_attempts = entry.spec.policy.max_attempts;
            self.ask(desk, Asked::Close(slot.clone()), Ask::Close { slot, max_attempts }, None);
        }
    }

    pub(super) fn send_heartbeat(&mut self, desk: &mut Desk<'_>) {
        if !matches!(self.presence.first_contact, FirstContact::Over) {
            return;
        }
        self.presence.heartbeat_sent = true;
        self.presence.heartbeat_at = Some(desk.now.mono + desk.nature.scenario.heartbeat);
        let report = self.report(desk);
        let sent = desk.uncorrected;
        self.ask(desk, Asked::Heartbeat(sent), Ask::Heartbeat(report), None);
    }

    pub(super) fn nodes_read(&mut self, desk: &mut Desk<'_>, sent: Now, answer: Option<Answer>) {
        if let Some(Answer::Nodes(now, nodes)) = answer {
            self.store_reached(desk, sent, now);
            if let Some(gap) = handover::silence(&nodes, now) {
                desk.tell(&NodeEvent::ClusterWasDown { gap });
            }
            self.presence.first_contact = FirstContact::Read(handover::closed_until(&nodes));
        } else {
            self.presence.first_contact = FirstContact::Unread(Some(desk.now.mono + RECONNECT));
            self.store_lost(desk, sent);
        }
        self.attend(desk);
    }

    pub(super) fn heartbeat_answered(&mut self, desk: &mut Desk<'_>, sent: Now, answer: Option<Answer>) {
        self.presence.heartbeat_sent = false;
        if let Some(Answer::Heartbeat(reply)) = answer {
            self.store_reached(desk, sent, reply.now);
        } else {
            self.presence.heartbeat_at = Some(desk.now.mono + RECONNECT);
            self.store_lost(desk, sent);
        }
        self.attend(desk);
    }

    fn store_lost(&mut self, desk: &mut Desk<'_>, sent: Now) {
        self.presence.reached = false;
        if self.presence.lost_since.is_none() {
            self.presence.lost_since = Some(sent.mono);
            desk.tell(&NodeEvent::StoreLost { message: "no answer".to_owned() });
        }
    }

    fn store_reached(&mut self, desk: &mut Desk<'_>, sent: Now, store: DateTime<Utc>) {
        let received = desk.uncorrected;
        let (offset, uncertain) = (offset_ms(sent, received, store), received.mono.since(sent.mono) / 2);
        let off = u128::from(offset.unsigned_abs()) > CLOCK_OFF.as_millis();
        if off && self.presence.clock_offset_ms.abs_diff(offset) > 1_000 {
            desk.tell(&NodeEvent::ClockOff { offset_ms: offset });
        }
        self.presence.clock_offset_ms = offset;
        if let Some(ahead_ms) = correction_ms(self.ahead_ms, offset, uncertain) {
            self.ahead_ms = ahead_ms;
            self.wall_corrected(desk, uncertain);
        }
        if !self.presence.reached {
            let away = self.presence.lost_since.take().map(|since| received.mono.since(since));
            desk.tell(&NodeEvent::StoreReached { away });
        }
        self.presence.reached = true;
    }

    fn wall_corrected(&mut self, desk: &mut Desk<'_>, uncertain: Duration) {
        let wall = desk.uncorrected.wall - chrono::TimeDelta::milliseconds(self.ahead_ms);
        desk.nature.trouble(desk.process.node, desk.nature.now + Duration::from_secs(2));
        if matches!(self.presence.first_contact, FirstContact::Asked) {
            self.presence.closer = Closer::default();
            let timetables = self.entries.values().map(|entry| entry.timetable.clone()).collect();
            let began = no_earlier_than(self.presence.began, Now { wall, ..desk.now }, uncertain);
            self.presence.closer.set(timetables, began);
        }
        self.presence.closer.hurry();
        for task in self.tasks.keys().copied().collect::<Vec<_>>() {
            self.tell(desk, task, |machine, now| machine.handle_clock_set(Now { wall, ..now }));
        }
    }

    pub(super) fn registered(&mut self, desk: &mut Desk<'_>, plan: u64, answer: Option<Answer>) {
        self.presence.registering = false;
        if let Some(Answer::Jobs(jobs)) = answer {
            self.presence.registered = Some(plan);
            let first_seen: BTreeMap<_, _> = jobs.into_iter().map(|job| (job.name, job.first_seen)).collect();
            let silence = desk.nature.scenario.heartbeat * 2;
            if let FirstContact::Read(closed) = std::mem::replace(&mut self.presence.first_contact, FirstContact::Over)
            {
                for (job, until) in closed {
                    let from = earlier(until, silence);
                    let from = first_seen.get(&job).map_or(from, |seen| from.max(*seen));
                    self.presence.closer.look_back(&job, from);
                }
            }
        } else {
            self.presence.register_at = Some(desk.now.mono + RECONNECT);
        }
        self.attend(desk);
    }

    pub(super) fn closed(&mut self, desk: &mut Desk<'_>, slot: &Slot, answer: Result<Answer, NoAnswer>) {
        let reply = match answer {
            Ok(Answer::Closing(closing)) => Ok(closing),
            Ok(_) => return,
            Err(_) if desk.nature.is_bug(Bug::ClosesOnce) => return self.presence.closer.closed(slot),
            Err(none) => Err(none.applied),
        };
        let answered = self.presence.closer.answered(slot, desk.now.wall, reply);
        if let Some(verdict) = answered.tell {
            announce(desk, slot, verdict);
        }
        if answered.moved_on {
            self.close_ended(desk);
        }
    }

    fn report(&self, desk: &Desk<'_>) -> NodeReport {
        let name = desk.nature.scenario.nodes.get(desk.process.node).cloned();
        let behind = self.presence.closer.behind(earlier(desk.now.wall, desk.nature.scenario.heartbeat));
        NodeReport {
            name: name.unwrap_or_else(|| NodeName::nearest("n")),
            instance: desk.process.start.to_string(),
            version: String::new(),
            config_hash: String::new(),
            job_hashes: self.entries.keys().map(|job| (job.clone(), String::new())).collect(),
            labels: BTreeMap::new(),
            started_at: desk.now.wall,
            clock_offset_ms: self.ahead_ms,
            running: Vec::new(),
            draining: self.leave_by.is_some(),
            stopped: false,
            namesake: None,
            behind: behind.map(|(job, start)| (job.clone(), start)).collect(),
        }
    }
}

fn announce(desk: &mut Desk<'_>, slot: &Slot, verdict: Verdict) {
    let node = desk.process.node + 1;
    desk.nature.note(|_| format!("  n{node} tells: {slot} is {}", verdict.as_str()));
    desk.nature.write(desk.process, desk.uncorrected.wall, (Some(slot), None), || Fact::Closed { verdict });
    if let Some(story) = desk.nature.story(slot) {
        story.announced += 1;
    }
}
