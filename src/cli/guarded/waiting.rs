//! What a person at a terminal is told while a guarded command waits. cron mails every word: it is told of the end alone.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cli::console::tell_aside;
use crate::event::Event;
use crate::observe::Observer;
use crate::slot::Slot;

/// Says once that the store is waited for, which can take a minute. Nothing waits for the terminal: a lease is renewed meanwhile.
#[derive(Debug, Default)]
struct StoreWait {
    told: AtomicBool,
}

impl Observer for StoreWait {
    fn event(&self, _: Option<&Slot>, event: &Event) {
        let Event::StoreFailed { kind, error, .. } = event else { return };
        // One that refuses is not waited for.
        if kind.is_transient() && !self.told.swap(true, Ordering::Relaxed) {
            tell_aside(format!("waiting for the store: {error}"));
        }
    }
}

/// Who hears what happens to the slot.
pub(super) fn observers() -> Vec<Arc<dyn Observer>> {
    let person = io::stdin().is_terminal() && io::stderr().is_terminal();
    if person { vec![Arc::new(StoreWait::default())] } else { Vec::new() }
}
