//! The node as the cluster sees it: taking over from those before it, heartbeats, registration, the verdicts of ended slots,
//! purging. Pure: it is told what the store answered, and what it wants goes to the machine's outbox.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::clock::{CLOCK_OFF, Mono, Now, between, correction_ms, earlier, later, no_earlier_than, offset_ms};
use crate::event::Event;
use crate::job::JobName;
use crate::node::action::{Action, Looked, Outbox, Question, Report};
use crate::node::active::ActiveSlots;
use crate::node::first_contact::FirstContact;
use crate::node::first_seen::FirstSeen;
use crate::node::plan::{self, Entry, Health, Identity, Plan, Upkeep};
use crate::node::presence::Presence;
use crate::node::verdicts::Verdicts;
use crate::store::{ErrorKind, JobEntry, NodeEntry, NodeReport, StoreError, handover};

/// Between two tries to reach a store that is away.
const RECONNECT: Duration = Duration::from_secs(1);

/// Between two registrations of a plan that has not changed: the registry knows by them which jobs nobody plans any more.
const REFRESH: Duration = Duration::from_secs(3_600);

/// Between two purges of a store whose records do not expire by themselves.
const PURGE: Duration = Duration::from_secs(600);

/// What the node is besides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    pub(super) identity: &'a Identity,
    pub(super) upkeep: &'a Upkeep,
    pub(super) plan: &'a Plan,
    pub(super) entries: &'a BTreeMap<JobName, Entry>,
    pub(super) active: &'a ActiveSlots,
    pub(super) first_seen: &'a FirstSeen,
}

/// What the node knows of its own standing.
#[derive(Debug)]
pub(super) struct Membership {
    pub(super) verdicts: Verdicts,
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
    presence: Presence,
    reached: bool,
    denied: bool,
    seen: Option<Now>,
    lost_since: Option<Mono>,
    clock_offset_ms: i64,
    /// What the wall clock is put right by, in milliseconds; 0 while it is left alone.
    ahead_ms: i64,
    first_contact: FirstContact,
    /// The last heartbeat before its own start, where no node was alive then.
    silent_since: Option<DateTime<Utc>>,
    purge_at: Option<Mono>,
    /// Up to when slots were noted that are not this node's to run.
    passed_over: Option<DateTime<Utc>>,
}

impl Membership {
    pub(super) fn new(began: Mono) -> Self {
        Self {
            verdicts: Verdicts::default(),
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
            presence: Presence::default(),
            reached: false,
            denied: false,
            seen: None,
            lost_since: None,
            clock_offset_ms: 0,
            ahead_ms: 0,
            first_contact: FirstContact::Unread(None),
            silent_since: None,
            purge_at: None,
            passed_over: None,
        }
    }

    fn is_registered(&self) -> bool {
        self.registered == Some(self.plan)
    }

    /// Another plan is in force: it is registered at once, whatever became of the one before.
    pub(super) const fn plan_changed(&mut self) {
        self.plan += 1;
        self.register_at = None;
    }

    /// Hints were lost: the next beat registers the plan, and looks whether the registry still knows this node.
    pub(super) const fn doubt_registry(&mut self) {
        (self.registered, self.presence.doubts) = (None, true);
        self.probe();
    }

    /// The next beat asks the store whether it answers.
    pub(super) const fn probe(&mut self) {
        self.heartbeat_at = None;
    }

    pub(super) fn health(&self, running: usize, last_beat: Option<Now>) -> Health {
        Health {
            beats: self.beats,
            last_beat,
            store_up: self.reached,
            store_refuses: self.denied,
            store_seen: self.seen.map(|now| now.wall),
            clock_offset_ms: self.clock_offset_ms,
            running,
            draining: self.draining,
            // What the loop around it knows.
            notes_refused: false,
        }
    }
}

impl Membership {
    /// Does what is due at a beat.
    pub(super) fn attend(&mut self, now: Now, node: &Context<'_>, out: &mut Outbox) {
        let due = |at: Option<Mono>| at.is_none_or(|at| at <= now.mono);
        match self.first_contact {
            FirstContact::Unread(at) if due(at) => {
                self.first_contact = FirstContact::Asked;
                return out.push_back(Action::Ask(Question::Nodes));
            }
            FirstContact::Unread(_) | FirstContact::Asked => return,
            FirstContact::Read { .. } | FirstContact::Over => {}
        }
        let stale = !self.is_registered() || self.refresh_at.is_some_and(|at| at <= now.mono);
        if stale && !self.registering && due(self.register_at) {
            self.registering = true;
            let jobs = node.plan.registry(now.wall, |job| node.first_seen.of(job, now));
            out.push_back(Action::Ask(Question::Register { plan: self.plan, jobs }));
        }
        if matches!(self.first_contact, FirstContact::Over) {
            if due(self.heartbeat_at) && !self.heartbeat_sent {
                self.send_heartbeat(now, node, out);
            }
            if self.reached {
                self.verdicts.ask(now, node.entries, out);
                self.purge_if_due(now, node, out);
            }
        }
    }

    /// Should this node die, another one has to know of the run that it was asked for.
    pub(super) fn tell_at_once(&mut self, now: Now, node: &Context<'_>, out: &mut Outbox) {
        self.probe();
        self.attend(now, node, out);
    }

    fn purge_if_due(&mut self, now: Now, node: &Context<'_>, out: &mut Outbox) {
        if node.upkeep.purges && self.purge_at.is_none_or(|at| at <= now.mono) {
            self.purge_at = Some(now.mono + PURGE);
            out.push_back(Action::Ask(Question::Purge));
        }
    }

    pub(super) fn send_heartbeat(&mut self, now: Now, node: &Context<'_>, out: &mut Outbox) {
        if !matches!(self.first_contact, FirstContact::Over) {
            // It would take the place of what those before this node have left behind.
            return;
        }
        self.heartbeat_sent = true;
        self.heartbeat_at = Some(now.mono + node.upkeep.heartbeat);
        let looks = self.presence.looks(self.lost_since.is_some());
        self.note_not_selected(now, node, out);
        let report = Box::new(self.own_report(now, node));
        out.push_back(Action::Ask(Question::Heartbeat { report, looks }));
    }

    /// Notes the slots that began since the last time and are for nodes with other labels: nothing else tells that this node
    /// let them pass.
    fn note_not_selected(&mut self, now: Now, node: &Context<'_>, out: &mut Outbox) {
        let since = self.passed_over.replace(now.wall);
        let slots = plan::not_selected(node.entries, &node.identity.labels, (since, now.wall));
        out.extend(slots.map(|(slot, decision)| Action::Note(slot, decision)));
    }

    /// The last heartbeat of a node that leaves because it was told to; none where it has made none.
    pub(super) fn last_report(&self, now: Now, node: &Context<'_>) -> Option<NodeReport> {
        let began = matches!(self.first_contact, FirstContact::Over);
        began.then(|| NodeReport { stopped: true, ..self.own_report(now, node) })
    }

    fn own_report(&self, now: Now, node: &Context<'_>) -> NodeReport {
        let mut report = node.plan.report(node.identity);
        report.clock_offset_ms = self.clock_offset_ms;
        report.running = self.verdicts.running(node.active.running());
        (report.draining, report.silent_since) = (self.draining, self.silent_since);
        report.namesake.clone_from(&self.presence.namesake);
        let behind = self.verdicts.closer.behind(earlier(now.wall, node.upkeep.behind()));
        report.behind = behind.map(|(job, start)| (job.clone(), start)).collect();
        report.since = self.verdicts.closer.since().map(|(job, start)| (job.clone(), start)).collect();
        report
    }

    /// The store's answer to a question.
    pub(super) fn reported(&mut self, now: Now, report: Report, node: &Context<'_>, out: &mut Outbox) {
        match report {
            Report::Nodes { sent, received, reply } => {
                let now = match reply {
                    Ok((store_now, nodes)) => self.nodes_read((sent, received), now, store_now, (&nodes, node), out),
                    Err(error) => {
                        self.first_contact = FirstContact::Unread(Some(received.mono + RECONNECT));
                        self.store_lost(sent, &error, out);
                        now
                    }
                };
                self.attend(now, node, out);
            }
            Report::Heartbeat { sent, received, reply, looked } => {
                self.heartbeat_sent = false;
                let was_forgotten = reply.as_ref().is_ok_and(|reply| !reply.was_known);
                if was_forgotten && let Some(told) = self.presence.forgotten(now) {
                    (self.registered, self.register_at) = (None, None);
                    out.extend([Action::Emit(told), Action::AssertAgain]);
                }
                if let Some(Looked { namesake, left }) = looked {
                    out.extend(self.presence.meet(namesake).map(Action::Emit));
                    self.verdicts.left_behind(&left, now, node.entries, out);
                }
                let now = match reply {
                    Ok(reply) => {
                        self.presence.acknowledged = Some(received);
                        out.push_back(Action::Ask(Question::Note));
                        self.store_reached((sent, received), now, reply.now, node, out)
                    }
                    Err(error) => {
                        self.heartbeat_at = Some(received.mono + RECONNECT);
                        self.store_lost(sent, &error, out);
                        now
                    }
                };
                self.attend(now, node, out);
            }
            Report::Registered { plan, reply } => {
                self.registered(now, plan, reply, node, out);
                self.attend(now, node, out);
            }
            Report::Closed { slot, reply } => self.verdicts.answered(now, &slot, reply, node.entries, out),
            // The slots are the machine's.
            Report::Looked(_) => {}
        }
    }

    fn store_lost(&mut self, sent: Now, error: &StoreError, out: &mut Outbox) {
        (self.reached, self.denied) = (false, error.is_refusal());
        if self.lost_since.is_none() {
            self.lost_since = Some(sent.mono);
            out.push_back(Action::Emit(Event::StoreLost { error: error.to_string(), kind: error.kind }));
        }
    }

    /// Answers what time it is: the wall clock may have been put right.
    fn store_reached(
        &mut self,
        (sent, received): (Now, Now),
        now: Now,
        store_now: DateTime<Utc>,
        node: &Context<'_>,
        out: &mut Outbox,
    ) -> Now {
        let offset = offset_ms(sent, received, store_now);
        if offset.unsigned_abs() > CLOCK_OFF.as_millis().try_into().unwrap_or(u64::MAX)
            && self.clock_offset_ms.abs_diff(offset) > 1_000
        {
            out.push_back(Action::Emit(Event::ClockOff { offset_ms: offset }));
        }
        self.clock_offset_ms = offset;
        let uncertain = received.mono.since(sent.mono) / 2;
        let mut right = now;
        if let Some(ahead_ms) = correction_ms(self.ahead_ms, offset, uncertain) {
            let back = TimeDelta::milliseconds(ahead_ms.saturating_sub(self.ahead_ms));
            right.wall = now.wall.checked_sub_signed(back).unwrap_or(now.wall);
            self.ahead_ms = ahead_ms;
            self.wall_corrected(right, uncertain, node);
            out.push_back(Action::CorrectClock { ahead_ms });
        }
        if !self.reached {
            let away = self.lost_since.take().map(|since| received.mono.since(since));
            out.push_back(Action::Emit(Event::StoreReached { away }));
        }
        (self.reached, self.denied) = (true, false);
        self.seen = Some(received);
        right
    }

    /// The wall clock was put right. What was known of slots by the wrong time before the first contact is void: nothing
    /// was closed by it. Later the closer goes on where it was, but for jobs that were taken by a clock that was ahead.
    fn wall_corrected(&mut self, now: Now, uncertain: Duration, node: &Context<'_>) {
        if matches!(self.first_contact, FirstContact::Asked) {
            // The first contact may have been long in coming. A slot that may have lasted then is asked about.
            let wall = no_earlier_than(self.began, now, uncertain);
            self.verdicts.begin_anew(node.entries, Now { mono: self.began, wall });
        }
        self.verdicts.clock_put_right(now);
    }

    /// The registry of nodes was read: what those before this one had closed.
    fn nodes_read(
        &mut self,
        asked: (Now, Now),
        now: Now,
        store_now: DateTime<Utc>,
        (nodes, node): (&[NodeEntry], &Context<'_>),
        out: &mut Outbox,
    ) -> Now {
        let now = self.store_reached(asked, now, store_now, node, out);
        self.silent_since = handover::silence(nodes, store_now);
        if let Some(last) = self.silent_since {
            out.push_back(Action::Emit(Event::ClusterWasDown { gap: between(last, store_now) }));
        }
        self.first_contact = FirstContact::Read {
            closed: handover::closed(nodes, node.upkeep.silence()),
            left: handover::left(nodes, (&node.identity.name, &node.identity.instance), store_now),
        };
        now
    }

    /// The registry of jobs knows the plan, or will not take it. Either way the node takes over from those before it.
    fn registered(
        &mut self,
        now: Now,
        plan: u64,
        reply: Result<Vec<JobEntry>, StoreError>,
        node: &Context<'_>,
        out: &mut Outbox,
    ) {
        self.registering = false;
        let first_seen: BTreeMap<JobName, DateTime<Utc>> = match reply {
            Ok(jobs) => {
                self.registered = Some(plan);
                self.refused = false;
                self.register_at = None;
                let silence = node.upkeep.silence();
                let is_new = |entry: &JobEntry| later(entry.first_seen, silence) > now.wall;
                // Of a job that is new to a store which came back empty, another node may know more.
                self.refresh_at = Some(now.mono + if jobs.iter().any(is_new) { silence } else { REFRESH });
                jobs.into_iter().map(|job| (job.name, job.first_seen)).collect()
            }
            Err(error) => {
                // The same content would be refused again.
                let wait = if error.kind == ErrorKind::Content { REFRESH } else { RECONNECT };
                // What became of an older plan says nothing of the present one.
                if plan == self.plan {
                    self.register_at = Some(now.mono + wait);
                }
                if error.is_transient() {
                    // The heartbeat tells of a store that is away; taking over can wait for it.
                    return;
                }
                if !std::mem::replace(&mut self.refused, true) {
                    out.push_back(Action::Emit(Event::RegistrationRefused { error: error.to_string() }));
                }
                BTreeMap::new()
            }
        };
        if let FirstContact::Read { closed, left } = std::mem::replace(&mut self.first_contact, FirstContact::Over) {
            self.verdicts.take_over(&closed, &first_seen, node.upkeep.silence(), node.entries);
            // Only now does the closer say which of them it comes to itself, with all attempts of the job.
            self.verdicts.left_behind(&left, now, node.entries, out);
        }
    }
}
