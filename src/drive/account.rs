//! What happened at a slot, as its one caller is told.

use std::time::Duration;

use crate::error::ErrorKind;
use crate::guard::{End, Event};
use crate::job::NodeName;
use crate::reply::ClaimAnswer;
use crate::slot::{Attempt, Exit, ExitStatus, Fence, OUTPUT_LOST, Outcome, RunContext, Slot};

/// What happened at a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The slot.
    pub slot: Slot,
    /// How it ended here; none while it has not.
    pub end: Option<End>,
    /// The last answer to a claim.
    pub answer: Option<ClaimAnswer>,
    /// Another answer came before it: something was waited for.
    pub waited: bool,
    /// Who holds it or did it, where that was the last answer.
    pub by: Option<NodeName>,
    /// The last error of the store, when no answer came after it.
    pub store_error: Option<(ErrorKind, String)>,
    /// The attempts that were begun here, oldest first.
    pub runs: Vec<RunAccount>,
}

/// One attempt that was begun here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunAccount {
    /// Its number; 0 without a guard.
    pub attempt: Attempt,
    /// Its fence.
    pub fence: Fence,
    /// False: the store was away, and the policy says to run all the same.
    pub guarded: bool,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// How long it ran.
    pub duration: Option<Duration>,
    /// What went wrong, in words.
    pub message: Option<String>,
    /// Its lease was lost or in doubt while it ran: another run may have overlapped.
    pub lost: bool,
    /// The store knows how it ended.
    pub settled: bool,
}

impl Account {
    /// Of a slot at which nothing has happened yet.
    pub(crate) const fn new(slot: Slot) -> Self {
        Self { slot, end: None, answer: None, waited: false, by: None, store_error: None, runs: Vec::new() }
    }

    /// Of a command that ran within another run of the same slot, under its lease: nothing was asked or settled here.
    /// `timed_out`: it was stopped after a timeout of its own.
    pub fn nested(run: &RunContext, exit: Exit, timed_out: bool) -> Self {
        let (outcome, exit_code, signal, message) = match exit.status {
            ExitStatus::Code(0) => (Outcome::Success, Some(0), None, exit.note),
            ExitStatus::Code(code) => (Outcome::Failure, Some(code), None, exit.note),
            ExitStatus::Signal(signal) => (Outcome::Killed, None, Some(signal), exit.note),
            ExitStatus::OutputLost => (Outcome::Failure, Some(OUTPUT_LOST.into()), None, exit.note),
            ExitStatus::NotStarted { code, message } => (Outcome::Failure, Some(code), None, Some(message)),
        };
        let only = RunAccount {
            outcome: Some(if timed_out { Outcome::Timeout } else { outcome }),
            exit_code,
            signal,
            message,
            settled: true,
            ..begun(run.attempt, run.fence, true)
        };
        Self { runs: vec![only], ..Self::new(run.slot.clone()) }
    }

    /// The last attempt that was begun here.
    pub fn last_run(&self) -> Option<&RunAccount> {
        self.runs.last()
    }

    pub(super) fn hear(&mut self, event: &Event) {
        match event {
            Event::ClaimAnswered { answer, by, .. } => {
                self.waited |= self.answer.is_some();
                (self.answer, self.by, self.store_error) = (Some(*answer), by.clone(), None);
            }
            Event::Granted { .. } | Event::RenewalAnswered { .. } => self.store_error = None,
            Event::StoreFailed { kind, message, .. } => self.store_error = Some((*kind, message.clone())),
            Event::RunStarted { attempt, fence, guarded, .. } => self.runs.push(begun(*attempt, *fence, *guarded)),
            other => self.hear_of_run(other),
        }
    }

    fn hear_of_run(&mut self, event: &Event) {
        let Some(run) = self.runs.last_mut() else { return };
        match event {
            Event::RunEnded { outcome, exit_code, signal, duration, message, .. } => {
                run.outcome = Some(*outcome);
                (run.exit_code, run.signal, run.duration) = (*exit_code, *signal, Some(*duration));
                run.message.clone_from(message);
            }
            Event::LeaseInDoubt { .. } | Event::LeaseLost { .. } | Event::Overtaken { .. } => run.lost = true,
            Event::LeaseRestored { .. } => run.lost = false,
            Event::Settled { .. } => run.settled = true,
            _ => {}
        }
    }
}

const fn begun(attempt: Attempt, fence: Fence, guarded: bool) -> RunAccount {
    RunAccount {
        attempt,
        fence,
        guarded,
        outcome: None,
        exit_code: None,
        signal: None,
        duration: None,
        message: None,
        lost: false,
        settled: false,
    }
}
