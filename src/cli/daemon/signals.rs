//! The signals that a daemon answers: TERM and INT end it, HUP reads its file again.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::reload::{FileReading, Reloader};
use crate::cli::failure::Failure;
use crate::node::Command;

/// The signals that a daemon answers.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

pub(super) fn no_signals(error: std::io::Error) -> Failure {
    Failure::Internal(format!("cannot take signals: {error}"))
}

impl Signals {
    pub(super) fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(no_signals);
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// TERM and INT drain, a second one stops at once; HUP reads the file again, on a thread of its own: neither renewals nor
    /// TERM wait for a long file or a slow disk.
    pub(super) async fn obey(mut self, commands: mpsc::Sender<Command>, mut reloader: Reloader) {
        let mut drain = reloader.file.node.drain;
        let mut reading = FileReading::default();
        loop {
            let command = tokio::select! {
                _ = self.terminate.recv() => Some(Command::Shutdown(std::mem::take(&mut drain))),
                _ = self.interrupt.recv() => Some(Command::Shutdown(std::mem::take(&mut drain))),
                _ = self.hang_up.recv() => {
                    reading.ask(&reloader);
                    None
                }
                read = reading.done() => {
                    let command = reloader.take(read);
                    reading.go_on(&reloader);
                    Some(command)
                }
            };
            if let Some(command) = command
                && commands.send(command).await.is_err()
            {
                return;
            }
        }
    }
}
