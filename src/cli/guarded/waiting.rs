//! What a person at a terminal is told while a guarded command waits. cron mails every word: it is told of the end alone. Nothing here may
//! hold up or stop the guard, which renews a lease meanwhile.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cli::console::tell_aside;
use crate::event::Event;
use crate::observe::Observer;
use crate::slot::Slot;

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

/// Whether stderr is the terminal in whose foreground this process is: one in the background that writes there may be stopped for it.
fn is_looked_at() -> bool {
    rustix::termios::tcgetpgrp(io::stderr()).is_ok_and(|group| group == rustix::process::getpgrp())
}
