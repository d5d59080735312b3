//! A server as a process: started, waited for until it answers, signalled by its pid, and killed when dropped.
#![allow(
    clippy::expect_used,
    clippy::panic,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a test says what it expects; no test uses all of it"
)]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, pidfd_open, waitid};

/// How often a server is asked whether it answers yet.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How often a server is started at the most.
const TRIES: usize = 5;

/// Starts a server, or several that belong together. None when it ended instead: then it is tried again, for another process
/// may take a port between its choice and its use.
pub fn started<T>(what: &str, start: impl FnMut() -> Option<T>) -> T {
    let found = std::iter::repeat_with(start).take(TRIES).flatten().next();
    found.unwrap_or_else(|| panic!("{what} does not start"))
}

/// A running process.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    /// It was waited for: its number may be another's by now.
    is_gone: bool,
}

impl ServerProcess {
    /// `package` is where the program comes from.
    pub fn spawn(command: &mut Command, package: &str) -> Self {
        Self::spawn_with_log(command, package, Stdio::null())
    }

    /// The same where what it says is kept.
    pub fn spawn_with_log(command: &mut Command, package: &str, log: impl Into<Stdio>) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        let child = child.unwrap_or_else(|error| {
            panic!("cannot run {} ({error}): apt-get install {package}", command.get_program().display())
        });
        Self { child, is_gone: false }
    }

    /// Its number; another one after each start.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    fn pid(&self) -> Pid {
        pid(self.id())
    }

    /// Whether it has ended, by itself or because it was killed.
    pub fn has_ended(&self) -> bool {
        let left_as_it_is = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let ended = || waitid(WaitId::Pid(self.pid()), left_as_it_is).expect("the child can be asked");
        self.is_gone || ended().is_some()
    }

    /// Waits for its end so long at the most; whether it has ended. It is left to be waited for.
    pub fn ends_within(&self, limit: Duration) -> bool {
        if !self.is_gone {
            let ending = pidfd_open(self.pid(), PidfdFlags::empty()).expect("the child can be watched");
            let limit = Timespec::try_from(limit).expect("a limit that the system can count");
            // A signal ends this wait early: whoever waits on has looked once more.
            let _ = poll(&mut [PollFd::new(&ending, PollFlags::IN)], Some(&limit));
        }
        self.has_ended()
    }

    /// Waits until it is so, and panics with this text when it is not. False when the process ended instead. There is no signal
    /// for its answer, so it is asked again and again.
    #[allow(clippy::disallowed_methods, reason = "real processes are judged by the machine's clock")]
    pub fn wait_until(&self, limit: Duration, what: impl Fn() -> String, is_so: impl Fn() -> bool) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < limit {
            if self.has_ended() {
                return false;
            }
            if is_so() {
                return true;
            }
            self.ends_within(LOOK_EVERY);
        }
        panic!("not within {limit:?}: {}", what());
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("the server is there to be signalled");
    }

    /// Stops it where it is: it keeps its connections and answers nothing. The kernel stops the threads one after the other, and on a
    /// busy machine one of them answers meanwhile: the last one is waited for.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
        let left_as_it_is = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(self.pid()), left_as_it_is).expect("the child can be waited for");
    }

    /// Lets it go on.
    pub fn unpause(&self) {
        self.signal(Signal::CONT);
    }

    /// Ends it at once, as a crash.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.is_gone = true;
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

pub fn pid(id: u32) -> Pid {
    i32::try_from(id).ok().and_then(Pid::from_raw).expect("a pid")
}
