//! Processes by their numbers: which one, whether it lives, and a signal to it.

use std::path::Path;
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

use crate::wait;

/// The number that a command leaves in a file, once it is written whole.
pub(crate) fn pid_in(dir: &Path, name: &str) -> Option<u32> {
    std::fs::read_to_string(dir.join(name)).ok()?.strip_suffix('\n')?.parse().ok()
}

/// A process that is there and has not ended.
pub(crate) fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with('Z'))
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
}

/// A process that is killed when it is dropped.
pub(crate) struct Killed(pub(crate) Child);

impl Killed {
    pub(crate) fn signal(&self, number: Signal) {
        signal(self.0.id(), number);
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Asks it to leave, and waits until it has done so well.
    pub(crate) fn leave(mut self) {
        self.signal(Signal::TERM);
        let status = wait::until("its end", || self.0.try_wait().unwrap());
        assert!(status.success(), "{status}");
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        self.kill();
    }
}
