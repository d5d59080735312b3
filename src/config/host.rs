//! What the jobs name and this host lacks: a user, a group, a folder, a file, a program. Warnings only, since a file may be checked
//! elsewhere than where it is used. What is looked up is looked up once for all jobs, and what this process may not see is not judged.

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::unistd::{Gid, Group, Uid, User};

use crate::config::NodeConfig;
use crate::config::context::Context;
use crate::config::draft::Draft;
use crate::job::Program;

/// Warns of what is not there, for the jobs that this node would run.
pub(super) fn check(ctx: &Context<'_>, drafts: &[Draft], node: &NodeConfig) {
    if !ctx.env.looks_at_host() {
        return;
    }
    let mut host = Host { ctx, known: BTreeMap::new() };
    for draft in drafts.iter().filter(|draft| draft.sound && draft.spec.enabled && draft.is_selected(node)) {
        host.accounts(draft);
        host.files(draft);
        host.program(draft);
    }
}

/// Something that can be looked up.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    User(String),
    Group(String),
    Folder(PathBuf),
    File(PathBuf),
    /// A program, by its path.
    Executable(PathBuf),
    /// A program, by its name and the folders of a `PATH`.
    Command(String, String),
}

impl Thing {
    /// Whether it is there; also where that cannot be said.
    fn exists(&self) -> bool {
        match self {
            Self::User(name) => is_user(name),
            Self::Group(name) => is_group(name),
            Self::Folder(path) => is_there(path, |data| data.is_dir()),
            Self::File(path) => is_there(path, |data| !data.is_dir()),
            Self::Executable(path) => is_there(path, is_executable),
            Self::Command(name, path) => {
                path.split(':').any(|folder| is_there(&Path::new(folder).join(name), is_executable))
            }
        }
    }
}

/// What has been looked up.
struct Host<'a> {
    ctx: &'a Context<'a>,
    known: BTreeMap<Thing, bool>,
}

impl Host<'_> {
    fn accounts(&mut self, draft: &Draft) {
        let command = &draft.spec.command;
        if let Some(user) = &command.user {
            self.look(Thing::User(user.clone()), "no-such-user", draft.place_or_name("user"), || {
                format!("there is no user {user:?} on this host")
            });
        }
        if let Some(group) = &command.group {
            self.look(Thing::Group(group.clone()), "no-such-group", draft.place_or_name("group"), || {
                format!("there is no group {group:?} on this host")
            });
        }
    }

    /// Relative ones depend on the folder that the daemon is started in.
    fn files(&mut self, draft: &Draft) {
        let command = &draft.spec.command;
        if let Some(cwd) = command.cwd.as_ref().filter(|cwd| cwd.is_absolute()) {
            self.look(Thing::Folder(cwd.clone()), "no-such-folder", draft.place_or_name("cwd"), || {
                format!("there is no folder {} on this host", cwd.display())
            });
        }
        if let Some(file) = command.env_file.as_ref().filter(|file| file.is_absolute()) {
            self.look(Thing::File(file.clone()), "no-such-file", draft.place_or_name("env_file"), || {
                format!("there is no file {} on this host", file.display())
            });
        }
    }

    /// Of a list, which names its program; a shell line may begin with anything. An `env_file` may set another `PATH`.
    fn program(&mut self, draft: &Draft) {
        let command = &draft.spec.command;
        let Program::Direct(words) = &command.program else { return };
        let Some(name) = words.first().filter(|name| !name.contains('{')) else { return };
        let place = draft.place_or_name("command");
        if name.contains('/') {
            let path = command.cwd.as_deref().unwrap_or_else(|| Path::new("")).join(name);
            if path.is_absolute() {
                self.look(Thing::Executable(path), "no-such-program", place, || {
                    format!("there is no program {name} on this host that can be executed")
                });
            }
            return;
        }
        let own = command.env.get("PATH").map(|path| (path.as_str(), "of the job"));
        let here = self.ctx.env.variable("PATH").map(|path| (path, "of this shell; a service may have another one"));
        let Some((path, whose)) = own.or(here).filter(|_| command.env_file.is_none()) else { return };
        self.look(Thing::Command(name.clone(), path.to_owned()), "no-such-program", place, || {
            format!("there is no program {name:?} in the PATH {whose}")
        });
    }

    fn look(&mut self, thing: Thing, code: &'static str, place: Range<usize>, message: impl FnOnce() -> String) {
        let exists = *self.known.entry(thing).or_insert_with_key(Thing::exists);
        if !exists {
            let hint = "correct it or install it; for a file that another host uses: cronward check --no-host";
            self.ctx.warn(code, place, message(), hint);
        }
    }
}

fn is_user(name: &str) -> bool {
    let by_number = || name.parse().map_or(Ok(None), |uid| User::from_uid(Uid::from_raw(uid)));
    !matches!((User::from_name(name), by_number()), (Ok(None), Ok(None)))
}

fn is_group(name: &str) -> bool {
    let by_number = || name.parse().map_or(Ok(None), |gid| Group::from_gid(Gid::from_raw(gid)));
    !matches!((Group::from_name(name), by_number()), (Ok(None), Ok(None)))
}

/// Whether something of a kind is there; also where this process may not see it.
fn is_there(path: &Path, is_kind: impl Fn(&std::fs::Metadata) -> bool) -> bool {
    match std::fs::metadata(path) {
        Ok(data) => is_kind(&data),
        Err(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
    }
}

fn is_executable(data: &std::fs::Metadata) -> bool {
    data.is_file() && data.permissions().mode() & 0o111 != 0
}
