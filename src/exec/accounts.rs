//! Accounts of this machine, by name or number. A directory server may take its time to answer, so the daemon's own tasks ask for none.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::{Gid, Group, Uid, User};

use crate::exec::messages::Refusal;

/// Looks up a user.
pub(super) fn find_user(name: &str) -> Result<User, Refusal> {
    let found = match (entry(User::from_name(name)), name.parse()) {
        (Ok(None), Ok(number)) => entry(User::from_uid(Uid::from_raw(number))),
        (found, _) => found,
    };
    found.map_err(|errno| lookup("user", name, errno))?.ok_or_else(|| unknown("user", name))
}

/// Looks up a group.
pub(super) fn find_group(name: &str) -> Result<Gid, Refusal> {
    let found = match (entry(Group::from_name(name)), name.parse()) {
        (Ok(None), Ok(number)) => entry(Group::from_gid(Gid::from_raw(number))),
        (found, _) => found,
    };
    found.map_err(|errno| lookup("group", name, errno))?.map(|group| group.gid).ok_or_else(|| unknown("group", name))
}

/// The account that this process runs as; none where the machine has no entry of it, as in a container with any number.
pub(super) fn own() -> Result<Option<User>, Refusal> {
    let uid = nix::unistd::geteuid();
    entry(User::from_uid(uid)).map_err(|errno| lookup("user", &uid.to_string(), errno))
}

/// Some systems answer by an error that there is no entry (getpwnam(3)): musl does where the machine has no `/etc/passwd`.
fn entry<T>(found: nix::Result<Option<T>>) -> nix::Result<Option<T>> {
    match found {
        Err(Errno::ENOENT | Errno::ESRCH | Errno::EBADF | Errno::EPERM) => Ok(None),
        found => found,
    }
}

/// What an account says of the environment: HOME, LOGNAME, SHELL and USER.
pub(super) fn variables(user: &User) -> Vec<(OsString, OsString)> {
    let name = OsString::from(&user.name);
    vec![
        ("HOME".into(), user.dir.clone().into()),
        ("LOGNAME".into(), name.clone()),
        ("SHELL".into(), user.shell.clone().into()),
        ("USER".into(), name),
    ]
}

/// Whether the path begins with `~`, which stands for a home.
pub(super) fn is_in_home(path: &Path) -> bool {
    path.starts_with("~")
}

/// The path with this home in the place of `~`. `what` names the path in a refusal.
pub(super) fn expand(path: &Path, home: Option<&Path>, what: &str) -> Result<PathBuf, Refusal> {
    let Ok(rest) = path.strip_prefix("~") else { return Ok(path.to_owned()) };
    let home = home.filter(|home| home.is_absolute()).ok_or_else(|| {
        let path = path.display();
        Refusal::cannot_run(format_args!(
            "{what} {path}: the account has no home on this machine; write the whole path"
        ))
    })?;
    Ok(if rest.as_os_str().is_empty() { home.to_owned() } else { home.join(rest) })
}

fn lookup(what: &str, name: &str, errno: Errno) -> Refusal {
    Refusal::of_error(&errno.into(), format_args!("{what} {name:?} cannot be looked up: {}", errno.desc()))
}

/// No such account.
pub(super) fn unknown(what: &str, name: &str) -> Refusal {
    Refusal::cannot_run(format_args!("{what} {name:?} is not known on this machine"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_file_of_accounts_has_no_entry_and_one_that_cannot_look_says_so() {
        assert_eq!(entry::<()>(Err(Errno::ENOENT)), Ok(None));
        assert_eq!(entry::<()>(Err(Errno::EMFILE)), Err(Errno::EMFILE));
        assert_eq!(entry(Ok(Some(7))), Ok(Some(7)));
    }

    #[test]
    fn a_tilde_stands_for_the_home_at_the_beginning_of_a_path_alone() {
        let home = Some(Path::new("/home/alice"));
        for (path, full) in
            [("~", "/home/alice"), ("~/data", "/home/alice/data"), ("/srv/~", "/srv/~"), ("~bob", "~bob")]
        {
            assert_eq!(expand(Path::new(path), home, "cwd"), Ok(PathBuf::from(full)), "{path}");
        }
        for none in [None, Some(Path::new("")), Some(Path::new("relative"))] {
            let refused = expand(Path::new("~/data"), none, "cwd").unwrap_err();
            assert_eq!(refused.message, "cwd ~/data: the account has no home on this machine; write the whole path");
        }
    }
}
