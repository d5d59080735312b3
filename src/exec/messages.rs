//! What the daemon and a shim tell each other over their socket, and why a command was not started. Words only.
//!
//! **The plan**, once, is what to start. It goes over the socket and not through arguments and environment, so that `ps` shows no
//! secret of `env`, and that an `LD_PRELOAD` for the command is none for the shim.
//!
//! **Reports** of the shim are lines of text, readable with strace.
//!
//! **Requests** to a shim that keeps a command are frames of [`FRAME`] bytes, one after the other:
//!
//! ```text
//! byte 0   1..9, little-endian              9..17, little-endian
//! s        signal number, 1 to 31           0                                  pass the signal on to the group
//! t        0                                0                                  stop: TERM, once, whoever asks for it
//! k        0                                0                                  KILL, to everything
//! l        stop_at                          kill_at, not before stop_at        the lease was renewed
//! ```
//!
//! Instants are nanoseconds of `CLOCK_BOOTTIME`, which the daemon and its shim read alike. Anything else, and an end of the
//! socket, also within a frame, is the end of the daemon as the shim knows it: it kills the command.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fmt::Display;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Signal;

use crate::clock::Mono;
use crate::job::KillMode;
use crate::slot::{ExitStatus, LeaseDeadline, NOT_STARTED, Standstill};

/// The exit code of a command that was not found, as shells have it.
const NOT_FOUND: i32 = 127;

/// What the machine lacks for the time being when a system call fails so: processes, descriptors, memory, buffers. Another node may
/// have it, and this one later.
const RESOURCES: [Errno; 5] = [Errno::AGAIN, Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS];

/// Why a command was not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The kind of it.
    pub(super) reason: RefusalReason,
    /// One line that names the thing.
    pub(super) message: String,
}

/// The kinds of a [`Refusal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusalReason {
    /// The program was not found.
    NotFound,
    /// The command was found, or never looked for.
    CannotRun,
    /// The machine lacked a resource.
    NoResources,
}

impl RefusalReason {
    /// The word of a report.
    const fn word(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::CannotRun => "cannot_run",
            Self::NoResources => "no_resources",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::NotFound, Self::CannotRun, Self::NoResources].into_iter().find(|reason| reason.word() == word)
    }
}

impl Refusal {
    /// The command was found, or never looked for.
    pub(super) fn cannot_run(why: impl Display) -> Self {
        Self { reason: RefusalReason::CannotRun, message: why.to_string() }
    }

    /// The program was not found.
    pub(super) fn not_found(why: impl Display) -> Self {
        Self { reason: RefusalReason::NotFound, message: why.to_string() }
    }

    /// A system call failed: by its error the command cannot run, or the machine lacks a resource.
    pub(super) fn of_error(error: &io::Error, why: impl Display) -> Self {
        let lacks = Errno::from_io_error(error).is_some_and(|errno| RESOURCES.contains(&errno));
        let reason = if lacks { RefusalReason::NoResources } else { RefusalReason::CannotRun };
        Self { reason, message: why.to_string() }
    }
}

impl From<Refusal> for ExitStatus {
    fn from(refusal: Refusal) -> Self {
        let message = refusal.message;
        match refusal.reason {
            RefusalReason::NotFound => Self::NotStarted { code: NOT_FOUND, message },
            RefusalReason::CannotRun => Self::NotStarted { code: NOT_STARTED, message },
            RefusalReason::NoResources => Self::NoResources { message },
        }
    }
}

/// Everything about a command, with placeholders filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CommandPlan {
    /// The program and its arguments.
    pub(super) argv: Vec<OsString>,
    /// The working directory; empty for the daemon's.
    pub(super) cwd: OsString,
    /// The user; empty for the daemon's.
    pub(super) user: String,
    /// The group; empty for the user's.
    pub(super) group: String,
    /// By when it has to be over unless the lease is renewed; none where it may outlast its lease.
    pub(super) lease: Option<LeaseDeadline>,
    /// How much of what it starts is stopped with it.
    pub(super) kill_mode: KillMode,
    /// HOME, LOGNAME, SHELL and USER where the machine has no entry of the account.
    pub(super) fallback: Vec<(OsString, OsString)>,
    /// The environment but for what the entry of the account adds; this wins.
    pub(super) env: Vec<(OsString, OsString)>,
}

impl CommandPlan {
    /// The plan as bytes: the length of the rest in 8 bytes, then fields that each end with NUL, as the kernel takes them.
    /// Refused when a field holds a NUL itself or a name cannot be one.
    pub(super) fn encode(&self) -> Result<Vec<u8>, Refusal> {
        let mut bytes = vec![0; 8];
        put(&mut bytes, "number of arguments", OsStr::new(&self.argv.len().to_string()))?;
        for argument in &self.argv {
            put(&mut bytes, "an argument of the command", argument)?;
        }
        put(&mut bytes, "cwd", &self.cwd)?;
        put(&mut bytes, "user", OsStr::new(&self.user))?;
        put(&mut bytes, "group", OsStr::new(&self.group))?;
        put(&mut bytes, "lease", OsStr::new(&self.lease.map(write_lease).unwrap_or_default()))?;
        put(&mut bytes, "kill_mode", OsStr::new(kill_mode_word(self.kill_mode)))?;
        put(&mut bytes, "number of variables", OsStr::new(&self.fallback.len().to_string()))?;
        for (name, value) in self.fallback.iter().chain(&self.env) {
            if name.is_empty() || name.as_bytes().contains(&b'=') {
                return Err(Refusal::cannot_run(format_args!("{name:?} cannot be the name of a variable in env")));
            }
            let entry = [name.as_os_str(), value].join(OsStr::new("="));
            put(&mut bytes, &format!("the variable {}", name.display()), &entry)?;
        }
        let length = (bytes.len() as u64 - 8).to_le_bytes();
        bytes.splice(..8, length);
        Ok(bytes)
    }

    /// Reads what [`CommandPlan::encode`] wrote, without the length; none when it is not that.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields =
            bytes.strip_suffix(b"\0")?.split(|byte| *byte == 0).map(|field| OsString::from_vec(field.to_vec()));
        let count = fields.next()?.into_string().ok()?.parse().ok()?;
        let argv: Vec<_> = fields.by_ref().take(count).collect();
        let cwd = fields.next()?;
        let user = fields.next()?.into_string().ok()?;
        let group = fields.next()?.into_string().ok()?;
        let lease = read_lease(&fields.next()?.into_string().ok()?)?;
        let kill_mode = read_kill_mode(&fields.next()?.into_string().ok()?)?;
        let fallbacks = fields.next()?.into_string().ok()?.parse().ok()?;
        let fallback: Vec<_> = fields.by_ref().take(fallbacks).map(split).collect::<Option<_>>()?;
        let env = fields.map(split).collect::<Option<_>>()?;
        let is_whole = argv.len() == count && fallback.len() == fallbacks;
        is_whole.then_some(Self { argv, cwd, user, group, lease, kill_mode, fallback, env })
    }
}

fn put(bytes: &mut Vec<u8>, what: &str, field: &OsStr) -> Result<(), Refusal> {
    if field.as_bytes().contains(&0) {
        return Err(Refusal::cannot_run(format_args!("{what} holds a NUL byte")));
    }
    bytes.extend_from_slice(field.as_bytes());
    bytes.push(0);
    Ok(())
}

const fn kill_mode_word(kill_mode: KillMode) -> &'static str {
    match kill_mode {
        KillMode::Group => "group",
        KillMode::Process => "process",
    }
}

fn read_kill_mode(word: &str) -> Option<KillMode> {
    [KillMode::Group, KillMode::Process].into_iter().find(|kill_mode| kill_mode_word(*kill_mode) == word)
}

fn write_lease(LeaseDeadline { stop_at, kill_at }: LeaseDeadline) -> String {
    format!("{} {}", stop_at.nanos(), kill_at.nanos())
}

/// None when it is no deadline, and in that none when there is none.
fn read_lease(text: &str) -> Option<Option<LeaseDeadline>> {
    if text.is_empty() {
        return Some(None);
    }
    let (stop_at, kill_at) = text.split_once(' ')?;
    let instant = |text: &str| Some(Mono::from_nanos(text.parse().ok()?));
    Some(Some(LeaseDeadline { stop_at: instant(stop_at)?, kill_at: instant(kill_at)? }))
}

fn split(entry: OsString) -> Option<(OsString, OsString)> {
    let entry = entry.into_vec();
    let at = entry.iter().position(|byte| *byte == b'=')?;
    let (name, value) = entry.split_at_checked(at)?;
    Some((OsString::from_vec(name.to_vec()), OsString::from_vec(value.get(1..)?.to_vec())))
}

/// Bytes of a request.
pub(super) const FRAME: usize = 17;

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Pass this signal on.
    Signal(Signal),
    /// TERM, unless that was sent already because of the lease.
    Stop,
    /// KILL.
    Kill,
    /// The lease was renewed: this holds from now on.
    Lease(LeaseDeadline),
}

impl Request {
    /// The signal with which it asks for the end of a command, if it does: to one that has not begun every such signal is alike.
    pub(super) fn ending(self) -> Option<Signal> {
        let ends = [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::KILL];
        match self {
            Self::Stop => Some(Signal::TERM),
            Self::Kill => Some(Signal::KILL),
            Self::Signal(signal) => Some(signal).filter(|signal| ends.contains(signal)),
            Self::Lease(_) => None,
        }
    }

    /// The frame.
    pub(super) fn encode(self) -> [u8; FRAME] {
        let (kind, first, second) = match self {
            Self::Signal(signal) => (b's', u64::from(signal.as_raw().unsigned_abs()), 0),
            Self::Stop => (b't', 0, 0),
            Self::Kill => (b'k', 0, 0),
            Self::Lease(LeaseDeadline { stop_at, kill_at }) => (b'l', stop_at.nanos(), kill_at.nanos()),
        };
        let mut frame = [kind; FRAME];
        for (place, byte) in frame.iter_mut().skip(1).zip(first.to_le_bytes().into_iter().chain(second.to_le_bytes())) {
            *place = byte;
        }
        frame
    }

    /// Reads a frame; none when it is not one.
    pub(super) fn decode(frame: [u8; FRAME]) -> Option<Self> {
        let (kind, numbers) = frame.split_first()?;
        let (first, second) = numbers.split_first_chunk()?;
        let (first, second) = (u64::from_le_bytes(*first), u64::from_le_bytes(second.try_into().ok()?));
        match (kind, first, second) {
            (b's', number, 0) => Signal::from_named_raw(i32::try_from(number).ok()?).map(Self::Signal),
            (b't', 0, 0) => Some(Self::Stop),
            (b'k', 0, 0) => Some(Self::Kill),
            (b'l', stop_at, kill_at) if stop_at <= kill_at => Some(Self::Lease(LeaseDeadline {
                stop_at: Mono::from_nanos(stop_at),
                kill_at: Mono::from_nanos(kill_at),
            })),
            _ => None,
        }
    }
}

/// One report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ShimReport {
    /// What is to become the command is this process, which is also its group, and executes the program next. Said by that process
    /// itself, so that where it is not said nothing of the command has run.
    Starting(i32),
    /// The command runs as this process.
    Started(i32),
    /// It was not started. Nothing follows.
    Refused(Refusal),
    /// It was not started, for it was told to stop by this signal before. Nothing follows.
    Unstarted(i32),
    /// The keeper stood still while the command ended: what is known of that end, which is the next report.
    StoodStill(Standstill),
    /// The command itself exited with this code, at this instant.
    Exited(i32, Mono),
    /// This signal ended the command itself, at this instant.
    Signalled(i32, Mono),
    /// Its lease was not renewed by `stop_at`: at this instant it was sent TERM, or refused before it was started.
    Lapsed(Mono),
    /// Nothing of it is left, or nothing that can be killed. The last one.
    Swept {
        /// Processes that outlived the command and were stopped.
        left: usize,
        /// Processes that KILL did not stop.
        survivors: usize,
    },
}

impl fmt::Display for ShimReport {
    /// One line, with its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting(pid) => writeln!(f, "starting {pid}"),
            Self::Started(pid) => writeln!(f, "started {pid}"),
            Self::Refused(Refusal { reason, message }) => {
                writeln!(f, "refused {} {}", reason.word(), message.replace(['\n', '\r'], " "))
            }
            Self::Unstarted(signal) => writeln!(f, "unstarted {signal}"),
            Self::StoodStill(Standstill { seen, cpu }) => {
                writeln!(f, "stood_still {} {}", seen.nanos(), cpu.as_micros())
            }
            Self::Exited(code, at) => writeln!(f, "exited {code} {}", at.nanos()),
            Self::Signalled(signal, at) => writeln!(f, "signalled {signal} {}", at.nanos()),
            Self::Lapsed(at) => writeln!(f, "lapsed {}", at.nanos()),
            Self::Swept { left, survivors } => writeln!(f, "swept {left} {survivors}"),
        }
    }
}

impl ShimReport {
    /// Whether the command has been started.
    pub(super) const fn is_of_a_start(&self) -> bool {
        matches!(self, Self::Started(_) | Self::Exited(..) | Self::Signalled(..) | Self::Swept { .. })
    }

    /// Reads a line without its end; none when it is no report.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        Some(match word {
            "starting" => Self::Starting(rest.parse().ok()?),
            "started" => Self::Started(rest.parse().ok()?),
            "refused" => {
                let (reason, message) = rest.split_once(' ')?;
                Self::Refused(Refusal { reason: RefusalReason::parse(reason)?, message: message.to_owned() })
            }
            "unstarted" => Self::Unstarted(rest.parse().ok()?),
            "stood_still" => {
                let (seen, cpu) = rest.split_once(' ')?;
                Self::StoodStill(Standstill { seen: instant(seen)?, cpu: Duration::from_micros(cpu.parse().ok()?) })
            }
            "exited" => {
                let (code, at) = rest.split_once(' ')?;
                Self::Exited(code.parse().ok()?, instant(at)?)
            }
            "signalled" => {
                let (signal, at) = rest.split_once(' ')?;
                Self::Signalled(signal.parse().ok()?, instant(at)?)
            }
            "lapsed" => Self::Lapsed(instant(rest)?),
            "swept" => {
                let (left, survivors) = rest.split_once(' ')?;
                Self::Swept { left: left.parse().ok()?, survivors: survivors.parse().ok()? }
            }
            _ => return None,
        })
    }
}

/// Nanoseconds of the clock that both ends read.
fn instant(text: &str) -> Option<Mono> {
    Some(Mono::from_nanos(text.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    fn plan() -> CommandPlan {
        CommandPlan {
            argv: vec!["/bin/x".into(), "".into(), OsString::from_vec(vec![0xff, b'\n'])],
            cwd: "/tmp".into(),
            user: "nobody".to_owned(),
            group: String::new(),
            lease: Some(LeaseDeadline { stop_at: Mono::from_nanos(5), kill_at: Mono::from_nanos(6) }),
            kill_mode: KillMode::Process,
            fallback: vec![("HOME".into(), "/".into())],
            env: vec![("A".into(), "".into()), ("B".into(), "a=b".into())],
        }
    }

    #[test]
    fn a_plan_reads_back_as_written() {
        for plan in [plan(), CommandPlan::default(), CommandPlan { env: Vec::new(), lease: None, ..plan() }] {
            let bytes = plan.encode().unwrap();
            let (length, rest) = bytes.split_at(8);
            assert_eq!(u64::from_le_bytes(length.try_into().unwrap()), rest.len() as u64);
            assert_eq!(CommandPlan::decode(rest), Some(plan));
        }
    }

    #[test]
    fn a_plan_cut_anywhere_is_none_or_shorter_but_never_a_panic() {
        let bytes = plan().encode().unwrap();
        for length in 0..bytes.len() - 8 {
            assert_ne!(CommandPlan::decode(&bytes[8..8 + length]), Some(plan()));
        }
        assert_eq!(CommandPlan::decode(b"18446744073709551615\0a\0"), None);
    }

    #[test]
    fn a_nul_or_an_impossible_name_is_refused_by_what_holds_it() {
        let with_env = |name: &str, value: &str| CommandPlan { env: vec![(name.into(), value.into())], ..plan() };
        for (plan, part) in [
            (CommandPlan { argv: vec!["a\0b".into()], ..plan() }, "an argument of the command holds a NUL"),
            (CommandPlan { cwd: "\0".into(), ..plan() }, "cwd holds a NUL"),
            (with_env("A", "\0secret"), "the variable A holds a NUL"),
            (with_env("", "x"), "\"\" cannot be the name"),
            (with_env("A=B", "x"), "\"A=B\" cannot be the name"),
        ] {
            let refusal = plan.encode().unwrap_err();
            assert!(refusal.reason == RefusalReason::CannotRun && refusal.message.contains(part), "{refusal:?}");
            assert!(!refusal.message.contains("secret"));
        }
    }

    #[test]
    fn a_request_reads_back_as_written() {
        let lease = LeaseDeadline { stop_at: Mono::from_nanos(7), kill_at: Mono::from_nanos(u64::MAX) };
        for request in [Request::Signal(Signal::USR2), Request::Stop, Request::Kill, Request::Lease(lease)] {
            assert_eq!(Request::decode(request.encode()), Some(request));
        }
    }

    #[test]
    fn what_is_no_request_is_none() {
        let signal = |number: u64| {
            let mut frame = Request::Signal(Signal::INT).encode();
            frame[1..9].copy_from_slice(&number.to_le_bytes());
            frame
        };
        let lease = LeaseDeadline { stop_at: Mono::from_nanos(8), kill_at: Mono::from_nanos(7) };
        let mut trailing = Request::Stop.encode();
        trailing[16] = 1;
        for frame in [[0; FRAME], [15; FRAME], signal(0), signal(65), signal(1 << 32), trailing] {
            assert_eq!(Request::decode(frame), None, "{frame:?}");
        }
        assert_eq!(Request::decode(Request::Lease(lease).encode()), None, "killed before it is stopped");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_that_is_written_so_or_none(frame in prop::array::uniform17(any::<u8>())) {
            prop_assert!(Request::decode(frame).is_none_or(|request| request.encode() == frame));
        }
    }

    #[test]
    fn a_report_reads_back_as_written() {
        for report in [
            ShimReport::Starting(4_194_304),
            ShimReport::Started(4_194_304),
            ShimReport::Refused(Refusal::not_found("\"x\" was not found in PATH")),
            ShimReport::Refused(Refusal::of_error(&Errno::MFILE.into(), "no descriptor is free")),
            ShimReport::Unstarted(15),
            ShimReport::StoodStill(Standstill { seen: Mono::from_nanos(9), cpu: Duration::from_micros(1_500) }),
            ShimReport::Exited(255, Mono::from_nanos(7_000_000_001)),
            ShimReport::Signalled(64, Mono::default()),
            ShimReport::Lapsed(Mono::from_nanos(u64::MAX)),
            ShimReport::Swept { left: 2, survivors: 1 },
        ] {
            assert_eq!(ShimReport::parse(report.to_string().trim_end_matches('\n')), Some(report));
        }
    }

    #[test]
    fn a_report_is_one_line_whatever_its_message() {
        let line = ShimReport::Refused(Refusal::cannot_run("a\nswept 0 0\r\n")).to_string();
        assert_eq!(line, "refused cannot_run a swept 0 0  \n");
    }

    #[test]
    fn a_start_that_lacks_a_resource_is_no_fault_of_the_command() {
        let status = |errno: Errno| ExitStatus::from(Refusal::of_error(&errno.into(), "why"));
        for errno in [Errno::AGAIN, Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS] {
            assert_eq!(status(errno), ExitStatus::NoResources { message: "why".to_owned() }, "{errno}");
        }
        for errno in [Errno::NOENT, Errno::ACCESS, Errno::TOOBIG, Errno::PERM, Errno::IO] {
            assert_eq!(status(errno), ExitStatus::NotStarted { code: 126, message: "why".to_owned() }, "{errno}");
        }
    }

    #[test]
    fn what_is_no_report_is_none() {
        for line in [
            "",
            "started",
            "started x",
            "refused not_found",
            "refused 126 x",
            "exited 1",
            "exited 1 -1",
            "swept 1",
            "swept -1 0",
            "began 1",
        ] {
            assert_eq!(ShimReport::parse(line), None, "{line}");
        }
    }
}
