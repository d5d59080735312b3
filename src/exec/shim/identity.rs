//! Who a command runs as: looks up users and groups. The shim does it, since a directory server may take its time.

use std::ffi::{CString, OsString};

use nix::unistd::{Gid, Group, Uid, User};

use crate::exec::refusal::Refusal;

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
    pub(super) account: Vec<(&'static str, OsString)>,
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
