//! From events to facts. Nothing is left out and nothing is judged.

use crate::guard::Event;
use crate::job::JobSpec;
use crate::observe::NodeEvent;
use crate::observe::journal::line::{Fact, Plan, seconds};

/// Digits of a token that a journal shows.
const TOKEN_DIGITS: usize = 8;

impl From<&Event> for Fact {
    fn from(event: &Event) -> Self {
        match event {
            Event::ClaimAnswered { answer, by, foreign: _, begins_in: _ } => {
                Self::ClaimAnswered { answer: answer.as_str().to_owned(), by: by.clone() }
            }
            Event::Granted { lease, used, max_attempts, retry_delay, poll, on_lost } => Self::Granted {
                attempt: lease.attempt,
                used: *used,
                max_attempts: *max_attempts,
                granted_at: lease.claimed_at,
                token: lease.token.to_string().chars().take(TOKEN_DIGITS).collect(),
                trigger: lease.trigger,
                lease_ttl_s: seconds(lease.ttl),
                retry_delay_s: seconds(*retry_delay),
                poll_s: poll.map(seconds),
                on_lost: *on_lost,
            },
            Event::RunStarted { attempt, fence, trigger, guarded } => {
                Self::RunStarted { attempt: *attempt, fence: fence.0, trigger: *trigger, guarded: *guarded }
            }
            Event::RunEnded { attempt, outcome, exit_code, signal, duration, message } => Self::RunEnded {
                attempt: *attempt,
                outcome: *outcome,
                exit_code: *exit_code,
                signal: *signal,
                duration_s: seconds(*duration),
                note: message.clone(),
            },
            Event::RunTimedOut { attempt } => Self::RunTimedOut { attempt: *attempt },
            Event::RenewalAnswered { answer } => Self::RenewalAnswered { answer: answer.as_str().to_owned() },
            Event::LeaseInDoubt { attempt, killing } => Self::LeaseInDoubt { attempt: *attempt, killing: *killing },
            Event::LeaseLost { attempt, to, killing } => Self::LeaseLost {
                attempt: *attempt,
                to: to.as_ref().map(|to| to.node.clone()),
                to_attempt: to.as_ref().map(|to| to.attempt),
                killing: *killing,
            },
            Event::LeaseRestored { attempt } => Self::LeaseRestored { attempt: *attempt },
            Event::Settled { attempt, outcome } => Self::Settled { attempt: *attempt, outcome: *outcome },
            Event::Overtaken { attempt, by } => {
                Self::Overtaken { attempt: *attempt, by: by.node.clone(), by_attempt: by.attempt }
            }
            Event::AttemptsUsedUp { used } => Self::AttemptsUsedUp { used: *used },
            Event::SettlementGivenUp { attempt, outcome } => {
                Self::SettlementGivenUp { attempt: *attempt, outcome: *outcome }
            }
            Event::StoreFailed { op, kind, message } => {
                Self::StoreFailed { op: op.as_str().to_owned(), kind: kind.as_str().to_owned(), error: message.clone() }
            }
            Event::StartDeadlinePassed => Self::StartDeadlinePassed,
            Event::Shed => Self::Shed,
        }
    }
}

impl From<&NodeEvent> for Fact {
    fn from(event: &NodeEvent) -> Self {
        match event {
            NodeEvent::Started { jobs } => Self::Started { jobs: *jobs },
            NodeEvent::Planned { job, ours } => Self::Planned(plan(job, *ours)),
            NodeEvent::StoreReached { away } => Self::StoreReached { away_s: away.map(seconds) },
            NodeEvent::StoreLost { message } => Self::StoreLost { error: message.clone() },
            NodeEvent::RegistrationRefused { message } => Self::RegistrationRefused { error: message.clone() },
            NodeEvent::ClockOff { offset_ms } => Self::ClockOff { offset_ms: *offset_ms },
            NodeEvent::Namesake { instance, started_at } => {
                Self::Namesake { other: instance.clone(), started: *started_at }
            }
            NodeEvent::ClusterWasDown { gap } => Self::ClusterWasDown { gap_s: seconds(*gap) },
            NodeEvent::DoneAgain { slot } => Self::DoneAgain { of: slot.to_string() },
            NodeEvent::Overloaded { shed, jobs, waiting, running, is_full } => {
                Self::Overloaded { shed: *shed, jobs: *jobs, waiting: *waiting, running: *running, full: *is_full }
            }
            NodeEvent::StoreFailing { slots, message } => Self::StoreFailing { slots: *slots, error: message.clone() },
            NodeEvent::StoreFailingOver { slots } => Self::StoreFailingOver { slots: *slots },
            NodeEvent::SlotsMissed { job: _, slots, first, last } => {
                Self::SlotsMissed { slots: *slots, first: first.to_string(), last: last.to_string() }
            }
            NodeEvent::Gap { slots } => Self::Gap { slots: *slots },
            // Every job of the plan follows.
            NodeEvent::Reloaded { jobs, changed: _ } => Self::Reloaded { jobs: *jobs },
            NodeEvent::ReloadRefused { message } => Self::ReloadRefused { error: message.clone() },
            NodeEvent::Draining { running, drain } => Self::Draining { running: *running, drain_s: seconds(*drain) },
            NodeEvent::Stopped => Self::Stopped,
            NodeEvent::Fault { message } => Self::Fault { error: message.clone() },
        }
    }
}

fn plan(job: &JobSpec, ours: bool) -> Plan {
    Plan {
        schedule: job.schedule.clone(),
        timezone: job.timezone.name().to_owned(),
        period: job.period.to_string(),
        max_attempts: job.policy.max_attempts,
        lease_ttl_s: seconds(job.policy.lease_ttl),
        retry_delay_s: seconds(job.policy.retry.delay),
        on_lost: job.policy.on_lost,
        ours,
        jitter_s: Some(seconds(job.jitter)),
        start_deadline_s: job.policy.start_deadline.map(seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::SlotKey;

    #[test]
    fn sums_are_of_the_node_and_name_no_slot() {
        let key: SlotKey = "2026-11-21T14Z".parse().unwrap();
        for event in [
            NodeEvent::Overloaded { shed: 1, jobs: 1, waiting: 1, running: 1, is_full: true },
            NodeEvent::StoreFailing { slots: 1, message: "no answer".to_owned() },
            NodeEvent::StoreFailingOver { slots: 1 },
            NodeEvent::SlotsMissed { job: "push".parse().unwrap(), slots: 1, first: key, last: key },
        ] {
            assert!(!Fact::from(&event).is_of_slot(), "{event:?}");
        }
    }
}
