//! What is told while a guarded command waits or runs: a person at a terminal, that the store is waited for, and everybody, at once, that the
//! command is no longer guarded. Nothing here may hold up or stop the guard, which renews a lease meanwhile.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::admin::words::harmless;
use crate::cli::console::tell_aside;
use crate::drive::{Lost, node_and_label};
use crate::event::Event;
use crate::observe::Observer;
use crate::slot::{Attempt, Slot};

/// Says once that the store is waited for, which can take a minute.
#[derive(Debug, Default)]
pub(super) struct StoreWait {
    told: AtomicBool,
}

impl Observer for StoreWait {
    fn event(&self, _: Option<&Slot>, event: &Event) {
        let Event::StoreFailed { kind, error, .. } = event else { return };
        // One that refuses is not waited for.
        if kind.is_transient() && is_looked_at() && !self.told.swap(true, Ordering::Relaxed) {
            tell_aside(format!("waiting for the store: {error}"));
        }
    }
}

/// Says at once what the run has lost: the command may go on for hours.
#[derive(Debug)]
pub(super) struct LossTold {
    /// The locks of the job, as they are named to people; empty where it has none.
    pub(super) locks: String,
}

impl Observer for LossTold {
    fn event(&self, slot: Option<&Slot>, event: &Event) {
        if let Some(told) = slot.and_then(|slot| self.words(slot, event)) {
            tell_aside(format!("cronward: {told}"));
        }
    }
}

impl LossTold {
    fn words(&self, slot: &Slot, event: &Event) -> Option<String> {
        let goes_on = |killing, other| {
            if killing {
                "the command is being stopped".to_owned()
            } else {
                format!("the command goes on, and another {other} may overlap")
            }
        };
        Some(match event {
            Event::LockLost(loss) if !loss.unstarted => {
                let how = if loss.in_doubt { "could not be renewed in time" } else { "were lost" };
                let to = node_and_label(loss.to.as_ref(), &loss.to_label)
                    .map_or_else(String::new, |to| format!(" to {}", harmless(&to)));
                let (locks, attempt) = (&self.locks, loss.attempt);
                format!(
                    "{slot}: the locks of attempt {attempt} ({locks}) {how}{to}: {}",
                    goes_on(loss.killing, "holder")
                )
            }
            Event::LeaseLost { attempt, to, killing, unstarted: false, .. } => {
                let to = to.as_ref().map_or_else(String::new, |to| format!(" to node {to}"));
                format!("{slot}: the lease of attempt {attempt} was lost{to}: {}", goes_on(*killing, "run"))
            }
            // Of a command that has ended the verdict says it.
            Event::LeaseInDoubt { attempt, killing, ended: false } => {
                format!(
                    "{slot}: the lease of attempt {attempt} could not be renewed in time: {}",
                    goes_on(*killing, "run")
                )
            }
            _ => return None,
        })
    }
}

/// The same after the end of the run.
pub(super) fn lost_words(slot: &Slot, attempt: Attempt, lost: &Lost) -> String {
    match lost {
        Lost::Lease => format!(
            "{slot}: the lease of attempt {attempt} was lost or its renewal was overdue; another run may have overlapped"
        ),
        Lost::Locks(to) => {
            let to = to.as_ref().map_or_else(String::new, |to| format!("; since then held by {}", harmless(to)));
            format!(
                "{slot}: the locks of attempt {attempt} were lost or their renewal was overdue{to}; another holder may have overlapped"
            )
        }
    }
}

/// Whether stderr is the terminal in whose foreground this process is: one in the background that writes there may be stopped for it.
fn is_looked_at() -> bool {
    rustix::termios::tcgetpgrp(io::stderr()).is_ok_and(|group| group == rustix::process::getpgrp())
}
