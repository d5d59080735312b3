//! Events as log lines. The messages are stable words; everything that varies is a field.

use chrono::{DateTime, SecondsFormat, Utc};
use tracing::{debug, error, info, warn};

use crate::error::ErrorKind;
use crate::event::{Event, LeaveAnswer, lock_names};
use crate::job::{JobName, NodeName};
use crate::observe::Observer;
use crate::slot::{Outcome, Overlap, Slot, Verdict};

/// Writes every event with `tracing`.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogObserver;

impl Observer for LogObserver {
    fn event(&self, slot: Option<&Slot>, event: &Event) {
        let job = slot.map_or("", |slot| slot.job().as_str());
        let key = slot.map(|slot| slot.key().to_string()).unwrap_or_default();
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
            Event::StoreFailed { op, kind: ErrorKind::Content, error } => {
                warn!(job, slot = key, op = op.as_str(), error, "content refused by the store: sent again without it");
            }
            Event::StoreFailed { op, kind, error } => {
                warn!(job, slot = key, op = op.as_str(), kind = kind.as_str(), error, "store failed");
            }
            Event::RunStarted { attempt, fence, trigger, guarded: true, .. } => {
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
            Event::Unstarted { attempt, why, .. } => {
                info!(job, slot = key, attempt, why, "not started: giving the attempt back");
            }
            Event::RunTimedOut { attempt } => warn!(job, slot = key, attempt, "run timed out: stopping it"),
            Event::Settled { attempt, outcome: Outcome::GivenBack } => {
                info!(job, slot = key, attempt, "given back");
            }
            Event::Settled { attempt, outcome } => {
                debug!(job, slot = key, attempt, outcome = outcome.as_str(), "recorded");
            }
            Event::AttemptsUsedUp { used } => error!(job, slot = key, attempts = used, "attempts exhausted"),
            Event::SettlementGivenUp { attempt, outcome } => {
                error!(job, slot = key, attempt, outcome = outcome.as_str(), "could not be recorded in time");
            }
            // Each minute's sum is told of the node.
            Event::Shed => debug!(job, slot = key, "not started: the node was overloaded until the slot's end"),
            Event::LockWaiting(_) | Event::LockHeld(_) | Event::LockLost(_) | Event::LockLeft(_) => match slot {
                Some(_) => locks(job, &key, event),
                None => service_locks(event),
            },
            Event::StartDeadlinePassed => warn!(job, slot = key, "not started: the start deadline has passed"),
            Event::Closed { verdict } => closed(job, &key, *verdict),
            Event::Started { .. }
            | Event::Planned(_)
            | Event::Reloaded { .. }
            | Event::ReloadRefused { .. }
            | Event::StoreReached { .. }
            | Event::StoreLost { .. }
            | Event::RegistrationRefused { .. }
            | Event::ClockOff { .. }
            | Event::Namesake { .. }
            | Event::ClusterWasDown { .. }
            | Event::StoreForgot { .. }
            | Event::DoneAgain { .. }
            | Event::Overloaded { .. }
            | Event::StartsPaused { .. }
            | Event::StartsResumed
            | Event::StoreFailing { .. }
            | Event::StoreFailingOver { .. }
            | Event::SlotsMissed { .. }
            | Event::Gap { .. }
            | Event::Draining { .. }
            | Event::Stopped
            | Event::Fault { .. }
            | Event::Dropped { .. }
            | Event::Unknown => of_node(event),
        }
    }
}

/// The same for a node, which tells in sums what may happen to thousands of slots at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeLog;

impl Observer for NodeLog {
    fn event(&self, slot: Option<&Slot>, event: &Event) {
        match (slot, event) {
            (Some(slot), Event::StoreFailed { op, kind, error }) if *kind != ErrorKind::Content => {
                let (job, key) = (slot.job().as_str(), slot.key().to_string());
                debug!(job, slot = key, op = op.as_str(), kind = kind.as_str(), error, "store failed");
            }
            (Some(slot), Event::Closed { verdict: Verdict::Missed }) => {
                let (job, key) = (slot.job().as_str(), slot.key().to_string());
                debug!(job, slot = key, verdict = Verdict::Missed.as_str(), "slot closed");
            }
            _ => LogObserver.event(slot, event),
        }
    }
}

fn closed(job: &str, slot: &str, verdict: Verdict) {
    let verdict_word = verdict.as_str();
    match verdict {
        Verdict::Done => debug!(job, slot, verdict = verdict_word, "slot closed"),
        Verdict::Skipped => info!(job, slot, verdict = verdict_word, "slot closed"),
        Verdict::Failed | Verdict::Missed => error!(job, slot, verdict = verdict_word, "slot closed"),
    }
}

fn of_node(event: &Event) {
    match event {
        Event::Started { jobs } => info!(jobs, "started"),
        Event::StoreReached { away: None } => info!("store reached"),
        Event::StoreReached { away: Some(away) } => info!(away_s = away.as_secs(), "store is back"),
        Event::StoreLost { error, kind } => error!(kind = kind.as_str(), error, "store cannot be used: trying again"),
        Event::ClockOff { offset_ms } => warn!(offset_ms, "this node's clock and the store's differ"),
        Event::Namesake { other, started } => {
            let started = started.to_rfc3339();
            warn!(other, started, "another live node has the same name: give each node its own name");
        }
        Event::RegistrationRefused { error } => error!(error, "jobs not registered"),
        Event::ClusterWasDown { gap } => {
            warn!(gap_s = gap.as_secs(), "no node was alive: closing the slots that ended meanwhile");
        }
        Event::StoreForgot { acknowledged } => {
            let acknowledged = acknowledged.to_rfc3339();
            error!(acknowledged, "the store has lost its data: what live nodes know is recorded again");
        }
        Event::DoneAgain { of } => {
            let (job, slot) = of.split_once('@').unwrap_or((of, ""));
            warn!(job, slot, "done recorded again: the store had no record of this success");
        }
        Event::Overloaded { shed, jobs, waiting, running, full: true } => warn!(
            shed,
            jobs,
            waiting,
            running,
            "overloaded: max_running is reached, slots wait or end unstarted; raise it or add nodes"
        ),
        Event::Overloaded { shed, jobs, waiting, running, full: false } => warn!(
            shed,
            jobs,
            waiting,
            running,
            "overloaded: slots ended before they could be started; add nodes or processors, or run less often"
        ),
        Event::StartsPaused { error } => {
            error!(error, "commands cannot be started: this node claims nothing for some seconds");
        }
        Event::StartsResumed => info!("commands can be started again"),
        Event::StoreFailing { slots, error } => {
            warn!(slots, error, "slots cannot be claimed: the store fails");
        }
        Event::StoreFailingOver { slots } => info!(slots, "slots can be claimed again"),
        Event::SlotsMissed { job, slots, first, last } => {
            let job = job.as_ref().map(JobName::as_str);
            error!(job, slots, first, last, "slots missed: they ended and no success was recorded");
        }
        Event::Gap { slots } => debug!(slots, "looking back at current slots"),
        Event::Reloaded { jobs, changed } => {
            let changed: Vec<&str> = changed.iter().map(crate::job::JobName::as_str).collect();
            let changed = changed.join(" ");
            if *jobs == 0 {
                warn!(jobs, changed, "reloaded: the file has no jobs for this node, so the node runs none");
            } else {
                info!(jobs, changed, "reloaded");
            }
        }
        Event::ReloadRefused { error } => error!(error, "not reloaded: the old jobs stay active"),
        Event::Draining { running, drain } => info!(running, drain_s = drain.as_secs(), "shutting down"),
        Event::Stopped => info!("stopped"),
        Event::Fault { error } => error!(error, "internal error"),
        // `cronward check` and `next` show a plan better than a log.
        _ => {}
    }
}

fn run_ended(job: &str, slot: &str, event: &Event) {
    let Event::RunEnded { attempt, outcome, exit_code, signal, duration, ended_between, note } = event else { return };
    let outcome_word = outcome.as_str();
    if let Some((after, by)) = ended_between {
        let (after, by) = (instant(*after), instant(*by));
        warn!(job, slot, attempt, after, by, "run ended between two instants: this node stood still");
    }
    // Of such a run it is not known.
    let duration_s = ended_between.is_none().then(|| in_milliseconds(*duration));
    if *outcome == Outcome::GivenBack {
        // Given back once the store has confirmed it, which is another line.
        if duration.is_zero() {
            return warn!(job, slot, attempt, note, "not started for want of a resource: giving the attempt back");
        }
        warn!(job, slot, attempt, exit_code, signal, duration_s, note, "run stopped: giving the attempt back");
    } else if *outcome == Outcome::Success {
        info!(job, slot, attempt, outcome = outcome_word, duration_s, note, "run ended");
    } else {
        warn!(job, slot, attempt, outcome = outcome_word, exit_code, signal, duration_s, note, "run ended");
    }
}

fn instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Seconds with three decimals: more are the floating point's own.
fn in_milliseconds(span: std::time::Duration) -> f64 {
    (span.as_secs_f64() * 1_000.0).round() / 1_000.0
}

fn lease_trouble(job: &str, slot: &str, event: &Event) {
    match event {
        Event::LeaseInDoubt { attempt, killing, ended: true } => {
            error!(
                job,
                slot, attempt, killing, "lease renewal overdue at the end of the run: another node may have started"
            );
        }
        Event::LeaseInDoubt { attempt, killing, .. } => {
            error!(job, slot, attempt, killing, "lease renewal overdue: another node may start the slot");
        }
        Event::LeaseLost { attempt, to, unstarted: true, .. } => {
            let to = to.as_ref().map(NodeName::as_str);
            warn!(job, slot, attempt, to, "lease lost: the command was not started");
        }
        Event::LeaseLost { attempt, to, killing, .. } => {
            error!(
                job,
                slot,
                attempt,
                to = to.as_ref().map(NodeName::as_str),
                killing,
                "lease lost: two runs may overlap"
            );
        }
        Event::LeaseRestored { attempt } => {
            warn!(job, slot, attempt, "lease restored: it had expired, or the store had lost it");
        }
        Event::Overtaken { attempt, by, by_attempt, unstarted: true, .. } => {
            debug!(job, slot, attempt, by = by.as_str(), by_attempt, "overtaken: the command was not started");
        }
        Event::Overtaken { .. } => overtaken(job, slot, event),
        _ => {}
    }
}

/// Of a command that was started.
fn overtaken(job: &str, slot: &str, event: &Event) {
    let Event::Overtaken { attempt, by, by_attempt: other, overlap, .. } = event else { return };
    let by = by.as_str();
    match overlap {
        Overlap::Sure => {
            error!(job, slot, attempt, by, by_attempt = other, "ran concurrently: the slot ran more than once");
        }
        Overlap::Possible => {
            error!(
                job,
                slot,
                attempt,
                by,
                by_attempt = other,
                "may have run concurrently: the slot ran more than once"
            );
        }
        Overlap::No => error!(
            job,
            slot,
            attempt,
            by,
            by_attempt = other,
            "ran again: the slot ran more than once, one run after the other"
        ),
    }
}

/// Of a request that belongs to no slot.
fn service_locks(event: &Event) {
    match event {
        Event::LockWaiting(wait) => {
            let (locks, by, label) = (lock_names(&wait.locks), wait.by.as_str(), wait.by_label.as_str());
            info!(locks, ahead = wait.ahead, by, label, "waiting long for a lock");
        }
        Event::LockHeld(grant) => {
            let (locks, waited_s) = (lock_names(&grant.locks), grant.waited.as_secs_f64());
            debug!(locks, fence = grant.fence.0, waited_s, "lock held");
        }
        Event::LockLost(loss) if loss.in_doubt => {
            warn!(locks = lock_names(&loss.locks), "lock renewal overdue: another holder may overlap");
        }
        Event::LockLost(loss) => {
            let (to, label) = (loss.to.as_ref().map(NodeName::as_str), loss.to_label.as_str());
            warn!(locks = lock_names(&loss.locks), to, label, "lock lost: another holder may overlap");
        }
        Event::LockLeft(leave) if leave.answer == LeaveAnswer::Released => {
            debug!(locks = lock_names(&leave.locks), "lock released");
        }
        Event::LockLeft(leave) => {
            let (locks, answer) = (lock_names(&leave.locks), leave.answer.as_str());
            let (by, label) = (leave.by.as_ref().map(NodeName::as_str), leave.by_label.as_str());
            warn!(locks, answer, by, label, "lock released too late, or not for certain");
        }
        _ => {}
    }
}

fn locks(job: &str, slot: &str, event: &Event) {
    match event {
        Event::LockWaiting(wait) => {
            let (locks, by, label) = (lock_names(&wait.locks), wait.by.as_str(), wait.by_label.as_str());
            info!(job, slot, attempt = wait.attempt, locks, ahead = wait.ahead, by, label, "waiting for locks");
        }
        Event::LockHeld(grant) => {
            let (locks, waited_s) = (lock_names(&grant.locks), grant.waited.as_secs_f64());
            debug!(job, slot, attempt = grant.attempt, locks, fence = grant.fence.0, waited_s, "locks held");
        }
        Event::LockLost(loss) if loss.unstarted => {
            let to = loss.to.as_ref().map(NodeName::as_str);
            debug!(job, slot, attempt = loss.attempt, to, in_doubt = loss.in_doubt, "locks lost before the start");
        }
        Event::LockLost(loss) => {
            let (to, label) = (loss.to.as_ref().map(NodeName::as_str), loss.to_label.as_str());
            let (attempt, in_doubt, killing) = (loss.attempt, loss.in_doubt, loss.killing);
            error!(job, slot, attempt, to, label, in_doubt, killing, "locks lost: another holder may overlap");
        }
        Event::LockLeft(leave) if leave.answer == LeaveAnswer::Overtaken => {
            let (by, label) = (leave.by.as_ref().map(NodeName::as_str), leave.by_label.as_str());
            error!(job, slot, attempt = leave.attempt, by, label, "locks overtaken: another held them meanwhile");
        }
        Event::LockLeft(leave) => {
            debug!(job, slot, attempt = leave.attempt, answer = leave.answer.as_str(), why = leave.why, "locks left");
        }
        _ => {}
    }
}
