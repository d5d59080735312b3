//! A descriptor that becomes readable at an instant of `CLOCK_BOOTTIME`. The time limit of a `poll` stands still while the
//! machine is suspended, and a lease does not.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::clock::Mono;

/// The descriptor.
#[derive(Debug)]
pub(super) struct Alarm(OwnedFd);

impl Alarm {
    /// One that is not set.
    pub(super) fn new() -> io::Result<Self> {
        timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK).map(Self)
    }

    /// Sets it. One that had gone off is quiet again.
    pub(super) fn set(&self, at: Mono) {
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
