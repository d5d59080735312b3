//! What happened on this node lately, in memory: for the page of that name. Bounded, and never in anybody's way: an event costs one short
//! lock and a line.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};

use crate::clock::Clock;
use crate::event::Event;
use crate::observe::Observer;
use crate::slot::{Slot, SlotKey};
use crate::text::message;

/// Lines that are kept.
const MOST: usize = 500;
/// Characters of what is said with one.
const LONGEST: usize = 200;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Happened {
    /// By this node's clock.
    pub(super) at: DateTime<Utc>,
    /// The job and the slot, where it happened at one.
    pub(super) slot: Option<(String, SlotKey)>,
    /// The event's word.
    pub(super) word: &'static str,
    pub(super) detail: String,
    /// The word of how a run or a slot ended, and the exit code where that is none of a success.
    pub(super) result: Option<(&'static str, Option<i32>)>,
}

/// The newest lines of a node.
#[derive(Debug)]
pub struct Activity {
    clock: Arc<dyn Clock>,
    lines: Mutex<VecDeque<Happened>>,
}

impl Activity {
    /// Of nothing yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, lines: Mutex::new(VecDeque::new()) }
    }

    /// The newest first.
    pub(super) fn newest(&self) -> Vec<Happened> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().rev().cloned().collect()
    }
}

impl Observer for Activity {
    fn event(&self, slot: Option<&Slot>, event: &Event) {
        let Some((word, detail)) = told(event) else { return };
        let slot = slot.map(|slot| (slot.job().to_string(), slot.key()));
        let (at, detail) = (self.clock.now().wall, message(&detail, LONGEST));
        let line = Happened { at, slot, word, detail, result: result(event) };
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == MOST {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

/// The word and what is said with it; none for what is worth no line.
fn told(event: &Event) -> Option<(&'static str, String)> {
    let attempt =
        event.attempt().filter(|attempt| *attempt > 0).map(|attempt| format!("#{attempt}")).unwrap_or_default();
    Some(match event {
        Event::Started { jobs } => ("started", format!("{jobs}")),
        Event::Reloaded { jobs, .. } => ("reloaded", format!("{jobs}")),
        Event::ReloadRefused { error } => ("reload_refused", error.clone()),
        Event::StoreReached { .. } => ("store_reached", String::new()),
        Event::StoreLost { error, .. } => ("store_lost", error.clone()),
        Event::StoreForgot { .. } => ("store_forgot", String::new()),
        Event::ClockOff { offset_ms } => ("clock_off", format!("{offset_ms} ms")),
        Event::SlotsMissed { job, slots, first, last } => {
            let job = job.as_ref().map(|job| format!("{job} ")).unwrap_or_default();
            ("slots_missed", format!("{job}{slots}: {first}…{last}"))
        }
        Event::Draining { running, .. } => ("draining", format!("{running}")),
        Event::Stopped => ("stopped", String::new()),
        Event::Fault { error } => ("fault", error.clone()),
        Event::RunStarted { .. } => ("run_started", attempt),
        Event::RunEnded { .. } => ("run_ended", attempt),
        Event::RunTimedOut { .. } => ("run_timed_out", attempt),
        Event::LeaseLost { .. } => ("lease_lost", attempt),
        Event::Overtaken { by, .. } => ("overtaken", format!("{attempt} {by}")),
        Event::AttemptsUsedUp { used } => ("attempts_used_up", format!("{used}")),
        Event::Closed { .. } => ("closed", String::new()),
        _ => return None,
    })
}

const fn result(event: &Event) -> Option<(&'static str, Option<i32>)> {
    match event {
        Event::RunEnded { outcome, exit_code: Some(0), .. } => Some((outcome.as_str(), None)),
        Event::RunEnded { outcome, exit_code, .. } => Some((outcome.as_str(), *exit_code)),
        Event::Closed { verdict } => Some((verdict.as_str(), None)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn the_newest_lines_are_kept_and_no_more() {
        let clock = ManualClock::at("2026-11-21T15:00:00Z".parse().unwrap());
        let activity = Activity::new(Arc::new(clock));
        activity.event(None, &Event::Dropped { lines: 1 });
        assert!(activity.newest().is_empty(), "nobody wants to read that");
        for jobs in 0..600 {
            activity.event(None, &Event::Started { jobs });
        }
        let lines = activity.newest();
        assert_eq!((lines.len(), &*lines[0].detail, &*lines[499].detail), (500, "599", "100"));
    }
}
