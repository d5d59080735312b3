//! The command as the work of the slot, with this process's signals passed on to it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use nix::libc::SIGTSTP;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::drive::{Renewals, Started, Work};
use crate::exec::{self, Launcher, Output, Running};
use crate::job::CommandSpec;
use crate::slot::{Exit, RunContext};
use crate::store;

/// What a person or an init system sends.
const PASSED_ON: [SignalKind; 6] = [
    SignalKind::hangup(),
    SignalKind::interrupt(),
    SignalKind::quit(),
    SignalKind::terminate(),
    SignalKind::user_defined1(),
    SignalKind::user_defined2(),
];

/// Said to whoever presses Ctrl-Z. A guard that is suspended renews nothing, so that another machine would go on, and
/// a command that is suspended with it would go on beside that one later.
const NOT_SUSPENDED: &str = "cronward: not suspended: a guard that stands still cannot renew its lease, and another machine \
                             would go on beside the command; Ctrl-C ends the command";

/// Signals that a command has not taken yet: more than anybody sends to a command that still listens.
const PENDING: usize = 64;

/// Signals of this process, by number: to the command while one runs, else to whoever waits here.
#[derive(Clone, Debug)]
pub(super) struct Signals {
    /// The command that runs.
    command: Arc<Mutex<Option<mpsc::Sender<i32>>>>,
    /// Cancelled by the first signal that means the end and that no command takes.
    pub(super) ended: CancellationToken,
    last: Arc<AtomicI32>,
}

impl Signals {
    /// Listens from now on. Needs a runtime.
    pub(super) fn listen() -> io::Result<Self> {
        let signals = Self { command: Arc::default(), ended: CancellationToken::new(), last: Arc::default() };
        let ignored = ignored();
        for kind in PASSED_ON.into_iter().filter(|kind| !is_in(ignored, kind.as_raw_value())) {
            tokio::spawn(signals.clone().take(signal(kind)?, kind.as_raw_value()));
        }
        tokio::spawn(refuse_to_be_suspended(signal(SignalKind::from_raw(SIGTSTP))?));
        Ok(signals)
    }

    async fn take(self, mut source: Signal, number: i32) {
        while source.recv().await.is_some() {
            self.pass(number);
        }
    }

    /// Where a command runs, its end is the command's to decide.
    fn pass(&self, number: i32) {
        use tokio::sync::mpsc::error::TrySendError;
        match self.command().as_ref().map(|command| command.try_send(number)) {
            Some(Ok(()) | Err(TrySendError::Full(_))) => {}
            None | Some(Err(TrySendError::Closed(_))) => self.end(number),
        }
    }

    fn end(&self, number: i32) {
        let others = [SignalKind::user_defined1(), SignalKind::user_defined2()].map(|kind| kind.as_raw_value());
        if !others.contains(&number) {
            self.last.store(number, Ordering::Relaxed);
            self.ended.cancel();
        }
    }

    /// What comes from now on is the command's.
    fn for_command(&self) -> mpsc::Receiver<i32> {
        let (sender, receiver) = mpsc::channel(PENDING);
        *self.command() = Some(sender);
        receiver
    }

    /// The command has ended: what it has not taken, and what comes from now on, is this process's own.
    fn take_back(&self, numbers: &mut mpsc::Receiver<i32>) {
        *self.command() = None;
        while let Ok(number) = numbers.try_recv() {
            self.end(number);
        }
    }

    fn command(&self) -> MutexGuard<'_, Option<mpsc::Sender<i32>>> {
        self.command.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The signal that ended the wait for a slot, if one did.
    pub(super) fn ended_by(&self) -> Option<i32> {
        Some(self.last.load(Ordering::Relaxed)).filter(|number| *number > 0)
    }
}

async fn refuse_to_be_suspended(mut source: Signal) {
    while source.recv().await.is_some() {
        let _ = writeln!(io::stderr(), "{NOT_SUSPENDED}");
    }
}

/// The signals that this process ignores since its start, a bit each (proc_pid_status(5)): whoever started it with `nohup`, or
/// in the background of a script, does not want them to mean anything.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn is_in(mask: u64, number: i32) -> bool {
    let bit = u32::try_from(number).ok().and_then(|number| number.checked_sub(1));
    bit.and_then(|bit| mask.checked_shr(bit)).is_some_and(|mask| mask & 1 == 1)
}

/// The command, started with this process's own streams.
#[derive(Debug)]
pub(super) struct Forwarded {
    launcher: Launcher,
    command: CommandSpec,
    signals: Signals,
}

impl Forwarded {
    /// A command that is told nothing of the store at `url`. In a session HOME, LOGNAME, SHELL and USER of the caller are meant; a job of
    /// the file has those of its account.
    pub(super) fn new(url: &str, (command, in_session): (CommandSpec, bool), output: Output, signals: Signals) -> Self {
        let launcher = Launcher::new(PathBuf::from("/proc/self/exe"), output);
        let launcher = if in_session { launcher.within_a_session() } else { launcher };
        launcher.hide(&store::secrets(url));
        Self { launcher, command, signals }
    }

    /// Starts it as no attempt at a slot; `label` is what `ps` shows of its shim.
    pub(super) async fn start_other(&self, label: String, lease: exec::Renewals) -> Box<dyn Started> {
        let numbers = self.signals.for_command();
        let running = self.launcher.launch_other(&self.command, label, lease).await;
        self.hearing(running, numbers)
    }

    fn hearing(&self, running: Running, numbers: mpsc::Receiver<i32>) -> Box<dyn Started> {
        Box::new(Hearing { running, numbers, signals: self.signals.clone() })
    }

    /// Waits until the command's output has been passed on, at the pace of whoever reads it: all is recorded by then. A signal
    /// ends the wait, and the rest of the output is lost. A line for each stream that could not be written after the command's end.
    pub(super) async fn passed_on(&self) -> Vec<String> {
        tokio::select! {
            unwritten = self.launcher.passed_on() => unwritten,
            () = self.signals.ended.cancelled() => Vec::new(),
        }
    }
}

/// A command that hears this process's signals.
struct Hearing {
    running: Running,
    numbers: mpsc::Receiver<i32>,
    signals: Signals,
}

#[async_trait]
impl Work for Forwarded {
    async fn start(&self, run: RunContext, lease: Renewals) -> Box<dyn Started> {
        let numbers = self.signals.for_command();
        let running = self.launcher.launch(&self.command, &run, lease.deadline).await;
        self.hearing(running, numbers)
    }
}

#[async_trait]
impl Started for Hearing {
    fn begun(&self) -> BoxFuture<'static, ()> {
        Box::pin(self.running.begun())
    }

    fn terminate(&self) {
        self.running.terminate();
    }

    fn kill(&self) {
        self.running.kill();
    }

    async fn wait(&mut self) -> Exit {
        loop {
            tokio::select! {
                biased;
                exit = self.running.wait() => {
                    self.signals.take_back(&mut self.numbers);
                    return exit;
                }
                Some(number) = self.numbers.recv() => self.running.signal(number),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_a_bit_for_each_signal() {
        // HUP is 1, INT 2, QUIT 3; the standard library ignores PIPE, 13.
        let mask = 0x1005;
        assert_eq!(
            [1, 2, 3, 13, 15, 64, 0, -1, 65].map(|number| is_in(mask, number)),
            [true, false, true, true, false, false, false, false, false]
        );
    }

    #[tokio::test]
    async fn what_the_ended_command_has_not_taken_is_this_processs_own() {
        let signals = Signals { command: Arc::default(), ended: CancellationToken::new(), last: Arc::default() };
        let mut numbers = signals.for_command();
        signals.pass(10);
        signals.pass(15);
        assert_eq!(numbers.recv().await, Some(10));
        assert!(!signals.ended.is_cancelled());
        signals.take_back(&mut numbers);
        assert!(signals.ended.is_cancelled());
        assert_eq!(signals.ended_by(), Some(15));
        signals.pass(10);
        signals.pass(2);
        assert_eq!(signals.ended_by(), Some(2));
    }
}
