//! The shim: `cronward __shim`, one small single-threaded process that keeps one command. No runtime, no logging, and no
//! output of its own: its stdout and stderr are the command's.

mod control;
mod keep;
mod start;
mod sys;

pub(in crate::exec) use control::send_greeting;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::process::ExitCode;

use nix::sys::prctl;
use nix::sys::signal::SigSet;
use rustix::process::Pid;

use crate::clock::{Clock, SystemClock};
use crate::exec::messages::{Refusal, Report, Request};
use crate::exec::shim::control::{Control, Input};
use crate::exec::shim::keep::{Keep, Terms};
use crate::exec::shim::start::Identity;
use crate::slot::LeaseDeadline;

/// The hidden first argument.
pub(in crate::exec) const ARGUMENT: &str = "__shim";

/// The second argument: both ends must speak the same form. They differ when the file was replaced under a running daemon.
pub(in crate::exec) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The exit code for those who call it by hand (EX_USAGE).
const USAGE: u8 = 64;

/// Runs the shim when the arguments ask for it, and says how to exit; none for any other command line. To be called
/// first of all in `main`: what follows relies on there being one thread.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    Some(run(&arguments.next().unwrap_or_default()))
}

fn run(version: &OsStr) -> ExitCode {
    let Ok((mut control, stdin)) = Control::take() else {
        let _ = writeln!(io::stderr(), "cronward {ARGUMENT} is started by cronward itself, once for each run");
        return ExitCode::from(USAGE);
    };
    if version != VERSION {
        control.report(&Report::Refused(Refusal::cannot_run(format_args!(
            "the cronward binary was replaced by version {VERSION} while the daemon ran; restart the daemon"
        ))));
        return ExitCode::FAILURE;
    }
    match begin(&mut control, stdin) {
        Ok((command, terms)) => keep(control, command, terms),
        Err(refusal) => control.report(&Report::Refused(refusal)),
    }
    ExitCode::SUCCESS
}

fn begin(control: &mut Control, stdin: Option<OwnedFd>) -> Result<(Pid, Terms), Refusal> {
    let in_shim = |error| Refusal::cannot_run(format_args!("the shim cannot keep a command: {error}"));
    prepare().map_err(in_shim)?;
    let plan = control.plan().map_err(in_shim)?;
    let identity = Identity::find(&plan.user, &plan.group)?;
    let lease = still_wanted(control, plan.lease)?;
    Ok((start::start(&plan, identity, stdin)?, Terms { lease, kill_mode: plan.kill_mode }))
}

/// A directory server may have taken its time, and so may the daemon: what it asked for meanwhile, and how the lease stands.
fn still_wanted(control: &mut Control, mut lease: Option<LeaseDeadline>) -> Result<Option<LeaseDeadline>, Refusal> {
    while control.has_request() {
        match control.request() {
            Input::Request(Request::Lease(renewed)) => lease = Some(renewed),
            Input::Nothing => {}
            Input::Request(_) | Input::Closed => {
                return Err(Refusal::cannot_run("it was stopped before it was started"));
            }
        }
    }
    let now = SystemClock.now().mono;
    if lease.is_some_and(|lease| lease.stop_at <= now) {
        control.report(&Report::Lapsed(now));
        return Err(Refusal::cannot_run("its lease was not renewed while it was being started"));
    }
    Ok(lease)
}

/// Signals stay pending for ever, so that a TERM to the whole service does not end the one who is to report the end of
/// the command; children come as a file descriptor; whatever leaves the command's group comes back as a child.
fn prepare() -> io::Result<()> {
    sys::reset_dispositions();
    SigSet::all().thread_block()?;
    prctl::set_child_subreaper(true)?;
    prctl::set_name(c"cronward-shim")?;
    sys::close_inherited_on_exec();
    Ok(())
}

fn keep(mut control: Control, command: Pid, terms: Terms) {
    control.report(&Report::Started(command.as_raw_nonzero().get()));
    // The command holds the pipes now. As long as the shim did too, they would have no end.
    sys::let_go_of_output();
    match Keep::new(control, command, terms) {
        Ok(keep) => keep.run(),
        // Ending here ends the command too: PR_SET_PDEATHSIG.
        Err(error) => drop(error),
    }
}
