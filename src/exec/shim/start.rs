//! Starts the command as whom it runs as, and says in words why it did not start. Users and groups are looked up here and not in
//! the daemon, since a directory server may take its time.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::unistd::{Gid, Group, Uid, User};
use rustix::process::Pid;

use crate::exec::messages::{Plan, Refusal};
use crate::exec::shim::sys::{self, Step, Steps};

/// Starts the command in its own group, with the shim's stdout and stderr and, unless one is given, no stdin.
pub(super) fn start(plan: &Plan, identity: Identity, stdin: Option<OwnedFd>) -> Result<Pid, Refusal> {
    let Some((program, arguments)) = plan.argv.split_first() else {
        return Err(Refusal::cannot_run("the command is empty; name a program"));
    };
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(environment(plan, &identity));
    command.process_group(0).stdin(stdin.map_or_else(Stdio::null, Stdio::from));
    // A directory with a NUL in its name was refused by the daemon.
    let cwd = Some(plan.cwd.as_os_str()).filter(|cwd| !cwd.is_empty()).and_then(c_string);
    let steps = Steps { groups: identity.groups, gid: identity.gid, uid: identity.uid, cwd };
    let child = sys::spawn(&mut command, steps).map_err(|(step, error)| explain(plan, program, step, &error))?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| Refusal::cannot_run("the system gave an impossible process number"))
}

/// What the account's entry says holds unless the plan says otherwise.
fn environment<'a>(plan: &'a Plan, identity: &'a Identity) -> impl Iterator<Item = (&'a OsStr, &'a OsStr)> {
    let account = identity.account.iter().map(|(name, value)| (OsStr::new(*name), value.as_os_str()));
    account.chain(plan.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())))
}

fn c_string(text: &OsStr) -> Option<CString> {
    CString::new(text.as_encoded_bytes()).ok()
}

fn explain(plan: &Plan, program: &OsString, step: Step, error: &io::Error) -> Refusal {
    match step {
        Step::Exec => explain_exec(plan, program, error),
        Step::Identity => Refusal::cannot_run(format_args!(
            "{program:?} cannot run as {}: {error}; run the daemon as root, or leave out user and group",
            account_name(plan)
        )),
        Step::Cwd => Refusal::cannot_run(format_args!("cwd {:?} of {program:?}: {error}", plan.cwd)),
        Step::Bond => Refusal::cannot_run(format_args!("{program:?} cannot be tied to its shim: {error}")),
    }
}

fn account_name(plan: &Plan) -> String {
    let named = |what, name: &String| (!name.is_empty()).then(|| format!("{what} {name:?}"));
    [named("user", &plan.user), named("group", &plan.group)].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn explain_exec(plan: &Plan, program: &OsString, error: &io::Error) -> Refusal {
    let with_path = program.as_encoded_bytes().contains(&b'/');
    match error.kind() {
        io::ErrorKind::NotFound if with_path && Path::new(&plan.cwd).join(program).exists() => {
            Refusal::cannot_run(format_args!("{program:?} is there, but the interpreter that it names is not"))
        }
        io::ErrorKind::NotFound if with_path => Refusal::not_found(format_args!("{program:?} was not found")),
        io::ErrorKind::NotFound => {
            let path =
                plan.env.iter().find(|(name, _)| name == "PATH").map_or(OsStr::new("/bin:/usr/bin"), |(_, path)| path);
            Refusal::not_found(format_args!("{program:?} was not found in PATH {path:?}"))
        }
        _ => Refusal::cannot_run(format_args!("{program:?} cannot be started: {error}")),
    }
}

/// Who a command runs as. All none when nobody else than the daemon's own user is asked for.
#[derive(Debug, Default)]
pub(super) struct Identity {
    /// Supplementary groups.
    pub(super) groups: Option<Vec<Gid>>,
    /// The group.
    pub(super) gid: Option<Gid>,
    /// The user.
    pub(super) uid: Option<Uid>,
    /// What the account's entry says of the environment.
    account: Vec<(&'static str, OsString)>,
}

impl Identity {
    /// Looks up a user and a group, by name or number; empty means not asked for.
    pub(super) fn find(user: &str, group: &str) -> Result<Self, Refusal> {
        let gid = if group.is_empty() { None } else { Some(find_group(group)?) };
        if user.is_empty() {
            return Ok(Self { gid: gid.filter(|gid| *gid != nix::unistd::getegid()), ..Self::default() });
        }
        let user = find_user(user)?;
        let gid = gid.unwrap_or(user.gid);
        let account = account(&user);
        if user.uid == nix::unistd::geteuid() && gid == nix::unistd::getegid() {
            // Already so: asks for no privilege.
            return Ok(Self { account, ..Self::default() });
        }
        let name = CString::new(user.name.as_str()).map_err(|_| unknown("user", &user.name))?;
        let groups = nix::unistd::getgrouplist(&name, gid).map_err(|errno| {
            Refusal::cannot_run(format_args!("the groups of user {:?}: {}", user.name, errno.desc()))
        })?;
        Ok(Self { groups: Some(groups), gid: Some(gid), uid: Some(user.uid), account })
    }
}

fn account(user: &User) -> Vec<(&'static str, OsString)> {
    vec![
        ("HOME", user.dir.clone().into()),
        ("LOGNAME", user.name.clone().into()),
        ("SHELL", user.shell.clone().into()),
        ("USER", user.name.clone().into()),
    ]
}

fn find_user(name: &str) -> Result<User, Refusal> {
    let found = match (User::from_name(name), name.parse()) {
        (Ok(None), Ok(number)) => User::from_uid(Uid::from_raw(number)),
        (found, _) => found,
    };
    found.map_err(|errno| lookup("user", name, errno))?.ok_or_else(|| unknown("user", name))
}

fn find_group(name: &str) -> Result<Gid, Refusal> {
    let found = match (Group::from_name(name), name.parse()) {
        (Ok(None), Ok(number)) => Group::from_gid(Gid::from_raw(number)),
        (found, _) => found,
    };
    found.map_err(|errno| lookup("group", name, errno))?.map(|group| group.gid).ok_or_else(|| unknown("group", name))
}

fn lookup(what: &str, name: &str, errno: nix::errno::Errno) -> Refusal {
    Refusal::cannot_run(format_args!("{what} {name:?} cannot be looked up: {}", errno.desc()))
}

fn unknown(what: &str, name: &str) -> Refusal {
    Refusal::cannot_run(format_args!("{what} {name:?} is not known on this machine"))
}
