//! Where no thread can be started: the limit of a user's processes (RLIMIT_NPROC) is reached.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::program::{Ended, Place};

/// The threads that a process of this user may have with this place, all told. The user is nobody's, and has no other process:
/// root itself has no such limit.
fn limited(place: &Place, user: u32, threads: u32, args: &[&str]) -> Command {
    let is_root = rustix::process::geteuid().is_root();
    assert!(is_root || threads == 1, "as root only: this user has processes that the limit counts, too");
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = Command::new("prlimit");
    command.arg(format!("--nproc={threads}")).arg(env!("CARGO_BIN_EXE_cronward")).args(args);
    command.current_dir(place.path()).env_clear().env("PATH", "/usr/bin:/bin");
    if is_root {
        command.uid(user).gid(user);
    }
    command
}

/// Jobs each of which is warned of at the start of a node.
fn odd_jobs(count: usize) -> String {
    let job = |index| format!("[jobs.j{index}]\nschedule = \"*/5 * * * *\"\ncommand = [\"/bin/true\"]\n");
    std::iter::once("[store]\nurl = \"memory\"\n[defaults]\nslot = \"hour\"\n".to_owned())
        .chain((0..count).map(job))
        .collect()
}

const CANNOT: &str =
    "cannot start a thread: Resource temporarily unavailable (os error 11); allow this user more processes";

#[test]
fn a_node_that_can_start_no_thread_ends_with_70_and_one_line() {
    let place = Place::with_jobs(&odd_jobs(0));
    let told: Ended = limited(&place, 64_321, 1, &["run"]).output().unwrap().into();
    assert_eq!((told.code, &*told.stdout, told.stderr.lines().count()), (70, "", 1), "{}", told.stderr);
    assert!(told.stderr.starts_with("error: cannot write a log: Resource temporarily unavailable"), "{}", told.stderr);
}

#[test]
fn a_command_that_can_start_no_thread_ends_with_70_and_one_line() {
    let place = Place::new();
    let line = ["exec", "--store", "redis://localhost:1", "--job", "push", "--no-wait", "--", "/bin/echo", "never"];
    let told: Ended = limited(&place, 64_322, 1, &line).output().unwrap().into();
    assert_eq!((told.code, &*told.stdout, told.stderr.lines().count()), (70, "", 1), "{}", told.stderr);
    assert!(told.stderr.starts_with(&format!("error: {CANNOT}")), "{}", told.stderr);
}

#[test]
fn a_node_that_can_start_too_few_threads_has_written_its_log_by_then() {
    let place = Place::with_jobs(&odd_jobs(90));
    // The log's thread can be started, and then none or one of the two that a node needs.
    for threads in [2, 3] {
        let path = place.path().join("stderr");
        let mut command = limited(&place, 64_323, threads, &["run"]);
        let ended = command.stderr(File::create(&path).unwrap()).status().unwrap();
        let stderr = std::fs::read_to_string(&path).unwrap();
        assert_eq!(ended.code(), Some(70), "{threads}: {stderr}");
        let last = stderr.lines().last().unwrap();
        assert!(last.starts_with(&format!("error: {CANNOT}")), "{threads}: {stderr}");
        assert_eq!(stderr.lines().filter(|line| line.contains("\"WARN\"")).count(), 90, "{threads}: {stderr}");
    }
}
