//! Events as log lines. The messages are stable words; everything that varies is a field.

use tracing::{debug, error, info, warn};

use crate::guard::Event;
use crate::job::NodeName;
use crate::observe::{NodeEvent, Observer};
use crate::slot::{Holder, Outcome, Slot, Verdict};

/// Writes every event with `tracing`.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogObserver;

impl Observer for LogObserver {
    fn slot(&self, slot: &Slot, event: &Event) {
        let (job, key) = (slot.job().as_str(), slot.key().to_string());
        match event {
            Event::RunEnded { .. } => run_ended(job, &key, event),
            Event::LeaseInDoubt { .. }
            | Event::LeaseLost { .. }
            | Event::LeaseRestored { .. }
            | Event::Overtaken { .. } => {
                lease_trouble(job, &key, event);
            }
            Event::ClaimAnswered { answer, by, .. } => {
                debug!(
                    job,
                    slot = key,
                    answer = answer.as_str(),
                    by = by.as_ref().map(NodeName::as_str),
                    "claim answered"
                );
            }
            // The answer to the claim has been told, and the start is about to be.
            Event::Granted { .. } => {}
            Event::RenewalAnswered { answer } => debug!(job, slot = key, answer = answer.as_str(), "renewal answered"),
            Event::StoreFailed { op, kind, message } => {
                warn!(job, slot = key, op = op.as_str(), kind = kind.as_str(), error = message, "store failed");
            }
            Event::RunStarted { attempt, fence, trigger, guarded: true } => {
                info!(job, slot = key, attempt, fence = fence.0, trigger = trigger.as_str(), "run started");
            }
            Event::RunStarted { fence, guarded: false, .. } => {
                error!(
                    job,
                    slot = key,
                    fence = fence.0,
                    "run started without a guard: the store is unreachable and on_store_error is \"run\""
                );
            }
            Event::RunTimedOut { attempt } => warn!(job, slot = key, attempt, "run timed out: stopping it"),
            Event::Settled { attempt, outcome } => {
                debug!(job, slot = key, attempt, outcome = outcome.as_str(), "recorded");
            }
            Event::AttemptsUsedUp { used } => error!(job, slot = key, attempts = used, "attempts exhausted"),
            Event::SettlementGivenUp { attempt, outcome } => {
                error!(
                    job,
                    slot = key,
                    attempt,
                    outcome = outcome.as_str(),
                    "could not be recorded: the store was unreachable for too long"
                );
            }
            // Each minute's sum is told of the node.
            Event::Shed => debug!(job, slot = key, "not started: the node was overloaded until the slot's end"),
            Event::StartDeadlinePassed => warn!(job, slot = key, "not started: the start deadline has passed"),
        }
    }

    fn closed(&self, slot: &Slot, verdict: Verdict) {
        let (job, key, verdict_word) = (slot.job().as_str(), slot.key().to_string(), verdict.as_str());
        match verdict {
            Verdict::Done => debug!(job, slot = key, verdict = verdict_word, "slot closed"),
            Verdict::Skipped => info!(job, slot = key, verdict = verdict_word, "slot closed"),
            Verdict::Failed | Verdict::Missed => error!(job, slot = key, verdict = verdict_word, "slot closed"),
        }
    }

    fn node(&self, event: &NodeEvent) {
        match event {
            NodeEvent::Started { jobs } => info!(jobs, "started"),
            // `cronward check` and `next` show a plan better than a log.
            NodeEvent::Planned { .. } => {}
            NodeEvent::StoreReached { away: None } => info!("store reached"),
            NodeEvent::StoreReached { away: Some(away) } => info!(away_s = away.as_secs(), "store is back"),
            NodeEvent::StoreLost { message } => error!(error = message, "store cannot be used: trying again"),
            NodeEvent::ClockOff { offset_ms } => warn!(offset_ms, "this node's clock and the store's differ"),
            NodeEvent::Namesake { instance, started_at } => {
                let started = started_at.to_rfc3339();
                warn!(other = instance, started, "another live node has the same name: give each node its own name");
            }
            NodeEvent::RegistrationRefused { message } => error!(error = message, "jobs not registered"),
            NodeEvent::ClusterWasDown { gap } => {
                warn!(gap_s = gap.as_secs(), "no node was alive: closing the slots that ended meanwhile");
            }
            NodeEvent::DoneAgain { slot } => {
                let (job, slot) = (slot.job().as_str(), slot.key().to_string());
                warn!(job, slot, "done recorded again: the store had no record of this success");
            }
            NodeEvent::Overloaded { shed, jobs, waiting, running, is_full: true } => warn!(
                shed,
                jobs,
                waiting,
                running,
                "overloaded: max_running is reached, slots wait or end unstarted; raise it or add nodes"
            ),
            NodeEvent::Overloaded { shed, jobs, waiting, running, is_full: false } => warn!(
                shed,
                jobs,
                waiting,
                running,
                "overloaded: slots ended before they could be started; add nodes or processors, or run less often"
            ),
            NodeEvent::StoreFailing { slots, message } => {
                warn!(slots, error = message, "slots cannot be claimed: the store fails");
            }
            NodeEvent::StoreFailingOver { slots } => info!(slots, "slots can be claimed again"),
            NodeEvent::SlotsMissed { job, slots, first, last } => {
                let (job, first, last) = (job.as_str(), first.to_string(), last.to_string());
                error!(job, slots, first, last, "slots missed: they ended and no success was recorded");
            }
            NodeEvent::Gap { slots } => debug!(slots, "looking back at current slots"),
            NodeEvent::Reloaded { jobs, changed } => {
                let changed: Vec<&str> = changed.iter().map(crate::job::JobName::as_str).collect();
                let changed = changed.join(" ");
                if *jobs == 0 {
                    warn!(jobs, changed, "reloaded: the file has no jobs for this node, so the node runs none");
                } else {
                    info!(jobs, changed, "reloaded");
                }
            }
            NodeEvent::ReloadRefused { message } => error!(error = message, "not reloaded: the old jobs stay active"),
            NodeEvent::Draining { running, drain } => info!(running, drain_s = drain.as_secs(), "shutting down"),
            NodeEvent::Stopped => info!("stopped"),
            NodeEvent::Fault { message } => error!(error = message, "internal error"),
        }
    }
}

/// The same for a node, which tells in sums what may happen to thousands of slots at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeLog;

impl Observer for NodeLog {
    fn slot(&self, slot: &Slot, event: &Event) {
        let (job, key) = (slot.job().as_str(), slot.key().to_string());
        if let Event::StoreFailed { op, kind, message } = event {
            debug!(job, slot = key, op = op.as_str(), kind = kind.as_str(), error = message, "store failed");
        } else {
            LogObserver.slot(slot, event);
        }
    }

    fn closed(&self, slot: &Slot, verdict: Verdict) {
        if verdict == Verdict::Missed {
            debug!(job = slot.job().as_str(), slot = slot.key().to_string(), verdict = verdict.as_str(), "slot closed");
        } else {
            LogObserver.closed(slot, verdict);
        }
    }

    fn node(&self, event: &NodeEvent) {
        LogObserver.node(event);
    }
}

fn run_ended(job: &str, slot: &str, event: &Event) {
    let Event::RunEnded { attempt, outcome, exit_code, signal, duration, message } = event else { return };
    let (outcome_word, duration_s) = (outcome.as_str(), duration.as_secs_f64());
    if *outcome == Outcome::Success {
        info!(job, slot, attempt, outcome = outcome_word, duration_s, note = message, "run ended");
    } else {
        warn!(job, slot, attempt, outcome = outcome_word, exit_code, signal, duration_s, note = message, "run ended");
    }
}

fn lease_trouble(job: &str, slot: &str, event: &Event) {
    let node = |by: &Holder| by.node.to_string();
    match event {
        Event::LeaseInDoubt { attempt, killing } => {
            error!(job, slot, attempt, killing, "lease renewal overdue: another node may start the slot");
        }
        Event::LeaseLost { attempt, to, killing } => {
            error!(job, slot, attempt, to = to.as_ref().map(node), killing, "lease lost: two runs may overlap");
        }
        Event::LeaseRestored { attempt } => warn!(job, slot, attempt, "lease restored: the store had lost it"),
        Event::Overtaken { attempt, by } => {
            error!(
                job,
                slot,
                attempt,
                by = node(by),
                by_attempt = by.attempt,
                "ran concurrently: the slot ran more than once"
            );
        }
        _ => {}
    }
}
