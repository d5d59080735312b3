//! The few calls for which there is no safe wrapper. Everything unsafe of the crate is here.
#![allow(unsafe_code, reason = "what a process does between fork and exec, and to descriptors that it was born with")]

use std::ffi::CString;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::socket::{MsgFlags, send};
use nix::unistd::{Gid, Pid, Uid};
use rustix::io::FdFlags;
use rustix::thread::{CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities};

use crate::exec::messages::ShimReport;

/// A step between fork and exec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartStep {
    /// Everything that the standard library does, the exec itself above all.
    Exec = 0,
    /// Becoming another user.
    Identity = 1,
    /// Going to the working directory.
    Cwd = 2,
    /// Tying its life to the shim's.
    Bond = 3,
}

/// What the new process does between fork and exec.
#[derive(Debug)]
pub(super) struct Steps {
    /// Supplementary groups.
    pub(super) groups: Option<Vec<Gid>>,
    /// The group.
    pub(super) gid: Option<Gid>,
    /// The user.
    pub(super) uid: Option<Uid>,
    /// The working directory, gone to as that user: root may be a stranger on a network file system.
    pub(super) cwd: Option<CString>,
    /// The socket to the daemon, which is told that the program is executed next.
    pub(super) daemon: OwnedFd,
}

/// The last real-time signal of Linux.
const LAST_SIGNAL: i32 = 64;

/// Room for what the daemon is told before the program is executed: a word and a number.
const ANNOUNCEMENT: usize = 32;

/// More than any errno of Linux: an error carries its step as a multiple of it, since only a number comes back from the
/// new process.
const STEP: i32 = 4096;

impl Steps {
    /// Only system calls: the new process is a copy of the shim, which has one thread, so that even an allocation would
    /// be sound, but none is made.
    fn take(&self, shim: Pid) -> Result<(), (StartStep, Errno)> {
        let identity = |errno| (StartStep::Identity, errno);
        self.groups.as_deref().map_or(Ok(()), nix::unistd::setgroups).map_err(identity)?;
        self.gid.map_or(Ok(()), |gid| nix::unistd::setresgid(gid, gid, gid)).map_err(identity)?;
        self.uid.map_or(Ok(()), |uid| nix::unistd::setresuid(uid, uid, uid)).map_err(identity)?;
        self.drop_capabilities().map_err(identity)?;
        let bond = |errno| (StartStep::Bond, errno);
        // After the change of the user, which clears it, and before anything that may hang: whoever ends the shim ends that, too.
        prctl::set_pdeathsig(Signal::SIGKILL).map_err(bond)?;
        // The shim may have died before that, and then nothing would ever come.
        if nix::unistd::getppid() != shim {
            return Err(bond(Errno::ESRCH));
        }
        self.cwd.as_deref().map_or(Ok(()), nix::unistd::chdir).map_err(|errno| (StartStep::Cwd, errno))?;
        // Fails where the daemon is gone: it may have taken long to get here, and nothing is to run then.
        self.announce().map_err(bond)?;
        SigSet::empty().thread_set_mask().map_err(bond)
    }

    /// Takes from the command what a daemon without root has as capabilities: a command with CAP_SETUID can become root. Root without
    /// another user keeps its rights, which exec would give back to it.
    fn drop_capabilities(&self) -> Result<(), Errno> {
        let errno = |error: rustix::io::Errno| Errno::from_raw(error.raw_os_error());
        match clear_ambient_capability_set() {
            // A kernel before 4.3 has no such set.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(errno(error)),
        }
        if self.uid.is_none() && nix::unistd::geteuid().is_root() {
            return Ok(());
        }
        let none = CapabilitySet::empty();
        let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
        set_capabilities(None, sets).map_err(errno)
    }

    fn announce(&self) -> Result<(), Errno> {
        let mut line = [0; ANNOUNCEMENT];
        let mut rest = line.as_mut_slice();
        write!(rest, "{}", ShimReport::Starting(Pid::this().as_raw())).map_err(|_| Errno::EMSGSIZE)?;
        let unused = rest.len();
        let said = line.get(..ANNOUNCEMENT - unused).unwrap_or_default();
        send(self.daemon.as_raw_fd(), said, MsgFlags::MSG_NOSIGNAL).map(drop)
    }
}

/// Starts a command by these steps. An error says which one failed.
pub(super) fn spawn(command: &mut Command, steps: Steps) -> Result<Child, (StartStep, io::Error)> {
    let shim = Pid::this();
    let take = move || {
        steps.take(shim).map_err(|(step, errno)| io::Error::from_raw_os_error(step as i32 * STEP + errno as i32))
    };
    // SAFETY: the closure makes system calls only, and the process that it runs in is a copy of one with a single thread.
    unsafe { command.pre_exec(take) }.spawn().map_err(|error| {
        let Some(number) = error.raw_os_error() else { return (StartStep::Exec, error) };
        let step = match number / STEP {
            1 => StartStep::Identity,
            2 => StartStep::Cwd,
            3 => StartStep::Bond,
            _ => StartStep::Exec,
        };
        (step, io::Error::from_raw_os_error(number % STEP))
    })
}

/// Sets every signal to its default: what is ignored stays ignored across exec, and a daemon started by nohup, or by a
/// runtime that ignores PIPE, would hand that down. CHLD ignored would even take away the shim's own children.
pub(super) fn reset_dispositions() {
    for number in 1..=LAST_SIGNAL {
        // SAFETY: the default disposition runs no code of ours. KILL, STOP and the C library's own two are refused.
        unsafe { nix::libc::signal(number, nix::libc::SIG_DFL) };
    }
}

/// Keeps descriptors that the daemon was born with (a careless parent's) away from the command. Those of our own making
/// are closed on exec from birth.
pub(super) fn close_inherited_on_exec() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for number in numbers.filter(|number: &i32| *number > 2) {
        // SAFETY: the listing is of this process, which has one thread, and is still open: all of them are.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = rustix::io::fcntl_setfd(descriptor, FdFlags::CLOEXEC);
    }
}

/// Puts `/dev/null` in the place of stdout and stderr.
pub(super) fn let_go_of_output() {
    if let Ok(null) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}
