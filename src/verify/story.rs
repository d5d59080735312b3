//! All that is known of one slot: its runs, its grants, its verdicts, and what its nodes were answered.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::later;
use crate::event::Event;
use crate::job::NodeName;
use crate::reply::{ClaimAnswer, RenewalAnswer};
use crate::slot::{Attempt, Outcome, Slot, Verdict};
use crate::verify::availability::Obstacle;
use crate::verify::history::{Heard, LATENESS};
use crate::verify::inputs::RecordedRun;
use crate::verify::run::{self, GIVEN_UP, Grant, JournalRun};
use crate::verify::slot_locks::{LockLine, SlotLocks};

/// All that is known of one slot.
#[derive(Debug)]
pub(super) struct Story {
    pub(super) slot: Slot,
    /// It had its tick while a node was there that was to do it.
    pub(super) planned: bool,
    /// The TTL that its nodes planned with, where they told.
    pub(super) planned_ttl: Option<Duration>,
    /// In the order in which they started.
    pub(super) runs: Vec<JournalRun>,
    /// Each claim once, by the store's clock.
    pub(super) grants: Vec<Grant>,
    pub(super) verdicts: Vec<(DateTime<Utc>, Verdict, String)>,
    /// Somebody was told that it is done; by whom, where that was told too.
    pub(super) done: bool,
    pub(super) done_by: Option<NodeName>,
    /// When somebody was first told so.
    pub(super) done_at: Option<DateTime<Utc>>,
    /// When somebody was answered that it is done, by whom, and whether to a renewal of that node.
    told_done: Vec<(DateTime<Utc>, NodeName, bool)>,
    /// What claims were answered.
    answers: BTreeSet<ClaimAnswer>,
    /// Which instances were told that its attempts are used up, and when.
    told_used_up: Vec<(usize, DateTime<Utc>)>,
    /// The same, before the first run; and who held the slot then.
    pub(super) before_any_run: BTreeSet<ClaimAnswer>,
    pub(super) held_before_any_run: BTreeSet<NodeName>,
    /// What kept which node from claiming it, from when to when.
    pub(super) obstacles: Vec<Obstacle>,
    /// How its attempts waited for locks, and what they held.
    pub(super) locks: SlotLocks,
    /// When somebody first told that its start deadline had passed.
    pub(super) start_deadline_passed: Option<DateTime<Utc>>,
    /// A node that had no room for it until its end.
    pub(super) shed_by: Option<NodeName>,
    /// Successes that were settled by who never told of a run: instance, when, the line.
    pub(super) settled_unseen: Vec<(usize, DateTime<Utc>, String)>,
    /// When each instance last spoke of it.
    last_words: BTreeMap<usize, DateTime<Utc>>,
    /// Attempts that were given back, with their instance.
    pub(super) refunded: BTreeSet<(usize, Attempt)>,
    /// Attempts that another one took the place of, with their instance.
    pub(super) overtaken: BTreeSet<(usize, Attempt)>,
    /// Those that were to be given back, by what their node told: the store may have done so, though nobody was left to hear of it.
    pub(super) refund_ordered: BTreeSet<(usize, Attempt)>,
    /// Grants that were heard of after the slot's end: they are given back unless the node's clock is behind.
    pub(super) granted_late: BTreeSet<(usize, Attempt)>,
    /// The lines that say how it went, for whoever has to look.
    pub(super) lines: Vec<String>,
}

/// Lines of one slot that are shown at the most.
const MOST_LINES: usize = 40;

impl Story {
    pub(super) fn new(slot: Slot) -> Self {
        Self {
            slot,
            planned: false,
            planned_ttl: None,
            runs: Vec::new(),
            grants: Vec::new(),
            verdicts: Vec::new(),
            done: false,
            done_by: None,
            done_at: None,
            told_done: Vec::new(),
            answers: BTreeSet::new(),
            told_used_up: Vec::new(),
            before_any_run: BTreeSet::new(),
            held_before_any_run: BTreeSet::new(),
            obstacles: Vec::new(),
            locks: SlotLocks::default(),
            start_deadline_passed: None,
            shed_by: None,
            settled_unseen: Vec::new(),
            last_words: BTreeMap::new(),
            refunded: BTreeSet::new(),
            overtaken: BTreeSet::new(),
            refund_ordered: BTreeSet::new(),
            granted_late: BTreeSet::new(),
            lines: Vec::new(),
        }
    }

    /// Takes over what a line says of the slot.
    pub(super) fn hear(&mut self, heard: &Heard) {
        let source = &heard.told.source;
        self.last_words.insert(heard.instance, heard.at);
        Obstacle::hear(&mut self.obstacles, heard);
        self.hear_of_locks(heard);
        match &heard.told.line.event {
            Event::ClaimAnswered { answer, by, .. } => return self.answered(heard, *answer, by.as_ref()),
            Event::RenewalAnswered { answer } => {
                // Of its own success, unless it says that the lease is lost.
                if *answer == RenewalAnswer::Done {
                    self.is_told_done(heard.at, true);
                    self.told_done.push((heard.at, heard.told.line.node.clone(), true));
                }
                return;
            }
            Event::Granted { .. } => self.granted(heard),
            Event::RunStarted { attempt, fence, guarded, .. } => self.started(heard, *attempt, fence.0, *guarded),
            Event::Closed { verdict } => {
                self.is_told_done(heard.at, *verdict == Verdict::Done);
                self.verdicts.push((heard.at, *verdict, source.clone()));
            }
            Event::StartDeadlinePassed => {
                self.start_deadline_passed = self.start_deadline_passed.or(Some(heard.at));
            }
            Event::Shed => self.shed_by = Some(heard.told.line.node.clone()),
            // It is given back with that word; the answer may be lost, or come when the node is gone.
            Event::Unstarted { attempt, .. } => {
                self.refund_ordered.insert((heard.instance, *attempt));
            }
            event => self.of_a_run(heard, event),
        }
        if self.lines.len() < MOST_LINES {
            self.lines.push(source.clone());
        }
    }

    fn hear_of_locks(&mut self, heard: &Heard) {
        let Heard { at, instance, told, .. } = heard;
        let line = LockLine { at: *at, instance: *instance, event: &told.line.event, source: &told.source };
        let of = |grant: &&Grant, attempt| grant.instance == *instance && grant.attempt == attempt;
        self.locks.hear(&line, |attempt| self.grants.iter().rev().find(|grant| of(grant, attempt)));
    }

    fn answered(&mut self, heard: &Heard, answer: ClaimAnswer, by: Option<&NodeName>) {
        match answer {
            ClaimAnswer::Done => {
                self.is_told_done(heard.at, true);
                self.done_by = by.cloned().or(self.done_by.take());
                self.told_done.extend(by.map(|by| (heard.at, by.clone(), false)));
            }
            ClaimAnswer::Exhausted => self.told_used_up.push((heard.instance, heard.at)),
            ClaimAnswer::Backoff => {
                let run = self.runs.last_mut().filter(|run| run.instance != Some(heard.instance));
                run.into_iter().for_each(|run| run.retry_was_waited_for = true);
            }
            ClaimAnswer::Held if self.runs.is_empty() => self.held_before_any_run.extend(by.cloned()),
            _ => {}
        }
        if self.runs.is_empty() {
            self.before_any_run.insert(answer);
        }
        self.answers.insert(answer);
    }

    fn is_told_done(&mut self, at: DateTime<Utc>, done: bool) {
        self.done |= done;
        self.done_at = self.done_at.or(done.then_some(at));
    }

    fn granted(&mut self, heard: &Heard) {
        let Event::Granted {
            attempt,
            used,
            max_attempts,
            granted_at,
            token,
            lease_ttl,
            retry_delay,
            poll,
            on_lost,
            past,
            ..
        } = &heard.told.line.event
        else {
            return;
        };
        // The same claim asked again is one grant. The next claim of a node counts its token on, beyond the digits that a
        // journal shows.
        let same = |grant: &Grant| (grant.instance, grant.attempt, &grant.token) == (heard.instance, *attempt, token);
        if self.grants.iter().any(same) {
            return;
        }
        // It is given back at once, whether the node lived to say so or not.
        if heard.at >= self.slot.end() && !*past {
            self.granted_late.insert((heard.instance, *attempt));
        }
        self.grants.push(Grant {
            instance: heard.instance,
            attempt: *attempt,
            used: *used,
            max_attempts: *max_attempts,
            at: *granted_at,
            heard: heard.at,
            token: token.clone(),
            lease_ttl: *lease_ttl,
            retry_delay: *retry_delay,
            poll: poll.unwrap_or_default(),
            on_lost: *on_lost,
            past: *past,
            line: heard.number,
        });
    }

    fn started(&mut self, heard: &Heard, attempt: Attempt, fence: u64, guarded: bool) {
        let own = |grant: &&Grant| grant.instance == heard.instance && grant.attempt == attempt;
        self.runs.push(JournalRun {
            node: heard.told.line.node.clone(),
            instance: Some(heard.instance),
            attempt,
            fence,
            guarded,
            start: heard.at,
            ordered: heard.at,
            end: None,
            ran: None,
            ended_after: None,
            measured: false,
            end_is_measured: false,
            met_another: false,
            outcome: None,
            settled: None,
            retry_was_waited_for: false,
            grant: self.grants.iter().rev().find(own).cloned(),
            trouble: if guarded { Vec::new() } else { vec!["ran without a guard"] },
            lines: vec![heard.told.source.clone()],
        });
    }

    /// What is told of a run that has started; a settlement without a run is that of a claim that was given back.
    fn of_a_run(&mut self, heard: &Heard, event: &Event) {
        let (attempt, trouble) = match event {
            Event::RunEnded { attempt, .. } | Event::Settled { attempt, .. } | Event::RunTimedOut { attempt } => {
                (*attempt, None)
            }
            Event::LeaseInDoubt { attempt, .. } => (*attempt, Some("lease in doubt")),
            Event::LeaseLost { attempt, .. } => (*attempt, Some("lease lost")),
            Event::LeaseRestored { attempt } => (*attempt, Some("lease restored")),
            Event::Overtaken { attempt, .. } => (*attempt, Some("overtaken")),
            Event::SettlementGivenUp { attempt, .. } => (*attempt, Some(GIVEN_UP)),
            _ => return,
        };
        let settled_well = matches!(event, Event::Settled { outcome: Outcome::Success, .. });
        self.is_told_done(heard.at, settled_well);
        if matches!(event, Event::Settled { outcome: Outcome::GivenBack, .. }) {
            self.refunded.insert((heard.instance, attempt));
        }
        if matches!(event, Event::Overtaken { .. }) {
            self.overtaken.insert((heard.instance, attempt));
        }
        if matches!(event, Event::SettlementGivenUp { outcome: Outcome::GivenBack, .. }) {
            self.refund_ordered.insert((heard.instance, attempt));
        }
        let own = |run: &&mut JournalRun| run.instance == Some(heard.instance) && run.attempt == attempt;
        let Some(run) = self.runs.iter_mut().rev().find(own) else {
            if settled_well {
                self.settled_unseen.push((heard.instance, heard.at, heard.told.source.clone()));
            }
            return;
        };
        run.lines.push(heard.told.source.clone());
        run.trouble.extend(trouble);
        match event {
            Event::RunEnded { outcome, duration, ended_between, .. } => {
                (run.end, run.outcome) = (Some(heard.at), Some(*outcome));
                run.ran = Some(*duration);
                run.ended_after = ended_between.map(|(after, _)| after);
            }
            Event::Settled { .. } => run.settled = Some(heard.at),
            _ => {}
        }
    }

    /// Lays the job's own record over what its node told of the run; a run that no node told of is new.
    pub(super) fn record(&mut self, recorded: &RecordedRun) {
        let same =
            |run: &&mut JournalRun| !run.measured && run.attempt == recorded.attempt && run.node == recorded.node;
        // Where numbers began anew, a node can have had one twice, and not have been able to start the first.
        let near = |run: &&mut JournalRun| (run.start - recorded.start).abs();
        if let Some(run) = self.runs.iter_mut().filter(same).min_by_key(near) {
            run.measured = true;
            run.met_another = recorded.overlap;
            run.start = recorded.start;
            run.end = recorded.end.or(run.end);
            run.end_is_measured = recorded.end.is_some();
            run.lines.push(recorded.source.clone());
            return;
        }
        self.runs.push(JournalRun {
            node: recorded.node.clone(),
            instance: None,
            attempt: recorded.attempt,
            fence: recorded.fence,
            guarded: recorded.attempt > 0,
            start: recorded.start,
            ordered: recorded.start,
            end: recorded.end,
            ran: None,
            ended_after: None,
            measured: true,
            end_is_measured: recorded.end.is_some(),
            met_another: recorded.overlap,
            outcome: None,
            settled: None,
            retry_was_waited_for: false,
            grant: None,
            trouble: Vec::new(),
            lines: vec![recorded.source.clone()],
        });
    }

    /// A success is recorded where somebody was answered that its node did the slot: the answer to its completion may be lost,
    /// or come when the node is gone. Of several successes of a node such an answer does not say which.
    pub(super) fn settle_by_others(&mut self) {
        for (at, by, renewal) in std::mem::take(&mut self.told_done) {
            let mut own = self.runs.iter_mut().filter(|run| run.node == by && run.succeeded());
            if let (Some(run), None) = (own.next(), own.next())
                && run.settled.is_none()
                && !(renewal && run.trouble.contains(&"lease lost"))
                && run.end.is_some_and(|end| end <= later(at, LATENESS))
            {
                run.settled = Some(at);
            }
        }
    }

    /// Two orders that everything else relies on.
    pub(super) fn sort(&mut self) {
        run::sort(&mut self.runs);
        self.grants.sort_by_key(|grant| (grant.at, grant.attempt));
    }

    /// The largest TTL of its leases, or of those that were planned.
    pub(super) fn lease_ttl(&self) -> Duration {
        let granted = self.grants.iter().map(|grant| grant.lease_ttl).max();
        granted.or(self.planned_ttl).unwrap_or(crate::job::Policy::default().lease_ttl)
    }

    /// Attempts in all, by the node that claimed last.
    pub(super) fn max_attempts(&self) -> Option<u32> {
        self.grants.last().map(|grant| grant.max_attempts)
    }

    /// Attempts that were used by an instant, as the store counted them in its last grant.
    pub(super) fn used_at(&self, at: DateTime<Utc>) -> u32 {
        let last = self.grants.iter().rev().find(|grant| grant.at <= at);
        last.map_or(0, |grant| {
            grant.used.saturating_sub(u32::from(self.refunded.contains(&(grant.instance, grant.attempt))))
        })
    }

    /// When instances were told that its attempts are used up.
    pub(super) fn told_used_up(&self) -> impl Iterator<Item = DateTime<Utc>> {
        self.told_used_up.iter().map(|(_, at)| *at)
    }

    /// Whether an instance was told in a span that its attempts are used up, by the file that it had.
    pub(super) fn was_told_used_up(&self, instance: usize, (from, to): (DateTime<Utc>, DateTime<Utc>)) -> bool {
        self.told_used_up.iter().any(|(told, at)| *told == instance && from <= *at && *at <= to)
    }

    /// The verdict that stands.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        if self.done { Some(Verdict::Done) } else { self.verdicts.last().map(|(_, verdict, _)| *verdict) }
    }

    /// When an instance last spoke of it.
    pub(super) fn last_word_of(&self, instance: usize) -> Option<DateTime<Utc>> {
        self.last_words.get(&instance).copied()
    }

    /// Nobody was there to do it: all that is known is that a node asked for it when it was over, or, where the nodes' plans
    /// are known, would have asked for it had it not been too late.
    pub(super) fn is_nobodys(&self, plans_are_known: bool) -> bool {
        let too_late = plans_are_known && self.start_deadline_passed.is_some();
        let only_closed =
            self.answers.iter().all(|answer| *answer == ClaimAnswer::Closed) && (too_late || !self.answers.is_empty());
        let untouched = self.runs.is_empty() && self.grants.is_empty() && self.verdicts.is_empty();
        !self.planned && only_closed && untouched && !self.done
    }

    /// Those who had a part in it.
    pub(super) fn nodes(&self) -> Vec<&NodeName> {
        self.runs.iter().map(|run| &run.node).collect()
    }
}
