//! The command as the work of the slot, with this process's signals passed on to it.

use std::io::{self, Write};
use std::sync::Arc;

use async_trait::async_trait;
use nix::libc::SIGTSTP;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::drive::{Renewals, Started, Work};
use crate::exec::{Launcher, Running};
use crate::job::CommandSpec;
use crate::slot::{Exit, RunContext};

/// What a person or an init system sends.
const PASSED_ON: [SignalKind; 6] = [
    SignalKind::hangup(),
    SignalKind::interrupt(),
    SignalKind::quit(),
    SignalKind::terminate(),
    SignalKind::user_defined1(),
    SignalKind::user_defined2(),
];

/// Said to whoever presses Ctrl-Z. A guard that is suspended renews nothing, so that another machine would start the job, and
/// a command that is suspended with it would go on beside that one later.
const NOT_SUSPENDED: &str = "cronward: not suspended: a guard that stands still cannot renew its lease, and another machine \
                             would start the job; Ctrl-C ends the command";

/// Signals of this process, by number, to whoever runs a command.
#[derive(Clone, Debug)]
pub(super) struct Signals {
    numbers: broadcast::Sender<i32>,
    /// Cancelled by the first signal that means the end, for what has not begun.
    pub(super) ended: CancellationToken,
    last: Arc<std::sync::atomic::AtomicI32>,
}

impl Signals {
    /// Listens from now on. Needs a runtime.
    pub(super) fn listen() -> io::Result<Self> {
        let (numbers, _) = broadcast::channel(64);
        let signals = Self { numbers, ended: CancellationToken::new(), last: Arc::default() };
        for kind in PASSED_ON {
            tokio::spawn(signals.clone().take(signal(kind)?, kind));
        }
        tokio::spawn(refuse_to_be_suspended(signal(SignalKind::from_raw(SIGTSTP))?));
        Ok(signals)
    }

    async fn take(self, mut source: Signal, kind: SignalKind) {
        let ends = ![SignalKind::user_defined1(), SignalKind::user_defined2()].contains(&kind);
        while source.recv().await.is_some() {
            let number = kind.as_raw_value();
            // Where a command runs, its end is the command's to decide.
            if self.numbers.send(number).is_err() && ends {
                self.last.store(number, std::sync::atomic::Ordering::Relaxed);
                self.ended.cancel();
            }
        }
    }

    /// The signal that ended the wait for a slot, if one did.
    pub(super) fn ended_by(&self) -> Option<i32> {
        Some(self.last.load(std::sync::atomic::Ordering::Relaxed)).filter(|number| *number > 0)
    }
}

async fn refuse_to_be_suspended(mut source: Signal) {
    while source.recv().await.is_some() {
        let _ = writeln!(io::stderr(), "{NOT_SUSPENDED}");
    }
}

/// The command, started with this process's own streams.
#[derive(Debug)]
pub(super) struct Forwarded {
    pub(super) launcher: Launcher,
    pub(super) command: CommandSpec,
    pub(super) signals: Signals,
}

impl Forwarded {
    /// Waits until the command's output has been passed on, at the pace of whoever reads it: all is recorded by then. A signal
    /// ends the wait, and the rest of the output is lost.
    pub(super) async fn passed_on(&self) {
        tokio::select! {
            () = self.launcher.passed_on() => {}
            () = self.signals.ended.cancelled() => {}
        }
    }
}

/// A command that hears this process's signals.
struct Hearing {
    running: Running,
    numbers: broadcast::Receiver<i32>,
}

#[async_trait]
impl Work for Forwarded {
    async fn start(&self, run: RunContext, lease: Renewals) -> Box<dyn Started> {
        let numbers = self.signals.numbers.subscribe();
        Box::new(Hearing { running: self.launcher.launch(&self.command, &run, lease).await, numbers })
    }
}

#[async_trait]
impl Started for Hearing {
    fn terminate(&self) {
        self.running.terminate();
    }

    fn kill(&self) {
        self.running.kill();
    }

    async fn wait(&mut self) -> Exit {
        loop {
            tokio::select! {
                exit = self.running.wait() => return exit,
                Ok(number) = self.numbers.recv() => self.running.signal(number),
            }
        }
    }
}
