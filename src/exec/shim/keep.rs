//! Keeps a started command: passes signals on, reaps, and sees to it that nothing of the command is left.
//!
//! ```text
//! running ─ the command ends ─► settling ─ 100 ms ─► stopping (TERM) ─ 1 s ─► killing (KILL) ─► swept
//!    └───────── KILL asked for, or the daemon is gone ─────────────────────────────▲
//! ```
//! Every phase ends at once when there is no child any more. Never gives up on the command itself while the daemon lives.

use std::io;
use std::time::Duration;

use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process_group, wait};

use crate::clock::{Clock, Mono, SystemClock};
use crate::exec::report::Report;
use crate::exec::shim::control::{Control, Request};
use crate::exec::shim::descendants;

/// What a process that was left behind has to end by itself: the `tee` of `> >(tee log)` ends when it has read the rest.
const SETTLE: Duration = Duration::from_millis(100);

/// From TERM to KILL for processes left behind. The slot waits for it, so it is short.
const GRACE: Duration = Duration::from_secs(1);

/// How often KILL is sent again: a process may have forked between the listing and the signal.
const AGAIN: Duration = Duration::from_millis(50);

/// After this, what KILL did not end hangs in the kernel, or belongs to another user, and is reported.
const GIVE_UP: Duration = Duration::from_secs(5);

/// Where the keeping is. Instants are when the phase ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    Settling(Mono),
    Stopping(Mono),
    Killing(Mono),
}

/// A command being kept.
#[derive(Debug)]
pub(super) struct Keep {
    control: Control,
    /// The daemon is there.
    connected: bool,
    children: SignalFd,
    /// The command itself; its number is also its group's, and is not used again before it is reaped.
    command: Pid,
    /// The command was reaped.
    ended: bool,
    /// There is no child any more, neither the command nor what it left.
    childless: bool,
    phase: Phase,
    left: usize,
}

impl Keep {
    /// Begins to keep a command. CHLD must be blocked already.
    pub(super) fn new(control: Control, command: Pid) -> io::Result<Self> {
        let mut chld = SigSet::empty();
        chld.add(nix::sys::signal::Signal::SIGCHLD);
        let children = SignalFd::with_flags(&chld, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        let phase = Phase::Running;
        Ok(Self { control, connected: true, children, command, ended: false, childless: false, phase, left: 0 })
    }

    /// Keeps it to the end, and says so.
    pub(super) fn run(mut self) {
        loop {
            self.wait_for_news();
            self.reap();
            let now = SystemClock.now().mono;
            if self.childless || self.gives_up(now) {
                break;
            }
            self.advance(now);
        }
        // A child that cannot be seen (hidepid) is still a child.
        let survivors = if self.childless { 0 } else { descendants::signal(None).max(1) };
        self.control.report(&Report::Swept { left: self.left, survivors });
    }

    fn wait_for_news(&mut self) {
        let timeout = self.next_look().map(|span| Timespec {
            tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: span.subsec_nanos().into(),
        });
        let mut news = [PollFd::new(&self.children, PollFlags::IN), PollFd::new(&self.control, PollFlags::IN)];
        // A socket that has ended is always readable.
        let watched = if self.connected { &mut news[..] } else { &mut news[..1] };
        if poll(watched, timeout.as_ref()).is_err() {
            return;
        }
        let asked = self.connected && !news[1].revents().is_empty();
        while matches!(self.children.read_signal(), Ok(Some(_))) {}
        if asked {
            self.obey();
        }
    }

    fn next_look(&self) -> Option<Duration> {
        let now = SystemClock.now().mono;
        match self.phase {
            Phase::Running => None,
            Phase::Settling(end) | Phase::Stopping(end) => Some(end.since(now)),
            Phase::Killing(_) => Some(AGAIN),
        }
    }

    fn obey(&mut self) {
        match self.control.requests() {
            Request::Closed => {
                self.connected = false;
                self.start_killing();
            }
            Request::Signals(numbers) => numbers.into_iter().for_each(|number| self.pass_on(number)),
        }
    }

    /// To the group while the command lives. Afterwards its number may be another's, and TERM is on its way anyhow.
    fn pass_on(&mut self, number: i32) {
        match Signal::from_named_raw(number) {
            Some(Signal::KILL) => self.start_killing(),
            Some(signal) if !self.ended => {
                let _ = kill_process_group(self.command, signal);
                if signal == Signal::TERM {
                    // A stopped process takes no notice of TERM.
                    let _ = kill_process_group(self.command, Signal::CONT);
                }
            }
            _ => {}
        }
    }

    fn start_killing(&mut self) {
        self.phase = Phase::Killing(SystemClock.now().mono + GIVE_UP);
        self.kill();
    }

    fn kill(&self) {
        if !self.ended {
            let _ = kill_process_group(self.command, Signal::KILL);
        }
        descendants::signal(Some(Signal::KILL));
    }

    fn reap(&mut self) {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.command => self.note_end(status),
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return,
                Err(_) => {
                    self.childless = true;
                    return;
                }
            }
        }
    }

    fn note_end(&mut self, status: WaitStatus) {
        self.ended = true;
        let report = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Report::Exited(code),
            (None, Some(signal)) => Report::Signalled(signal),
            // Without WUNTRACED a wait tells of nothing else.
            (None, None) => return,
        };
        self.control.report(&report);
        let now = SystemClock.now().mono;
        self.phase = match self.phase {
            Phase::Killing(_) => Phase::Killing(now + GIVE_UP),
            _ => Phase::Settling(now + SETTLE),
        };
    }

    fn advance(&mut self, now: Mono) {
        match self.phase {
            Phase::Settling(end) if now >= end => {
                self.left = descendants::signal(Some(Signal::TERM));
                descendants::signal(Some(Signal::CONT));
                self.phase = Phase::Stopping(now + GRACE);
            }
            Phase::Stopping(end) if now >= end => self.start_killing(),
            Phase::Killing(_) => self.kill(),
            _ => {}
        }
    }

    /// While the daemon lives, the end of the command itself is waited for: it is not said that it ended when it did not.
    fn gives_up(&self, now: Mono) -> bool {
        matches!(self.phase, Phase::Killing(end) if now >= end) && (self.ended || !self.connected)
    }
}
