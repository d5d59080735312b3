//! Keeps a started command: passes signals on, reaps, and sees to it that nothing of the command is left.
//!
//! ```text
//! running ─ the command ends ─► settling ─ 100 ms ─► stopping (TERM) ─ 1 s ─► killing (KILL) ─► swept
//!    └───────── KILL asked for, or the daemon is gone ─────────────────────────────▲
//! ```
//! Every phase ends at once when there is no child any more; with [`KillMode::Process`] all do when the command itself has
//! ended. Never gives up on the command itself while the daemon lives.
//!
//! A command that must not outlast its lease comes with a [`LeaseDeadline`], which the daemon moves on after each renewal.
//! Where it does not, because it stands still or its store is away, the command gets TERM at `stop_at` and KILL at `kill_at`,
//! and the daemon finds out when it is there again. Moving the deadline on is too late once TERM was sent for it.
//!
//! The command is looked at every [`LOOK`]. A keeper that stood still itself (SIGSTOP, a suspend) does not know when the command
//! ended: it reports the last look at which the command ran. It looks before it obeys anything, so that what it passes on after a
//! standstill has not ended a command that had ended before.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::{TimeVal, TimeValLike};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process_group, wait};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

use crate::clock::{Clock, Mono, SystemClock};
use crate::exec::messages::{Request, ShimReport};
use crate::exec::processes::{listed, living};
use crate::exec::shim::control::{Control, Input};
use crate::job::KillMode;
use crate::slot::{LeaseDeadline, Standstill};

/// What a process that was left behind has to end by itself: the `tee` of `> >(tee log)` ends when it has read the rest.
const SETTLE: Duration = Duration::from_millis(100);

/// From TERM to KILL for processes left behind. The slot waits for it, so it is short.
const GRACE: Duration = Duration::from_secs(1);

/// How often KILL is sent again: a process may have forked between the listing and the signal.
const AGAIN: Duration = Duration::from_millis(50);

/// How often KILL is sent to what it did not end: each time all of `/proc` is read.
const SELDOM: Duration = Duration::from_secs(1);

/// How often a command is looked at while nothing happens.
const LOOK: Duration = Duration::from_millis(500);

/// Where the end is found so long after the last look, the keeper stood still: it ran neither then nor at the end.
const STANDSTILL: Duration = Duration::from_secs(1);

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

impl Phase {
    /// How long nothing is due in it, whatever happens.
    fn next_look(self, now: Mono) -> Option<Duration> {
        match self {
            Self::Running => None,
            Self::Settling(end) | Self::Stopping(end) => Some(end.since(now)),
            Self::Killing(end) if now < end => Some(AGAIN),
            // It hangs in the kernel while the daemon lives, maybe for days.
            Self::Killing(_) => Some(SELDOM),
        }
    }
}

/// How a command is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// An instant before its start.
    pub(super) begun: Mono,
    /// By when it has to be over unless that is moved on.
    pub(super) lease: Option<LeaseDeadline>,
    /// What is stopped with it.
    pub(super) kill_mode: KillMode,
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
    /// The last look at which the command ran; before the first one, when its start was begun.
    seen: Mono,
    /// There is no child any more, neither the command nor what it left.
    childless: bool,
    phase: Phase,
    left: usize,
    kill_mode: KillMode,
    lease: Option<LeaseDeadline>,
    /// Goes off when the lease has something due, also after a suspend. None without a deadline.
    alarm: Option<Alarm>,
    /// TERM was sent because the lease was not renewed.
    lapsed: bool,
    /// TERM was sent, by order or because of the lease.
    stopped: bool,
}

impl Keep {
    /// Begins to keep a command. CHLD must be blocked already.
    pub(super) fn new(control: Control, command: Pid, terms: Terms) -> io::Result<Self> {
        let Terms { begun, lease, kill_mode } = terms;
        let mut chld = SigSet::empty();
        chld.add(nix::sys::signal::Signal::SIGCHLD);
        let children = SignalFd::with_flags(&chld, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Self {
            control,
            connected: true,
            children,
            command,
            ended: false,
            seen: begun,
            childless: false,
            phase: Phase::Running,
            left: 0,
            kill_mode,
            lease,
            // Where there is none, the time limit of the poll does the same, but for a suspend.
            alarm: lease.and_then(|_| Alarm::new().ok()),
            lapsed: false,
            stopped: false,
        })
    }

    /// Keeps it to the end, and says so.
    pub(super) fn run(mut self) {
        self.look();
        loop {
            self.wait_for_news();
            self.look();
            let now = SystemClock.now().mono;
            if self.childless || self.gives_up(now) || self.lets_live() {
                break;
            }
            self.advance(now);
        }
        // A child that cannot be seen (hidepid) is still a child.
        let survivors = if self.childless || self.lets_live() { 0 } else { signal(None).max(1) };
        self.control.report(&ShimReport::Swept { left: self.left, survivors });
    }

    fn wait_for_news(&mut self) {
        let timeout = self.next_look().map(|span| Timespec {
            tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: span.subsec_nanos().into(),
        });
        if let (Some(alarm), Some(due)) = (&self.alarm, self.lease_due()) {
            alarm.set(due);
        }
        let readable = |descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN);
        let mut news = vec![readable(self.children.as_fd())];
        news.extend(self.alarm.as_ref().filter(|_| self.lease_due().is_some()).map(|alarm| readable(alarm.as_fd())));
        // A socket that has ended is always readable.
        news.extend(self.connected.then(|| readable(self.control.as_fd())));
        if poll(&mut news, timeout.as_ref()).is_err() {
            return;
        }
        let asked = self.connected && news.last().is_some_and(|socket| !socket.revents().is_empty());
        while matches!(self.children.read_signal(), Ok(Some(_))) {}
        self.look();
        if asked {
            self.obey();
        }
        // All that has come is heard before the deadline is looked at: a shim that stood still may find its renewal behind other
        // requests. The socket's buffer bounds it.
        while self.connected && self.control.has_request() {
            self.obey();
        }
    }

    fn next_look(&self) -> Option<Duration> {
        let now = SystemClock.now().mono;
        let look = (!self.ended).then_some(LOOK);
        [look, self.phase.next_look(now), self.lease_due().map(|due| due.since(now))].into_iter().flatten().min()
    }

    /// When the lease asks for the next step; never once everything is being killed.
    fn lease_due(&self) -> Option<Mono> {
        let lease = self.lease.filter(|_| !matches!(self.phase, Phase::Killing(_)))?;
        Some(if self.lapsed || self.ended { lease.kill_at } else { lease.stop_at })
    }

    fn obey(&mut self) {
        match self.control.request() {
            Input::Nothing => {}
            Input::Request(Request::Signal(Signal::KILL) | Request::Kill) => self.start_killing(),
            Input::Request(Request::Signal(signal)) => self.pass_on(signal),
            Input::Request(Request::Stop) => self.stop(),
            Input::Request(Request::Lease(lease)) if !self.lapsed => self.lease = Some(lease),
            Input::Request(Request::Lease(_)) => {}
            Input::Closed => {
                self.connected = false;
                self.start_killing();
            }
        }
    }

    /// To the group while the command lives. Afterwards its number may be another's, and TERM is on its way anyhow.
    fn pass_on(&self, signal: Signal) {
        if self.ended {
            return;
        }
        let _ = kill_process_group(self.command, signal);
        if signal == Signal::TERM {
            // A stopped process takes no notice of TERM.
            let _ = kill_process_group(self.command, Signal::CONT);
        }
    }

    /// TERM, once: to many programs a second one means to end without cleaning up.
    fn stop(&mut self) {
        if !self.stopped {
            self.stopped = true;
            self.pass_on(Signal::TERM);
        }
    }

    fn mind_lease(&mut self, now: Mono) {
        if self.lease_due().is_none_or(|due| now < due) {
            return;
        }
        if !self.lapsed && !self.ended {
            self.lapsed = true;
            self.control.report(&ShimReport::Lapsed(now));
            self.stop();
        }
        if self.lease.is_some_and(|lease| lease.kill_at <= now) {
            self.start_killing();
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
        if self.kill_mode == KillMode::Group {
            signal(Some(Signal::KILL));
        }
    }

    fn look(&mut self) {
        let now = SystemClock.now().mono;
        self.reap();
        if !self.ended {
            self.seen = now;
        }
    }

    fn reap(&mut self) {
        loop {
            let cpu = cpu_of_reaped();
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.command => {
                    self.note_end(status, cpu_of_reaped().saturating_sub(cpu));
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return,
                Err(_) => {
                    self.childless = true;
                    return;
                }
            }
        }
    }

    fn note_end(&mut self, status: WaitStatus, cpu: Duration) {
        self.ended = true;
        let now = SystemClock.now().mono;
        if now.since(self.seen) > STANDSTILL {
            self.control.report(&ShimReport::StoodStill(Standstill { seen: self.seen, cpu }));
        }
        let report = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => ShimReport::Exited(code, now),
            (None, Some(signal)) => ShimReport::Signalled(signal, now),
            // Without WUNTRACED a wait tells of nothing else.
            (None, None) => return,
        };
        self.control.report(&report);
        self.phase = match self.phase {
            Phase::Killing(_) => Phase::Killing(now + GIVE_UP),
            _ => Phase::Settling(now + SETTLE),
        };
    }

    fn advance(&mut self, now: Mono) {
        self.mind_lease(now);
        match self.phase {
            Phase::Settling(end) if now >= end => {
                self.left = signal(Some(Signal::TERM));
                signal(Some(Signal::CONT));
                self.phase = Phase::Stopping(now + GRACE);
            }
            Phase::Stopping(end) if now >= end => self.start_killing(),
            Phase::Killing(_) => self.kill(),
            _ => {}
        }
    }

    /// The command has ended, and what it left is nobody's business.
    fn lets_live(&self) -> bool {
        self.kill_mode == KillMode::Process && self.ended
    }

    /// While the daemon lives, the end of the command itself is waited for: it is not said that it ended when it did not.
    fn gives_up(&self, now: Mono) -> bool {
        matches!(self.phase, Phase::Killing(end) if now >= end) && (self.ended || !self.connected)
    }
}

/// A descriptor that becomes readable at an instant of `CLOCK_BOOTTIME`. The time limit of a `poll` stands still while the
/// machine is suspended, and a lease does not.
#[derive(Debug)]
struct Alarm(OwnedFd);

impl Alarm {
    /// One that is not set.
    fn new() -> rustix::io::Result<Self> {
        timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK).map(Self)
    }

    /// Sets it. One that had gone off is quiet again.
    fn set(&self, at: Mono) {
        let at = at.since_origin();
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Zero would mean never.
        let it_value = Timespec {
            tv_sec: i64::try_from(at.as_secs()).unwrap_or(i64::MAX).max(1),
            tv_nsec: at.subsec_nanos().into(),
        };
        let _ = timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &Itimerspec { it_interval: never, it_value });
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Processor time of all that was reaped: of the command, and of what it has waited for itself.
fn cpu_of_reaped() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return Duration::ZERO };
    let micros = |time: TimeVal| Duration::from_micros(u64::try_from(time.num_microseconds()).unwrap_or(0));
    micros(usage.user_time()) + micros(usage.system_time())
}

/// Sends a signal to every process that comes from this one, and counts those that live. A number that was read may in
/// principle name another process by the time it is used; children of the shim itself cannot, since it has not reaped
/// them, and grandchildren become children as soon as their parent dies.
pub(super) fn signal(signal: Option<Signal>) -> usize {
    let living = living(&listed(), rustix::process::getpid().as_raw_nonzero().get());
    if let Some(signal) = signal {
        for pid in living.iter().copied().filter_map(Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
    living.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kill_does_not_end_is_looked_at_less_often_after_a_while() {
        let end = Mono::from_nanos(7_000_000_000);
        let look = |now| Phase::Killing(end).next_look(Mono::from_nanos(now));
        assert_eq!(look(6_999_999_999), Some(AGAIN));
        assert!([7_000_000_000, u64::MAX].map(look).into_iter().all(|span| span >= Some(Duration::from_secs(1))));
    }
}
