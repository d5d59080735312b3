//! The shim: `cronward __shim`, one small single-threaded process that starts one command as whom it runs as, and keeps it. No
//! runtime, no logging, and no output of its own: its stdout and stderr are the command's. Users and groups are looked up here
//! and not in the daemon, since a directory server may take its time.

mod control;
mod keep;
mod sys;

pub(in crate::exec) use control::send_greeting;

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use nix::sys::prctl;
use nix::sys::signal::SigSet;
use nix::unistd::{Gid, Uid, User};
use rustix::process::{Pid, Signal};
use rustix::thread::{CapabilitySet, capabilities};

use crate::clock::{Clock, SystemClock};
use crate::exec::accounts::{self, find_group, find_user, unknown};
use crate::exec::environment::ACCOUNT;
use crate::exec::messages::{CommandPlan, Refusal, Request, ShimReport};
use crate::exec::shim::control::{Control, Input};
use crate::exec::shim::keep::{Keep, Terms};
use crate::exec::shim::sys::{StartStep, Steps};
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
        control.report(&ShimReport::Refused(Refusal::cannot_run(format_args!(
            "the cronward binary was replaced by version {VERSION} while the daemon ran; restart the daemon"
        ))));
        return ExitCode::FAILURE;
    }
    match begin(&mut control, stdin) {
        Ok((command, terms)) => keep(control, command, terms),
        Err(NotBegun::Refused(refusal)) => control.report(&ShimReport::Refused(refusal)),
        Err(NotBegun::Stopped(signal)) => control.report(&ShimReport::Unstarted(signal.as_raw())),
    }
    ExitCode::SUCCESS
}

/// Why there is no command.
enum NotBegun {
    /// It cannot be started, or not any more.
    Refused(Refusal),
    /// It is not wanted any more: this signal was to end it.
    Stopped(Signal),
}

impl From<Refusal> for NotBegun {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

fn begin(control: &mut Control, stdin: Option<OwnedFd>) -> Result<(Pid, Terms), NotBegun> {
    let in_shim = |error| Refusal::of_error(&error, format_args!("the shim cannot keep a command: {error}"));
    prepare().map_err(in_shim)?;
    let plan = control.plan().map_err(in_shim)?;
    let identity = Identity::find(&plan)?;
    let lease = still_wanted(control, plan.lease)?;
    let daemon = control.as_fd().try_clone_to_owned().map_err(in_shim)?;
    let begun = SystemClock.now().mono;
    Ok((start(&plan, identity, stdin, daemon)?, Terms { begun, lease, kill_mode: plan.kill_mode }))
}

/// A directory server may have taken its time, and so may the daemon: what it asked for meanwhile, and how the lease stands. A signal
/// that ends nothing finds nobody who would take it.
fn still_wanted(control: &mut Control, mut lease: Option<LeaseDeadline>) -> Result<Option<LeaseDeadline>, NotBegun> {
    while control.has_request() {
        match control.request() {
            Input::Request(Request::Lease(renewed)) => lease = Some(renewed),
            Input::Request(request) => {
                if let Some(signal) = request.ending() {
                    return Err(NotBegun::Stopped(signal));
                }
            }
            Input::Nothing => {}
            Input::Closed => return Err(NotBegun::Stopped(Signal::KILL)),
        }
    }
    let now = SystemClock.now().mono;
    if lease.is_some_and(|lease| lease.stop_at <= now) {
        control.report(&ShimReport::Lapsed(now));
        return Err(Refusal::cannot_run("its lease was not renewed while it was being started").into());
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
    control.report(&ShimReport::Started(command.as_raw_nonzero().get()));
    // The command holds the pipes now. As long as the shim did too, they would have no end.
    sys::let_go_of_output();
    match Keep::new(control, command, terms) {
        Ok(keep) => keep.run(),
        // Ending here ends the command too: PR_SET_PDEATHSIG.
        Err(error) => drop(error),
    }
}

/// Starts the command in its own group, with the shim's stdout and stderr and, unless one is given, no stdin.
fn start(plan: &CommandPlan, identity: Identity, stdin: Option<OwnedFd>, daemon: OwnedFd) -> Result<Pid, Refusal> {
    let Some((program, arguments)) = plan.argv.split_first() else {
        return Err(Refusal::cannot_run("the command is empty; name a program"));
    };
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(environment(plan, &identity));
    command.process_group(0).stdin(stdin.map_or_else(Stdio::null, Stdio::from));
    let folder = folder(plan, &identity)?;
    // A directory with a NUL in its name was refused by the daemon.
    let cwd = Some(folder.as_os_str()).filter(|cwd| !cwd.is_empty()).and_then(c_string);
    let steps = Steps { groups: identity.groups, gid: identity.gid, uid: identity.uid, cwd, daemon };
    let child =
        sys::spawn(&mut command, steps).map_err(|(step, error)| explain(plan, (program, &folder), step, &error))?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| Refusal::cannot_run("the system gave an impossible process number"))
}

/// The folder that the command starts in; empty for the daemon's.
fn folder(plan: &CommandPlan, identity: &Identity) -> Result<PathBuf, Refusal> {
    let home = identity.account.as_ref().map(|user| user.dir.clone());
    let inherited = || plan.fallback.iter().chain(&plan.env).find(|(name, _)| name == "HOME");
    let home = home.or_else(|| inherited().map(|(_, home)| PathBuf::from(home)));
    accounts::expand(Path::new(&plan.cwd), home.as_deref(), "cwd")
}

/// What the account's entry says holds unless the plan says otherwise.
fn environment(plan: &CommandPlan, identity: &Identity) -> Vec<(OsString, OsString)> {
    let account = identity.account.as_ref().map_or_else(|| plan.fallback.clone(), accounts::variables);
    account.into_iter().chain(plan.env.iter().cloned()).collect()
}

fn c_string(text: &OsStr) -> Option<CString> {
    CString::new(text.as_encoded_bytes()).ok()
}

fn explain(plan: &CommandPlan, (program, folder): (&OsString, &Path), step: StartStep, error: &io::Error) -> Refusal {
    match step {
        StartStep::Exec => explain_exec(plan, (program, folder), error),
        StartStep::Identity => Refusal::of_error(
            error,
            format_args!(
                "{program:?} cannot run as {}: {error}; run the daemon as root, or leave out user and group",
                account_name(plan)
            ),
        ),
        StartStep::Cwd => Refusal::of_error(error, format_args!("cwd {:?} of {program:?}: {error}", plan.cwd)),
        StartStep::Bond => Refusal::of_error(error, format_args!("{program:?} cannot be tied to its shim: {error}")),
    }
}

fn account_name(plan: &CommandPlan) -> String {
    let named = |what, name: &String| (!name.is_empty()).then(|| format!("{what} {name:?}"));
    [named("user", &plan.user), named("group", &plan.group)].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn explain_exec(plan: &CommandPlan, (program, folder): (&OsString, &Path), error: &io::Error) -> Refusal {
    let with_path = program.as_encoded_bytes().contains(&b'/');
    match error.kind() {
        io::ErrorKind::NotFound if with_path && folder.join(program).exists() => {
            Refusal::cannot_run(format_args!("{program:?} is there, but the interpreter that it names is not"))
        }
        io::ErrorKind::NotFound if with_path => Refusal::not_found(format_args!("{program:?} was not found")),
        io::ErrorKind::NotFound => {
            let path =
                plan.env.iter().find(|(name, _)| name == "PATH").map_or(OsStr::new("/bin:/usr/bin"), |(_, path)| path);
            Refusal::not_found(format_args!("{program:?} was not found in PATH {path:?}"))
        }
        _ => Refusal::of_error(error, format_args!("{program:?} cannot be started: {error}")),
    }
}

/// Who a command runs as. All none when nobody else than the daemon's own user is asked for.
#[derive(Debug, Default)]
struct Identity {
    /// Supplementary groups.
    groups: Option<Vec<Gid>>,
    /// The group.
    gid: Option<Gid>,
    /// The user.
    uid: Option<Uid>,
    /// The account that the command runs as; none where the machine has no entry of the daemon's own.
    account: Option<User>,
}

impl Identity {
    /// Looks up the user and the group of a plan, by name or number; empty means not asked for.
    fn find(plan: &CommandPlan) -> Result<Self, Refusal> {
        let (user, group) = (plan.user.as_str(), plan.group.as_str());
        let gid = if group.is_empty() { None } else { Some(find_group(group)?) };
        if user.is_empty() {
            let gid = gid.filter(|gid| *gid != nix::unistd::getegid());
            let account = if needs_account(plan) { accounts::own()? } else { None };
            return Ok(Self { gid, account, ..Self::default() });
        }
        let user = find_user(user)?;
        let gid = gid.unwrap_or(user.gid);
        if user.uid == nix::unistd::geteuid() && gid == nix::unistd::getegid() {
            // Already so: asks for no privilege.
            return Ok(Self { account: Some(user), ..Self::default() });
        }
        may_run_as(&user.name)?;
        let name = CString::new(user.name.as_str()).map_err(|_| unknown("user", &user.name))?;
        let groups = nix::unistd::getgrouplist(&name, gid).map_err(|errno| {
            Refusal::of_error(&errno.into(), format_args!("the groups of user {:?}: {}", user.name, errno.desc()))
        })?;
        Ok(Self { groups: Some(groups), gid: Some(gid), uid: Some(user.uid), account: Some(user) })
    }
}

/// Whether the entry of the account adds anything: a directory server is not asked in vain.
fn needs_account(plan: &CommandPlan) -> bool {
    let is_set = |wanted: &str| plan.env.iter().any(|(name, _)| name == wanted);
    accounts::is_in_home(Path::new(&plan.cwd)) || !ACCOUNT.iter().all(|name| is_set(name))
}

/// What it takes to run a command as another user: to become that user, and to stop what runs as that user.
const RIGHTS: [(CapabilitySet, &str); 3] =
    [(CapabilitySet::SETUID, "CAP_SETUID"), (CapabilitySet::SETGID, "CAP_SETGID"), (CapabilitySet::KILL, "CAP_KILL")];

/// Refuses another user where the rights do not suffice.
fn may_run_as(user: &str) -> Result<(), Refusal> {
    let owned = capabilities(None).map_err(|errno| {
        Refusal::of_error(&errno.into(), format_args!("user {user:?}: capabilities cannot be read: {errno}"))
    })?;
    let lacking: Vec<_> =
        RIGHTS.iter().filter(|(right, _)| !owned.effective.contains(*right)).map(|(_, name)| *name).collect();
    if lacking.is_empty() {
        return Ok(());
    }
    Err(Refusal::cannot_run(format_args!(
        "user {user:?}: this process lacks {} to run and stop commands of other users; run the daemon as root or with these \
         capabilities, or leave out user",
        lacking.join(", ")
    )))
}
