//! Another process: this test binary again, with a role. What it finds, it prints, one line each.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use cronward::slot::Outcome;
use cronward::store::sql::SqliteStore;
use cronward::store::{Claim, OpenError, Settlement, Store};

use crate::sqlite::bench::{self, DONE, ended, options, request, url};

/// Says which role the process has.
pub(crate) const ROLE: &str = "CRONWARD_TEST_ROLE";
const FILE: &str = "CRONWARD_TEST_FILE";

/// Lines of a child begin with this; the test harness prints lines of its own.
const MARK: &str = "child: ";

/// A child that waits for [`Running::go`].
pub(crate) struct Running {
    pub(crate) process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// This binary in the role, ready to be started, by `prefix` where a shell has to prepare something.
pub(crate) fn command(role: &str, file: &Path, prefix: &[&str]) -> Command {
    let mut words: Vec<std::ffi::OsString> = prefix.iter().map(Into::into).collect();
    words.push(std::env::current_exe().unwrap().into());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).args(["--exact", "sqlite::child::role", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(FILE, file).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut process = command.spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Self { process, input, output: BufReader::new(output) }
    }

    /// The next line that the role printed; none when it has ended.
    pub(crate) fn line(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // The harness prints the test's name without a line break.
            if let Some((_, said)) = line.split_once(MARK) {
                return Some(said.trim_end().to_owned());
            }
        }
    }

    pub(crate) fn go(&mut self) {
        self.input.write_all(b"go\n").unwrap();
    }

    /// Everything that it still prints.
    pub(crate) fn rest(mut self) -> Vec<String> {
        let lines = std::iter::from_fn(|| self.line()).collect();
        assert!(self.process.wait().unwrap().success());
        lines
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn say(line: impl std::fmt::Display) {
    println!("{MARK}{line}");
}

fn wait_for_go() {
    say("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// Does nothing unless started by [`command`].
#[test]
fn role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let file = PathBuf::from(std::env::var_os(FILE).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        match role.as_str() {
            "open" => opens(&file).await,
            "claim" => claims(&file).await,
            "work" => works(&file).await,
            "refill" => refills(&file).await,
            other => panic!("no role {other:?}"),
        }
    });
}

/// Opens the file and says how that went.
async fn opens(file: &Path) {
    if std::env::var_os("CRONWARD_TEST_NOBODY").is_some() && rustix::process::geteuid().is_root() {
        nix::unistd::setgroups(&[]).unwrap();
        nix::unistd::setgid(nix::unistd::Gid::from_raw(65_534)).unwrap();
        nix::unistd::setuid(nix::unistd::Uid::from_raw(65_534)).unwrap();
    }
    match SqliteStore::open(&url(file), options()).await {
        Ok(_) => say("opened"),
        Err(OpenError::Store(error)) => say(format!("{} {error}", error.kind.as_str())),
        Err(error) => say(error),
    }
}

/// At the signal, opens the file, which may not be there, and asks for every slot of `race-N`.
async fn claims(file: &Path) {
    wait_for_go();
    let store = bench::open(file).await;
    for index in 0..crate::sqlite::race::SLOTS {
        let slot = bench::slot(&format!("race-{index}"));
        match store.claim(&request(&slot, "child")).await.unwrap() {
            Claim::Claimed { attempt, .. } => say(format!("won {index} {attempt}")),
            Claim::Held { .. } => say(format!("held {index}")),
            other => panic!("{other:?}"),
        }
    }
}

/// Claims and completes one slot after another, and says so after each, until it fails or is killed.
async fn works(file: &Path) {
    let store = bench::open(file).await;
    for index in 0_u64.. {
        let request = request(&bench::slot(&format!("work-{}-{index}", std::process::id())), "child");
        let claimed = match store.claim(&request).await {
            Ok(Claim::Claimed { attempt, at, .. }) => request.granted(attempt, at),
            Ok(other) => panic!("{other:?}"),
            Err(error) => return say(format!("error {} {:?} {error}", error.kind.as_str(), error.applied)),
        };
        match store.complete(&claimed, &ended(&claimed, Outcome::Success), DONE).await {
            Ok(Settlement::Recorded) => say(claimed.slot.job()),
            Ok(other) => panic!("{other:?}"),
            Err(error) => return say(format!("error {} {:?} {error}", error.kind.as_str(), error.applied)),
        }
    }
}

/// Fills the disk beside the file until a claim fails, makes room, and claims again.
async fn refills(file: &Path) {
    let store = bench::open(file).await;
    let ballast = file.with_extension("ballast");
    let mut filling = std::fs::File::create(&ballast).unwrap();
    while filling.write_all(&[1; 512]).is_ok() {}
    let asked = request(&bench::slot("a"), "child");
    let mut tries = 0;
    // What SQLite has reserved already is used up first.
    let error = loop {
        match store.claim(&asked).await {
            Err(error) => break error,
            Ok(_) if tries < 1_000 => tries += 1,
            Ok(_) => panic!("the disk is never full"),
        }
    };
    say(error.kind.as_str());
    // Open, it would go on taking its room.
    drop(filling);
    std::fs::remove_file(&ballast).unwrap();
    match store.claim(&asked).await.unwrap() {
        Claim::Claimed { attempt, .. } => say(format!("granted as attempt {attempt}")),
        other => panic!("{other:?}"),
    }
}
