//! What PostgreSQL and MariaDB have in common: they refuse to run as root, their clients are async, and their grants are documented.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a test says what it expects; no test uses all of it"
)]

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use nix::unistd::{Uid, User};
use tempfile::TempDir;

/// A server that is there answers so soon; one that takes longer is asked again.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// A server's programs, run as a user that they accept.
#[derive(Debug)]
pub struct Programs {
    /// Whom Debian runs them as.
    pub user: &'static str,
    pub package: &'static str,
}

impl Programs {
    fn unprivileged(&self) -> Option<User> {
        let named = |name| User::from_name(name).ok().flatten();
        let found = || named(self.user).or_else(|| named("nobody")).expect("a user for the server");
        Uid::effective().is_root().then(found)
    }

    /// A temporary folder that is that user's.
    pub fn folder(&self) -> TempDir {
        let dir = TempDir::with_prefix(format!("cronward-{}-", self.package)).expect("a temporary folder");
        if let Some(user) = self.unprivileged() {
            std::os::unix::fs::chown(dir.path(), Some(user.uid.as_raw()), Some(user.gid.as_raw())).unwrap();
        }
        dir
    }

    /// The program in the first of these folders that has it.
    pub fn command(&self, name: &str, folders: impl IntoIterator<Item = PathBuf>) -> Command {
        let found = folders.into_iter().map(|folder| folder.join(name)).find(|program| program.is_file());
        let found = found.unwrap_or_else(|| panic!("there is no {name}: apt-get install {}", self.package));
        let Some(user) = self.unprivileged() else { return Command::new(found) };
        let mut command = Command::new("setpriv");
        command
            .arg(format!("--reuid={}", user.uid))
            .arg(format!("--regid={}", user.gid))
            .arg("--clear-groups")
            .arg(found);
        command.current_dir("/");
        command
    }

    /// Runs what makes a server's files.
    pub fn make(&self, command: &mut Command) {
        let made = command.output();
        let made =
            made.unwrap_or_else(|error| panic!("cannot run {command:?} ({error}): apt-get install {}", self.package));
        assert!(made.status.success(), "{command:?}: {}", String::from_utf8_lossy(&made.stderr));
    }
}

/// Where programs are looked for.
pub fn path() -> Vec<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect()
}

/// Waits for something async. Tests call this with a runtime and without one: it has one of its own, on a thread of its own.
pub fn waited<T: Send>(what: impl Future<Output = T> + Send) -> T {
    let run = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(what);
    std::thread::scope(|scope| scope.spawn(run).join()).unwrap()
}

/// Whether a connection can be made.
pub fn answers<C, E>(connecting: impl Future<Output = Result<C, E>> + Send) -> bool {
    waited(async { tokio::time::timeout(ANSWER_LIMIT, connecting).await.is_ok_and(|made| made.is_ok()) })
}

/// The statements in a section of docs/stores.md that give a user all it needs.
pub fn documented_grants(section: &str, making_a_user: &str) -> Vec<String> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/stores.md")).expect("docs/stores.md");
    let section = page.split("\n## ").find(|text| text.starts_with(section)).expect("a section");
    let grants = section.lines().filter(|line| line.starts_with("GRANT ") || line.starts_with(making_a_user));
    grants.map(|line| line.trim_end_matches(';').to_owned()).collect()
}

/// The block of a page below `<!-- file: NAME -->`.
pub fn documented_block(page: &str, name: &str) -> String {
    let text = std::fs::read_to_string(format!("{}/{page}", env!("CARGO_MANIFEST_DIR"))).expect(page);
    let block =
        text.split(&format!("<!-- file: {name} -->\n```sql\n")).nth(1).and_then(|rest| rest.split("```").next());
    block.unwrap_or_else(|| panic!("{page} has no block {name}")).to_owned()
}
