//! A want of resources: commands that cannot be started here. All starts of the process pause, because the next slot would only be taken from
//! other nodes; the [`Queue`](super::admission::Queue) says for how long. Decides nothing.

use std::sync::Arc;

use crate::drive::{Tools, timers};
use crate::event::Event;
use crate::slot::{Exit, ExitStatus};

/// Pauses the starts where this end of a run shows that a resource is lacking.
pub(super) fn note_exit(tools: &Tools, exit: &Exit) {
    let ExitStatus::NoResources { message } = &exit.status else { return };
    let Some(pause) = tools.gate.pause_starts() else { return };
    if pause.is_first {
        tools.observer.event(None, &Event::StartsPaused { error: message.clone() });
    }
    let (gate, clock) = (Arc::clone(&tools.gate), Arc::clone(&tools.clock));
    let until = clock.now().mono + pause.length;
    // The slot that has met the want may be over before the pause.
    tokio::spawn(async move {
        timers::until(&*clock, Some(until)).await;
        gate.end_pause();
    });
}

/// Notes that a command has begun.
pub(super) fn note_start(tools: &Tools) {
    if tools.gate.has_started() {
        tools.observer.event(None, &Event::StartsResumed);
    }
}
