//! All that is known of one slot: its runs, its grants, its verdicts, and what its nodes were answered.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::job::NodeName;
use crate::observe::journal::Fact;
use crate::slot::{Attempt, Outcome, Slot, Verdict};
use crate::verify::history::Heard;
use crate::verify::inputs::RecordedRun;
use crate::verify::run::{Grant, Run};

/// All that is known of one slot.
#[derive(Debug)]
pub(super) struct Story {
    pub(super) slot: Slot,
    /// The TTL that its nodes planned with, where they told.
    pub(super) planned_ttl: Option<Duration>,
    /// In the order in which they started.
    pub(super) runs: Vec<Run>,
    /// Each claim once, by the store's clock.
    pub(super) grants: Vec<Grant>,
    pub(super) verdicts: Vec<(DateTime<Utc>, Verdict, String)>,
    /// Somebody was told that it is done; by whom, where that was told too.
    pub(super) done: bool,
    pub(super) done_by: Option<NodeName>,
    /// What claims were answered.
    pub(super) answers: BTreeSet<String>,
    pub(super) store_failed: bool,
    pub(super) start_deadline_passed: bool,
    /// Attempts that were given back, with their instance.
    refunded: BTreeSet<(usize, Attempt)>,
    /// The lines that say how it went, for whoever has to look.
    pub(super) lines: Vec<String>,
}

/// Lines of one slot that are shown at the most.
const MOST_LINES: usize = 40;

impl Story {
    pub(super) const fn new(slot: Slot) -> Self {
        Self {
            slot,
            planned_ttl: None,
            runs: Vec::new(),
            grants: Vec::new(),
            verdicts: Vec::new(),
            done: false,
            done_by: None,
            answers: BTreeSet::new(),
            store_failed: false,
            start_deadline_passed: false,
            refunded: BTreeSet::new(),
            lines: Vec::new(),
        }
    }

    /// Takes over what a line says of the slot.
    pub(super) fn hear(&mut self, heard: &Heard) {
        let source = &heard.told.source;
        match &heard.told.line.fact {
            Fact::ClaimAnswered { answer, by } => {
                self.done |= answer == "done";
                if answer == "done" {
                    self.done_by = by.clone().or(self.done_by.take());
                }
                self.answers.insert(answer.clone());
                return;
            }
            Fact::RenewalAnswered { answer } => {
                self.done |= answer == "done";
                return;
            }
            Fact::Granted { .. } => self.granted(heard),
            Fact::RunStarted { attempt, fence, guarded, .. } => self.started(heard, *attempt, *fence, *guarded),
            Fact::Closed { verdict } => {
                self.done |= *verdict == Verdict::Done;
                self.verdicts.push((heard.at, *verdict, source.clone()));
            }
            Fact::StoreFailed { .. } => self.store_failed = true,
            Fact::StartDeadlinePassed => self.start_deadline_passed = true,
            fact => self.of_a_run(heard, fact),
        }
        if self.lines.len() < MOST_LINES {
            self.lines.push(source.clone());
        }
    }

    fn granted(&mut self, heard: &Heard) {
        let Fact::Granted {
            attempt,
            used,
            max_attempts,
            granted_at,
            token,
            lease_ttl_s,
            retry_delay_s,
            poll_s,
            on_lost,
            ..
        } = &heard.told.line.fact
        else {
            return;
        };
        // The same claim asked again is one grant.
        if self.grants.iter().any(|grant| (grant.instance, &grant.token) == (heard.instance, token)) {
            return;
        }
        self.grants.push(Grant {
            instance: heard.instance,
            attempt: *attempt,
            used: *used,
            max_attempts: *max_attempts,
            at: *granted_at,
            token: token.clone(),
            lease_ttl: span(*lease_ttl_s),
            retry_delay: span(*retry_delay_s),
            poll: span(poll_s.unwrap_or(0.0)),
            on_lost: *on_lost,
            line: heard.number,
        });
    }

    fn started(&mut self, heard: &Heard, attempt: Attempt, fence: u64, guarded: bool) {
        let own = |grant: &&Grant| grant.instance == heard.instance && grant.attempt == attempt;
        self.runs.push(Run {
            node: heard.told.line.node.clone(),
            instance: Some(heard.instance),
            attempt,
            fence,
            guarded,
            start: heard.at,
            ordered: heard.at,
            end: None,
            measured: false,
            met_another: false,
            outcome: None,
            settled: None,
            grant: self.grants.iter().rev().find(own).cloned(),
            trouble: if guarded { Vec::new() } else { vec!["ran without a guard"] },
            lines: vec![heard.told.source.clone()],
        });
    }

    /// What is told of a run that has started; a settlement without a run is that of a claim that was given back.
    fn of_a_run(&mut self, heard: &Heard, fact: &Fact) {
        let (attempt, trouble) = match fact {
            Fact::RunEnded { attempt, .. } | Fact::Settled { attempt, .. } | Fact::RunTimedOut { attempt } => {
                (*attempt, None)
            }
            Fact::LeaseInDoubt { attempt, .. } => (*attempt, Some("lease in doubt")),
            Fact::LeaseLost { attempt, .. } => (*attempt, Some("lease lost")),
            Fact::LeaseRestored { attempt } => (*attempt, Some("lease restored")),
            Fact::Overtaken { attempt, .. } => (*attempt, Some("overtaken")),
            Fact::SettlementGivenUp { attempt, .. } => (*attempt, Some("settlement given up")),
            _ => return,
        };
        let settled_well = matches!(fact, Fact::Settled { outcome: Outcome::Success, .. });
        self.done |= settled_well;
        if matches!(fact, Fact::Settled { outcome: Outcome::GivenBack, .. }) {
            self.refunded.insert((heard.instance, attempt));
        }
        let own = |run: &&mut Run| run.instance == Some(heard.instance) && run.attempt == attempt;
        let Some(run) = self.runs.iter_mut().rev().find(own) else { return };
        run.lines.push(heard.told.source.clone());
        run.trouble.extend(trouble);
        match fact {
            Fact::RunEnded { outcome, .. } => (run.end, run.outcome) = (Some(heard.at), Some(*outcome)),
            Fact::Settled { .. } => run.settled = Some(heard.at),
            _ => {}
        }
    }

    /// Lays the job's own record over what its node told of the run; a run that no node told of is new.
    pub(super) fn record(&mut self, recorded: &RecordedRun) {
        let same = |run: &&mut Run| !run.measured && run.attempt == recorded.attempt && run.node == recorded.node;
        if let Some(run) = self.runs.iter_mut().find(same) {
            run.measured = true;
            run.met_another = recorded.overlap;
            run.start = recorded.start;
            run.end = recorded.end.or(run.end);
            run.lines.push(recorded.source.clone());
            return;
        }
        self.runs.push(Run {
            node: recorded.node.clone(),
            instance: None,
            attempt: recorded.attempt,
            fence: recorded.fence,
            guarded: recorded.attempt > 0,
            start: recorded.start,
            ordered: recorded.start,
            end: recorded.end,
            measured: true,
            met_another: recorded.overlap,
            outcome: None,
            settled: None,
            grant: None,
            trouble: Vec::new(),
            lines: vec![recorded.source.clone()],
        });
    }

    /// Two orders that everything else relies on.
    pub(super) fn sort(&mut self) {
        self.runs.sort_by_key(|run| (run.start, run.attempt));
        self.grants.sort_by_key(|grant| (grant.at, grant.attempt));
    }

    /// Attempts that were made and not given back; a grant counts though nobody saw it start.
    pub(super) fn attempts_made(&self) -> usize {
        let granted = self.grants.iter().map(|grant| (grant.instance, grant.attempt));
        let started = self.runs.iter().filter(|run| run.guarded);
        let started = started.filter_map(|run| Some((run.instance?, run.attempt)));
        let made: BTreeSet<_> = granted.chain(started).collect();
        let alone = self.runs.iter().filter(|run| run.guarded && run.instance.is_none()).count();
        made.difference(&self.refunded).count() + alone
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

    /// The verdict that stands.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        if self.done { Some(Verdict::Done) } else { self.verdicts.last().map(|(_, verdict, _)| *verdict) }
    }

    /// Those who had a part in it.
    pub(super) fn nodes(&self) -> Vec<&NodeName> {
        self.runs.iter().map(|run| &run.node).collect()
    }
}

/// The longest span that a line can mean: sums of a few of them stay far from any end.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 86_400);

/// Seconds of a file as a span; nonsense is nothing.
pub(super) fn span(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default().min(LONGEST)
}
